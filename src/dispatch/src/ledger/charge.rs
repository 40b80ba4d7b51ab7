//! A charge: the cost of one job, in flight or running, for its queue and its account.

use crate::ids::Owner;
use crate::meter::times;

/// A whole host, in the unit of `share`.
pub(crate) const WHOLE: u64 = 1_000_000;

/// Smallest share of a host that a job is charged for, so that no job is free.
pub(crate) const SHARE_MIN: u64 = WHOLE / 1_000;

/// Charge of a job in flight or running.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub owner: Owner,
    /// Charge a millisecond: share × rate.
    pub price: i128,
    /// Its part of the host, in millionths.
    pub share: u64,
    pub expected_ms: u64,
    /// Start of its run; `None`: in flight.
    pub since: Option<u64>,
    /// True if it runs longer than expected, and is charged as time passes.
    pub overrun: bool,
}

impl Charge {
    /// Returns its total charge, as `flat + rate × now`.
    pub(crate) fn terms(&self) -> (i128, i128) {
        if self.overrun {
            self.used()
        } else {
            (times(self.price, i128::from(self.expected_ms)), 0)
        }
    }

    /// Returns the used part of its charge, in the same form.
    pub(crate) fn used(&self) -> (i128, i128) {
        self.since.map_or((0, 0), |since| {
            (-times(self.price, i128::from(since)), self.price)
        })
    }
}
