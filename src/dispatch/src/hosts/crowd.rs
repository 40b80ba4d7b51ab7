//! The order of hosts by what goes on there.

use crate::event::HostLoad;

/// Step of pressures, percent. Pressures within one step count as equal, so that similar hosts share a group.
const PRESSURE_STEP: u8 = 10;

/// Order of hosts that report their load: a job goes to the least one first. All other hosts are equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crowd {
    loaded: bool,
    /// Memory in use, percent, if the host is loaded; else 0.
    used_percent: u8,
    jobs: u32,
    /// Pressure in steps of [`PRESSURE_STEP`].
    pressure: u8,
}

impl Crowd {
    /// Returns the order of a host that reports this load and has this many jobs.
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
