//! The resources of this machine for jobs.

use std::{fs, thread};

use crate::cmd_serve::machine_name;

/// Assumed memory if the system does not report it, MB.
const MEMORY_MB_FALLBACK: u32 = 1024;
/// Maximum number of concurrent jobs of an agent.
const JOBS_MAX: u32 = 256;

/// Resources of this machine for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) arch: &'static str,
    /// Free memory now, MB.
    pub(crate) memory_mb: u32,
    /// Number of processors for this process, at most the maximum number of jobs.
    pub(crate) processors: u32,
}

impl Machine {
    pub(crate) fn of_process() -> Self {
        let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            name: machine_name(),
            arch: std::env::consts::ARCH,
            memory_mb: available_mb(&about).unwrap_or(MEMORY_MB_FALLBACK).max(1),
            processors: u32::try_from(processors).unwrap_or(JOBS_MAX).min(JOBS_MAX),
        }
    }
}

/// Returns `MemAvailable` in MB, from the text of `/proc/meminfo`.
fn available_mb(about: &str) -> Option<u32> {
    let line = about
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    u32::try_from(kb / 1024).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        let about = "MemTotal:       16000000 kB\nMemAvailable:    2097152 kB\n";
        assert_eq!(available_mb(about), Some(2048));
        assert_eq!(available_mb("MemTotal: 1 kB\n"), None);
        assert!(Machine::of_process().memory_mb > 0);
    }
}
