//! Real time. No other module of this crate asks for it or waits.

use std::time::{Duration, Instant};

/// Now, on the monotonic clock.
pub fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the launcher's clock")]
    Instant::now()
}

/// Waits: between two looks at something that has no way to call.
pub async fn pause(how_long: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the launcher's timer")]
    tokio::time::sleep(how_long).await;
}

/// Looks every `every` until `probe` has something; `None` after `limit`.
pub async fn until<T>(
    every: Duration,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    let deadline = now() + limit;
    loop {
        if let Some(found) = probe().await {
            return Some(found);
        }
        if now() >= deadline {
            return None;
        }
        pause(every).await;
    }
}
