//! The notes on a job that outlive the agent: whose it is, how far it is, and how it ended.

use fairlead_api::{Grant, HeldJob};
use fairlead_job::Health;
use serde::{Deserialize, Serialize};

use crate::executor::Note;

/// Version of the journal's format.
const FORMAT: u32 = 1;

/// State of a job that the agent needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    format: u32,
    pub(crate) job_id: String,
    pub(crate) attempt: u16,
    pub(crate) claim_token: String,
    pub(crate) job_token: String,
    /// Path of its results in the lab, `/result/…`.
    pub(crate) result_root: String,
    /// Mark of its processes.
    pub(crate) run: String,
    /// User of its processes, if it is not the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uid: Option<u32>,
    /// True if it runs in a virtual machine, whose files the agent itself writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_machine: bool,
    /// Digest of its image, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image_digest: Option<String>,
    /// Files and folders below its `outputs` folder that must be stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<String>,
    /// Content id of its outputs, once they are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) put: Option<String>,
    /// True if its workload was about to be started.
    pub(crate) started: bool,
    /// End of the job, once it has ended.
    pub(crate) end: Option<End>,
    /// True if nothing more must be done for it.
    pub(crate) closed: bool,
}

/// End of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) health: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: String,
    /// True if it ran at all, so that there may be results.
    pub(crate) ran: bool,
    /// Reason why a part of its output is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<String>,
    /// True if the job must be tried on another host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) avoid_host: bool,
    /// Title of the kernel crash that it printed, if the job asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) crash_signature: Option<String>,
    /// Resources that it used, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) used: Option<Box<Used>>,
}

/// Resources that a job used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Peak memory, MB.
    pub(crate) peak_memory_mb: Option<u32>,
    /// CPU time of all its processes, milliseconds.
    pub(crate) cpu_ms: Option<u32>,
}

impl End {
    /// Returns the end with the resources that its workload used.
    pub(crate) fn that_used(mut self, note: Note) -> Self {
        let mb = |bytes: u64| u32::try_from(bytes.div_ceil(1024 * 1024)).unwrap_or(u32::MAX);
        self.used = Some(Box::new(Used {
            peak_memory_mb: note.memory_bytes.map(mb),
            cpu_ms: note.cpu_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
        }));
        self
    }

    /// Returns the end with one more reason.
    pub(crate) fn with(mut self, more: Option<String>) -> Self {
        let reasons = [std::mem::take(&mut self.reason), more.unwrap_or_default()];
        let said = reasons.iter().filter(|reason| !reason.is_empty());
        self.reason = said.map(String::as_str).collect::<Vec<_>>().join("; ");
        self
    }

    /// Returns the end of a job whose machine failed, with the reason. It is tried on another machine.
    pub(crate) fn of_bad_host(self, reason: String) -> Self {
        let own = match self.reason.as_str() {
            "" => format!("the job itself: {}", self.health),
            reason => format!("the job itself: {reason}"),
        };
        Self {
            health: Health::AbortProvider.as_str().to_owned(),
            reason,
            avoid_host: true,
            ..self
        }
        .with(Some(own))
    }

    /// Returns true if the machine could not start the job, or not keep its output.
    pub(crate) fn is_fault(&self) -> bool {
        let not_begun = !self.ran && self.health == Health::AbortProvider.as_str();
        not_begun || self.avoid_host || self.lost.is_some()
    }
}

impl Journal {
    pub(crate) fn new(grant: &Grant, run: String) -> Self {
        Self {
            format: FORMAT,
            job_id: grant.job_id.clone(),
            attempt: grant.attempt,
            claim_token: grant.claim_token.clone(),
            job_token: grant.job_token.clone(),
            result_root: grant.result_root.clone(),
            run,
            uid: None,
            in_machine: false,
            image_digest: None,
            outputs: grant.outputs.clone(),
            put: None,
            started: false,
            end: None,
            closed: false,
        }
    }

    /// Closes the job, and removes its tokens, which are of no more use.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.claim_token.clear();
        self.job_token.clear();
    }

    /// Returns the owner of its results and outputs. `None`: any user.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.uid.filter(|_| !self.in_machine)
    }

    pub(crate) fn held(&self) -> HeldJob {
        HeldJob {
            job_id: self.job_id.clone(),
            attempt: self.attempt,
            claim_token: self.claim_token.clone(),
        }
    }
}
