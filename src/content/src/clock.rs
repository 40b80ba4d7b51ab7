//! Time and chance, as the store needs them. Tests pass their own.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;

/// Time and random words, as the store needs them.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// UTC epoch ms.
    fn wall_ms(&self) -> u64;

    /// Returns the time since a fixed moment. It never goes back, and nobody can set it.
    fn elapsed(&self) -> Duration;

    /// Waits.
    async fn sleep(&self, lasts: Duration);

    /// Returns a unique word.
    fn fresh(&self) -> String;
}

/// The clock of this machine.
#[derive(Debug)]
pub(crate) struct MachineClock {
    started: Instant,
}

impl MachineClock {
    #[expect(clippy::disallowed_methods, reason = "a clock asks for the time")]
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

#[async_trait]
impl Clock for MachineClock {
    #[expect(clippy::disallowed_methods, reason = "a clock asks for the time")]
    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "a clock is what waits")]
    async fn sleep(&self, lasts: Duration) {
        tokio::time::sleep(lasts).await;
    }

    fn fresh(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}
