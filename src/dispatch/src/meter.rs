//! Virtual time of one queue, or of one account inside a queue, in integers.
//!
//! A running job counts as max(expected, elapsed): constant up to the expected duration, and then a straight line. Both
//! are sums here, so no cost grows with the number of running jobs. The time really used is kept beside them. Newcomers
//! start there, so they need not wait for time that others may give back. A meter knows no jobs: the caller that adds a
//! charge removes exactly the same one.

/// Virtual time of one unit of charge at weight 1. Exact to 0.001 % at the largest weight.
const UNIT: i128 = 1 << 30;

/// Largest weight that a queue may have.
pub(crate) const WEIGHT_MAX: u32 = 10_000;

/// Maximum charge of a job per millisecond. It keeps every product far from the limits of `i128`.
pub(crate) const PRICE_MAX: i128 = 1 << 44;

/// Virtual time: charge over weight. Comparable inside one class, or among the accounts of one queue.
pub(crate) type Pass = i128;

/// Virtual time of one queue or account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meter {
    /// Virtual time of all finished jobs.
    settled: Pass,
    /// Charge of running jobs, as `flat + rate × now`. It is constant except for jobs that run longer than expected.
    charged: (i128, i128),
    /// Used part of that charge, in the same form.
    used: (i128, i128),
    /// Virtual time of one unit of charge.
    stride: i128,
}

impl Meter {
    /// Creates a meter of this weight that stands at `at`.
    pub(crate) fn new(weight: u32, at: Pass) -> Self {
        Self {
            settled: at,
            charged: (0, 0),
            used: (0, 0),
            stride: stride(weight),
        }
    }

    /// Returns its virtual time at `now_ms`.
    pub(crate) fn pass(&self, now_ms: u64) -> Pass {
        self.with(self.charged, now_ms)
    }

    /// Returns its virtual time without advance charges: running jobs count for as long as they ran.
    pub(crate) fn reached(&self, now_ms: u64) -> Pass {
        self.with(self.used, now_ms)
    }

    fn with(&self, (flat, rate): (i128, i128), now_ms: u64) -> Pass {
        let running = flat.saturating_add(times(rate, i128::from(now_ms)));
        self.settled.saturating_add(times(running, self.stride))
    }

    /// Adds running charge and the used part of it, each as `flat + rate × now`. Negative numbers take it away.
    pub(crate) fn add(&mut self, charged: (i128, i128), used: (i128, i128)) {
        let sum = |to: &mut (i128, i128), more: (i128, i128)| {
            *to = (to.0.saturating_add(more.0), to.1.saturating_add(more.1));
        };
        sum(&mut self.charged, charged);
        sum(&mut self.used, used);
    }

    /// Settles the charge of finished jobs.
    pub(crate) fn settle(&mut self, charge: i128) {
        self.settled = self.settled.saturating_add(times(charge, self.stride));
    }

    /// Returns the virtual time of `charge` at this weight.
    pub(crate) fn cost(&self, charge: i128) -> Pass {
        times(charge, self.stride)
    }

    /// Changes the weight from now on. The present virtual time stays.
    pub(crate) fn reweigh(&mut self, weight: u32, now_ms: u64) {
        let before = self.pass(now_ms);
        self.stride = stride(weight);
        self.move_to(before, now_ms);
    }

    /// Moves it to `pass`.
    pub(crate) fn move_to(&mut self, pass: Pass, now_ms: u64) {
        let off = pass.saturating_sub(self.pass(now_ms));
        self.settled = self.settled.saturating_add(off);
    }

    /// Returns the charge of running jobs and the used part of it, to be compared with sums over these jobs.
    pub(crate) fn running(&self) -> ((i128, i128), (i128, i128)) {
        (self.charged, self.used)
    }
}

/// Returns the product, limited to the range of `i128`. Fast if both factors fit in 64 bits, as they nearly always
/// do.
pub(crate) fn times(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
        _ => a.saturating_mul(b),
    }
}

fn stride(weight: u32) -> i128 {
    UNIT / i128::from(weight.clamp(1, WEIGHT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_weight_changes_the_future_only() {
        let mut meter = Meter::new(10, 0);
        meter.settle(1_000);
        meter.add((500, 0), (0, 0));
        meter.add((-7 * 100, 7), (-7 * 100, 7));
        let before = meter.pass(100);
        meter.reweigh(20, 100);
        assert_eq!(meter.pass(100), before);
        assert_eq!(meter.pass(200) - before, 7 * 100 * (UNIT / 20));
        assert_eq!(meter.pass(200) - meter.reached(200), 500 * (UNIT / 20));
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        let mut meter = Meter::new(0, i128::MAX);
        meter.add((i128::MAX, PRICE_MAX), (i128::MIN, -PRICE_MAX));
        meter.settle(i128::MAX);
        assert_eq!(meter.pass(u64::MAX), i128::MAX);
        meter.reweigh(u32::MAX, u64::MAX);
        meter.move_to(i128::MIN, u64::MAX);
    }
}
