//! Looks at the machines of a pool: whether each boots, runs jobs or is idle, and how long its jobs still take.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_dispatch::JobKind;
use fairlead_job::TboxType;
use fairlead_scaler::{Activity, Machine, RUN_UNKNOWN_MS, Wear, left_ms};
use fairlead_store::{JobState, StoreError};

use crate::{
    placement::shapes::{Place, Shape},
    scaling::ScalingFlow,
};
use fairlead_known::{
    hosts::Host,
    pools::{FleetDoc, FleetMachine, PoolDoc},
};
use fairlead_lifecycle::engine_facts::class_of;

/// Thousandths of a machine.
const WHOLE: u64 = 1_000;

/// A job whose times are asked for.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    suite: String,
    class: u64,
    group: String,
    elapsed_ms: u64,
}

/// What is known of a [`Kind`], ms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) mean_ms: Option<u64>,
    left_ms: Option<u64>,
}

/// For what machines are looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look<'a> {
    /// They are idle since then at the earliest, UTC epoch ms.
    pub(super) since_ms: u64,
    /// Those that are idle since they were met at the earliest: when that was, UTC epoch ms.
    pub(super) met: Option<&'a BTreeMap<String, u64>>,
    /// What waits for them.
    pub(super) shapes: &'a [Shape],
    /// Jobs that end within so long leave their room to what waits, ms.
    pub(super) horizon_ms: u64,
}

impl Kind {
    pub(super) fn of(state: &JobState, group: &str, now_ms: u64) -> Self {
        let elapsed_ms = match state.dispatch_ms {
            0 => 0,
            since_ms => now_ms.saturating_sub(since_ms),
        };
        Self {
            suite: state.suite.clone(),
            class: class_of(&state.fingerprint),
            group: group.to_owned(),
            elapsed_ms,
        }
    }
}

/// The largest part of a machine that a job takes, thousandths, 1 to 1,000.
pub(super) fn share(state: &JobState, memory_mb: u32, cpus: Option<u32>) -> u32 {
    if state.tbox_type == TboxType::Hw {
        return 1_000;
    }
    let part = |takes: u32, has: u32| {
        let part = u64::from(takes)
            .saturating_mul(WHOLE)
            .div_ceil(u64::from(has.max(1)));
        u32::try_from(part.clamp(1, WHOLE)).unwrap_or(1_000)
    };
    let of_cpus = cpus.map_or(1, |cpus| part(state.cpus, cpus));
    part(state.memory_mb, memory_mb).max(of_cpus)
}

impl ScalingFlow {
    /// How long jobs take, as the engine knows it, in the order asked for.
    pub(super) async fn run_times_of(&self, kinds: Vec<Kind>) -> Vec<Times> {
        let many = kinds.len();
        let asked = self.ctx.engine.ask(move |engine, _| {
            let times = kinds.iter().map(|kind| {
                let known = engine.run_times().of(JobKind {
                    suite: &kind.suite,
                    class: kind.class,
                    group: &kind.group,
                });
                Times {
                    mean_ms: known.and_then(fairlead_dispatch::Histogram::mean_ms),
                    left_ms: known.and_then(|known| known.left_ms(kind.elapsed_ms)),
                }
            });
            times.collect::<Vec<_>>()
        });
        let unknown = Times {
            mean_ms: None,
            left_ms: None,
        };
        asked.await.unwrap_or_else(|| vec![unknown; many])
    }

    /// The machines of a pool that count: those that do not retire. One that is tried out boots as long as that takes.
    pub(super) async fn machines_of(
        &self,
        look: &Look<'_>,
        pool: &str,
        of: &PoolDoc,
        fleet: &FleetDoc,
    ) -> Result<Vec<Machine>, StoreError> {
        let tried = self.tried_of(fleet).await?;
        let counts = fleet.machines.iter().filter(|(_, one)| !one.retires());
        let template = of.template(pool);
        let mut machines = Vec::new();
        for (name, one) in counts {
            if one.met_ms == 0 || tried.contains(name) {
                let since_ms = one.boots_since(self.ctx.clock.wall_ms());
                machines.push(Machine::new(name, Activity::Boots { since_ms }));
                continue;
            }
            let met = look.met.and_then(|met| met.get(name)).copied();
            let since_ms = met.unwrap_or(look.since_ms);
            let look = Look { since_ms, ..*look };
            machines.push(self.look_at(&look, name, &template).await);
        }
        Ok(machines)
    }

    /// Hosts of no pool that live, and could run some of what waits.
    pub(super) async fn others_of(
        &self,
        look: &Look<'_>,
        fleets: &BTreeSet<String>,
    ) -> Vec<Machine> {
        let wanted: BTreeSet<&String> = look.shapes.iter().flat_map(Shape::keys).collect();
        let now_ms = self.ctx.clock.wall_ms();
        let mut found: BTreeMap<String, Host> = BTreeMap::new();
        self.lab.hosts.each(|name, host| {
            let counts = !fleets.contains(name) && host.is_heard(now_ms);
            if counts && host.keys(name).iter().any(|key| wanted.contains(key)) {
                found.insert(name.to_owned(), host.clone());
            }
        });
        let mut others = Vec::new();
        for (name, host) in found {
            let machine = self.look_at(look, &name, &host).await;
            if machine.unfit.len() < look.shapes.len() {
                others.push(machine);
            }
        }
        others
    }

    /// What a machine that has asked for work does, and which of the shapes it cannot run. `host`: what it has.
    async fn look_at(&self, look: &Look<'_>, name: &str, host: &Host) -> Machine {
        let is_loaded = self.lab.hosts.get(name).is_some_and(|one| one.is_loaded());
        if is_loaded || self.lab.cordons.of(name).is_some() {
            return Machine::new(name, Activity::Closed);
        }
        let jobs = self.jobs.live.of_host(name);
        let states: Vec<&JobState> = jobs.iter().map(|live| &live.stored.state).collect();
        let left_ms = self.left_of(&states).await;
        let activity = if states.is_empty() {
            let last_ms = self.lab.pools.last_job(name).end_ms;
            Activity::Idle {
                since_ms: look.since_ms.max(last_ms),
            }
        } else {
            // A host with room counts as one that is free the sooner.
            let left = states.iter().zip(&left_ms).map(|(state, left_ms)| {
                let share = u64::from(share(state, host.memory_mb, host.cpus));
                left_ms.saturating_mul(share).div_euclid(WHOLE)
            });
            Activity::Runs {
                left_ms: left.fold(0, u64::saturating_add),
            }
        };
        let mut machine = Machine::new(name, activity);
        if !look.shapes.is_empty() {
            let mut place = Place::empty(name, host, self.placement.served_accounts(name));
            for (state, left_ms) in states.iter().zip(left_ms) {
                if left_ms > look.horizon_ms {
                    place = place.beside(state);
                }
            }
            machine.unfit = place.unfit(look.shapes);
        }
        machine
    }

    /// How much longer each of these jobs has its host, ms.
    async fn left_of(&self, jobs: &[&JobState]) -> Vec<u64> {
        if jobs.is_empty() {
            return Vec::new();
        }
        let now_ms = self.ctx.clock.wall_ms();
        let kinds = jobs
            .iter()
            .map(|state| Kind::of(state, &state.host_group, now_ms));
        let times = self.run_times_of(kinds.collect()).await;
        let left = jobs.iter().zip(times).map(|(state, times)| {
            let elapsed_ms = now_ms.saturating_sub(state.dispatch_ms);
            times
                .left_ms
                .unwrap_or_else(|| left_ms(times.mean_ms.unwrap_or(RUN_UNKNOWN_MS), elapsed_ms))
        });
        left.collect()
    }

    /// What tells whether a machine is replaced. `activity`: what it does.
    pub(super) fn wear_of(&self, name: &str, machine: &FleetMachine, activity: Activity) -> Wear {
        let now_ms = self.ctx.clock.wall_ms();
        let host = self.lab.hosts.get(name);
        let is_silent = host.is_some_and(|host| !host.is_heard(now_ms));
        let has_jobs = !self.jobs.live.of_host(name).is_empty();
        let idle_ms = match activity {
            Activity::Idle { since_ms } => Some(now_ms.saturating_sub(since_ms)),
            Activity::Closed if !has_jobs => Some(0),
            Activity::Boots { .. } | Activity::Runs { .. } | Activity::Closed => None,
        };
        Wear {
            is_unhealthy: machine.met_ms > 0 && (is_silent || self.lab.cordons.is_suspect(name)),
            jobs: machine.jobs,
            age_ms: now_ms.saturating_sub(machine.asked_ms),
            idle_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;

    use super::*;
    use crate::testing::{answer_questions, flows, state, store_job};

    fn host() -> Host {
        Host {
            kinds: vec![TboxType::Dc],
            arch: "x86_64".to_owned(),
            memory_mb: 4_096,
            waiting: 1,
            ..Host::default()
        }
    }

    #[test]
    fn a_job_takes_the_largest_part_of_a_machine() {
        let job = JobState {
            tbox_type: TboxType::Dc,
            memory_mb: 1_000,
            cpus: 2,
            ..state(1)
        };
        assert_eq!(share(&job, 4_000, None), 250);
        assert_eq!(share(&job, 4_000, Some(4)), 500);
        assert_eq!(share(&job, 500, Some(4)), 1_000);
        let whole = JobState {
            tbox_type: TboxType::Hw,
            ..job
        };
        assert_eq!(share(&whole, 4_000, Some(4)), 1_000);
    }

    #[tokio::test]
    async fn hosts_of_no_pool_count_by_what_they_could_run() {
        let (_data, flows) = flows().await;
        let tags = vec!["special".to_owned()];
        let tagged = Host {
            tags: tags.clone(),
            ..host()
        };
        for (name, host) in [("plain", host()), ("tagged", tagged), ("kept", host())] {
            flows
                .hosts
                .lab
                .hosts
                .update(name, |known| *known = host)
                .unwrap();
        }
        let asked = fairlead_api::HostReserve {
            accounts: vec!["ann".to_owned()],
            until: "+1h".to_owned(),
            reason: String::new(),
        };
        flows
            .hosts
            .reserve_host("kept", &asked, "root")
            .await
            .unwrap();
        let shapes = [state(1), JobState { tags, ..state(2) }].map(|job| Shape::of(&job));
        let others = async |shapes: &[Shape]| {
            let look = Look {
                shapes,
                ..Look::default()
            };
            let others = flows.scaling.others_of(&look, &BTreeSet::new()).await;
            let named = others.into_iter().map(|one| (one.name, one.unfit));
            named.collect::<Vec<_>>()
        };
        let unfit = |name: &str, unfit: &[u32]| (name.to_owned(), unfit.to_vec());
        let all = [unfit("plain", &[1]), unfit("tagged", &[])];
        assert_eq!(others(&shapes).await, all);
        assert_eq!(others(&shapes[1..]).await, [unfit("tagged", &[])]);
        assert_eq!(others(&[]).await, []);
    }

    #[tokio::test]
    async fn a_busy_host_has_room_for_what_fits_beside_its_jobs() {
        let (_data, flows) = flows().await;
        answer_questions(&flows);
        flows
            .hosts
            .lab
            .hosts
            .update("h", |known| *known = host())
            .unwrap();
        let job = JobState {
            stage: Stage::Running,
            host: "h".to_owned(),
            dispatch_ms: flows.ctx.clock.wall_ms(),
            ..state(1)
        };
        flows.jobs.observe(&store_job(&flows, job).await);
        let mut whole = state(2);
        whole.memory_mb = 4_096;
        let shapes = [state(3), whole].map(|job| Shape::of(&job));
        let unfit = async |horizon_ms: u64| {
            let look = Look {
                shapes: &shapes,
                horizon_ms,
                ..Look::default()
            };
            flows
                .scaling
                .others_of(&look, &BTreeSet::new())
                .await
                .remove(0)
                .unfit
        };
        assert_eq!(unfit(RUN_UNKNOWN_MS / 2).await, [1]);
        assert_eq!(unfit(2 * RUN_UNKNOWN_MS).await, [0; 0]);
    }
}
