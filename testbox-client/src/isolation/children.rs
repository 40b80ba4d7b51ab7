//! The agent's children: processes that it started, and orphans of jobs, which it adopts as a subreaper. Orphans are
//! reaped here, and the others by their starters.

use std::{collections::BTreeSet, fs, io};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{WaitOptions, child_subreaper, getpid, waitpid};
use tokio::signal::unix::{SignalKind, signal};

use super::kill::processes;

/// Children that were started here. Their starters wait for them.
static OWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn own() -> MutexGuard<'static, BTreeSet<u32>> {
    OWN.lock()
}

/// A child that was started here. Dropped after its end was awaited.
#[derive(Debug)]
pub(crate) struct OwnChild(u32);

impl Drop for OwnChild {
    fn drop(&mut self) {
        own().remove(&self.0);
    }
}

/// Starts a child that no other task reaps.
pub(crate) fn start<T>(
    spawn: impl FnOnce() -> io::Result<T>,
    pid: impl FnOnce(&T) -> Option<u32>,
) -> io::Result<(T, OwnChild)> {
    let mut own = own();
    let child = spawn()?;
    let pid = pid(&child).unwrap_or_default();
    own.insert(pid);
    Ok((child, OwnChild(pid)))
}

/// Reaps orphans while it is polled. It does nothing if orphans do not become children of this process.
pub(crate) async fn reap_orphans() {
    let come_here = child_subreaper().is_ok_and(|reaper| reaper.is_some());
    if !come_here {
        return;
    }
    let Ok(mut ended) = signal(SignalKind::child()) else {
        return;
    };
    while ended.recv().await.is_some() {
        // Orphans that cannot be read now are reaped when the next child ends.
        let _ = tokio::task::spawn_blocking(reap).await;
    }
}

/// Reaps all orphans that have ended. Blocks: it reads `/proc`.
fn reap() {
    let me = getpid().as_raw_nonzero().get();
    for pid in processes().unwrap_or_default() {
        let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
        let stat = fs::read_to_string(stat).unwrap_or_default();
        if !is_zombie_of(&stat, me) {
            continue;
        }
        let own = own();
        if !own.contains(&pid.as_raw_nonzero().get().unsigned_abs()) {
            // If another task reaped it in the meantime, nothing is left to do.
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Returns true if a line of `/proc/PID/stat` is that of a zombie child of `parent`.
fn is_zombie_of(stat: &str, parent: i32) -> bool {
    let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.next() == Some("Z") && fields.next().and_then(|field| field.parse().ok()) == Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_children_are_known_by_their_line() {
        assert!(is_zombie_of("12 (sh (x) y) Z 7 12 12 0", 7));
        assert!(!is_zombie_of("12 (sh) Z 8 12 12 0", 7));
        assert!(!is_zombie_of("12 (sh) S 7 12 12 0", 7));
        assert!(!is_zombie_of("", 7));
    }
}
