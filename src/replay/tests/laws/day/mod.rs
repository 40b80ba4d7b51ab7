//! A day of arrivals, from a seed: for tests, and for the example that writes it as a file.

use fairlead_replay::arrivals::Arrival;

/// Returns pseudo-random numbers below a bound, from a seed.
pub(crate) fn chance(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |most| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    }
}

/// Returns a day of jobs in three bursts and between them. There are five suites of 40 s to 30 min, and half of the
/// shards are 10 s repeats.
pub(crate) fn day(seed: u64) -> Vec<Arrival> {
    let mut chance = chance(seed);
    let mut all = Vec::new();
    for job in 0..700 {
        let submit_ms = if chance(10) < 6 {
            let noon = [9, 13, 17][job % 3] * 3_600_000;
            noon + chance(2_400_000) + chance(2_400_000)
        } else {
            chance(86_400_000)
        };
        let suites = [(40, "a"), (120, "b"), (300, "c"), (900, "d"), (1_800, "e")];
        let (seconds, suite) = suites[(job + job / 5) % 5];
        let group = format!("g{}", chance(4));
        for _ in 0..4 + chance(97) {
            let run_ms = if chance(2) == 0 {
                10_000
            } else {
                seconds * (800 + chance(400))
            };
            all.push(Arrival {
                submit_ms,
                group: group.clone(),
                suite: suite.to_owned(),
                run_ms,
            });
        }
    }
    all.sort_by_key(|arrival| arrival.submit_ms);
    all
}
