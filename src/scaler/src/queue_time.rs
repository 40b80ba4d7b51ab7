//! The law `queue_time`: so many machines that what waits begins within the horizon, and no more.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{Activity, Boots, Machine, Need, Pool, RUN_UNKNOWN_MS, Work};

/// Added to the boot time: a machine that is asked for now should be of use for so long within the horizon, ms.
const USE_MIN_MS: u64 = 60_000;

/// Thousandths of a machine.
const WHOLE: u64 = 1_000;

/// How many machines to ask for at `now_ms`. `others` are hosts of no pool that could run the same jobs. `mean_ms` is how
/// long jobs of this pool take on average, if known.
pub fn queue_time(
    pool: &Pool,
    machines: &[Machine],
    others: &[Machine],
    waiting: &[Work],
    boots: Boots,
    mean_ms: Option<u64>,
    now_ms: u64,
) -> Need {
    let boot_ms = boots.mean_ms;
    let horizon_ms = pool.target_ms.max(boot_ms.saturating_add(USE_MIN_MS));
    let unknown_ms = mean_ms.unwrap_or(RUN_UNKNOWN_MS);
    let takes_ms = |work: &Work| work.expected_ms.unwrap_or(unknown_ms);
    let of_work = |work: &Work| takes_ms(work).saturating_mul(work.share.into()) / WHOLE;
    let work_ms: u64 = waiting.iter().map(of_work).fold(0, u64::saturating_add);
    let free_in: Vec<u64> = machines
        .iter()
        .chain(others)
        .filter_map(|machine| free_in_ms(machine, boots, now_ms))
        .collect();
    let supply_ms: u64 = free_in
        .iter()
        .map(|free_in| horizon_ms.saturating_sub(*free_in))
        .fold(0, u64::saturating_add);
    let late = late(&free_in, waiting, takes_ms, horizon_ms);
    let lacks = work_ms.saturating_sub(supply_ms);
    let each = horizon_ms.saturating_sub(boot_ms).max(1);
    let by_work = u32::try_from(lacks.div_ceil(each)).unwrap_or(u32::MAX);
    let wanted = by_work.min(first_fit(late));
    let there = u32::try_from(machines.len()).unwrap_or(u32::MAX);
    let floor = pool.min.saturating_sub(there);
    let add = wanted
        .min(pool.step_max)
        .max(floor)
        .min(pool.max.saturating_sub(there));
    Need {
        add,
        work_ms,
        supply_ms,
        horizon_ms,
        wanted,
    }
}

/// In how many ms a machine is free, as far as it can be told; none: nothing is expected of it.
fn free_in_ms(machine: &Machine, boots: Boots, now_ms: u64) -> Option<u64> {
    match machine.activity {
        Activity::Idle { .. } => Some(0),
        Activity::Boots { since_ms } => boots.left_ms(now_ms.saturating_sub(since_ms)),
        Activity::Runs { left_ms } => Some(left_ms),
        Activity::Closed => None,
    }
}

/// What does not begin within the horizon, if each job in turn takes the machine that is free first. A job that takes a
/// part of a machine counts as that part of its time.
fn late<'a>(
    free_in: &[u64],
    waiting: &'a [Work],
    takes_ms: impl Fn(&Work) -> u64,
    horizon_ms: u64,
) -> &'a [Work] {
    let mut free: BinaryHeap<Reverse<u64>> = free_in.iter().copied().map(Reverse).collect();
    let begins = |work: &Work| {
        let Some(Reverse(at)) = free.pop().filter(|Reverse(at)| *at <= horizon_ms) else {
            return false;
        };
        let takes = takes_ms(work).saturating_mul(work.share.into()) / WHOLE;
        free.push(Reverse(at.saturating_add(takes)));
        true
    };
    let first = waiting
        .iter()
        .map(begins)
        .take_while(|begins| *begins)
        .count();
    waiting.get(first..).unwrap_or_default()
}

/// Empty machines that hold all that waits at once, each job put into the first with room for it.
fn first_fit(waiting: &[Work]) -> u32 {
    let mut rooms: Vec<u64> = Vec::new();
    let mut whole: u32 = 0;
    for work in waiting {
        let share = u64::from(work.share);
        if share >= WHOLE {
            whole = whole.saturating_add(1);
            continue;
        }
        match rooms.iter_mut().find(|room| **room >= share) {
            Some(room) => *room -= share,
            None => rooms.push(WHOLE - share),
        }
    }
    whole.saturating_add(u32::try_from(rooms.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::left_ms;

    const POOL: Pool = Pool {
        min: 0,
        max: 1_000,
        step_max: 1_000,
        target_ms: 0,
    };
    const BOOTS: Boots = Boots {
        mean_ms: 120_000,
        p95_ms: 150_000,
    };

    fn machine(activity: Activity) -> Machine {
        Machine {
            name: "m".to_owned(),
            activity,
        }
    }

    fn whole(seconds: u64) -> Work {
        Work {
            share: 1_000,
            expected_ms: Some(seconds * 1_000),
        }
    }

    fn add(pool: &Pool, machines: &[Machine], waiting: &[Work], now_ms: u64) -> u32 {
        queue_time(pool, machines, &[], waiting, BOOTS, None, now_ms).add
    }

    #[test]
    fn from_nothing_it_asks_for_what_the_work_needs_and_no_more_than_there_are_jobs() {
        // 10 × 30 s within the 60 s that a new machine is of use: five machines.
        assert_eq!(add(&POOL, &[], &[whole(30); 10], 0), 5);
        assert_eq!(add(&POOL, &[], &[whole(3_600); 10], 0), 10);
        assert_eq!(add(&POOL, &[], &[], 0), 0);
        let unknown = Work {
            share: 1_000,
            expected_ms: None,
        };
        assert_eq!(add(&POOL, &[], &[unknown; 4], 0), 4);
        let need = queue_time(&POOL, &[], &[], &[unknown; 4], BOOTS, Some(15_000), 0);
        assert_eq!((need.add, need.work_ms), (1, 60_000));
    }

    #[test]
    fn nothing_is_asked_for_if_all_begins_in_time() {
        let runs = |expected_ms, elapsed_ms| {
            machine(Activity::Runs {
                left_ms: left_ms(expected_ms, elapsed_ms),
            })
        };
        let soon = runs(100_000, 0);
        assert_eq!(add(&POOL, &[soon], &[whole(3_600)], 0), 0);
        let late = runs(1_000_000, 0);
        assert_eq!(add(&POOL, &[late], &[whole(3_600)], 0), 1);
        let closed = machine(Activity::Closed);
        assert_eq!(add(&POOL, &[closed], &[whole(3_600)], 0), 1);
        // One that runs over its time is not believed to end at once.
        let over = runs(1_000_000, 10_000_000);
        assert_eq!(add(&POOL, &[over], &[whole(3_600)], 0), 1);
    }

    #[test]
    fn hosts_of_no_pool_do_their_part_and_count_as_no_machines() {
        let idle = [machine(Activity::Idle { since_ms: 0 })];
        let none = queue_time(&POOL, &[], &idle, &[whole(30)], BOOTS, None, 0);
        assert_eq!((none.add, none.supply_ms), (0, 180_000));
        let floor = Pool { min: 1, ..POOL };
        assert_eq!(queue_time(&floor, &[], &idle, &[], BOOTS, None, 0).add, 1);
    }

    #[test]
    fn machines_that_boot_count_until_they_hang() {
        let boots = vec![machine(Activity::Boots { since_ms: 0 }); 5];
        assert_eq!(add(&POOL, &boots, &[whole(3_600); 5], 10_000), 0);
        assert_eq!(add(&POOL, &boots, &[whole(3_600); 5], 290_000), 0);
        assert_eq!(add(&POOL, &boots, &[whole(3_600); 5], 310_000), 5);
    }

    #[test]
    fn small_jobs_share_machines() {
        let quarter = Work {
            share: 250,
            expected_ms: Some(3_600_000),
        };
        assert_eq!(add(&POOL, &[], &[quarter; 10], 0), 3);
    }

    #[test]
    fn limits_of_the_pool_hold() {
        let pool = Pool {
            min: 2,
            max: 10,
            step_max: 4,
            ..POOL
        };
        assert_eq!(add(&pool, &[], &[], 0), 2);
        assert_eq!(add(&pool, &[], &[whole(3_600); 100], 0), 4);
        let nine = vec![machine(Activity::Closed); 9];
        assert_eq!(add(&pool, &nine, &[whole(3_600); 100], 0), 1);
    }

    proptest! {
        #[test]
        fn more_work_never_asks_for_fewer(seconds in prop::collection::vec(1_u64..5_000, 0..30), more in 1_u64..5_000, idle in 0_usize..5) {
            let machines = vec![machine(Activity::Idle { since_ms: 0 }); idle];
            let waiting: Vec<Work> = seconds.iter().map(|s| whole(*s)).collect();
            let mut longer = waiting.clone();
            longer.push(whole(more));
            prop_assert!(add(&POOL, &machines, &waiting, 0) <= add(&POOL, &machines, &longer, 0));
        }
    }
}
