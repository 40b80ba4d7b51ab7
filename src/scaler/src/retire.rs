//! Which machines go: those that were idle for one boot time, while nothing waits that they could start.

use crate::{Activity, Boots, Machine, Pool};

/// Returns the names of the machines to retire now, longest idle first. The pool never falls below its floor.
pub fn retire(
    pool: &Pool,
    machines: &[Machine],
    waiting: usize,
    boots: Boots,
    now_ms: u64,
) -> Vec<String> {
    if waiting > 0 {
        return Vec::new();
    }
    let is_long = |since_ms: u64| now_ms.saturating_sub(since_ms) >= boots.mean_ms;
    idle_over(pool.min, machines, is_long)
}

/// Returns the names of idle machines above the floor, longest idle first. `is_meant` selects by the time at which they
/// became idle.
pub(crate) fn idle_over(
    min: u32,
    machines: &[Machine],
    is_meant: impl Fn(u64) -> bool,
) -> Vec<String> {
    let mut idle: Vec<(u64, &str)> = machines
        .iter()
        .filter_map(|machine| match machine.activity {
            Activity::Idle { since_ms } => Some((since_ms, machine.name.as_str())),
            Activity::Boots { .. } | Activity::Runs { .. } | Activity::Closed => None,
        })
        .filter(|(since_ms, _)| is_meant(*since_ms))
        .collect();
    idle.sort_unstable();
    // A booting machine takes no place yet.
    let boots = |machine: &&Machine| matches!(machine.activity, Activity::Boots { .. });
    let there = machines.iter().filter(|machine| !boots(machine)).count();
    let floor = usize::try_from(min).unwrap_or(usize::MAX);
    let over = there.saturating_sub(floor);
    let gone = idle.into_iter().take(over);
    gone.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_idle_for_a_boot_time_goes_down_to_the_floor() {
        let pool = Pool {
            min: 2,
            max: 10,
            step_max: 10,
            target_ms: 0,
        };
        let boots = Boots {
            mean_ms: 100,
            deadline_ms: 300,
        };
        let idle = |name: &str, since_ms| Machine::new(name, Activity::Idle { since_ms });
        let busy = Machine::new("busy", Activity::Runs { left_ms: 5 });
        let machines = [idle("b", 50), idle("a", 10), idle("new", 150), busy];
        assert_eq!(retire(&pool, &machines, 0, boots, 200), ["a", "b"]);
        assert_eq!(retire(&pool, &machines[1..], 0, boots, 200), ["a"]);
        assert_eq!(retire(&pool, &machines, 1, boots, 200), [""; 0]);
        assert_eq!(retire(&pool, &machines[..2], 0, boots, 200), [""; 0]);
        let boots_yet = Machine::new("boots", Activity::Boots { since_ms: 0 });
        let more = [&machines[..2], &[boots_yet]].concat();
        assert_eq!(retire(&pool, &more, 0, boots, 200), [""; 0]);
    }
}
