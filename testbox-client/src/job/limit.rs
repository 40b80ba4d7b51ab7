//! A job's own limits: its time, extensions by users, and its silence.

use std::time::Duration;

use fairlead_api::Grant;
use fairlead_job::{SILENCE_TIMEOUT, Spec, limit_s};
use tokio::sync::Notify;

use crate::{JobLine, timer::pause};

/// Maximum limit, 10 years. Longer ones could overflow the clock's arithmetic.
const LEFT_MAX: Duration = Duration::from_hours(10 * 365 * 24);

/// Limits from the job itself.
#[derive(Debug)]
pub(super) struct OwnLimits {
    time: Duration,
    silence: Option<Duration>,
}

impl OwnLimits {
    pub(super) fn of(grant: &Grant) -> Self {
        Self {
            time: Duration::from_secs(grant.timeout_s.max(1)),
            silence: silence_of(&grant.job),
        }
    }

    /// Returns once a limit is reached, with its description for people.
    pub(super) async fn reached(&self, line: &mut JobLine, heard: &Notify) -> String {
        tokio::select! {
            () = run_out(line, self.time) => over_limit(self.time),
            () = silent(heard, self.silence) => over_silence(self.silence),
        }
    }
}

/// Returns the maximum silence of a job. `None`: no limit.
fn silence_of(job: &Spec) -> Option<Duration> {
    // The scheduler has refused unreadable limits.
    let seconds = limit_s(job, SILENCE_TIMEOUT).ok().flatten()?;
    Some(Duration::from_secs(seconds))
}

/// Returns when a job was silent for this long.
async fn silent(heard: &Notify, limit: Option<Duration>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    while tokio::time::timeout(limit.min(LEFT_MAX), heard.notified())
        .await
        .is_ok()
    {}
}

/// Returns the reason for a job stopped at its time limit, for people.
fn over_limit(limit: Duration) -> String {
    format!("it ran longer than its limit of {} s", limit.as_secs())
}

/// Returns the reason for a job stopped because of its silence, for people.
fn over_silence(limit: Option<Duration>) -> String {
    let seconds = limit.unwrap_or_default().as_secs();
    format!("it printed nothing for {seconds} s, the limit of {SILENCE_TIMEOUT}")
}

/// Returns when a job has used up its own limit and all the time that users have added.
async fn run_out(line: &mut JobLine, limit: Duration) {
    let mut left = Some(limit);
    while let Some(time) = left {
        pause(time.min(LEFT_MAX)).await;
        left = line.more_time().await;
    }
}
