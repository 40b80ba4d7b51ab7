//! Open files and ignored signals of the agent's parent. A job must have neither.

use std::{fs, os::fd::RawFd, path::Path};

use nix::unistd::close;
use tokio::signal::unix::{SignalKind, signal};

/// Folder of this process's open files, by number.
const OPEN: &str = "/proc/self/fd";
/// First file number after standard input, output and error.
const FIRST: RawFd = 3;
/// Signals that must not be taken: every program gets the default of SIGPIPE, and the C library uses the other two.
const LEFT_OUT: [i32; 3] = [13, 32, 33];

/// Returns the open files of a program that has just started, which its parent left open.
pub(super) fn files() -> Vec<RawFd> {
    let entries = fs::read_dir(OPEN).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let numbers: Vec<RawFd> = numbers.filter(|number| *number >= FIRST).collect();
    // The list includes the file of the folder itself.
    let is_open = |number: &RawFd| {
        let link = Path::new(OPEN).join(number.to_string());
        fs::symlink_metadata(link).is_ok()
    };
    numbers.into_iter().filter(is_open).collect()
}

/// Closes inherited files that this process does not use.
pub(super) fn close_files(files: Vec<RawFd>) {
    for file in files {
        if let Err(error) = close(file) {
            tracing::warn!(file, %error, "jobs have an open file of the agent's parent");
        }
    }
}

/// Installs empty handlers for the signals that the parent ignored. Child programs inherit ignored signals, but get the
/// default of handled ones.
pub(super) fn take_ignored_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for number in ignored(&status).filter(|number| !LEFT_OUT.contains(number)) {
        // The handler stays installed, even without a listener.
        if let Err(error) = signal(SignalKind::from_raw(number)) {
            tracing::warn!(number, %error, "jobs ignore a signal that the agent's parent ignored");
        }
    }
}

/// Returns the signals that a process ignores, from its `/proc/PID/status`.
fn ignored(status: &str) -> impl Iterator<Item = i32> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.unwrap_or_default();
    (1..=64).filter(move |number| mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_off_a_mask() {
        let of = |status: &str| ignored(status).collect::<Vec<_>>();
        let status =
            "SigBlk:\tffffffffffffffff\nSigIgn:\t8000000000001005\nSigCgt:\t0000000000000002\n";
        assert_eq!(of(status), [1, 3, 13, 64]);
        assert_eq!(of(""), [0; 0]);
    }
}
