//! Counts consecutive attempts that failed on a host: through its fault, or though they pass elsewhere.

use fairlead_job::{Cause, Health};
use fairlead_store::JobState;

use crate::jobs::JobFlow;
use fairlead_known::host_evidence::{ACCOUNTS_MIN, Ended};
use fairlead_lifecycle::changed::attempt_ended;

impl JobFlow {
    /// An attempt ended: a host whose attempts fail in a row, and not by their jobs, is put aside. So is one that fails what
    /// passes elsewhere, whoever is at fault by the word of the jobs.
    pub(crate) fn count_host_failure(&self, before: &JobState, after: &JobState) {
        let suspect_after = self.ctx.config.suspect_after;
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
        let ended = Ended {
            host,
            suite: &before.suite,
            account: &before.account,
            passed: cause.is_none(),
            at_ms: self.ctx.clock.wall_ms(),
        };
        let reason = self.lab.cordons.evidence.lock().note(ended);
        if let Some(reason) = reason {
            self.suspect(host, reason);
        }
        if cause != Some(Cause::Infra) {
            self.lab.cordons.streaks.remove(host);
            return;
        }
        let mut streak = self.lab.cordons.streaks.entry(host.to_owned()).or_default();
        if before.dispatch_ms < streak.over_ms {
            return;
        }
        streak.over_ms = self.ctx.clock.wall_ms();
        streak.failures += 1;
        streak.accounts.insert(before.account.clone());
        let is_suspect = streak.failures >= suspect_after && streak.accounts.len() >= ACCOUNTS_MIN;
        let failures = streak.failures;
        drop(streak);
        if is_suspect {
            let reason =
                format!("{failures} attempts in a row failed there, the last one with {health}");
            self.suspect(host, reason);
        }
    }

    /// From now on the host gets health checks alone from this replica. A chore tells all others by its cordon.
    fn suspect(&self, host: &str, reason: String) {
        let found = &self.lab.cordons.found_suspect;
        let is_new = found.lock().insert(host.to_owned(), reason).is_none();
        if is_new {
            self.waiters.hurry_host(host, |_| true);
        }
    }
}
