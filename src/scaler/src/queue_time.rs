//! The law `queue_time`: so many machines that what waits begins within the horizon, and no more.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use crate::{Activity, Boots, Machine, Need, Pool, RUN_UNKNOWN_MS, Work};

/// Per mille of a whole machine.
const WHOLE: u64 = 1_000;

/// Returns the number of machines to request at `now_ms`. `others` are hosts outside pools. `mean_ms` is the mean run
/// time of this pool's jobs, if known. A machine counts only for work that it can run.
pub fn queue_time(
    pool: &Pool,
    machines: &[Machine],
    others: &[Machine],
    waiting: &[Work],
    boots: Boots,
    mean_ms: Option<u64>,
    now_ms: u64,
) -> Need {
    let horizon_ms = pool.horizon_ms(boots);
    let unknown_ms = mean_ms.unwrap_or(RUN_UNKNOWN_MS);
    let takes_ms = |work: &Work| {
        let takes_ms = work.expected_ms.unwrap_or(unknown_ms);
        takes_ms.saturating_mul(work.share.into()) / WHOLE
    };
    let work_ms: u64 = waiting.iter().map(takes_ms).fold(0, u64::saturating_add);
    let mut supply = Supply::of(machines.iter().chain(others), boots, horizon_ms, now_ms);
    let shapes: BTreeSet<u32> = waiting.iter().map(|work| work.shape).collect();
    let room_ms = supply.room_ms(&shapes);
    let late = supply.late(waiting, takes_ms);
    let shapes: BTreeSet<u32> = late.iter().map(|work| work.shape).collect();
    let late_ms: u64 = late.iter().map(takes_ms).fold(0, u64::saturating_add);
    let lacks_ms = late_ms.saturating_add(supply.over_ms(&shapes));
    let each_ms = horizon_ms.saturating_sub(boots.mean_ms).max(1);
    let by_work = u32::try_from(lacks_ms.div_ceil(each_ms)).unwrap_or(u32::MAX);
    let wanted = by_work.min(first_fit(&late));
    let there = u32::try_from(machines.len()).unwrap_or(u32::MAX);
    let floor = pool.min.saturating_sub(there);
    let add = wanted
        .min(pool.step_max)
        .max(floor)
        .min(pool.max.saturating_sub(there));
    Need {
        add,
        work_ms,
        supply_ms: if late.is_empty() {
            room_ms
        } else {
            work_ms.saturating_sub(lacks_ms)
        },
        horizon_ms,
        wanted,
    }
}

/// Returns the time until a machine is free, ms, as far as known. `None`: nothing is expected of it.
fn free_in_ms(machine: &Machine, boots: Boots, now_ms: u64) -> Option<u64> {
    match machine.activity {
        Activity::Idle { .. } => Some(0),
        Activity::Boots { since_ms } => boots.left_ms(now_ms.saturating_sub(since_ms)),
        Activity::Runs { left_ms } => Some(left_ms),
        Activity::Closed => None,
    }
}

/// Times at which machines become free within the horizon, ms. Machines that can run the same work are grouped by the
/// shapes that they cannot run.
struct Supply<'a> {
    free_in: BTreeMap<&'a [u32], BinaryHeap<Reverse<u64>>>,
    horizon_ms: u64,
}

impl<'a> Supply<'a> {
    fn of(
        machines: impl Iterator<Item = &'a Machine>,
        boots: Boots,
        horizon_ms: u64,
        now_ms: u64,
    ) -> Self {
        let mut free_in: BTreeMap<&[u32], BinaryHeap<Reverse<u64>>> = BTreeMap::new();
        for machine in machines {
            let at = free_in_ms(machine, boots, now_ms).filter(|at| *at <= horizon_ms);
            if let Some(at) = at {
                let alike = free_in.entry(&machine.unfit).or_default();
                alike.push(Reverse(at));
            }
        }
        Self {
            free_in,
            horizon_ms,
        }
    }

    /// Returns the times at which machines for one of these shapes are free.
    fn of_use(&self, shapes: &BTreeSet<u32>) -> impl Iterator<Item = u64> {
        let fit = |unfit: &[u32]| shapes.iter().any(|shape| runs(unfit, *shape));
        let of_use = self.free_in.iter().filter(move |(unfit, _)| fit(unfit));
        of_use.flat_map(|(_, free_in)| free_in.iter().map(|Reverse(at)| *at))
    }

    /// Returns the free time within the horizon of machines for one of these shapes, ms.
    fn room_ms(&self, shapes: &BTreeSet<u32>) -> u64 {
        let left = |at| self.horizon_ms.saturating_sub(at);
        self.of_use(shapes).map(left).fold(0, u64::saturating_add)
    }

    /// Returns the time by which jobs of such machines exceed the horizon, ms in total.
    fn over_ms(&self, shapes: &BTreeSet<u32>) -> u64 {
        let over = |at: u64| at.saturating_sub(self.horizon_ms);
        self.of_use(shapes).map(over).fold(0, u64::saturating_add)
    }

    /// Returns the work that does not start within the horizon, if each job in turn takes the first free machine that
    /// can run it. A job that takes a part of a machine counts as that part of its time.
    fn late(&mut self, waiting: &[Work], takes_ms: impl Fn(&Work) -> u64) -> Vec<Work> {
        let mut full: BTreeSet<u32> = BTreeSet::new();
        let mut late = Vec::new();
        for work in waiting {
            let begins = !full.contains(&work.shape) && self.takes(work, takes_ms(work));
            if !begins {
                // Later machines only become free later.
                full.insert(work.shape);
                late.push(*work);
            }
        }
        late
    }

    fn takes(&mut self, work: &Work, takes_ms: u64) -> bool {
        let able = self
            .free_in
            .iter_mut()
            .filter(|(unfit, _)| runs(unfit, work.shape));
        // Among equal ones, take the machine that can run the least.
        let first = able.min_by_key(|(unfit, free_in)| {
            let at = free_in.peek().map_or(u64::MAX, |Reverse(at)| *at);
            (at, Reverse(unfit.len()))
        });
        let Some((_, free_in)) = first else {
            return false;
        };
        let Some(Reverse(at)) = free_in.peek().copied() else {
            return false;
        };
        if at > self.horizon_ms {
            return false;
        }
        free_in.pop();
        free_in.push(Reverse(at.saturating_add(takes_ms)));
        true
    }
}

/// Returns true if a machine that cannot run some shapes can run this one.
fn runs(unfit: &[u32], shape: u32) -> bool {
    unfit.binary_search(&shape).is_err()
}

/// Returns the number of empty machines for all waiting work, with each job on the first machine with room for it.
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
        deadline_ms: 300_000,
    };

    fn machine(activity: Activity) -> Machine {
        Machine::new("m", activity)
    }

    fn whole(seconds: u64) -> Work {
        Work {
            share: 1_000,
            expected_ms: Some(seconds * 1_000),
            shape: 0,
        }
    }

    fn add(pool: &Pool, machines: &[Machine], waiting: &[Work], now_ms: u64) -> u32 {
        queue_time(pool, machines, &[], waiting, BOOTS, None, now_ms).add
    }

    #[test]
    fn from_nothing_it_asks_for_what_the_work_needs_and_no_more_than_there_are_jobs() {
        // 10 × 30 s of work within the 60 s in which a new machine is useful need five machines.
        assert_eq!(add(&POOL, &[], &[whole(30); 10], 0), 5);
        assert_eq!(add(&POOL, &[], &[whole(3_600); 10], 0), 10);
        assert_eq!(add(&POOL, &[], &[], 0), 0);
        let unknown = Work {
            share: 1_000,
            expected_ms: None,
            shape: 0,
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
        // A job over its expected time is not expected to end at once.
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
    fn a_host_counts_only_for_the_work_that_it_can_run() {
        let tagged = |work: Work| Work { shape: 1, ..work };
        let plain = Machine {
            unfit: vec![1],
            ..machine(Activity::Idle { since_ms: 0 })
        };
        let others = vec![plain; 4];
        let need = |waiting: &[Work]| queue_time(&POOL, &[], &others, waiting, BOOTS, None, 0);
        let alone = need(&[tagged(whole(30)); 10]);
        assert_eq!((alone.add, alone.work_ms, alone.supply_ms), (5, 300_000, 0));
        assert_eq!(need(&[whole(30); 10]).add, 0);
        // Jobs that the hosts can run neither hide nor increase those that they cannot run.
        let mut both = vec![whole(3_600); 4];
        both.extend([tagged(whole(30)); 10]);
        assert_eq!(need(&both).add, 5);
        // A job that any machine can run leaves the special ones to jobs that need them.
        let any = machine(Activity::Idle { since_ms: 0 });
        let mixed = [any, others[0].clone()];
        let waiting = [whole(3_600), tagged(whole(3_600))];
        assert_eq!(
            queue_time(&POOL, &[], &mixed, &waiting, BOOTS, None, 0).add,
            0
        );
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
            shape: 0,
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
