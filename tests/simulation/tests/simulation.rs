//! Replicas in virtual time: each seed has its own lab, users and faults, and the judge checks every invariant of
//! docs/invariants.md. `FAIRLEAD_SIM_SEEDS` sets the number of seeds. `fairlead-simulate` runs more, and replays one.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use fairlead_simulation::{
    Counts, Options, Outcome, WITH_GROUPS_FROM, WITH_PAIRS_FROM, WITH_POOLS_FROM, WITH_REUSE_FROM,
    WITH_SHARDS_FROM, YOUNGER_FROM, simulate,
};

/// Seeds of one run.
const SEEDS: u64 = 2_000;
/// Beyond those, seeds that broke a promise once: they stay.
const BROKEN_ONCE: [u64; 70] = [
    432, 447, 460, 497, 648, 653, 700, 789, 982, 1_216, 1_500, 2_077, 2_214, 2_536, 2_725, 2_743,
    2_864, 3_077, 3_141, 3_257, 3_433, 3_450, 3_504, 3_667, 3_720, 3_875, 3_910, 4_085, 4_201,
    4_304, 4_355, 4_731, 4_889, 5_030, 5_082, 5_131, 5_137, 5_254, 5_276, 5_349, 5_466, 6_072,
    6_153, 6_161, 6_186, 6_509, 7_524, 7_710, 7_766, 7_884, 8_358, 8_700, 8_965, 9_080, 9_204,
    9_316, 9_555, 9_824, 40_026, 40_187, 40_203, 100_019, 100_030, 100_037, 100_076, 100_248,
    100_394, 100_426, 100_748, 121_888,
];
/// Most replicas of a seed.
const REPLICAS_MAX: usize = 4;

fn run(seed: u64) -> Outcome {
    let options = Options {
        replicas_max: REPLICAS_MAX,
        trace: false,
    };
    simulate(seed, options).unwrap_or_else(|error| panic!("no runtime for one thread: {error}"))
}

/// How many seeds.
#[expect(
    clippy::disallowed_methods,
    reason = "more seeds are asked for by a variable"
)]
fn seeds() -> u64 {
    let many = std::env::var("FAIRLEAD_SIM_SEEDS").ok();
    many.and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

#[test]
fn no_seed_breaks_a_promise() {
    let many = seeds();
    let younger = YOUNGER_FROM..YOUNGER_FROM + many / 5;
    let in_parts = WITH_SHARDS_FROM..WITH_SHARDS_FROM + many / 5;
    let seeds = (1..=many).chain(BROKEN_ONCE).chain(younger);
    let in_groups = WITH_GROUPS_FROM..WITH_GROUPS_FROM + many / 10;
    let in_pairs = WITH_PAIRS_FROM..WITH_PAIRS_FROM + many / 10;
    let with_reuse = WITH_REUSE_FROM..WITH_REUSE_FROM + many / 5;
    let with_pools = WITH_POOLS_FROM..WITH_POOLS_FROM + many / 20;
    let seeds = seeds.chain(in_parts).chain(in_groups).chain(in_pairs);
    let left = Mutex::new(seeds.chain(with_reuse).chain(with_pools));
    let counts = Mutex::new(Counts::default());
    let (judged, broken) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let next = left.lock().unwrap().next();
            let Some(seed) = next else { return };
            let outcome = run(seed);
            judged.fetch_add(1, Ordering::Relaxed);
            counts.lock().unwrap().add(outcome.counts);
            if let Some((invariant, what)) = outcome.violation {
                broken.lock().unwrap().push(format!(
                    "seed {seed} broke {invariant}: {what}\n  replay it: {}",
                    fairlead_simulation::replay(seed, REPLICAS_MAX)
                ));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(
        broken.is_empty(),
        "{} of {} seeds:\n{}",
        broken.len(),
        judged.into_inner(),
        broken.join("\n")
    );
    // What never happens proves nothing.
    let counts = counts.into_inner().unwrap();
    assert!(counts.acknowledged > many * 10, "{counts:?}");
    assert!(counts.runs > many * 10, "{counts:?}");
    assert!(counts.wholes > many / 5, "{counts:?}");
    assert!(counts.lost > 0 && counts.given_back > 0, "{counts:?}");
    assert!(
        counts.reused > many && counts.shared > many / 5,
        "{counts:?}"
    );
    assert!(counts.audits > many / 5, "{counts:?}");
    assert!(
        counts.reused_of_others > 0 && counts.differing > 0,
        "{counts:?}"
    );
}

#[test]
fn a_seed_has_one_history() {
    for seed in [
        1,
        7,
        397,
        WITH_PAIRS_FROM + 1,
        WITH_REUSE_FROM + 37,
        WITH_POOLS_FROM + 12,
    ] {
        let (first, again) = (run(seed), run(seed));
        assert_eq!((first.hash, first.lines), (again.hash, again.lines));
    }
}
