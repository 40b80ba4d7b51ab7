//! One job that the agent has.

use fairlead_api::{Grant, HeldJob};

use super::{
    host::{Key, Leftover, Time},
    reports::Reports,
    told::Stop,
};

/// Resources of the host that a job takes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Takes {
    /// Memory, MB.
    pub(super) memory_mb: u32,
    pub(super) cpus: u32,
}

impl Takes {
    pub(super) fn of(grant: &Grant) -> Self {
        Self {
            memory_mb: grant.memory_mb,
            cpus: grant.cpus,
        }
    }
}

/// One job on the roster.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) named: HeldJob,
    /// Resources that it takes.
    pub(super) takes: Takes,
    /// True if its processes run, or may run.
    pub(super) running: bool,
    /// Time until which no work is requested while the job is on the roster.
    pub(super) hold_until: Option<Time>,
    /// Time of its grant, if it must be stopped when no scheduler can be reached.
    pub(super) cut_off_since: Option<Time>,
    /// Grant of a job that is not started yet, because an earlier attempt must end first.
    pub(super) waits: Option<Grant>,
    /// Current order to stop.
    pub(super) stop: Option<Stop>,
    /// End of its wait for more time, after it has used up its own.
    pub(super) limit_until: Option<Time>,
    pub(super) reports: Reports,
}

impl Held {
    /// Returns a job that is granted now.
    pub(super) fn granted(grant: &Grant, takes: Takes, now: Time, seed: u64) -> Self {
        Self {
            named: HeldJob {
                job_id: grant.job_id.clone(),
                attempt: grant.attempt,
                claim_token: grant.claim_token.clone(),
            },
            takes,
            running: true,
            hold_until: None,
            cut_off_since: grant.stop_when_cut_off.then_some(now),
            waits: None,
            stop: None,
            limit_until: None,
            reports: Reports::new(grant.attempt, grant.job_token.clone(), seed),
        }
    }

    /// Returns a job that an earlier agent left. Until `hold_until` the box waits for its delivery.
    pub(super) fn left(left: Leftover, hold_until: Time, now: Time, seed: u64) -> Self {
        let mut reports = Reports::new(left.job.attempt, left.job_token, seed);
        if !left.runs {
            reports.over(now);
        }
        Self {
            named: left.job,
            takes: Takes {
                memory_mb: left.memory_mb,
                cpus: left.cpus,
            },
            running: left.runs,
            hold_until: (!left.runs).then_some(hold_until),
            cut_off_since: (left.runs && left.stop_when_cut_off).then_some(now),
            waits: None,
            stop: None,
            limit_until: None,
            reports,
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.named.job_id.clone(), self.named.attempt)
    }

    /// Notes that all its processes have ended.
    pub(super) fn over(&mut self, now: Time, hold_until: Option<Time>) {
        self.running = false;
        self.hold_until = hold_until;
        self.cut_off_since = None;
        self.limit_until = None;
        self.reports.over(now);
    }
}
