//! A job's own limits: its time, extensions by users, and its silence.

use std::time::Duration;

use fairlead_api::Grant;
use fairlead_job::{SILENCE_TIMEOUT, Spec, limit_s};
use tokio::sync::Notify;

use crate::{JobLine, timer::pause};

/// The longest limit that is counted, 10 years: beyond it the clock's arithmetic could overflow.
const LEFT_MAX: Duration = Duration::from_hours(10 * 365 * 24);

/// The limits that a job has of its own.
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

    /// Returns once one of them is reached: which, for people.
    pub(super) async fn reached(&self, line: &mut JobLine, heard: &Notify) -> String {
        tokio::select! {
            () = run_out(line, self.time) => over_limit(self.time),
            () = silent(heard, self.silence) => over_silence(self.silence),
        }
    }
}

/// How long a job may say nothing; `None`: as long as it likes.
fn silence_of(job: &Spec) -> Option<Duration> {
    // The scheduler has refused what cannot be read.
    let seconds = limit_s(job, SILENCE_TIMEOUT).ok().flatten()?;
    Some(Duration::from_secs(seconds))
}

/// Returns when nothing was heard of a job for so long.
async fn silent(heard: &Notify, limit: Option<Duration>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    while tokio::time::timeout(limit.min(LEFT_MAX), heard.notified())
        .await
        .is_ok()
    {}
}

/// Why a job was stopped that ran too long, for people.
fn over_limit(limit: Duration) -> String {
    format!("it ran longer than its limit of {} s", limit.as_secs())
}

/// Why a job was stopped that said nothing, for people.
fn over_silence(limit: Option<Duration>) -> String {
    let seconds = limit.unwrap_or_default().as_secs();
    format!("it printed nothing for {seconds} s, the limit of {SILENCE_TIMEOUT}")
}

/// Returns when a job has used up its time: its own limit, and all that users have added to it.
async fn run_out(line: &mut JobLine, limit: Duration) {
    let mut left = Some(limit);
    while let Some(time) = left {
        pause(time.min(LEFT_MAX)).await;
        left = line.more_time().await;
    }
}
