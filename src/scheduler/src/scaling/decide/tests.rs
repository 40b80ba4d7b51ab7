//! Tests of decisions: what pools ask for, what they end, and what they lend.

use fairlead_scaler::Work;

use super::*;

const NOW_MS: u64 = 1_000_000;

fn picture(name: &str, machines: &[Activity], jobs: usize) -> Picture {
    let named = machines.iter().enumerate();
    let named = named.map(|(n, activity)| Machine::new(format!("{name}--{n}"), *activity));
    let hour = Work {
        share: 1_000,
        expected_ms: Some(3_600_000),
        shape: 0,
    };
    Picture {
        name: name.to_owned(),
        pool: PoolDoc {
            min: 0,
            ..PoolDoc::unsaid()
        },
        machines: named.collect(),
        wear: vec![Wear::default(); machines.len()],
        others: Vec::new(),
        waiting: Waiting {
            work: vec![hour; jobs],
            ..Waiting::default()
        },
        boots: Boots {
            mean_ms: 100_000,
            deadline_ms: 300_000,
        },
        retiring: 0,
        step_left: 100,
        lull: Lull::default(),
        lends: Lull::default(),
        is_minute: true,
    }
}

fn decided(pictures: &mut [Picture], quota: u32) -> Vec<Plan> {
    decide(pictures, quota, NOW_MS)
}

fn one(mut picture: Picture) -> Plan {
    decided(std::slice::from_mut(&mut picture), u32::MAX).remove(0)
}

/// Little of it was in use in the three rounds before.
fn calm(mut picture: Picture) -> Picture {
    for _ in 0..3 {
        picture.may_lend(Counts::of(&picture.machines), NOW_MS);
    }
    picture
}

const IDLE: Activity = Activity::Idle { since_ms: 0 };
const FRESH: Activity = Activity::Idle { since_ms: NOW_MS };
const BUSY: Activity = Activity::Runs { left_ms: 9_000_000 };

#[test]
fn a_pool_asks_for_what_waits_and_says_why() {
    let plan = one(picture("a", &[BUSY], 3));
    assert_eq!((plan.add, plan.is_short, plan.retire.len()), (3, false, 0));
    assert_eq!(
        plan.sentence,
        "3 jobs wait with 10800 s of work, and the machines take 0 s within 160 s; 3 machines are asked for"
    );
    let many = one(picture("a", &[], 30));
    assert_eq!((many.add, many.is_short), (10, true));
    assert!(
        many.sentence
            .ends_with("30 were wanted, and max 10 or max_step 100 allows no more")
    );
}

#[test]
fn a_machine_that_retires_counts_until_it_is_gone() {
    let mut full = picture("a", &[BUSY, BUSY], 5);
    (full.pool.max, full.retiring) = (4, 1);
    assert_eq!(one(full).add, 1);
    let mut floor = picture("a", &[BUSY], 0);
    (floor.pool.min, floor.pool.max, floor.retiring) = (4, 4, 2);
    assert_eq!(one(floor).add, 1);
}

#[test]
fn a_paused_pool_does_nothing() {
    let mut paused = picture("a", &[IDLE], 0);
    paused.pool.paused = true;
    let plan = one(paused);
    assert_eq!((plan.add, plan.retire.len()), (0, 0));
}

#[test]
fn the_quota_is_shared_and_the_floors_come_first() {
    let mut floor = picture("c", &[], 0);
    floor.pool.min = 2;
    let mut pools = [picture("a", &[], 8), picture("b", &[], 8), floor];
    let adds: Vec<u32> = decided(&mut pools, 9).iter().map(|plan| plan.add).collect();
    assert_eq!(adds, [4, 3, 2]);
}

#[test]
fn an_idle_pool_makes_room_for_one_that_lacks_machines_and_never_below_its_floor() {
    // Idle for long it retires anyway; one that was just used stays, unless others need the room.
    let lender = calm(picture("a", &[FRESH, FRESH, FRESH, BUSY], 0));
    let alone = &decided(&mut [picture("a", &[FRESH, FRESH], 0)], 2)[0];
    assert_eq!(alone.retire.len(), 0);
    let plans = decided(&mut [lender, picture("b", &[], 1)], 4);
    assert_eq!(plans[1].add, 0);
    assert!(plans[1].is_short && plans[1].sentence.contains("the quota of 4 machines"));
    let why = "it makes room for pool b".to_owned();
    assert_eq!(plans[0].retire, [("a--0".to_owned(), why)]);
    let mut at_floor = calm(picture("a", &[FRESH, FRESH], 0));
    at_floor.pool.min = 2;
    let plans = decided(&mut [at_floor, picture("b", &[], 1)], 2);
    assert_eq!(plans[0].retire.len(), 0);
    // The threshold and the rounds are the pool's.
    let mut patient = calm(picture("a", &[FRESH, FRESH], 0));
    patient.pool.low_rounds = Some(5);
    let plans = decided(&mut [patient, picture("b", &[], 1)], 2);
    assert_eq!(plans[0].retire.len(), 0);
    // Those that go already are enough.
    let mut going = calm(picture("a", &[FRESH], 0));
    going.retiring = 1;
    let plans = decided(&mut [going, picture("b", &[], 1)], 2);
    assert_eq!(plans[0].retire.len(), 0);
}

#[test]
fn idle_machines_retire_only_while_nothing_waits() {
    let plan = one(picture("a", &[IDLE, FRESH, BUSY], 0));
    let names: Vec<&str> = plan.retire.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a--0"]);
    let plan = one(picture("a", &[IDLE, BUSY], 5));
    assert_eq!(plan.retire.len(), 0);
    let mut patient = picture("a", &[IDLE], 0);
    patient.pool.max_idle_s = 2_000;
    assert_eq!(one(patient).retire.len(), 0);
}

#[test]
fn an_unhealthy_machine_is_replaced_even_if_jobs_wait() {
    let mut ill = picture("a", &[Activity::Closed], 1);
    ill.wear[0] = Wear {
        is_unhealthy: true,
        idle_ms: Some(0),
        ..Wear::default()
    };
    let plan = one(ill);
    assert_eq!((plan.add, plan.retire.len()), (1, 1));
}

/// A pool with a floor of one whose first machine is old.
fn old(machines: &[Activity]) -> Picture {
    let mut old = picture("a", machines, 0);
    old.boots.mean_ms = NOW_MS + 1;
    (old.pool.min, old.pool.max_age_s) = (1, 10);
    old.wear[0] = Wear {
        age_ms: 20_000,
        idle_ms: Some(30_000),
        ..Wear::default()
    };
    old
}

#[test]
fn a_worn_machine_ends_once_its_successor_can_run_jobs() {
    let plan = one(old(&[IDLE]));
    assert_eq!((plan.add, plan.retire.len()), (1, 0), "{plan:?}");
    let words = "1 machines are asked for; 1 worn machines end once others can run jobs";
    assert!(plan.sentence.ends_with(words), "{plan:?}");
    let boots = Activity::Boots { since_ms: NOW_MS };
    let plan = one(old(&[IDLE, boots]));
    assert_eq!((plan.add, plan.retire.len()), (0, 0), "{plan:?}");
    for able in [FRESH, BUSY] {
        let plan = one(old(&[IDLE, able]));
        assert_eq!((plan.add, plan.retire.len()), (0, 1), "{plan:?}");
    }
    // The law `seed` decides once a minute, and yet asks for a successor at once.
    let mut seed = old(&[IDLE]);
    seed.pool.law = fairlead_known::pools::SEED.to_owned();
    seed.is_minute = false;
    let plan = one(seed);
    assert_eq!((plan.add, plan.retire.len()), (1, 0), "{plan:?}");
    // Without room for both the old one goes first.
    let mut full = old(&[IDLE]);
    full.pool.max = 1;
    assert_eq!(one(full).retire.len(), 1);
    assert_eq!(decided(&mut [old(&[IDLE])], 1)[0].retire.len(), 1);
}

#[test]
fn a_machine_that_boots_takes_no_idle_one_s_place_in_the_floor() {
    let boots = Activity::Boots { since_ms: NOW_MS };
    let mut pool = picture("a", &[IDLE, boots], 0);
    pool.pool.min = 1;
    assert_eq!(one(pool).retire.len(), 0);
}

#[test]
fn cooldown_rounds_and_threshold_hold_for_the_usual_law_too() {
    let mut pool = picture("a", &[IDLE, BUSY], 0);
    pool.pool.low_use_percent = Some(50);
    assert_eq!(one(pool).retire.len(), 0, "half of it is in use");
    let mut pool = picture("a", &[IDLE, IDLE, BUSY], 0);
    (pool.pool.low_use_percent, pool.pool.low_rounds) = (Some(50), Some(2));
    let pools = std::slice::from_mut(&mut pool);
    assert_eq!(decided(pools, u32::MAX)[0].retire.len(), 0);
    assert_eq!(decided(pools, u32::MAX)[0].retire.len(), 2);
    let mut pool = picture("a", &[IDLE], 0);
    pool.pool.cooldown_s = Some(2_000);
    assert_eq!(one(pool).retire.len(), 0);
}

#[test]
fn the_law_seed_obeys_the_target() {
    let of = |target_s| {
        let mut pool = picture("a", &[], 20);
        (pool.pool.law, pool.pool.max) = (fairlead_known::pools::SEED.to_owned(), 50);
        (pool.pool.target_s, pool.waiting.mean_ms) = (target_s, Some(300_000));
        one(pool)
    };
    assert_eq!((of(0).add, of(3_600).add), (20, 2));
    assert_eq!(of(3_600).need.horizon_ms, 3_600_000);
}
