//! Explains how pools deal with a job that waits.

use std::collections::BTreeSet;

use fairlead_scaler::{Activity, Machine, Work, left_ms, queue_time};
use fairlead_store::JobState;

use super::machines::{Kind, Look, share};
use crate::{
    placement::shapes::{Place, Shape},
    scaling::ScalingFlow,
};
use fairlead_base::errors::Refusal;
use fairlead_known::pools::{FleetDoc, PoolDoc};

/// A pool that could run a job, as it is now.
struct Asked {
    pool: PoolDoc,
    fleet: FleetDoc,
    machines: Vec<Machine>,
    /// Whether the machines and hosts that there are would begin this job in time, if it were the only one.
    is_served: bool,
    /// Whether all pools together have as many machines as they may.
    is_quota_used: bool,
}

impl ScalingFlow {
    /// What each pool that could run the job does about it. A store that does not answer says nothing.
    pub(crate) async fn pools_say(&self, state: &JobState) -> Vec<String> {
        let shape = Shape::of(state);
        let may_begin = self.admission().await.admits(&state.queue, &state.account);
        let mut words = Vec::new();
        // A job is one of the first pool that could run it and decides.
        let mut first: Option<String> = None;
        for (name, pool) in self.lab.pools.all() {
            let place = Place::empty(&name, &pool.template(&name), Vec::new());
            if !shape.fits(&place) {
                continue;
            }
            let could = format!("a machine of pool {name} could run it");
            if pool.paused {
                words.push(format!("{could}, but the pool is paused"));
            } else if !may_begin {
                words.push(format!(
                    "{could}, but none is asked for while no job of its queue and account may start"
                ));
            } else if let Some(first) = &first {
                words.push(format!("{could}, but pool {first} is asked first"));
            } else {
                first = Some(name.clone());
                let asked = Box::pin(self.look_for(state, &shape, &name, pool)).await;
                words.extend(asked.ok().map(|asked| self.pool_says(&could, &asked)));
            }
        }
        words
    }

    async fn look_for(
        &self,
        state: &JobState,
        shape: &Shape,
        name: &str,
        pool: PoolDoc,
    ) -> Result<Asked, Refusal> {
        let read = self.ctx.docs.read::<FleetDoc>(name).await?;
        let fleet = read.map(|read| read.doc).unwrap_or_default();
        let boots = fleet.boot_times(&pool);
        let limits = pool.limits();
        let look = Look {
            shapes: std::slice::from_ref(shape),
            horizon_ms: pool.horizon_ms(boots),
            ..Look::default()
        };
        let machines = self.machines_of(&look, name, &pool, &fleet).await?;
        let own: BTreeSet<String> = fleet.machines.keys().cloned().collect();
        let others = self.others_of(&look, &own).await;
        let now_ms = self.ctx.clock.wall_ms();
        let times = self.run_times_of(vec![Kind::of(state, name, now_ms)]).await;
        let work = Work {
            share: share(state, pool.machine.memory_mb, pool.machine.cpus),
            expected_ms: times.first().and_then(|times| times.mean_ms),
            shape: 0,
        };
        let need = queue_time(&limits, &machines, &others, &[work], boots, None, now_ms);
        Ok(Asked {
            pool,
            fleet,
            machines,
            is_served: need.wanted == 0,
            is_quota_used: self.is_quota_used().await?,
        })
    }

    async fn is_quota_used(&self) -> Result<bool, Refusal> {
        let quota = self.lab.pools.quota();
        if quota == u32::MAX {
            return Ok(false);
        }
        let fleets = self.ctx.docs.list::<FleetDoc>().await?;
        let machines = fleets.iter().map(|(_, fleet)| fleet.doc.machines.len());
        let machines = machines.fold(0, usize::saturating_add);
        Ok(machines >= usize::try_from(quota).unwrap_or(usize::MAX))
    }

    fn pool_says(&self, could: &str, asked: &Asked) -> String {
        let Asked {
            pool,
            fleet,
            machines,
            is_served,
            is_quota_used,
        } = asked;
        let boots = fleet.boot_times(pool);
        let now_ms = self.ctx.clock.wall_ms();
        let ready_in = machines
            .iter()
            .filter_map(|machine| match machine.activity {
                Activity::Boots { since_ms } => {
                    let age_ms = now_ms.saturating_sub(since_ms);
                    Some(left_ms(boots.mean_ms, age_ms).div_ceil(1_000))
                }
                Activity::Runs { .. } | Activity::Idle { .. } | Activity::Closed => None,
            });
        let ready_in: Vec<u64> = ready_in.collect();
        if let Some(first) = ready_in.iter().min() {
            let many = ready_in.len();
            return format!("{could}: {many} boot, and the next is ready in about {first} s");
        }
        if *is_served {
            let seconds = pool.horizon_ms(boots).div_ceil(1_000);
            return format!(
                "{could}, but none is asked for this job alone: a host or machine that is there could begin it within {seconds} s"
            );
        }
        let there = machines.len();
        if !fleet.problem.is_empty() {
            return format!("{could}, but its provider failed: {}", fleet.problem);
        }
        if there >= usize::try_from(pool.max).unwrap_or(usize::MAX) {
            return format!("{could}: the pool has its {there} machines, which is its max");
        }
        if *is_quota_used {
            let quota = self.lab.pools.quota();
            return format!("{could}, but all pools have the {quota} machines of their quota");
        }
        if !self.providers.has(&pool.provider) {
            let provider = &pool.provider;
            return format!("{could}, but this replica has no provider '{provider}'");
        }
        let seconds = boots.mean_ms.div_ceil(1_000);
        format!("{could}: it has {there} machines, and a new one takes about {seconds} s")
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::{Event, Policy};
    use fairlead_job::TboxType;
    use fairlead_store::Version;

    use super::*;
    use crate::testing::{answer_questions, flows, state};
    use fairlead_known::hosts::Host;

    #[tokio::test]
    async fn a_machine_is_promised_only_if_no_host_that_is_there_could_begin_the_job() {
        let (_data, flows) = flows().await;
        answer_questions(&flows);
        let lab = &flows.hosts.lab;
        let tags = vec!["special".to_owned()];
        let mut pool = PoolDoc::unsaid();
        pool.machine.kinds = vec!["dc".to_owned()];
        pool.machine.arch = "x86_64".to_owned();
        pool.machine.memory_mb = 2_048;
        pool.machine.tags = tags.clone();
        let version = Version {
            primary_term: 1,
            seq_no: 1,
        };
        for name in ["first", "second"] {
            let pool = Some(pool.clone());
            lab.pools.with(|docs| docs.wrote(name, version, pool));
        }
        let plain = Host {
            kinds: vec![TboxType::Dc],
            arch: "x86_64".to_owned(),
            memory_mb: 2_048,
            waiting: 1,
            ..Host::default()
        };
        let known = lab.hosts.update("plain", |host| *host = plain);
        known.unwrap();
        let says = async |job: &JobState| flows.scaling.pools_say(job).await.join("; ");
        let words = says(&state(1)).await;
        let alone = "a machine of pool first could run it, but none is asked for this job alone";
        assert!(words.starts_with(alone), "{words}");
        assert!(words.ends_with("pool first is asked first"), "{words}");
        let tagged = JobState { tags, ..state(2) };
        let words = says(&tagged).await;
        assert!(words.contains("this replica has no provider"), "{words}");
        let quota = Some(PoolDoc {
            quota: Some(0),
            ..PoolDoc::default()
        });
        let all = fairlead_known::pools::ALL_POOLS;
        lab.pools.with(|docs| docs.wrote(all, version, quota));
        let words = says(&tagged).await;
        assert!(words.contains("the 0 machines of their quota"), "{words}");
        let paused = Policy {
            paused: true,
            ..Policy::default()
        };
        flows.ctx.engine.tell(Event::PolicyChanged(paused));
        let words = says(&tagged).await;
        assert!(words.contains("none is asked for while no job"), "{words}");
    }
}
