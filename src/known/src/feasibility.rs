//! Cache of which shapes of jobs a host can run. Entries last a minute.

use std::collections::HashMap;

use fairlead_dispatch::{Alternative, JobRequirements, Millis};
use fairlead_store::JobState;
use parking_lot::Mutex;

use fairlead_lifecycle::engine_facts::alternatives;

/// Time for which a shape is remembered as feasible, ms. It is long, because hosts seldom disappear.
pub const REMEMBER_MS: u64 = 60_000;

/// Maximum number of remembered shapes.
pub const SHAPES_MAX: usize = 10_000;

/// Requirements of a job for its host. Jobs with equal requirements share an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wants {
    pub keys: Vec<String>,
    pub arch: String,
    pub memory_mb: u32,
    pub cpus: u32,
    pub tags: Vec<String>,
    pub not_tags: Vec<String>,
    pub any_of: Vec<Alternative<String>>,
    pub devices: Vec<String>,
}

impl Wants {
    /// Returns the weakest requirements that the job may reach, including its `else`.
    pub fn of(state: &JobState) -> Self {
        Self {
            keys: state.host_keys.clone(),
            arch: state.arch.clone(),
            memory_mb: state.memory_mb,
            cpus: state.cpus,
            tags: state.tags.clone(),
            not_tags: state.not_tags.clone(),
            any_of: alternatives(&state.widest_any_of()),
            devices: state.devices.clone(),
        }
    }

    /// Returns true if host tags matter.
    pub fn asks_for_tags(&self) -> bool {
        !(self.tags.is_empty() && self.not_tags.is_empty() && self.any_of.is_empty())
    }

    /// Returns these requirements for the engine, without the job's account and the hosts on which it failed.
    pub fn requirements(&self) -> JobRequirements<'_, String> {
        JobRequirements {
            account: None,
            arch: &self.arch,
            keys: &self.keys,
            tags: &self.tags,
            not_tags: &self.not_tags,
            any_of: &self.any_of,
            devices: &self.devices,
            not_on: &[],
            memory_mb: self.memory_mb,
            cpus: self.cpus,
        }
    }
}

/// Shapes of jobs that some host could run, with the time of that finding.
#[derive(Debug, Default)]
pub struct Feasibility(Mutex<HashMap<Wants, Millis>>);

impl Feasibility {
    pub fn with<R>(&self, work: impl FnOnce(&mut HashMap<Wants, Millis>) -> R) -> R {
        work(&mut self.0.lock())
    }
}
