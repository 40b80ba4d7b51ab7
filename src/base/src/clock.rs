//! The replica's clocks. Only this module asks the system for the time.
//!
//! [`Clock::now`] is monotonic. All decisions use it: leases, waits and the engine. [`Clock::wall_ms`] is for people
//! and for documents. While [`Clock::off_ms`] says that it is off, the replica writes nothing (`storage/timed_store`) and
//! serves nobody (`http/routes`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fairlead_dispatch::Millis;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::lab_clock::{LabClock, Witness};

pub use fairlead_job::utc_text;

/// Interval at which work looks at a clock that is off.
const OFF_LOOK: Duration = Duration::from_secs(1);
/// How long a comparison with most clocks stands beside later ones with fewer, ms: as long as the others take to answer the
/// beats of a replica that has just started.
const STANDS_MS: u64 = 10_000;

/// Both clocks of a replica.
#[derive(Debug, Clone)]
pub struct Clock {
    started: Instant,
    started_wall_ms: u64,
    /// Pause control of a clock in a simulation.
    simulated: Option<Arc<Pause>>,
    /// Bounds by the other replicas' clocks, and when they were compared.
    lab: Arc<Mutex<Option<(LabClock, Millis)>>>,
}

/// Pause of a simulated process, during which none of its tasks wakes up. Also steps its wall clock.
#[derive(Debug, Default)]
pub struct Pause {
    is_on: AtomicBool,
    ended: Notify,
    stepped_ms: AtomicI64,
}

impl Pause {
    /// Pauses the process.
    pub fn begin(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Ends the pause. Waiting tasks wake up in their order.
    pub fn end(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        self.ended.notify_waiters();
    }

    /// Steps its wall clock.
    pub fn step_wall(&self, by_ms: i64) {
        self.stepped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Returns true while the process is paused.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Waits while the process is paused.
    pub async fn over(&self) {
        loop {
            // Made before the look: an end in between is not missed.
            let ended = self.ended.notified();
            if !self.is_on() {
                return;
            }
            ended.await;
        }
    }
}

impl Clock {
    /// Returns the system's clocks, counted from now.
    pub fn system() -> Self {
        Self {
            started: Instant::now(),
            started_wall_ms: wall_ms(),
            simulated: None,
            lab: Arc::default(),
        }
    }

    /// Returns a clock for a simulation. Its wall clock shows `wall_ms` (UTC epoch milliseconds) now and goes on with
    /// the runtime's time. No sleep on it ends during `pause`.
    pub fn simulated(wall_ms: u64, pause: Arc<Pause>) -> Self {
        // `wall_ms` contains the steps before this clock existed.
        pause.stepped_ms.store(0, Ordering::Relaxed);
        Self {
            started: Instant::now(),
            started_wall_ms: wall_ms,
            simulated: Some(pause),
            lab: Arc::default(),
        }
    }

    /// Returns monotonic time, as Unix milliseconds counted on from the start of the process.
    pub fn now(&self) -> Millis {
        let elapsed = Instant::now().saturating_duration_since(self.started);
        Millis(self.started_wall_ms.saturating_add(saturating_ms(elapsed)))
    }

    /// Returns the age of this clock, ms.
    pub fn age_ms(&self) -> u64 {
        saturating_ms(self.started.elapsed())
    }

    /// Returns UTC epoch milliseconds by the system's clock, which may step.
    pub fn wall_ms(&self) -> u64 {
        match &self.simulated {
            Some(pause) => {
                let stepped_ms = pause.stepped_ms.load(Ordering::Relaxed);
                self.now().0.saturating_add_signed(stepped_ms)
            }
            None => wall_ms(),
        }
    }

    /// Returns the lead of the wall clock over [`Self::now`], ms. It changes only when the clock steps or is slewed.
    pub fn ahead_ms(&self) -> i64 {
        let (wall_ms, now) = (self.wall_ms(), self.now());
        let apart = i64::try_from(wall_ms.abs_diff(now.0)).unwrap_or(i64::MAX);
        if wall_ms < now.0 { -apart } else { apart }
    }

    /// Compares the wall clock with others. A comparison with too few of them replaces one with most only after
    /// [`STANDS_MS`], and never one that found this clock wrong.
    pub fn compare(&self, witnesses: &[Witness]) {
        let (is_off, now) = (self.off_ms().is_some(), self.now());
        let lab = LabClock::of(witnesses);
        let mut known = self.lab.lock();
        let stands =
            known.is_some_and(|(lab, at)| lab.is_sure() && now.0.saturating_sub(at.0) < STANDS_MS);
        if lab.is_some_and(LabClock::is_sure) || !(is_off || stands) {
            *known = lab.map(|lab| (lab, now));
        }
    }

    /// Returns the lead of the wall clock over the median of the compared clocks, ms; `None`: there are none.
    pub fn offset_ms(&self) -> Option<i64> {
        let lab = *self.lab.lock();
        lab.map(|(lab, _)| lab.offset_ms(self.ahead_ms()))
    }

    /// Returns the offset if the wall clock is off now. It is off if more than half of the lab's clocks are more than
    /// 5 s on one side of it.
    pub fn off_ms(&self) -> Option<i64> {
        let lab = *self.lab.lock();
        lab.and_then(|(lab, _)| lab.off_ms(self.ahead_ms()))
    }

    /// Returns UTC epoch seconds.
    pub fn wall_s(&self) -> u64 {
        self.wall_ms() / 1000
    }

    /// Sleeps. The only place of the replica that sleeps; a timer, never a substitute for a condition.
    #[expect(clippy::disallowed_methods, reason = "the clock module")]
    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
        if let Some(pause) = &self.simulated {
            pause.over().await;
        }
    }

    /// Sleeps, and goes on sleeping while the wall clock is off: for work that depends on the time.
    pub async fn rest(&self, time: Duration) {
        self.sleep(time).await;
        while self.off_ms().is_some() {
            self.sleep(OFF_LOOK).await;
        }
    }

    /// Sleeps until `then`, or not at all if it is past.
    pub async fn sleep_until(&self, then: Millis) {
        let left = then.0.saturating_sub(self.now().0);
        self.sleep(Duration::from_millis(left)).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock module")]
fn wall_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, saturating_ms)
}

/// Stopwatch finer than a millisecond, for metrics only.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts the stopwatch.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since its start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

fn saturating_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the date as `2026-11-21`.
pub fn utc_date(ms: u64) -> String {
    let moment = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0));
    let text = moment.map(|moment| moment.strftime("%Y-%m-%d").to_string());
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(utc_text(1_795_228_571_999), "2026-11-21T02:36:11+0000");
        assert_eq!(utc_date(1_795_228_571_999), "2026-11-21");
    }
}
