//! Judges this replica's wall clock by the clocks of others.
//!
//! Replicas tell each other the time in their beats, which are documents in the store. Suppose that a beat says
//! 12:00:00 and is read when the own clock shows 12:00:09. Either the own clock is nine seconds ahead, or the store was
//! slow. A replica that takes a slow store for a bad clock would stop itself, and so would its neighbours.
//!
//! So another clock is known by two bounds. It told its time after one moment and before another one, and both moments
//! are on this replica's monotonic clock. For example, a clock was asked at 60.0 s, and at 61.5 s its answer came,
//! "100.0 s":
//!
//! ```text
//! it is ahead of the monotonic clock by at least   100.0 - 61.5 = 38.5 s   (if it answered just before it was heard)
//!                                   and at most    100.0 - 60.0 = 40.0 s   (if it answered as soon as it was asked)
//! ```
//!
//! A delay only widens these bounds. So neither a slow store nor a pause makes a good clock look bad. The own wall
//! clock is measured against the same monotonic clock, so its step shows at once. It agrees with the other one if it is
//! within the bounds, or within five seconds ([`OFF_MS`]) of their middle.
//!
//! With three clocks of which one differs, the majority tells which one is wrong. The own clock is off if more than
//! half of all clocks, itself included, lie on one side of it. If two others agree and the own clock is an hour ahead
//! of both, it is off. If one of the two others is an hour ahead, the own clock is right.
//!
//! Limits: with two replicas nobody can tell whose clock is wrong, so the store's clock is a third one. An error of all
//! clocks in common is not seen.

use fairlead_dispatch::Millis;

/// Maximum distance of a wall clock from the median of all, ms.
pub const OFF_MS: i64 = 5_000;

/// Lead of another wall clock over this replica's monotonic clock, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// Lower bound: the clock was read before the message arrived.
    pub least_ms: i64,
    /// Upper bound: the clock was read after this replica's message was sent.
    pub most_ms: i64,
}

impl Witness {
    /// Returns the bounds of a clock that showed this UTC epoch time in ms between these moments.
    pub fn between(wall_ms: u64, asked: Millis, told: Millis) -> Self {
        let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        Self {
            least_ms: signed(wall_ms).saturating_sub(signed(told.0)),
            most_ms: signed(wall_ms).saturating_sub(signed(asked.0)),
        }
    }

    fn middle_ms(self) -> i64 {
        let apart_ms = self.most_ms.saturating_sub(self.least_ms);
        self.least_ms.saturating_add(apart_ms / 2)
    }

    /// Returns the least lead of this replica's wall clock over its monotonic one, if both agree.
    fn lowest_ms(self) -> i64 {
        let lowest_ms = self.middle_ms().saturating_sub(OFF_MS);
        lowest_ms.min(self.least_ms)
    }

    /// Returns the greatest such lead.
    fn highest_ms(self) -> i64 {
        let highest_ms = self.middle_ms().saturating_add(OFF_MS);
        highest_ms.max(self.most_ms)
    }
}

/// Returns true if at least half of all clocks seem to contradict a clock. The clock is `ahead_ms` ahead of this
/// replica's monotonic one, and is counted itself.
pub fn is_doubted(witnesses: &[Witness], ahead_ms: i64) -> bool {
    let agrees = |one: &&Witness| (one.lowest_ms()..=one.highest_ms()).contains(&ahead_ms);
    let agree = witnesses.iter().filter(agrees).count();
    // With itself, those who agree must be more.
    witnesses.len() > 2 * agree
}

/// Range that the clocks of the others allow for this replica's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabClock {
    /// Allowed lead, least and greatest.
    allowed_ms: (i64, i64),
    /// Median of the others, or the two in the middle.
    median_ms: (i64, i64),
}

impl LabClock {
    /// Returns the range that these allow; `None`: there is no clock to compare with.
    pub fn of(witnesses: &[Witness]) -> Option<Self> {
        // With this clock they are an odd or even number. More than half of all must be on one side of it.
        let half = witnesses.len().div_ceil(2);
        let sorted = |bound: fn(Witness) -> i64| {
            let mut bounds: Vec<i64> = witnesses.iter().copied().map(bound).collect();
            bounds.sort_unstable();
            bounds
        };
        let (lows, middles, highs) = (
            sorted(Witness::lowest_ms),
            sorted(Witness::middle_ms),
            sorted(Witness::highest_ms),
        );
        let last = middles.len().checked_sub(1)?;
        let (below, above) = (middles.get(last / 2)?, middles.get(middles.len() / 2)?);
        Some(Self {
            allowed_ms: (
                lows.iter().rev().nth(half).copied().unwrap_or(i64::MIN),
                highs.get(half).copied().unwrap_or(i64::MAX),
            ),
            median_ms: (*below, *above),
        })
    }

    /// Returns the lead over the others' median, ms, of a wall clock that is `ahead_ms` ahead of this replica's
    /// monotonic one.
    pub fn offset_ms(self, ahead_ms: i64) -> i64 {
        let (below_ms, above_ms) = self.median_ms;
        ahead_ms.saturating_sub(ahead_ms.clamp(below_ms, above_ms))
    }

    /// Returns this lead if most clocks contradict the clock.
    pub fn off_ms(self, ahead_ms: i64) -> Option<i64> {
        let (least_ms, most_ms) = self.allowed_ms;
        let agrees = (least_ms..=most_ms).contains(&ahead_ms);
        (!agrees).then(|| self.offset_ms(ahead_ms))
    }

    /// Returns true if enough others were heard to call any clock wrong or right.
    pub fn is_sure(self) -> bool {
        let (least_ms, most_ms) = self.allowed_ms;
        least_ms > i64::MIN && most_ms < i64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    /// Returns others with these leads, each known within a second or two.
    fn lab(others: &[i64]) -> Option<LabClock> {
        let witness = |ahead_ms: &i64| Witness {
            least_ms: ahead_ms - 1_500,
            most_ms: ahead_ms + 1_500,
        };
        LabClock::of(&others.iter().map(witness).collect::<Vec<_>>())
    }

    fn off(others: &[i64], own_ms: i64) -> Option<i64> {
        lab(others).and_then(|lab| lab.off_ms(own_ms))
    }

    #[test]
    fn one_of_three_that_is_off_is_the_bad_one_and_the_others_are_not() {
        for by_ms in [HOUR_MS, -HOUR_MS, 5_001, -5_001] {
            assert_eq!(off(&[0, 0], by_ms), Some(by_ms));
            assert_eq!(off(&[0, by_ms], 0), None, "{by_ms}");
        }
        for by_ms in [0, 5_000, -5_000] {
            assert_eq!(off(&[0, 0], by_ms), None, "{by_ms}");
        }
    }

    #[test]
    fn one_of_five_is_off_by_the_median_of_the_others() {
        assert_eq!(off(&[0, 100, 200, HOUR_MS], 150), None);
        assert_eq!(off(&[0, 100, 200, 300], -HOUR_MS), Some(-HOUR_MS - 100));
        assert_eq!(off(&[0, 0, HOUR_MS, HOUR_MS], 0), None);
        assert_eq!(off(&[0, 0, 0, HOUR_MS], HOUR_MS), Some(HOUR_MS));
    }

    /// Otherwise an alert names a replica whose clock is right.
    #[test]
    fn who_agrees_with_one_of_two_that_differ_is_not_far_from_them() {
        assert_eq!(lab(&[0, HOUR_MS]).unwrap().offset_ms(0), 0);
        assert_eq!(lab(&[0, 0]).unwrap().offset_ms(HOUR_MS), HOUR_MS);
    }

    #[test]
    fn without_a_majority_nobody_is_off() {
        assert_eq!(lab(&[]), None);
        assert_eq!(off(&[HOUR_MS], 0), None);
        assert_eq!(lab(&[HOUR_MS]).unwrap().offset_ms(0), -HOUR_MS);
        assert_eq!(off(&[0, HOUR_MS, HOUR_MS], 0), None);
        assert!(!lab(&[0]).unwrap().is_sure() && lab(&[0, 0]).unwrap().is_sure());
    }

    /// Replicas that heard each other a minute late: the store was slow.
    #[test]
    fn delays_make_no_clock_look_bad() {
        let late = Witness {
            least_ms: -60_000,
            most_ms: 2_000,
        };
        let lab = LabClock::of(&[late, late]).unwrap();
        assert_eq!(lab.off_ms(0), None);
        assert_eq!(lab.off_ms(-60_000), None);
        assert!(lab.off_ms(HOUR_MS).is_some() && lab.off_ms(-HOUR_MS).is_some());
    }
}
