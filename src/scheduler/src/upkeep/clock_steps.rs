//! Detects steps of the wall clock, logs them, and follows them. Stops a replica whose clock is off from the others'.
//!
//! Somebody sets the clock of a machine, or a virtual machine wakes up, and the wall clock jumps by an hour. If leases
//! and time limits used that clock, a jump forward would end every running job at once. After a jump back, a job that
//! hangs would run an hour too long. So leases and time limits of running jobs use the monotonic clock, and a step ends
//! none of them. But "begin at 12:30" means the wall clock. If nothing followed the step, a timer would run an hour
//! late.
//!
//! So each second this module compares the two clocks. A change of their distance by more than five seconds between two
//! looks is a step. A smaller change may be a time service that slews the clock. After a step, alarms of waiting jobs
//! and timers are looked up again by the new time. For example, the wall clock jumps from 12:00 to 13:00:
//!
//! ```text
//! a job began at 11:55, limit 10 minutes   it has 5 minutes left, as before the step
//! a job is to begin at 12:30               it may begin now
//! a timer is due each day at 12:30         it is due now, and 30 minutes late: one run, or a missed run
//! the clock is then set back to 12:00      12:30 comes again, and the timer does not run again
//! ```
//!
//! A clock may also be wrong without a step: [`fairlead_base::lab_clock`] compares it with those of the other replicas.
//! While the clock is off, the replica writes nothing and serves nobody, and hosts that wait here go to another
//! replica. After a minute the replica stops itself. If the clock agrees again before that, work goes on by the new
//! time.
//!
//! Limits: a step of five seconds or less between two looks is not noticed. A replica without others has no clock to
//! compare with, and follows each step.

use std::{sync::Arc, time::Duration};

use fairlead_dispatch::Millis;
use serde_json::json;

use crate::upkeep::UpkeepFlow;
use fairlead_base::lab_clock::OFF_MS;

/// How often the two clocks are compared, ms.
const LOOK_MS: u64 = 1_000;
/// A replica whose clock is off for so long stops itself, ms.
const STOPS_AFTER_MS: u64 = 60_000;
/// A change of the wall clock between two looks beyond this is a step, ms. Less is what a time service may slew.
const STEP_MS: u64 = 5_000;

impl UpkeepFlow {
    /// Looks for steps until the replica stops.
    pub(crate) async fn watch_clock(self: Arc<Self>) {
        let mut ahead_ms = self.ctx.clock.ahead_ms();
        let mut off_since = None;
        // It may have been set back while no replica was there.
        if let Err(error) = self.timers.follow_clock(false).await {
            tracing::warn!(%error, "timers cannot follow the clock and keep their old times");
        }
        let look = Duration::from_millis(LOOK_MS);
        let pause = || self.ctx.tasks.until_draining(self.ctx.clock.sleep(look));
        while pause().await.is_some() {
            ahead_ms = self.look_at_clock(ahead_ms).await;
            off_since = self.look_whether_off(off_since).await;
        }
    }

    /// Compares the clocks with what they were. Answers what the wall clock is ahead now.
    pub(crate) async fn look_at_clock(self: &Arc<Self>, before_ms: i64) -> i64 {
        let ahead_ms = self.ctx.clock.ahead_ms();
        let by_ms = ahead_ms.saturating_sub(before_ms);
        if by_ms.unsigned_abs() > STEP_MS {
            self.clock_stepped(by_ms).await;
        }
        ahead_ms
    }

    /// Tells that the clock is off or right again, and gives up when it was off for too long. `since`: since when it is off,
    /// as this answered last.
    pub(crate) async fn look_whether_off(
        self: &Arc<Self>,
        since: Option<Millis>,
    ) -> Option<Millis> {
        let (off, now) = (self.ctx.clock.off_ms(), self.ctx.clock.now());
        match (off, since) {
            (None, None) => return None,
            (None, Some(_)) => {
                tracing::warn!("the clock of this machine agrees with the other replicas' again");
                // What others changed meanwhile, and what was due.
                self.follow_new_clock(true).await;
                return None;
            }
            (Some(by_ms), None) => {
                tracing::error!(
                    by_ms,
                    most_ms = OFF_MS,
                    "the clock of this machine is off from those of the other replicas: this replica does nothing until it agrees, and stops in a minute (hint: chronyc tracking, timedatectl)"
                );
                let name = &self.ctx.config.replica;
                self.ctx
                    .audit(name, "clock.off", name, json!({ "by_ms": by_ms }));
                // Hosts that wait here go to another replica.
                self.jobs.waiters.hurry(|_| true);
            }
            (Some(by_ms), Some(since)) => {
                if now.0.saturating_sub(since.0) >= STOPS_AFTER_MS && !self.gave_up.is_cancelled() {
                    tracing::error!(
                        by_ms,
                        "the clock of this machine has been off for a minute: this replica stops"
                    );
                    self.gave_up.cancel();
                }
            }
        }
        since.or(Some(now))
    }

    async fn clock_stepped(self: &Arc<Self>, by_ms: i64) {
        tracing::warn!(
            by_ms,
            "the wall clock of this machine stepped: timers follow it, time limits of running jobs do not"
        );
        self.ctx.metrics.clock_stepped(by_ms);
        let detail = json!({ "by_ms": by_ms });
        self.ctx.audit(
            &self.ctx.config.replica,
            "clock.step",
            &self.ctx.config.replica,
            detail,
        );
        // A clock that is off is followed once it agrees with the others.
        if self.ctx.clock.off_ms().is_none() {
            self.follow_new_clock(by_ms < 0).await;
        }
    }

    /// Reads again what was to be looked at by the old clock. Timers follow a clock that was set back, or that may have been.
    async fn follow_new_clock(self: &Arc<Self>, is_back: bool) {
        self.jobs.alarms.clear();
        self.timers.known.clear();
        if is_back && let Err(error) = self.timers.follow_clock(true).await {
            tracing::warn!(%error, "timers do not follow the clock yet and keep their old times");
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Health, Stage};
    use fairlead_store::JobState;

    use super::*;
    use crate::{
        Clock, Config, Pause,
        flows::Flows,
        testing::{embedded, flows_over, held, store_job},
    };

    const START_MS: u64 = 1_795_228_560_000;
    const HOUR_MS: i64 = 3_600_000;

    async fn step(ms: u64) {
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    /// A replica, what steps its clock, and a job that runs there since now for a minute at most.
    async fn running(more: JobState) -> (tempfile::TempDir, Arc<Flows>, Arc<Pause>, JobState) {
        let data = tempfile::tempdir().unwrap();
        let pause = Arc::new(Pause::default());
        let clock = Clock::simulated(START_MS, Arc::clone(&pause));
        let flows = flows_over(
            embedded(&data),
            Config::embedded(data.path().to_owned()),
            clock,
        );
        let job = store_job(&flows, more).await;
        flows.jobs.observe(&job);
        (data, flows, pause, job.state)
    }

    fn runs() -> JobState {
        JobState {
            stage: Stage::Running,
            running_ms: START_MS,
            dispatch_ms: START_MS,
            deadline_ms: START_MS + 60_000,
            ..held()
        }
    }

    async fn look(flows: &Arc<Flows>, job: &JobState) -> JobState {
        flows.hosts.look_after(job.job_id).await;
        flows.jobs.stored_job(job.job_id).await.unwrap().state
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumps_ends_no_running_job() {
        for by_ms in [24 * HOUR_MS, -24 * HOUR_MS] {
            let (_data, flows, pause, job) = running(runs()).await;
            step(30_000).await;
            pause.step_wall(by_ms);
            assert!(!look(&flows, &job).await.stop_asked, "{by_ms}");
            // Its own limit and the slack are over on the clock that counts.
            step(160_000).await;
            flows.jobs.live.renew(job.job_id, flows.ctx.clock.now());
            let over = look(&flows, &job).await;
            assert_eq!(
                (over.stop_asked, over.stop_health),
                (true, Some(Health::TimeoutRunning)),
                "{by_ms}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_was_told_to_stop_keeps_its_time_and_has_no_more() {
        for by_ms in [24 * HOUR_MS, -24 * HOUR_MS] {
            let told = JobState {
                stop_asked: true,
                stop_ms: START_MS,
                ..runs()
            };
            let (_data, flows, pause, job) = running(told).await;
            pause.step_wall(by_ms);
            assert_eq!(look(&flows, &job).await.stage, Stage::Running, "{by_ms}");
            step(121_000).await;
            flows.jobs.live.renew(job.job_id, flows.ctx.clock.now());
            assert_eq!(look(&flows, &job).await.stage, Stage::Finish, "{by_ms}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_of_a_running_job_comes_when_it_was_to_come() {
        let by = JobState {
            finish_by_ms: START_MS + 40_000,
            timeout_s: 3_600,
            ..runs()
        };
        let (_data, flows, pause, job) = running(by).await;
        pause.step_wall(HOUR_MS);
        assert!(!look(&flows, &job).await.stop_asked);
        step(41_000).await;
        assert!(look(&flows, &job).await.stop_asked);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_to_a_job_that_was_put_off_does_not_jump() {
        let put_off = JobState {
            deadline_ms: START_MS + 600_000,
            ..runs()
        };
        let (_data, flows, pause, job) = running(put_off).await;
        step(100_000).await;
        pause.step_wall(HOUR_MS);
        let beat = fairlead_api::HeldJob {
            job_id: job.job_id.to_string(),
            attempt: job.attempt,
            claim_token: job.claim_token.clone(),
        };
        let renewed = flows.hosts.renewed(&[beat]);
        assert_eq!(renewed[0].left_s, 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_is_told_and_a_slew_is_not() {
        let (_data, flows, pause, _) = running(runs()).await;
        let told = |times: u32| {
            let text = flows.ctx.metrics.text(None, true);
            text.contains(&format!("fairlead_clock_steps_total {times}\n"))
        };
        let before_ms = flows.ctx.clock.ahead_ms();
        pause.step_wall(4_000);
        let ahead_ms = flows.upkeep.look_at_clock(before_ms).await;
        assert!(told(0));
        pause.step_wall(-HOUR_MS);
        assert_eq!(
            flows.upkeep.look_at_clock(ahead_ms).await,
            ahead_ms - HOUR_MS
        );
        assert!(told(1));
    }
}
