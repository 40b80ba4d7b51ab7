//! The law `seed`: `queue / (rate × time) − machines`, with a step, a cooldown, damping and hysteresis.
//!
//! Source: the `ScaleService` of the documents that the project comes from.

/// The numbers of the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedRules {
    /// In which time what waits should be worked off, ms. Default 300 s.
    pub time_ms: u64,
    /// How long a job takes where nothing is known, ms: the initial rate is its inverse. Default 300 s.
    pub initial_ms: u64,
    /// Machines that one decision adds at most. Default 100.
    pub step_max: u32,
    /// How long after a change nothing is removed, ms. Default 10 min.
    pub cooldown_ms: u64,
    /// In how many decisions one after the other too little must be in use before machines go. Default 3.
    pub damping: u32,
    /// Machines go only while less of them is in use, thousandths. Default 300.
    pub low_use: u32,
    /// Machines that it never falls below. Default 2.
    pub min: u32,
}

impl Default for SeedRules {
    fn default() -> Self {
        Self {
            time_ms: 300_000,
            initial_ms: 300_000,
            step_max: 100,
            cooldown_ms: 600_000,
            damping: 3,
            low_use: 300,
            min: 2,
        }
    }
}

/// The law, and what it remembers of its last decisions.
#[derive(Debug, Clone, Copy)]
pub struct Seed {
    rules: SeedRules,
    changed_ms: u64,
    low: u32,
}

impl Seed {
    /// A law that has decided nothing yet.
    pub fn new(rules: SeedRules) -> Self {
        Self {
            rules,
            changed_ms: 0,
            low: 0,
        }
    }

    /// Machines to add (positive) or to remove (negative) at `now_ms`. `machines` counts those that boot, too, and `busy`
    /// those that run a job. `mean_ms` is how long jobs take on average, if known.
    pub fn decide(
        &mut self,
        waiting: usize,
        machines: u32,
        busy: u32,
        mean_ms: Option<u64>,
        now_ms: u64,
    ) -> i64 {
        let mean_ms = mean_ms.unwrap_or(self.rules.initial_ms).max(1);
        let waiting = waiting as u64;
        let wanted = waiting
            .saturating_mul(mean_ms)
            .div_ceil(self.rules.time_ms.max(1));
        let floor = u64::from(self.rules.min);
        let there = u64::from(machines);
        let lacks = wanted.max(floor).saturating_sub(there);
        if lacks > 0 {
            self.low = 0;
            self.changed_ms = now_ms;
            let step = lacks.min(u64::from(self.rules.step_max));
            return i64::try_from(step).unwrap_or(i64::MAX);
        }
        let used = u64::from(busy).saturating_mul(1_000) / there.max(1);
        if waiting > 0 || used >= u64::from(self.rules.low_use) || there <= floor {
            self.low = 0;
            return 0;
        }
        self.low = self.low.saturating_add(1);
        let rests = now_ms.saturating_sub(self.changed_ms) < self.rules.cooldown_ms;
        if rests || self.low < self.rules.damping {
            return 0;
        }
        self.low = 0;
        self.changed_ms = now_ms;
        let idle = there.saturating_sub(u64::from(busy)).min(there - floor);
        -i64::try_from(idle).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_the_formula_and_the_step() {
        let mut law = Seed::new(SeedRules::default());
        // 10 jobs of 300 s within 300 s.
        assert_eq!(law.decide(10, 2, 2, None, 0), 8);
        assert_eq!(law.decide(1_000, 2, 2, None, 0), 100);
        assert_eq!(law.decide(1_000, 2, 2, Some(30_000), 0), 98);
        assert_eq!(law.decide(0, 0, 0, None, 0), 2);
    }

    #[test]
    fn it_shrinks_late_and_only_while_little_is_in_use() {
        let mut law = Seed::new(SeedRules::default());
        assert_eq!(law.decide(20, 2, 2, None, 0), 18);
        for at in [100_000, 200_000, 300_000] {
            assert_eq!(law.decide(0, 20, 2, None, at), 0);
        }
        assert_eq!(law.decide(0, 20, 2, None, 700_000), -18);
        let mut busy = Seed::new(SeedRules::default());
        for at in 0..100 {
            assert_eq!(busy.decide(0, 20, 6, None, 1_000_000 * at), 0);
        }
    }
}
