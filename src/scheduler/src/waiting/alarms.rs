//! Handles alarms of waiting jobs: a job becomes ready, has waited too long, or is too late.
//!
//! The store keeps for each waiting job the time of its next check (`alarm_ms`). Every other second a replica asks for
//! the alarms of the next seconds. It also remembers those that it wrote or was told. Rendezvous hashing puts one
//! replica first for each job; another one acts a little later if it is still needed. The next state follows from the
//! job's state and the time, and is written by compare-and-set. So it happens once, and depends on no memory.

use std::sync::Arc;

use fairlead_job::JobId;
use fairlead_store::{StoreError, StoredJob};

use crate::waiting::WaitingFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::controllers::AHEAD_MS;
use fairlead_lifecycle::{alarm::at_alarm, parent::is_released};

/// Alarms in one look.
const LOOK_MAX: u32 = 10_000;

impl WaitingFlow {
    /// Asks the store for the alarms of the next seconds.
    pub(crate) async fn read_alarms(&self) -> Result<(), StoreError> {
        let before_ms = self.ctx.clock.wall_ms().saturating_add(AHEAD_MS);
        let page = self.ctx.store.alarms(before_ms, LOOK_MAX).await?;
        let newest = page
            .jobs
            .iter()
            .filter(|job| self.jobs.weigh(job.state.job_id, job.version));
        newest.for_each(|job| self.jobs.set_alarm(job));
        Ok(())
    }

    /// Does what is due.
    pub(crate) async fn ring(self: Arc<Self>, due: Vec<(JobId, StoredJob)>) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        for (id, stored) in due {
            if is_released(&stored.state) {
                // What becomes of it depends on its shards.
                self.jobs.note_shards(&stored.state);
                self.jobs.parents.look_at(id, self.ctx.clock.now());
                continue;
            }
            let next = |state: &_| Ok(at_alarm(state, now_ms));
            self.jobs.change_known(stored, next).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;
    use std::collections::BTreeSet;

    use fairlead_job::{Alternative, Backoff, Health};
    use fairlead_store::{JobState, Otherwise};

    use super::*;
    use crate::testing::{flows, state, store_job, waits};
    use fairlead_lifecycle::backoff::pause_ms;

    #[test]
    fn jobs_that_were_lost_together_come_back_at_times_of_their_own() {
        let pause = |n| {
            pause_ms(&JobState {
                attempt: 5,
                ..state(n)
            })
        };
        let pauses: BTreeSet<u64> = (1..=50).map(pause).collect();
        assert!(
            pauses.iter().all(|ms| (4_000..=8_000).contains(ms)),
            "{pauses:?}"
        );
        assert!(pauses.len() > 30, "{pauses:?}");
        let at_once = Some(Backoff {
            first_s: 0,
            factor: 1,
            max_s: 0,
        });
        assert_eq!(
            pause_ms(&JobState {
                backoff: at_once,
                attempt: 2,
                ..state(1)
            }),
            0
        );
    }

    fn parked(start_ms: u64) -> JobState {
        JobState {
            ready: false,
            start_ms,
            ..state(1)
        }
    }

    #[test]
    fn a_job_begins_at_its_time_and_not_before() {
        let job = parked(100).set_alarm();
        assert_eq!((job.alarm_ms, at_alarm(&job, 99)), (100, None));
        let begun = at_alarm(&job, 100).unwrap().set_alarm();
        assert_eq!(
            (begun.ready, begun.ready_ms, begun.alarm_ms),
            (true, 100, 0)
        );
        assert_eq!(at_alarm(&begun, 1_000), None);
    }

    #[test]
    fn a_time_that_has_come_leaves_what_else_is_waited_for() {
        let waits = Some(waits(&serde_json::json!({"wait_on": {"7": null}})));
        let job = JobState {
            waits,
            ..parked(100)
        };
        let next = at_alarm(&job, 100).unwrap().set_alarm();
        assert!(!next.ready && next.waits.is_some());
        assert_eq!((next.start_ms, next.alarm_ms), (0, 0));
    }

    #[test]
    fn a_job_that_waited_too_long_ends_and_its_time_begins_when_it_is_ready() {
        let job = JobState {
            queue_timeout_s: 5,
            ..parked(100)
        }
        .set_alarm();
        assert_eq!(job.alarm_ms, 100, "not ready: its time does not run");
        let ready = at_alarm(&job, 100).unwrap().set_alarm();
        assert_eq!((ready.alarm_ms, at_alarm(&ready, 5_099)), (5_100, None));
        let end = at_alarm(&ready, 5_100).unwrap().set_alarm();
        assert_eq!(
            (end.stage, end.health),
            (Stage::Finish, Health::TimeoutSubmit)
        );
        assert_eq!(end.alarm_ms, 0);
    }

    #[test]
    fn nobody_waits_for_another_host_for_ever() {
        let job = JobState {
            not_on: vec!["bad".to_owned()],
            ..parked(100)
        }
        .set_alarm();
        let ready = at_alarm(&job, 100).unwrap().set_alarm();
        let until_ms = 100 + JobState::ELSEWHERE_MS;
        assert_eq!(ready.alarm_ms, until_ms);
        assert_eq!(at_alarm(&ready, until_ms - 1), None);
        let anywhere = at_alarm(&ready, until_ms).unwrap().set_alarm();
        assert!(anywhere.ready && anywhere.not_on.is_empty());
        assert_eq!(anywhere.alarm_ms, 0);
        assert!(anywhere.reason.contains("where it failed"));
    }

    #[test]
    fn a_further_alternative_holds_after_a_wait() {
        let tags = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>();
        let job = |last: &[&str]| {
            let job = JobState {
                any_of: vec![Alternative {
                    tags: tags(&["nvme"]),
                    not_tags: Vec::new(),
                }],
                otherwise: Some(Box::new(Otherwise {
                    after_s: 60,
                    tags: tags(last),
                    not_tags: Vec::new(),
                })),
                ..parked(100)
            };
            at_alarm(&job.set_alarm(), 100).unwrap().set_alarm()
        };
        let ready = job(&["ssd"]);
        assert_eq!(
            ready.alarm_ms, 60_100,
            "it counts from when the job is ready"
        );
        assert_eq!(at_alarm(&ready, 60_099), None);
        let wide = at_alarm(&ready, 60_100).unwrap().set_alarm();
        assert_eq!((wide.any_of.len(), wide.alarm_ms), (2, 0));
        assert_eq!(wide.any_of[1].tags, ["ssd"]);
        assert_eq!(at_alarm(&wide, u64::MAX), None);
        let anywhere = at_alarm(&job(&[]), 60_100).unwrap();
        assert!(anywhere.any_of.is_empty() && anywhere.otherwise.is_none());
    }

    #[test]
    fn a_deadline_ends_what_has_not_begun() {
        let job = JobState {
            finish_by_ms: 50,
            ..parked(100)
        }
        .set_alarm();
        assert_eq!(job.alarm_ms, 50);
        assert_eq!(at_alarm(&job, 50).unwrap().health, Health::TimeoutSubmit);
        let held = JobState {
            stage: Stage::Running,
            finish_by_ms: 50,
            ..state(1)
        };
        assert_eq!(
            (held.clone().set_alarm().alarm_ms, at_alarm(&held, 60)),
            (0, None)
        );
    }

    #[tokio::test]
    async fn what_is_due_is_done_once_whoever_else_does_it() {
        let (_data, flows) = flows().await;
        let start_ms = flows.ctx.clock.wall_ms();
        let job = store_job(
            &flows,
            JobState {
                start_ms,
                ..parked(0)
            }
            .set_alarm(),
        )
        .await;
        flows.waiting.read_alarms().await.unwrap();
        let due = flows.jobs.alarms.due(flows.ctx.clock.wall_ms());
        assert_eq!(due, [(job.state.job_id, job.clone())]);
        Arc::clone(&flows.waiting).ring(due.clone()).await.unwrap();
        let begun = flows.jobs.stored_job(job.state.job_id).await.unwrap();
        assert!(begun.state.ready);
        // Another replica that had read the same.
        Arc::clone(&flows.waiting).ring(due).await.unwrap();
        assert_eq!(
            flows.jobs.stored_job(job.state.job_id).await.unwrap(),
            begun
        );
    }
}
