//! Reads from replicas without the network how much they keep in memory.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::QueueView;
use fairlead_job::JobId;
use fairlead_scheduler::Replica;

use super::{process::Process, world::World};

/// Dimensions of a lab's jobs (accounts, queues, host keys), of which each may keep one job beyond the limit.
const DIMENSIONS_MAX: u64 = 96;
/// Requests that one host or user may have open at one replica, those among them that were given up.
const OPEN_MAX: u64 = 32;

async fn read(replica: &Replica, path: &str) -> Bytes {
    let request = http::Request::builder().uri(path).body(Bytes::new());
    // The paths are written here.
    let answer = replica.call(request.unwrap_or_default()).await;
    answer.into_body()
}

/// The value of a metric without labels.
fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

impl World {
    fn running(&self) -> Vec<(Arc<Process>, Arc<Replica>)> {
        let all = self.slots.iter().filter_map(super::process::Slot::up);
        all.filter(|(process, _)| !process.pause.is_on()).collect()
    }

    /// The named limits hold (I7), and no replica counted a state that breaks an invariant.
    pub(super) async fn counts_are_in_bounds(&self) {
        let jobs_max = u64::from(self.scenario.cache_jobs_max) + DIMENSIONS_MAX;
        let askers = self.scenario.hosts.len() + self.scenario.users;
        let waiters_max = u64::try_from(askers).unwrap_or(0) * OPEN_MAX;
        for (process, replica) in self.running() {
            let text = read(&replica, "/metrics").await;
            let text = String::from_utf8_lossy(&text);
            let limits = [
                ("fairlead_jobs_cached ", jobs_max),
                ("fairlead_waiters ", waiters_max),
            ];
            for number in ["I2", "I3", "I8", "I9"] {
                let name =
                    format!("fairlead_invariant_violations_total{{invariant=\"{number}\"}} ");
                let many = metric(&text, &name);
                if many > 0 {
                    self.violated(number, format!("{} counted {many}", process.name));
                }
            }
            for (name, max) in limits {
                let value = metric(&text, name);
                if value > max {
                    self.violated(
                        "I7",
                        format!("{}: {name}{value} is over {max}", process.name),
                    );
                }
            }
        }
    }

    /// What replicas say of a job that waits.
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

    /// What replicas still have in mind; empty when it is nothing.
    pub(super) async fn left_behind(&self) -> String {
        let mut left = Vec::new();
        for (process, replica) in self.running() {
            let text = read(&replica, "/metrics").await;
            let text = String::from_utf8_lossy(&text);
            for name in ["jobs_held", "jobs_cached", "claims_in_flight"] {
                let value = metric(&text, &format!("fairlead_{name} "));
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
