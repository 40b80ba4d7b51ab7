//! When machines of a pool may go at all, whatever the law: settings of both.

/// Conditions under which machines may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking {
    /// Time after a change of their number during which none goes, ms.
    pub cooldown_ms: u64,
    /// Number of consecutive decisions with low use before machines go, at least 1.
    pub rounds: u32,
    /// Share in use below which use is low, per mille. 1,000: as soon as one is idle.
    pub low_use: u32,
}

/// State of use at the last decisions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lull {
    changed_ms: u64,
    low: u32,
}

impl Lull {
    /// Notes a change of the number of machines.
    pub fn changes(&mut self, now_ms: u64) {
        self.changed_ms = now_ms;
        self.low = 0;
    }

    /// Notes a decision with `busy` of `there` machines in use, and `waits` if jobs wait. Returns true if machines may
    /// go.
    pub fn allows(
        &mut self,
        rules: Shrinking,
        waits: bool,
        busy: u32,
        there: u32,
        now_ms: u64,
    ) -> bool {
        let used = u64::from(busy).saturating_mul(1_000);
        let is_low = used < u64::from(rules.low_use).saturating_mul(there.into());
        self.low = if waits || !is_low {
            0
        } else {
            self.low.saturating_add(1)
        };
        let rests = now_ms.saturating_sub(self.changed_ms) < rules.cooldown_ms;
        !rests && self.low >= rules.rounds.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_go_after_the_cooldown_and_some_decisions_with_little_in_use() {
        let rules = Shrinking {
            cooldown_ms: 1_000,
            rounds: 2,
            low_use: 500,
        };
        let mut lull = Lull::default();
        lull.changes(5_000);
        let mut allows = |waits, busy, now_ms| lull.allows(rules, waits, busy, 4, now_ms);
        assert!(!allows(false, 1, 6_000), "the first decision");
        assert!(allows(false, 1, 6_015));
        assert!(!allows(true, 1, 6_030), "a job waits");
        assert!(!allows(false, 1, 6_045) && !allows(false, 2, 6_060));
        assert!(!allows(false, 0, 6_075) && allows(false, 0, 6_090));
        let mut rests = Lull::default();
        rests.changes(5_000);
        assert!(!rests.allows(Shrinking { rounds: 1, ..rules }, false, 0, 4, 5_999));
    }
}
