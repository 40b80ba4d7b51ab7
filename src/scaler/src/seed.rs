//! The law `seed`: `queue / (rate × time) − machines`, with a step, a cooldown, damping and hysteresis.
//!
//! Source: the `ScaleService` of the documents that the project comes from.

use crate::{Lull, Shrinking};

/// Default time in which waiting work should be done, ms.
pub const SEED_TIME_MS: u64 = 300_000;

/// Default shrinking of this law: after 10 min, and three decisions with less than 30 % in use.
pub const SEED_SHRINKING: Shrinking = Shrinking {
    cooldown_ms: 600_000,
    rounds: 3,
    low_use: 300,
};

/// Parameters of the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedRules {
    /// Time in which waiting work should be done, ms. Default [`SEED_TIME_MS`].
    pub time_ms: u64,
    /// Assumed run time of a job if nothing is known, ms. The initial rate is its inverse. Default 300 s.
    pub initial_ms: u64,
    /// Maximum number of machines that one decision adds. Default 100.
    pub step_max: u32,
    /// Conditions of shrinking. Default [`SEED_SHRINKING`].
    pub shrinking: Shrinking,
    /// Minimum number of machines. Default 2.
    pub min: u32,
}

impl Default for SeedRules {
    fn default() -> Self {
        Self {
            time_ms: SEED_TIME_MS,
            initial_ms: 300_000,
            step_max: 100,
            shrinking: SEED_SHRINKING,
            min: 2,
        }
    }
}

/// Returns the number of machines to add (positive) or to remove (negative) at `now_ms`. `machines` includes booting
/// ones, and `busy` counts those that run a job. `mean_ms` is the mean run time of jobs, if known.
pub fn seed(
    rules: &SeedRules,
    lull: &mut Lull,
    waiting: usize,
    machines: u32,
    busy: u32,
    mean_ms: Option<u64>,
    now_ms: u64,
) -> i64 {
    let mean_ms = mean_ms.unwrap_or(rules.initial_ms).max(1);
    let wanted = (waiting as u64)
        .saturating_mul(mean_ms)
        .div_ceil(rules.time_ms.max(1));
    let floor = u64::from(rules.min);
    let there = u64::from(machines);
    let lacks = wanted.max(floor).saturating_sub(there);
    if lacks > 0 {
        lull.changes(now_ms);
        let step = lacks.min(u64::from(rules.step_max));
        return i64::try_from(step).unwrap_or(i64::MAX);
    }
    let is_kept = waiting > 0 || there <= floor;
    if !lull.allows(rules.shrinking, is_kept, busy, machines, now_ms) {
        return 0;
    }
    lull.changes(now_ms);
    let idle = there.saturating_sub(u64::from(busy)).min(there - floor);
    -i64::try_from(idle).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a law without earlier decisions.
    fn law(rules: SeedRules) -> impl FnMut(usize, u32, u32, Option<u64>, u64) -> i64 {
        let mut lull = Lull::default();
        move |waiting, machines, busy, mean_ms, now_ms| {
            seed(&rules, &mut lull, waiting, machines, busy, mean_ms, now_ms)
        }
    }

    #[test]
    fn it_grows_by_the_formula_and_the_step() {
        let mut decide = law(SeedRules::default());
        // 10 jobs of 300 s within 300 s.
        assert_eq!(decide(10, 2, 2, None, 0), 8);
        assert_eq!(decide(1_000, 2, 2, None, 0), 100);
        assert_eq!(decide(1_000, 2, 2, Some(30_000), 0), 98);
        assert_eq!(decide(0, 0, 0, None, 0), 2);
        let mut patient = law(SeedRules {
            time_ms: 3_600_000,
            min: 0,
            ..SeedRules::default()
        });
        assert_eq!(patient(20, 0, 0, None, 0), 2);
    }

    #[test]
    fn it_shrinks_late_and_only_while_little_is_in_use() {
        let mut decide = law(SeedRules::default());
        assert_eq!(decide(20, 2, 2, None, 0), 18);
        for at in [100_000, 200_000, 300_000] {
            assert_eq!(decide(0, 20, 2, None, at), 0);
        }
        assert_eq!(decide(0, 20, 2, None, 700_000), -18);
        let mut busy = law(SeedRules::default());
        for at in 0..100 {
            assert_eq!(busy(0, 20, 6, None, 1_000_000 * at), 0);
        }
    }
}
