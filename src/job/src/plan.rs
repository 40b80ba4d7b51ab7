//! What the dispatcher needs to know of a spec: typed, validated, with the site's defaults filled in.

use crate::Spec;

/// What kind of testbox runs a job.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum TboxType {
    /// The host itself, one job at a time.
    Hw,
    /// A virtual machine on a host.
    Vm,
    /// A container on a host.
    Dc,
}

impl TboxType {
    /// The word on the wire and in host keys.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hw => "hw",
            Self::Vm => "vm",
            Self::Dc => "dc",
        }
    }
}

/// What a site assumes when a job does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteDefaults {
    /// `testbox` of jobs that name none. Default `dc`.
    pub testbox: String,
    /// `arch` of jobs for "any" testbox that name none, for example `x86_64`. Default: this build's.
    pub arch: String,
    /// Memory of a vm or dc job that names none, in MB. Default 1024.
    pub memory_mb: u32,
    /// Time limit of a job that names none, in seconds. Default 3600.
    pub timeout_s: u64,
}

impl Default for SiteDefaults {
    fn default() -> Self {
        Self {
            testbox: "dc".to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            memory_mb: 1024,
            timeout_s: 3600,
        }
    }
}

/// The typed view of one spec: all that matching, charging, limits and people's searches use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPlan {
    /// Test suite; `script` when the job has only a script.
    pub suite: String,
    /// `category`, empty when not said.
    pub category: String,
    /// Who submits and is charged: `my_account`; empty when not said (the caller fills it in).
    pub account: String,
    /// The queue asked for; empty means the account's own.
    pub queue: String,
    /// Priority inside the account, -100 to 100, higher first, default 0.
    pub priority: i16,
    /// The testbox asked for, in full.
    pub testbox: String,
    /// The group of it.
    pub tbox_group: String,
    /// Its kind.
    pub tbox_type: TboxType,
    /// The architecture that a host must have; empty when any will do (a named machine or group).
    pub arch: String,
    /// Machines that it may run on; empty means any.
    pub target_machines: Vec<String>,
    /// The host keys under which hosts find it, sorted, never empty. One match is enough.
    pub host_keys: Vec<String>,
    /// Memory that it takes from a vm/dc host, or that a hw machine must have, in MB; hw: 0 when not said.
    pub memory_mb: u32,
    /// Tags that the host must have, sorted, without repeats.
    pub tags: Vec<String>,
    /// Devices that the host must have, sorted, without repeats.
    pub devices: Vec<String>,
    /// Cache directories that it would like to find, in the job's order, without repeats.
    pub cache_dirs: Vec<String>,
    /// Time limit of stage running, in seconds, at least 1.
    pub timeout_s: u64,
    /// How often it may be tried again after a lost lease. Default 1.
    pub retry_lost_max: u16,
    /// How often it may be tried again after a failure of its own. Default 0.
    pub retry_fail_max: u16,
    /// Whether the agent must stop it when cut off from every replica.
    pub stop_when_cut_off: bool,
    /// `submit_id`, `group_id`, empty when not said.
    pub submit_id: String,
    /// See `submit_id`.
    pub group_id: String,
}

/// Why a spec cannot become a job. Never retryable: the job itself must change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PlanError {
    /// The field at fault, as the author wrote it.
    pub field: String,
    /// What is wrong, with the value and what was expected.
    pub problem: String,
    /// What to do about it.
    pub hint: String,
}

impl JobPlan {
    /// Reads and checks `spec`.
    pub fn of(spec: &Spec, defaults: &SiteDefaults) -> Result<Self, PlanError> {
        let _ = (spec, defaults);
        Err(PlanError {
            field: String::new(),
            problem: String::new(),
            hint: String::new(),
        })
    }
}
