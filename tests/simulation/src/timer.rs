//! Virtual time: the only module of the simulation that asks the runtime's clock or sleeps on it.

use std::{future::Future, time::Duration};

use tokio::time::Instant;

/// Clock of milliseconds since the start of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer(Instant);

impl Timer {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now_ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits until this time of the simulation.
    pub(super) async fn until(self, at_ms: u64) {
        pause(at_ms.saturating_sub(self.now_ms())).await;
    }
}

/// Waits for this number of milliseconds of virtual time.
#[expect(
    clippy::disallowed_methods,
    reason = "the simulation's named timer module"
)]
pub(super) async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// Runs `work` with a timeout, ms. `None`: it took longer.
pub(super) async fn within<T>(ms: u64, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(ms), work)
        .await
        .ok()
}
