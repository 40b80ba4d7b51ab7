//! Taking what an answer brings: new jobs, and orders to stop some.

use std::{sync::Arc, time::Duration};

use fairlead_api::{Grant, StopOrder};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{core::Core, roster::Held};
use crate::{
    AgentEvent, Kinds,
    executor::{Stop, StopHandle, Why},
    job::{Course, JobFolder, suite_of},
};

/// Longest grace that an order may give.
const GRACE_MAX: Duration = Duration::from_hours(1);

impl Core {
    /// Starts a course for each job that fits. One that does not is left where it is: the next request
    /// does not name it, and so it goes back.
    pub(super) fn take(&mut self, grants: Vec<Grant>) {
        for grant in grants {
            let (job_id, attempt) = (grant.job_id.clone(), grant.attempt);
            if self.roster.get(&job_id, attempt).is_some() {
                tracing::debug!(job_id, attempt, "granted again, it is here already");
                continue;
            }
            let room = self.roster.free(&self.context.config);
            let memory_mb = match self.context.config.kinds {
                Kinds::Hw => 0,
                Kinds::Host { .. } => grant.memory_mb,
            };
            if room.slots == 0 || memory_mb > room.free_mb {
                tracing::warn!(
                    job_id,
                    attempt,
                    memory_mb,
                    free_mb = room.free_mb,
                    slots = room.slots,
                    "granted more than was offered, it goes back"
                );
                continue;
            }
            match JobFolder::new(&self.context.config.work_dir, &job_id, attempt) {
                Ok(folder) => self.start(grant, folder, memory_mb),
                Err(error) => tracing::error!(job_id, %error, "a grant that cannot be taken"),
            }
        }
    }

    fn start(&mut self, grant: Grant, folder: JobFolder, memory_mb: u32) {
        let (stop_handle, stop) = StopHandle::new();
        let gone = CancellationToken::new();
        // A newer attempt means that the older one is lost: never both at once.
        let after = self.roster.running_attempt(&grant.job_id).map(|older| {
            older
                .stop
                .forget("a newer attempt was granted", self.context.config.grace);
            older.gone.clone()
        });
        self.roster.insert(Held {
            named: fairlead_api::HeldJob {
                job_id: grant.job_id.clone(),
                attempt: grant.attempt,
                claim_token: grant.claim_token.clone(),
            },
            memory_mb,
            running: true,
            hold_until: None,
            stop: stop_handle.clone(),
            gone: gone.clone(),
            cut_off_since: grant.stop_when_cut_off.then(Instant::now),
        });
        tracing::info!(
            job_id = grant.job_id,
            attempt = grant.attempt,
            memory_mb,
            "job taken"
        );
        self.context.events.send(AgentEvent::Granted {
            job_id: grant.job_id.clone(),
            attempt: grant.attempt,
            suite: suite_of(&grant),
            memory_mb,
        });
        let key = (grant.job_id.clone(), grant.attempt);
        let course = Course {
            context: Arc::clone(&self.context),
            grant,
            folder,
            run: Uuid::new_v4().to_string(),
            stop_handle,
            stop,
            over: self.over.clone(),
            gone,
            after,
        };
        self.spawn(key, course.run());
    }

    /// Passes orders on to the jobs that they are for; all others are gone already.
    pub(super) fn obey(&mut self, orders: Vec<StopOrder>) {
        for order in orders {
            let Some(job) = self.roster.get(&order.job_id, order.attempt) else {
                continue;
            };
            let grace = Duration::from_secs(u64::from(order.grace_s)).min(GRACE_MAX);
            if order.health.is_empty() {
                job.stop.forget(order.reason, grace);
            } else {
                job.stop.order(Stop {
                    why: Why::Order {
                        health: order.health,
                        reason: order.reason,
                    },
                    grace,
                });
            }
        }
    }
}
