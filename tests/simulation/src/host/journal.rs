//! The journal of a box: what it has on disk of a job. It outlives the agent.

use fairlead_api::{Grant, HeldJob};
use fairlead_job::Health;
use fairlead_testbox::protocol::{Key, Leftover};

/// End of a job on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) health: Health,
    pub(super) exit_code: Option<i32>,
    pub(super) ran: bool,
}

/// Record of a job on disk.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    pub(super) grant: Grant,
    /// End time of its workload, if it was started, ms.
    pub(super) runs_until_ms: Option<u64>,
    pub(super) end: Option<End>,
}

impl Journal {
    pub(super) fn new(grant: Grant) -> Self {
        Self {
            grant,
            runs_until_ms: None,
            end: None,
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.grant.job_id.clone(), self.grant.attempt)
    }

    /// Returns the job as the next agent adopts it.
    pub(super) fn leftover(&self) -> Leftover {
        let grant = &self.grant;
        Leftover {
            job: HeldJob {
                job_id: grant.job_id.clone(),
                attempt: grant.attempt,
                claim_token: grant.claim_token.clone(),
            },
            job_token: grant.job_token.clone(),
            memory_mb: grant.memory_mb,
            cpus: grant.cpus,
            runs: self.end.is_none(),
            stop_when_cut_off: grant.stop_when_cut_off,
        }
    }

    /// Returns a number that the job's author wrote into it.
    pub(super) fn number(&self, field: &str) -> u64 {
        let value = self.grant.job.get(field);
        value.and_then(serde_json::Value::as_u64).unwrap_or(0)
    }
}
