//! Detects whether the kernel killed a job because memory ran out. Best effort: the kernel counts its kills per machine
//! and per control group, and not per job. With several jobs, a neighbour's kill at the same time may count for this
//! one. It is checked only if a job died of a SIGKILL that the agent did not send.

use std::path::PathBuf;

/// Sum of the kernel's counters of out-of-memory kills at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OomKills(u64);

impl OomKills {
    /// Reads the counters of the machine and of the agent's own control group. An unreadable counter counts as 0.
    pub(crate) fn now() -> Self {
        let machine = counter("/proc/vmstat".into());
        let group = own_group().map_or(0, |group| counter(group.join("memory.events")));
        Self(machine + group)
    }

    /// Returns true if there was a kill since `before`.
    pub(crate) fn since(self, before: Self) -> bool {
        self.0 > before.0
    }
}

fn counter(file: PathBuf) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    count_in(&text)
}

fn count_in(text: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill "))
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns the folder of this process's control group (version 2).
fn own_group() -> Option<PathBuf> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from("/sys/fs/cgroup").join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_found_among_others() {
        assert_eq!(count_in("pgfault 9\noom_kill 3\nx 1\n"), 3);
        assert_eq!(count_in("oom_kill_disable 1\noom 2\n"), 0);
        assert!(OomKills(2).since(OomKills(1)));
        assert!(!OomKills::now().since(OomKills(u64::MAX)));
    }
}
