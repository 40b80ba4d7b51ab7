//! The order of hosts by what goes on there.

use crate::event::HostLoad;

/// Pressures within so many percent are taken for the same: else hosts that are alike would not be found together.
const PRESSURE_STEP: u8 = 10;

/// Whom a job goes to first, of hosts that say how loaded they are: the least. All others are alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crowd {
    loaded: bool,
    /// Of a loaded host, memory in use, percent.
    used_percent: u8,
    jobs: u32,
    /// In steps of [`PRESSURE_STEP`].
    pressure: u8,
}

impl Crowd {
    /// That of a host that says its load and has so many jobs.
    pub(crate) fn of(load: HostLoad, jobs: usize) -> Self {
        Self {
            loaded: load.loaded,
            used_percent: if load.loaded {
                load.memory_used_percent
            } else {
                0
            },
            jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
            pressure: load.cpu_pressure_percent / PRESSURE_STEP,
        }
    }
}
