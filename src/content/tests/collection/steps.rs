//! Chance from a seed, virtual time, and tasks that go on one step at a time.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use fairlead_content::Clock;

/// Chance: the same for the same seed.
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(crate) fn below(&self, many: u64) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % many.max(1)
    }

    pub(crate) fn is(&self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Time that goes on only where the simulation says so.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    now_ms: AtomicU64,
    words: AtomicU64,
}

impl VirtualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            now_ms: AtomicU64::new(1_800_000_000_000),
            words: AtomicU64::new(0),
        })
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn wall_ms(&self) -> u64 {
        self.now_ms()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now_ms())
    }

    async fn sleep(&self, lasts: Duration) {
        let until = self.now_ms() + u64::try_from(lasts.as_millis()).unwrap();
        poll_fn(|cx| self.is_past(until, cx)).await;
    }

    fn fresh(&self) -> String {
        self.words.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

impl VirtualClock {
    fn is_past(&self, until: u64, cx: &Context<'_>) -> Poll<()> {
        if self.now_ms() >= until {
            return Poll::Ready(());
        }
        self.pass(1_000.min(until - self.now_ms()));
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Lets others go on: a request is on its way.
pub(crate) async fn step() {
    let mut was_here = false;
    poll_fn(|cx| {
        if was_here {
            return Poll::Ready(());
        }
        was_here = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// No request is on its way for longer than this plus one jump of the clock.
const ON_ITS_WAY_MS: u64 = 90_000;

struct Task<'a> {
    work: Pin<Box<dyn Future<Output = ()> + 'a>>,
    polled_ms: u64,
}

/// Tasks that go on in an order by chance. Some crash between two steps.
pub(crate) struct Tasks<'a> {
    all: VecDeque<Task<'a>>,
    clock: Arc<VirtualClock>,
    chance: &'a Chance,
    /// Whether tasks crash.
    crash: bool,
}

impl fmt::Debug for Tasks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks", self.all.len())
    }
}

impl<'a> Tasks<'a> {
    pub(crate) fn new(clock: &Arc<VirtualClock>, chance: &'a Chance, crash: bool) -> Self {
        Self {
            all: VecDeque::new(),
            clock: Arc::clone(clock),
            chance,
            crash,
        }
    }

    pub(crate) fn start(&mut self, work: impl Future<Output = ()> + 'a) {
        self.all.push_back(Task {
            work: Box::pin(work),
            polled_ms: self.clock.now_ms(),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Goes on until all have ended or crashed. `meanwhile` may start others.
    pub(crate) fn run(&mut self, mut meanwhile: impl FnMut(&mut Self)) {
        let mut cx = Context::from_waker(Waker::noop());
        while !self.all.is_empty() {
            meanwhile(self);
            let now_ms = self.clock.now_ms();
            let late = self
                .all
                .iter()
                .position(|task| now_ms - task.polled_ms > ON_ITS_WAY_MS);
            let many = u64::try_from(self.all.len()).unwrap();
            let at = late.unwrap_or_else(|| usize::try_from(self.chance.below(many)).unwrap());
            if self.crash && self.chance.is(1_500) {
                self.all.remove(at);
                continue;
            }
            // Mostly one goes on for a while, as processes do.
            for _ in 0..=self.chance.below(6) {
                let task = &mut self.all[at];
                task.polled_ms = now_ms;
                if task.work.as_mut().poll(&mut cx).is_ready() {
                    self.all.remove(at);
                    break;
                }
                self.clock.pass(self.chance.below(20));
            }
            if self.chance.is(150) {
                self.clock.pass(self.chance.below(80_000));
            }
        }
    }
}
