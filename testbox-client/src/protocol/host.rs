//! The host that an agent speaks for, and its jobs as they are named.

use std::time::Duration;

use fairlead_api::{ConsumeRequest, Grant, HeldJob};

/// Time since a moment that the driver chose.
pub type Time = Duration;

/// Which job: id and attempt.
pub type Key = (String, u16);

/// The host that an agent speaks for.
#[derive(Debug, Clone)]
pub struct Host {
    /// What each request for work says. Its `session` is the first one; the core fills in what changes.
    pub says: ConsumeRequest,
    /// How long a job may take to end by itself, where no order says otherwise.
    pub grace: Duration,
    /// No more work is asked for after the first answer that holds jobs.
    pub once: bool,
    /// How long a loaded host must be below the lower mark to be so no more, see [`LOADED_REST`](super::LOADED_REST).
    pub loaded_rest: Duration,
}

impl Host {
    /// Whether it is the machine itself: one job at a time, on the whole of it.
    pub(super) fn is_hw(&self) -> bool {
        self.says.kinds == ["hw"]
    }
}

/// A job that an earlier agent left.
#[derive(Debug, Clone)]
pub struct Leftover {
    /// The job as it is named to the scheduler.
    pub job: HeldJob,
    /// The token of its reports.
    pub job_token: String,
    /// Memory that it takes, MB.
    pub memory_mb: u32,
    /// CPUs that it takes.
    pub cpus: u32,
    /// Whether it still runs. Else only its end is to be delivered.
    pub runs: bool,
    /// Whether it is to be stopped when no scheduler can be reached.
    pub stop_when_cut_off: bool,
}

/// What a host has to offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Memory, MB.
    pub free_mb: u32,
    /// CPUs; none: they are not counted.
    pub free_cpus: Option<u32>,
    /// How many jobs.
    pub slots: u32,
}

impl Room {
    /// What is left of it when these were granted.
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

    /// Whether all of `other` is within this.
    pub(super) fn covers(self, other: Self) -> bool {
        self.free_mb >= other.free_mb
            && self.free_cpus >= other.free_cpus
            && self.slots >= other.slots
    }
}
