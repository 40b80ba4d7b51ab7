//! A site's defaults for jobs.

use std::collections::BTreeMap;

use crate::Stage;

/// Defaults of a site for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteDefaults {
    /// `testbox` of jobs that name none. Default `dc`.
    pub testbox: String,
    /// `arch` of jobs for "any" testbox that name none, for example `x86_64`. Default: this build's.
    pub arch: String,
    /// Memory of a vm or dc job that names none, in MB. Default 1024.
    pub memory_mb: u32,
    /// Memory that QEMU itself takes for a vm job, in MB: added to what the job asks for its guest. Default 80.
    pub vm_overhead_mb: u32,
    /// Time limit of a job that names none, in seconds. Default 3600.
    pub timeout_s: u64,
    /// Limits of other stages than running, in seconds. Default: compass-ci's own, see
    /// [`Stage::default_timeout_s`].
    pub stage_limits_s: BTreeMap<Stage, u64>,
    /// How long a job that names no `queue_timeout` may wait for a testbox, in seconds. Default 0: for ever.
    pub queue_timeout_s: u64,
}

impl Default for SiteDefaults {
    fn default() -> Self {
        Self {
            testbox: "dc".to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            memory_mb: 1024,
            vm_overhead_mb: 80,
            timeout_s: 3600,
            stage_limits_s: BTreeMap::new(),
            queue_timeout_s: 0,
        }
    }
}
