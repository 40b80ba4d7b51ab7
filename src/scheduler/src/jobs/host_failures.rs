//! Counts consecutive attempts that failed through the fault of their host.

use fairlead_job::{Cause, Health};
use fairlead_store::JobState;

use crate::{core::Core, known::cordons::ACCOUNTS_MIN, lifecycle::changed::attempt_ended};

impl Core {
    /// An attempt ended: a host whose attempts fail in a row, and not by their jobs, is put aside.
    pub(crate) fn count_host_failure(&self, before: &JobState, after: &JobState) {
        let suspect_after = self.config.suspect_after;
        let Some(health) = attempt_ended(before, after).filter(|_| suspect_after > 0) else {
            return;
        };
        let cause = health.cause();
        // A job that somebody stopped says nothing about its host.
        if cause.is_none() && health != Health::Success {
            return;
        }
        let host = before.host.as_str();
        if self.lab.cordons.of(host).is_some() {
            return;
        }
        if cause != Some(Cause::Infra) {
            self.lab.cordons.streaks.remove(host);
            return;
        }
        let mut streak = self.lab.cordons.streaks.entry(host.to_owned()).or_default();
        if before.dispatch_ms < streak.over_ms {
            return;
        }
        streak.over_ms = self.clock.wall_ms();
        streak.failures += 1;
        streak.accounts.insert(before.account.clone());
        let is_suspect = streak.failures >= suspect_after && streak.accounts.len() >= ACCOUNTS_MIN;
        let failures = streak.failures;
        drop(streak);
        if is_suspect {
            let reason =
                format!("{failures} attempts in a row failed there, the last one with {health}");
            let mut suspects = self.lab.cordons.suspects.lock();
            suspects.insert(host.to_owned(), reason);
        }
    }
}
