//! One job that the agent has.

use fairlead_api::{Grant, HeldJob};

use super::{
    host::{Key, Leftover, Time},
    reports::Reports,
    told::Stop,
};

/// What a job takes of its host.
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
    /// What it takes.
    pub(super) takes: Takes,
    /// Whether something of it runs, or may.
    pub(super) running: bool,
    /// No work is asked for before this time while the job is on the roster.
    pub(super) hold_until: Option<Time>,
    /// When it was granted, if it is to be stopped when no scheduler can be reached.
    pub(super) cut_off_since: Option<Time>,
    /// It is not begun yet: an earlier attempt must be gone first.
    pub(super) waits: Option<Grant>,
    /// The order to stop that stands.
    pub(super) stop: Option<Stop>,
    /// It has used up its own time: until when it waits to hear whether it was given more.
    pub(super) limit_until: Option<Time>,
    pub(super) reports: Reports,
}

impl Held {
    /// A job that is granted now.
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

    /// A job that an earlier agent left; `hold_until`: the box rests so long for its delivery.
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

    /// Nothing of it runs any more.
    pub(super) fn over(&mut self, now: Time, hold_until: Option<Time>) {
        self.running = false;
        self.hold_until = hold_until;
        self.cut_off_since = None;
        self.limit_until = None;
        self.reports.over(now);
    }
}
