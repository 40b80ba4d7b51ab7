//! State shared by all parts of a simulation: time, randomness, the history, the faults, and the verdict.

use std::{collections::BTreeMap, fmt, sync::Arc};

use fairlead_content::ContentStore;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    chance::Chance,
    check::Check,
    cloud::Cloud,
    host::Machine,
    log::Log,
    process::Slot,
    scenario::{Faults, Scenario},
    timer::Timer,
    truth::Truth,
};

/// True time at the start, UTC epoch ms. It is an arbitrary day.
pub(super) const WALL_START_MS: u64 = 1_790_000_000_000;

/// A temporary failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Broken {
    /// A replica and the store cannot reach each other.
    StoreOf(usize),
    /// A host and a replica cannot reach each other.
    Line { host: usize, slot: usize },
    /// Two replicas cannot reach each other, the smaller number first.
    Peers(usize, usize),
    /// The store is unreachable.
    Store,
    /// Calls of the store take seconds.
    Slow,
    /// The store refuses writes.
    Full,
    /// Most writes conflict.
    Conflicts,
}

/// A broken promise.
#[derive(Debug, Clone)]
pub(super) struct Violation {
    pub(super) invariant: &'static str,
    pub(super) what: String,
}

/// One simulated lab.
#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) timer: Timer,
    /// Background tasks. They end with the simulation.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the troubles are over.
    pub(super) calm: CancellationToken,
    /// Cancelled when a promise is broken or all is done.
    pub(super) over: CancellationToken,
    pub(super) slots: Vec<Slot>,
    /// Inputs and outputs, shared by all replicas.
    pub(super) content: ContentStore,
    /// Hosts, by number.
    pub(super) machines: Arc<[Arc<Machine>]>,
    cloud: Mutex<Cloud>,
    chance: Mutex<Chance>,
    faults: Mutex<Faults>,
    broken: Mutex<BTreeMap<Broken, u32>>,
    log: Mutex<Log>,
    truth: Mutex<Truth>,
    check: Mutex<Check>,
    violation: Mutex<Option<Violation>>,
}

impl World {
    pub(super) fn new(scenario: Scenario, trace: bool) -> Self {
        let slots = (0..scenario.replicas()).map(Slot::new).collect();
        let fixed = scenario.fixed().len();
        let machines = (0..scenario.hosts.len()).map(|n| Arc::new(Machine::new(n < fixed)));
        Self {
            timer: Timer::start(),
            tasks: TaskTracker::new(),
            calm: CancellationToken::new(),
            over: CancellationToken::new(),
            slots,
            content: ContentStore::in_memory(),
            machines: machines.collect(),
            cloud: Mutex::default(),
            chance: Mutex::new(Chance::new(scenario.seed, 2)),
            faults: Mutex::new(scenario.faults),
            broken: Mutex::default(),
            log: Mutex::new(Log::new(trace)),
            truth: Mutex::new(Truth::new(scenario.places)),
            check: Mutex::new(Check::new(&scenario)),
            violation: Mutex::default(),
            scenario,
        }
    }

    /// Returns the milliseconds since the start.
    pub(super) fn now_ms(&self) -> u64 {
        self.timer.now_ms()
    }

    /// Returns the true time, UTC epoch ms.
    pub(super) fn true_ms(&self) -> u64 {
        WALL_START_MS.saturating_add(self.now_ms())
    }

    /// Returns the time of a replica's wall clock, UTC epoch ms.
    pub(super) fn wall_ms(&self, slot: usize) -> u64 {
        self.true_ms()
            .saturating_add_signed(self.check().clock_of(slot))
    }

    /// Steps the wall clock of a place, for its replica and all later ones.
    pub(super) fn clock_steps(&self, slot: usize, by_ms: i64) {
        self.note(format_args!("the clock of r{slot} steps by {by_ms} ms"));
        self.check().clock_steps(slot, by_ms);
        if let Some(slot) = self.slots.get(slot) {
            slot.clock_steps(by_ms);
        }
    }

    pub(super) fn chance(&self) -> MutexGuard<'_, Chance> {
        self.chance.lock()
    }

    /// Returns true with this probability, per mille. It draws no number if the probability is 0.
    pub(super) fn hits(&self, permille: u32) -> bool {
        permille > 0 && self.chance().hits(permille)
    }

    pub(super) fn faults(&self) -> Faults {
        *self.faults.lock()
    }

    pub(super) fn cloud(&self) -> MutexGuard<'_, Cloud> {
        self.cloud.lock()
    }

    pub(super) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock()
    }

    pub(super) fn check(&self) -> MutexGuard<'_, Check> {
        self.check.lock()
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    /// Writes a line of the history.
    pub(super) fn note(&self, what: fmt::Arguments<'_>) {
        self.log().add(self.now_ms(), what);
    }

    pub(super) fn is_broken(&self, what: Broken) -> bool {
        self.broken.lock().contains_key(&what)
    }

    pub(super) fn breaks(&self, what: Broken) {
        *self.broken.lock().entry(what).or_default() += 1;
    }

    pub(super) fn mends(&self, what: Broken) {
        let mut broken = self.broken.lock();
        let left = broken.get(&what).map_or(0, |times| times.saturating_sub(1));
        if left == 0 {
            broken.remove(&what);
        } else {
            broken.insert(what, left);
        }
    }

    /// Ends all faults.
    pub(super) fn calm_down(&self) {
        *self.faults.lock() = Faults::default();
        self.calm.cancel();
    }

    /// Notes a broken promise. The first one ends the simulation.
    pub(super) fn violated(&self, invariant: &'static str, what: String) {
        self.note(format_args!("VIOLATION {invariant}: {what}"));
        self.violation
            .lock()
            .get_or_insert(Violation { invariant, what });
        self.over.cancel();
    }

    pub(super) fn violation(&self) -> Option<Violation> {
        self.violation.lock().clone()
    }

    /// Runs a check of a recent event, and ends the simulation if it fails.
    pub(super) fn checked(&self, look: impl FnOnce(&mut Check, u64) -> Result<(), Violation>) {
        let looked = look(&mut self.check(), self.now_ms());
        if let Err(Violation { invariant, what }) = looked {
            self.violated(invariant, what);
        }
    }
}
