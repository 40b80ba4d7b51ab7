//! Reads from replicas without the network how much they keep in memory.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::QueueView;
use fairlead_job::JobId;
use fairlead_scheduler::Replica;

use super::{process::Process, world::World};

/// Number of dimensions of a lab's jobs (accounts, queues, host keys). Each may keep one job beyond the limit.
const DIMENSIONS_MAX: u64 = 96;
/// Maximum number of open requests of one host or user at one replica, including abandoned ones.
const OPEN_MAX: u64 = 32;

async fn read(replica: &Replica, path: &str) -> Bytes {
    let request = http::Request::builder().uri(path).body(Bytes::new());
    // The paths are constants here, so the request is valid.
    let answer = replica.call(request.unwrap_or_default()).await;
    answer.into_body()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl World {
    fn running(&self) -> Vec<(Arc<Process>, Arc<Replica>)> {
        let all = self.slots.iter().filter_map(super::process::Slot::up);
        all.filter(|(process, _)| !process.pause.is_on()).collect()
    }

    /// Checks that the named limits hold (I7), and that no replica counted a state that violates an invariant.
    pub(super) async fn counts_are_in_bounds(&self) {
        let jobs_max = u64::from(self.scenario.cache_jobs_max) + DIMENSIONS_MAX;
        let askers = self.scenario.hosts.len() + self.scenario.users;
        let waiters_max = number(askers) * OPEN_MAX;
        for (process, replica) in self.running() {
            let gauges = replica.gauges().await;
            for (invariant, count) in gauges.violations {
                self.violated(invariant, format!("{} counted {count}", process.name));
            }
            let limits = [
                ("jobs_cached", gauges.jobs_cached, jobs_max),
                ("waiters", number(gauges.waiters), waiters_max),
            ];
            for (name, value, max) in limits {
                if value > max {
                    let what = format!("{}: {name} {value} is over {max}", process.name);
                    self.violated("I7", what);
                }
            }
        }
    }

    /// Returns the replicas' explanations of a waiting job.
    pub(super) async fn explained(&self, id: JobId) -> String {
        let mut said = Vec::new();
        for (process, replica) in self.running() {
            let text = read(&replica, &format!("/scheduler/v1/jobs/{id}/explain")).await;
            said.push(format!(
                "{}: {}",
                process.name,
                String::from_utf8_lossy(&text)
            ));
        }
        said.join("; ")
    }

    /// Returns what replicas still have in memory. Empty: nothing.
    pub(super) async fn left_behind(&self) -> String {
        let mut left = Vec::new();
        for (process, replica) in self.running() {
            let gauges = replica.gauges().await;
            let kept = [
                ("jobs_held", number(gauges.jobs_held)),
                ("jobs_cached", gauges.jobs_cached),
                ("claims_in_flight", gauges.claims_in_flight),
            ];
            for (name, value) in kept {
                if value > 0 {
                    left.push(format!("{name} {value} at {}", process.name));
                }
            }
            let queues = read(&replica, "/scheduler/v1/queues").await;
            let queues: Vec<QueueView> = serde_json::from_slice(&queues).unwrap_or_default();
            for queue in queues.iter().filter(|it| it.waiting + it.running > 0) {
                left.push(format!("queue {} at {}", queue.name, process.name));
            }
        }
        left.join(", ")
    }
}
