//! The host that an agent speaks for, and its jobs as they are named.

use std::time::Duration;

use fairlead_api::{ConsumeRequest, Grant, HeldJob};

/// Time since a start that the driver chose.
pub type Time = Duration;

/// Key of a job: id and attempt.
pub type Key = (String, u16);

/// Host of an agent.
#[derive(Debug, Clone)]
pub struct Host {
    /// Template of the requests for work. Its `session` is the first one; the core fills in changing fields.
    pub says: ConsumeRequest,
    /// Time between SIGTERM and SIGKILL, unless an order says otherwise.
    pub grace: Duration,
    /// True if no more work is requested after the first answer with jobs.
    pub once: bool,
    /// Time for which a loaded host must be below the lower mark before it no longer counts as loaded, see
    /// [`LOADED_REST`](super::LOADED_REST).
    pub loaded_rest: Duration,
}

impl Host {
    /// Returns true for a whole machine, with one job at a time.
    pub(super) fn is_hw(&self) -> bool {
        self.says.kinds == ["hw"]
    }
}

/// A job that an earlier agent left.
#[derive(Debug, Clone)]
pub struct Leftover {
    /// Job as requests name it.
    pub job: HeldJob,
    /// Token for its reports.
    pub job_token: String,
    /// Memory that it takes, MB.
    pub memory_mb: u32,
    /// CPUs that it takes.
    pub cpus: u32,
    /// True if it still runs. Otherwise only its end must be delivered.
    pub runs: bool,
    /// True if it must be stopped when no scheduler can be reached.
    pub stop_when_cut_off: bool,
}

/// Room that a host offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Memory, MB.
    pub free_mb: u32,
    /// CPUs. `None`: not counted.
    pub free_cpus: Option<u32>,
    /// Number of jobs.
    pub slots: u32,
}

impl Room {
    /// Returns the room that these grants leave.
    pub(super) fn without(self, granted: &[Grant]) -> Self {
        let granted_mb = granted.iter().map(|grant| grant.memory_mb).sum();
        let granted_cpus = granted.iter().map(|grant| grant.cpus).sum();
        let taken = u32::try_from(granted.len()).unwrap_or(u32::MAX);
        Self {
            free_mb: self.free_mb.saturating_sub(granted_mb),
            free_cpus: self.free_cpus.map(|free| free.saturating_sub(granted_cpus)),
            slots: self.slots.saturating_sub(taken),
        }
    }

    /// Returns true if `other` fits into this room.
    pub(super) fn covers(self, other: Self) -> bool {
        self.free_mb >= other.free_mb
            && self.free_cpus >= other.free_cpus
            && self.slots >= other.slots
    }
}
