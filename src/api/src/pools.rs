//! Pools of machines that come and go, on the wire.

use serde::{Deserialize, Serialize};

/// What the machines of a pool are: jobs that such a machine could run may wait for one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolMachine {
    /// Which jobs they run: `hw` alone, or `vm`, `dc` or both.
    pub kinds: Vec<String>,
    /// Architecture, such as `x86_64`.
    pub arch: String,
    /// Memory that they offer to jobs, MB.
    pub memory_mb: u32,
    /// CPUs that they offer to jobs. Absent: they are not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Tags that they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Devices that they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// Changes what an admin says of a pool. What is absent stays as it is; a new pool needs `provider` and `machine`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// The name of a program in the folder `--providers` of the replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What its machines are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<PoolMachine>,
    /// Machines that it never falls below. A new pool has 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Machines that it never exceeds, at most 10,000. A new pool has 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Machines that it asks for within a minute at most. A new pool has 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_step: Option<u32>,
    /// How long a machine takes until it asks for work, seconds, until that was measured. A new pool has 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_s: Option<u64>,
    /// How long a job should wait at most, seconds. A new pool has 0: as long as a machine takes to boot, and a minute. The
    /// law `queue_time` reaches no shorter time: [`PoolView::horizon_s`] tells what acts. By the law `seed` what waits is worked
    /// off in this time, 300 if it is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_s: Option<u64>,
    /// Which law decides: `queue_time`, the default, or `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<String>,
    /// How long a machine may be idle while others are taken first, seconds; 0, the default: as long as a boot takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_idle_s: Option<u64>,
    /// After how many jobs a machine is replaced; 0, the default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// After which time a machine is replaced, seconds; 0, the default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u64>,
    /// How long after a change of their number no idle machine retires, seconds. A new pool has 0, or 600 by the law `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_s: Option<u64>,
    /// In how many decisions one after the other too little must be in use before idle machines retire, 1 to 1,000. A new
    /// pool has 1, or 3 by the law `seed`, which decides once a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_rounds: Option<u32>,
    /// Idle machines retire only while less of the pool is in use, percent, 1 to 100. A new pool has 100, or 30 by the law
    /// `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_use_percent: Option<u32>,
    /// Whether nothing is asked for and nothing retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A pool as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PoolView {
    /// Its name.
    pub name: String,
    /// See [`PoolChange::provider`].
    pub provider: String,
    /// What its machines are.
    pub machine: PoolMachine,
    /// Machines that it never falls below.
    pub min: u32,
    /// Machines that it never exceeds.
    pub max: u32,
    /// Machines that it asks for within a minute at most.
    pub max_step: u32,
    /// How long jobs should wait at most, seconds.
    pub target_s: u64,
    /// How far ahead its law looks, seconds: `target_s`, unless that is less than a boot allows.
    pub horizon_s: u64,
    /// Which law decides.
    pub law: String,
    /// See [`PoolChange::max_idle_s`].
    pub max_idle_s: u64,
    /// See [`PoolChange::max_jobs`].
    pub max_jobs: u32,
    /// See [`PoolChange::max_age_s`].
    pub max_age_s: u64,
    /// See [`PoolChange::cooldown_s`].
    pub cooldown_s: u64,
    /// See [`PoolChange::low_rounds`].
    pub low_rounds: u32,
    /// See [`PoolChange::low_use_percent`].
    pub low_use_percent: u32,
    /// Whether nothing is asked for and nothing retired.
    pub paused: bool,
    /// How long a machine takes until it asks for work, seconds: measured, or as was said.
    pub boot_s: u64,
    /// Of how many boots that is the mean; 0: none was measured.
    pub boots: u32,
    /// Its machines, by name.
    pub machines: Vec<PoolMachineView>,
    /// Why machines could not be listed, made or ended when that was last tried; empty: they could.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
}

/// A machine of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PoolMachineView {
    /// Its name, which is that of its host.
    pub name: String,
    /// `asked`, `boots`, `runs`, `idle`, `closed` or `retires`.
    pub state: String,
    /// When it was asked for, UTC epoch ms.
    pub asked_ms: u64,
    /// How many jobs it has run.
    pub jobs: u32,
    /// Why it retires; empty: it does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// A decision of a pool, with the numbers that it was made by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PoolDecision {
    /// The pool.
    pub pool: String,
    /// Its number among the decisions of the pool, from 1.
    pub number: u64,
    /// When it was made, UTC epoch ms.
    pub at_ms: u64,
    /// The replica that made it.
    pub replica: String,
    /// The law.
    pub law: String,
    /// Names of machines that were asked for.
    pub added: Vec<String>,
    /// Names of machines that retire.
    pub retired: Vec<String>,
    /// Jobs that lacked only a machine.
    pub waiting: u64,
    /// What they need, seconds of a whole machine.
    pub work_s: u64,
    /// What the machines could take of it within the horizon, seconds.
    pub supply_s: u64,
    /// How far the law looked ahead, seconds.
    pub horizon_s: u64,
    /// Machines that the law wanted, before limits.
    pub wanted: u32,
    /// Machines that booted.
    pub booting: u32,
    /// Machines that ran jobs.
    pub busy: u32,
    /// Machines that waited for jobs.
    pub idle: u32,
    /// Machines that got no jobs: closed, suspect or loaded.
    pub closed: u32,
    /// The decision in words.
    pub sentence: String,
}

/// What holds for all pools together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ScalingSettings {
    /// Most machines of all pools together. Absent: no limit but those of the pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<u32>,
}
