//! A job that ran: when it came, when it began, and what it took.

use std::sync::Arc;

/// A job that ran, in a replay or in a lab.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// Time of the submit, ms.
    pub submit_ms: u64,
    /// Start, ms, not before the submit.
    pub start_ms: u64,
    /// Run time, ms.
    pub run_ms: u64,
    /// Amount that it used: processors, or shares of a host.
    pub amount: f64,
    /// Account that is charged.
    pub account: Arc<str>,
    /// Queue of the job.
    pub queue: Arc<str>,
    /// Class of its queue, 0 to 9.
    pub class: u8,
}

impl Ran {
    /// Returns the wait, ms.
    pub fn wait_ms(&self) -> u64 {
        self.start_ms.saturating_sub(self.submit_ms)
    }

    /// Returns the end, ms.
    pub fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.run_ms)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "times of jobs are far below 2^53 ms"
    )]
    pub(crate) fn wait_s(&self) -> f64 {
        self.wait_ms() as f64 / 1_000.0
    }

    /// Returns the amount that it used, times ms.
    #[expect(
        clippy::cast_precision_loss,
        reason = "times of jobs are far below 2^53 ms"
    )]
    pub(crate) fn used(&self) -> f64 {
        self.run_ms as f64 * self.amount
    }
}
