//! How the object store is: it answers, it asks for fewer requests, or it does not answer.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::clock::Clock;

/// Time for which a store counts as throttled after it last asked for fewer requests.
const THROTTLED_FOR: Duration = Duration::from_mins(1);
/// Longest kept problem, characters.
const PROBLEM_CHARS: usize = 500;

/// Health of the object store, as one process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentHealth {
    /// State of its answers.
    pub state: ContentState,
    /// Objects that were read and found damaged, since this process began.
    pub damaged: u64,
}

/// State of the object store's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentState {
    /// The store answers.
    Well,
    /// The store asks for fewer requests (`SlowDown`, 503, 429). Requests are repeated later, and take longer.
    Throttled {
        /// Begin of this state, UTC epoch ms.
        since_ms: u64,
        /// Number of such answers since then.
        times: u64,
    },
    /// The store does not answer, or it refuses.
    Unreachable {
        /// Begin of this state, UTC epoch ms.
        since_ms: u64,
        /// Its last answer, at most 500 characters.
        problem: String,
    },
}

#[derive(Debug, Default)]
struct Seen {
    throttled: Option<Throttled>,
    unreachable: Option<(u64, String)>,
    damaged: u64,
}

#[derive(Debug, Clone, Copy)]
struct Throttled {
    since_ms: u64,
    last: Duration,
    times: u64,
}

#[derive(Debug)]
pub(crate) struct Health {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

impl Health {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            seen: Mutex::default(),
        }
    }

    pub(crate) fn told(&self) -> ContentHealth {
        let seen = self.seen.lock();
        let state = match (&seen.unreachable, seen.throttled) {
            (Some((since_ms, problem)), _) => ContentState::Unreachable {
                since_ms: *since_ms,
                problem: problem.clone(),
            },
            (None, Some(throttled)) if self.is_recent(throttled) => ContentState::Throttled {
                since_ms: throttled.since_ms,
                times: throttled.times,
            },
            (None, _) => ContentState::Well,
        };
        ContentHealth {
            state,
            damaged: seen.damaged,
        }
    }

    fn is_recent(&self, throttled: Throttled) -> bool {
        self.clock.elapsed().saturating_sub(throttled.last) < THROTTLED_FOR
    }

    /// Notes that the store asked for fewer requests.
    pub(crate) fn throttled(&self) {
        let (now_ms, now) = (self.clock.wall_ms(), self.clock.elapsed());
        let mut seen = self.seen.lock();
        let before = seen
            .throttled
            .filter(|throttled| self.is_recent(*throttled));
        seen.throttled = Some(Throttled {
            since_ms: before.map_or(now_ms, |throttled| throttled.since_ms),
            last: now,
            times: before.map_or(0, |throttled| throttled.times) + 1,
        });
    }

    /// Notes an answer. "Not found" and "already exists" are answers like others.
    pub(crate) fn answered<T>(&self, answer: &object_store::Result<T>) {
        use object_store::Error;
        let mut seen = self.seen.lock();
        match answer {
            Ok(_)
            | Err(
                Error::NotFound { .. }
                | Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. },
            ) => seen.unreachable = None,
            Err(error) => {
                let problem = error.to_string().chars().take(PROBLEM_CHARS).collect();
                let since_ms = seen.unreachable.take().map(|(since_ms, _)| since_ms);
                seen.unreachable =
                    Some((since_ms.unwrap_or_else(|| self.clock.wall_ms()), problem));
            }
        }
    }

    /// Notes a damaged object.
    pub(crate) fn damaged(&self) {
        self.seen.lock().damaged += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Set(AtomicU64);

    #[async_trait::async_trait]
    impl Clock for Set {
        fn wall_ms(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn elapsed(&self) -> Duration {
            Duration::from_millis(self.wall_ms())
        }

        async fn sleep(&self, _: Duration) {}

        fn fresh(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn it_tells_since_when_and_how_often() {
        let clock = Arc::new(Set::default());
        let health = Health::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let state = || health.told().state;
        assert_eq!(state(), ContentState::Well);
        for at in [5, 40_000, 80_000] {
            clock.0.store(at, Ordering::Relaxed);
            health.throttled();
        }
        let (since_ms, times) = (5, 3);
        assert_eq!(state(), ContentState::Throttled { since_ms, times });
        clock.0.store(150_000, Ordering::Relaxed);
        assert_eq!(state(), ContentState::Well);
        health.throttled();
        let (since_ms, times) = (150_000, 1);
        assert_eq!(state(), ContentState::Throttled { since_ms, times });

        let gone = |problem: &str| -> object_store::Result<()> {
            let (store, source) = ("test", problem.into());
            Err(object_store::Error::Generic { store, source })
        };
        health.answered(&gone("one"));
        clock.0.store(160_000, Ordering::Relaxed);
        health.answered(&gone("two"));
        let ContentState::Unreachable { since_ms, problem } = state() else {
            panic!("{:?}", state());
        };
        assert_eq!(since_ms, 150_000);
        assert!(problem.contains("two"), "{problem}");
        health.damaged();
        health.answered(&Ok(()));
        assert_eq!(
            (state() == ContentState::Well, health.told().damaged),
            (false, 1)
        );
        clock.0.store(300_000, Ordering::Relaxed);
        assert_eq!(state(), ContentState::Well);
    }
}
