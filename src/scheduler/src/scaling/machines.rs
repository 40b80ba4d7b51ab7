//! Looks at the machines of a pool: whether each boots, runs jobs or is idle, and how long its jobs still take.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_dispatch::JobKind;
use fairlead_job::TboxType;
use fairlead_scaler::{Activity, Machine, RUN_UNKNOWN_MS, Wear, left_ms};
use fairlead_store::{JobState, StoreError};

use super::memory::Scaler;
use crate::{
    core::Core,
    known::pools::{FleetDoc, FleetMachine, PoolDoc},
    lifecycle::engine_facts::class_of,
};

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

impl Core {
    /// How long jobs take, as the engine knows it, in the order asked for.
    pub(super) async fn run_times_of(&self, kinds: Vec<Kind>) -> Vec<Times> {
        let many = kinds.len();
        let asked = self.engine.ask(move |engine, _| {
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

    /// The machines of a pool that count: those that do not retire. They are idle since `since_ms` at the earliest, or since
    /// they were met. One that is tried out boots as long as that takes.
    pub(super) async fn machines_of(
        &self,
        since_ms: u64,
        met: &BTreeMap<String, u64>,
        pool: &PoolDoc,
        fleet: &FleetDoc,
    ) -> Result<Vec<Machine>, StoreError> {
        let tried = self.tried_of(fleet).await?;
        let counts = fleet.machines.iter().filter(|(_, one)| !one.retires());
        let mut machines = Vec::new();
        for (name, one) in counts {
            let activity = if one.met_ms == 0 || tried.contains(name) {
                Activity::Boots {
                    since_ms: one.asked_ms,
                }
            } else {
                let since_ms = met.get(name).copied().unwrap_or(since_ms);
                self.activity(name, pool.machine.memory_mb, pool.machine.cpus, since_ms)
                    .await
            };
            machines.push(Machine {
                name: name.clone(),
                activity,
            });
        }
        Ok(machines)
    }

    /// Hosts of no pool that could run jobs of this one, and live.
    pub(super) async fn others_of(
        &self,
        scaler: &Scaler,
        name: &str,
        pool: &PoolDoc,
        fleets: &BTreeSet<String>,
    ) -> Vec<Machine> {
        let keys = pool.template(name).keys(name);
        let now_ms = self.clock.wall_ms();
        let mut found: BTreeMap<String, (u32, Option<u32>)> = BTreeMap::new();
        self.lab.hosts.each(|host, known| {
            let offers = known.keys(host).iter().any(|key| keys.contains(key));
            if offers && !fleets.contains(host) && known.is_heard(now_ms) {
                found.insert(host.to_owned(), (known.memory_mb, known.cpus));
            }
        });
        let mut others = Vec::new();
        for (name, (memory_mb, cpus)) in found {
            let activity = self.activity(&name, memory_mb, cpus, scaler.since_ms).await;
            others.push(Machine { name, activity });
        }
        others
    }

    /// What a host that has asked for work does. `since_ms`: it is idle since then at the earliest.
    async fn activity(
        &self,
        name: &str,
        memory_mb: u32,
        cpus: Option<u32>,
        since_ms: u64,
    ) -> Activity {
        let host = self.lab.hosts.get(name);
        if self.lab.cordons.of(name).is_some() || host.is_some_and(|host| host.is_loaded()) {
            return Activity::Closed;
        }
        let now_ms = self.clock.wall_ms();
        let jobs = self.jobs.live.of_host(name);
        if jobs.is_empty() {
            let last_ms = self.lab.pools.last_job(name).end_ms;
            return Activity::Idle {
                since_ms: since_ms.max(last_ms),
            };
        }
        let kinds = jobs.iter().map(|live| {
            let state = &live.stored.state;
            Kind::of(state, &state.host_group, now_ms)
        });
        let times = self.run_times_of(kinds.collect()).await;
        // A host with room counts as one that is free the sooner.
        let left = jobs.iter().zip(times).map(|(live, times)| {
            let state = &live.stored.state;
            let elapsed_ms = now_ms.saturating_sub(state.dispatch_ms);
            let left = times
                .left_ms
                .unwrap_or_else(|| left_ms(times.mean_ms.unwrap_or(RUN_UNKNOWN_MS), elapsed_ms));
            let share = u64::from(share(state, memory_mb, cpus));
            left.saturating_mul(share).div_euclid(WHOLE)
        });
        Activity::Runs {
            left_ms: left.fold(0, u64::saturating_add),
        }
    }

    /// What tells whether a machine is replaced. `activity`: what it does.
    pub(super) fn wear_of(&self, name: &str, machine: &FleetMachine, activity: Activity) -> Wear {
        let now_ms = self.clock.wall_ms();
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
    use super::*;
    use crate::testing::state;

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
}
