//! The law `queue_length`: a machine for each job that waits, whatever it takes.

use crate::{Activity, Machine, Pool};

/// Returns the number of machines to request now: one for each of the `waiting` jobs, minus those that are idle or
/// boot.
pub fn queue_length(pool: &Pool, machines: &[Machine], waiting: usize) -> u32 {
    let is_coming = |machine: &&Machine| match machine.activity {
        Activity::Idle { .. } | Activity::Boots { .. } => true,
        Activity::Runs { .. } | Activity::Closed => false,
    };
    let coming = machines.iter().filter(is_coming).count();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let there = count(machines.len());
    let floor = pool.min.saturating_sub(there);
    count(waiting.saturating_sub(coming))
        .min(pool.step_max)
        .max(floor)
        .min(pool.max.saturating_sub(there))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_that_waits_gets_a_machine_within_the_limits() {
        let pool = Pool {
            min: 2,
            max: 10,
            step_max: 5,
            target_ms: 0,
        };
        let machine = |activity| Machine::new("m", activity);
        let machines = [
            machine(Activity::Idle { since_ms: 0 }),
            machine(Activity::Boots { since_ms: 0 }),
            machine(Activity::Runs { left_ms: 1 }),
            machine(Activity::Closed),
        ];
        assert_eq!(queue_length(&pool, &[], 0), 2);
        assert_eq!(queue_length(&pool, &[], 4), 4);
        assert_eq!(queue_length(&pool, &[], 100), 5);
        assert_eq!(queue_length(&pool, &machines, 2), 0);
        assert_eq!(queue_length(&pool, &machines, 5), 3);
        let many = vec![machine(Activity::Closed); 9];
        assert_eq!(queue_length(&pool, &many, 5), 1);
    }
}
