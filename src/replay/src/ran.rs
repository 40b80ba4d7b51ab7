//! A job that ran: when it came, when it began, and what it took.

use std::sync::Arc;

/// A job that ran, in a replay or in a lab.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// When it came, ms.
    pub submit_ms: u64,
    /// When it began, ms, not before it came.
    pub start_ms: u64,
    /// How long it ran, ms.
    pub run_ms: u64,
    /// What it took meanwhile: processors, or parts of a host.
    pub amount: f64,
    /// Who is charged.
    pub account: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// The class of its queue, 0 to 9.
    pub class: u8,
}

impl Ran {
    /// How long it waited, ms.
    pub fn wait_ms(&self) -> u64 {
        self.start_ms.saturating_sub(self.submit_ms)
    }

    /// When it ended, ms.
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

    /// What it took, times ms.
    #[expect(
        clippy::cast_precision_loss,
        reason = "times of jobs are far below 2^53 ms"
    )]
    pub(crate) fn used(&self) -> f64 {
        self.run_ms as f64 * self.amount
    }
}
