//! Which machines of a pool are replaced, and which of the idle ones go first. How many go is decided elsewhere.

use crate::{Machine, retire::idle_over};

/// Idle time before a worn machine is replaced, ms. A job that arrives in between still gets it.
pub const DAMPING_MS: u64 = 30_000;

/// Conditions under which machines of a pool are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recycling {
    /// Maximum idle time of a machine, ms. 0: the boot time.
    pub max_idle_ms: u64,
    /// Number of jobs after which a machine is replaced. 0: never.
    pub max_jobs: u32,
    /// Age at which a machine is replaced, ms. 0: never.
    pub max_age_ms: u64,
}

/// Wear of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wear {
    /// True if it failed by its own fault, so that it gets no jobs.
    pub is_unhealthy: bool,
    /// Number of jobs that it has run.
    pub jobs: u32,
    /// Time since its request, ms.
    pub age_ms: u64,
    /// Idle time, ms. `None`: it boots or runs a job.
    pub idle_ms: Option<u64>,
}

/// Reason why a machine is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It failed by its own fault.
    Unhealthy,
    /// It has run its number of jobs.
    Jobs,
    /// It has reached its age.
    Age,
}

impl Recycling {
    /// Returns the reason why this machine is replaced now. `None`: it stays. A machine that runs a job is never
    /// replaced. `waits` is true if jobs wait that it could run. They still get a worn machine, but an unhealthy one
    /// goes.
    pub fn reason(self, wear: Wear, waits: bool) -> Option<Reason> {
        let idle_ms = wear.idle_ms?;
        if wear.is_unhealthy {
            return Some(Reason::Unhealthy);
        }
        if waits || idle_ms < DAMPING_MS {
            return None;
        }
        if self.max_jobs > 0 && wear.jobs >= self.max_jobs {
            return Some(Reason::Jobs);
        }
        let is_old = self.max_age_ms > 0 && wear.age_ms >= self.max_age_ms;
        is_old.then_some(Reason::Age)
    }
}

/// Returns the names of idle machines that make room for other pools, longest idle first. They are at most `most`, and
/// `min` machines stay.
pub fn make_room(machines: &[Machine], min: u32, most: u32) -> Vec<String> {
    let mut gone = idle_over(min, machines, |_| true);
    gone.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Activity;

    #[test]
    fn a_machine_is_replaced_for_one_reason_and_never_while_it_runs_a_job() {
        let rules = Recycling {
            max_idle_ms: 0,
            max_jobs: 10,
            max_age_ms: 1_000,
        };
        let fresh = Wear {
            idle_ms: Some(DAMPING_MS),
            ..Wear::default()
        };
        assert_eq!(rules.reason(fresh, false), None);
        let worn = Wear { jobs: 10, ..fresh };
        assert_eq!(rules.reason(worn, false), Some(Reason::Jobs));
        let old = Wear {
            age_ms: 1_000,
            ..fresh
        };
        assert_eq!(rules.reason(old, false), Some(Reason::Age));
        let ill = Wear {
            is_unhealthy: true,
            ..old
        };
        assert_eq!(rules.reason(ill, true), Some(Reason::Unhealthy));
        let busy = Wear {
            idle_ms: None,
            ..ill
        };
        assert_eq!(rules.reason(busy, false), None);
        let never = Recycling::default();
        assert_eq!(never.reason(Wear { jobs: 99, ..old }, false), None);
        assert_eq!(never.reason(ill, false), Some(Reason::Unhealthy));
    }

    #[test]
    fn a_job_that_waits_puts_a_replacement_off() {
        let rules = Recycling {
            max_jobs: 1,
            ..Recycling::default()
        };
        let worn = Wear {
            jobs: 1,
            idle_ms: Some(DAMPING_MS),
            ..Wear::default()
        };
        assert_eq!(rules.reason(worn, true), None);
        let just = Wear {
            idle_ms: Some(DAMPING_MS - 1),
            ..worn
        };
        assert_eq!(rules.reason(just, false), None);
        assert_eq!(rules.reason(worn, false), Some(Reason::Jobs));
    }

    #[test]
    fn idle_machines_make_room_down_to_the_floor() {
        let idle = |name: &str, since_ms| Machine::new(name, Activity::Idle { since_ms });
        let busy = Machine::new("busy", Activity::Runs { left_ms: 5 });
        let machines = [idle("b", 50), idle("a", 10), busy];
        assert_eq!(make_room(&machines, 0, 1), ["a"]);
        assert_eq!(make_room(&machines, 0, 9), ["a", "b"]);
        assert_eq!(make_room(&machines, 2, 9), ["a"]);
        assert_eq!(make_room(&machines, 3, 9), [""; 0]);
    }
}
