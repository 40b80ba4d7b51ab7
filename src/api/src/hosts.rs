//! Hosts as people see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostView {
    /// Its name.
    pub hostname: String,
    /// Kinds that it offers.
    pub kinds: Vec<String>,
    /// Its architecture.
    pub arch: String,
    /// Its group.
    pub group: String,
    /// Memory of the whole host, MB.
    pub memory_mb: u32,
    /// Memory free as last said, MB.
    pub free_memory_mb: u32,
    /// CPUs of the whole host. Absent: it did not say, so they are not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// CPUs free as last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_cpus: Option<u32>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Its devices.
    #[serde(default)]
    pub devices: Vec<String>,
    /// `waiting` (asks for work), `busy`, `idle`, `silent` (not heard of for a lease), `off` (the same of a
    /// registered machine: jobs wait for it); of a closed host `cordoned`,
    /// `draining` (it still has jobs), `drained`, `suspect`.
    pub state: String,
    /// Why it gets no new job, if it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedView>,
    /// For whom it is kept, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ReservedView>,
    /// How its jobs are kept apart: `users` (each under a user of its own) or `none` (who submits to it must trust
    /// all others who do). Empty: its agent has not said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub isolation: String,
    /// What it can run jobs in, and why something is missing. Empty: its agent has not said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<ExecutorSaid>,
    /// How loaded it is, as last said. Absent: its agent has not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<HostLoad>,
    /// What the machine is, by family, as its agent or its registration said; each value is a tag `family:value`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, Vec<String>>,
    /// What was registered for it, which counts beside what its agent says. Absent: nobody registered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<RegisteredView>,
    /// Another agent of the same name that is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<ConflictView>,
    /// When last heard of.
    pub seen_ms: u64,
    /// Jobs that it has.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// Why it is idle, one reason a line.
    #[serde(default)]
    pub why_idle: Vec<String>,
    /// Of a closed host that still has jobs: when it is empty. A list of hosts does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empties: Option<EmptiesView>,
}

/// When a closed host is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EmptiesView {
    /// Its jobs, those that stay longest first.
    pub jobs: Vec<LeavingJob>,
    /// When the last one ends, as far as is known of such jobs, UTC epoch ms; absent: nothing is known of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
    /// When the last one is over by its time limits, UTC epoch ms; absent: one has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ms: Option<u64>,
    /// The same in one sentence.
    pub words: String,
}

/// A job on a host that gets no new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeavingJob {
    /// The job.
    pub job_id: String,
    /// Its suite.
    pub suite: String,
    /// Since when the host has it, UTC epoch ms.
    pub since_ms: u64,
    /// When it ends, as far as is known of such jobs, UTC epoch ms; absent: nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
    /// When it is over by its time limits, UTC epoch ms; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ms: Option<u64>,
}

/// Above so much of its memory in use a host is loaded, percent.
pub const LOADED_ABOVE_PERCENT: u8 = 90;
/// Below so much of its memory in use a loaded host recovers, percent.
pub const LOADED_UNTIL_PERCENT: u8 = 80;
/// A loaded host is one until it has been below that for so long without a break, seconds.
pub const LOADED_REST_S: u32 = 30;

/// How loaded a host is, as its agent measured it a moment ago.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostLoad {
    /// Memory of the machine, or of the control group that bounds the agent, MB.
    pub memory_total_mb: u32,
    /// What of it programs may still take without swapping, MB.
    pub memory_available_mb: u32,
    /// What of the host's `memory_mb` no job of it was promised, MB. `free_memory_mb` is no more than that, and no more
    /// than what is really available less a tenth of the machine's memory.
    #[serde(default)]
    pub unpromised_memory_mb: u32,
    /// Part of the last 10 s in which something waited for a CPU, percent (`some avg10` of `/proc/pressure/cpu`).
    /// Absent: the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_percent: Option<u8>,
    /// The same for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure_percent: Option<u8>,
    /// Jobs that run there.
    #[serde(default)]
    pub jobs: u32,
    /// Whether it is loaded: it has been above 90 % of its memory, and since then not below 80 % for 30 s without a
    /// break. Such a host gets jobs only if all hosts that could run them are loaded. Never true of a hw host.
    #[serde(default)]
    pub loaded: bool,
}

impl HostLoad {
    /// Memory in use, percent of all, 0 to 100.
    #[must_use]
    pub fn memory_used_percent(&self) -> u8 {
        let total = u64::from(self.memory_total_mb.max(1));
        let used = total.saturating_sub(self.memory_available_mb.into());
        u8::try_from(used.saturating_mul(100) / total).unwrap_or(100)
    }
}

/// An executor of a host: a program that its agent runs jobs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExecutorSaid {
    /// `process`, `podman`, `docker` or `qemu`; at most 128 bytes.
    pub name: String,
    /// As it says, at most 128 bytes. Empty: it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Why it cannot be used, for people, at most 512 bytes. Empty: it can.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// What a registration says of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RegisteredView {
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Its devices.
    #[serde(default)]
    pub devices: Vec<String>,
}

/// A machine that asked what to boot and is not registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnknownMachine {
    /// Its MAC address, lower case, with colons.
    pub mac: String,
    /// Its architecture, as its firmware says.
    #[serde(default)]
    pub arch: String,
    /// The address that it asked from; empty: not known.
    #[serde(default)]
    pub address: String,
    /// When it asked first, and last.
    pub first_ms: u64,
    /// See `first_ms`.
    pub last_ms: u64,
}

/// An agent that is refused because another one has the host's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConflictView {
    /// As it names itself: its work folder's id and its machine's boot.
    pub instance: String,
    /// When it asked last.
    pub at_ms: u64,
}

/// Why a host gets no new job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClosedView {
    /// `cordon`, `drain` or `suspect`.
    pub how: String,
    /// Why, in the words of who closed it.
    #[serde(default)]
    pub reason: String,
    /// Who closed it: an account, or the replica that found it suspect.
    pub by: String,
    /// When.
    pub at_ms: u64,
    /// Of a suspect host: the health check that was made for it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_job: Option<String>,
}

/// For whom a host is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReservedView {
    /// Accounts whose jobs alone it gets, sorted.
    pub accounts: Vec<String>,
    /// Until when, UTC epoch ms.
    pub until_ms: u64,
    /// Why, in the words of who reserved it.
    #[serde(default)]
    pub reason: String,
    /// Who reserved it.
    pub by: String,
    /// When, UTC epoch ms.
    pub at_ms: u64,
}
