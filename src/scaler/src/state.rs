//! A pool, and its machines as they are now.

/// Boot time of a pool without a measured or configured one, ms.
pub const BOOT_UNKNOWN_MS: u64 = 180_000;

/// Run time of a job in a pool without known run times, ms.
pub const RUN_UNKNOWN_MS: u64 = 300_000;

/// Settings of a pool, as an admin made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Minimum number of machines. Default 2.
    pub min: u32,
    /// Maximum number of machines.
    pub max: u32,
    /// Maximum number of machines that one decision adds.
    pub step_max: u32,
    /// Target of the jobs' waits, ms.
    pub target_ms: u64,
}

/// Minimum time for which a new machine should be useful within the horizon, ms. It is added to the boot time.
const USE_MIN_MS: u64 = 60_000;

impl Pool {
    /// Returns the horizon, ms: work that does not start by then lacks a machine. It is at least a boot and a minute.
    pub fn horizon_ms(&self, boots: Boots) -> u64 {
        let least_ms = boots.mean_ms.saturating_add(USE_MIN_MS);
        self.target_ms.max(least_ms)
    }
}

/// Activity of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It was requested, and has not asked for work yet.
    Boots {
        /// Start of the boot, ms.
        since_ms: u64,
    },
    /// A job runs on it.
    Runs {
        /// Expected remaining run time, ms. See [`left_ms`].
        left_ms: u64,
    },
    /// It is idle.
    Idle {
        /// Start of the idle time, ms.
        since_ms: u64,
    },
    /// It gets no work, because it is drained, loaded or suspect.
    Closed,
}

/// Returns the remaining run time of a job that was expected to take `expected_ms` and has run for `elapsed_ms`, ms. A
/// job over its expected time is not expected to end at once.
pub fn left_ms(expected_ms: u64, elapsed_ms: u64) -> u64 {
    expected_ms.saturating_sub(elapsed_ms).max(expected_ms / 4)
}

/// A machine of a pool, or a host outside pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the machine.
    pub name: String,
    /// Activity of the machine.
    pub activity: Activity,
    /// Shapes of work that it cannot run, ascending. See [`Work::shape`].
    pub unfit: Vec<u32>,
}

impl Machine {
    /// Returns a machine that can run all waiting work.
    pub fn new(name: impl Into<String>, activity: Activity) -> Self {
        Self {
            name: name.into(),
            activity,
            unfit: Vec::new(),
        }
    }

    /// Returns true if it can run jobs now, or runs some.
    pub fn is_able(&self) -> bool {
        match self.activity {
            Activity::Idle { .. } | Activity::Runs { .. } => true,
            Activity::Boots { .. } | Activity::Closed => false,
        }
    }
}

/// A job that lacks only a machine, or soon will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Largest share of a machine that it takes, per mille, 1 to 1,000.
    pub share: u32,
    /// Expected run time, ms. `None`: the mean of the pool, else [`RUN_UNKNOWN_MS`].
    pub expected_ms: Option<u64>,
    /// Number of its shape. Jobs of one shape can run on the same machines.
    pub shape: u32,
}

/// Times from the request of a pool's machine to its first request for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boots {
    /// Mean time, ms.
    pub mean_ms: u64,
    /// Time for which a machine counts as booting, ms. After that it hangs.
    pub deadline_ms: u64,
}

impl Default for Boots {
    fn default() -> Self {
        Self {
            mean_ms: BOOT_UNKNOWN_MS,
            deadline_ms: 2 * BOOT_UNKNOWN_MS,
        }
    }
}

impl Boots {
    /// Returns the time until a machine that has booted for `age_ms` asks for work, ms. `None`: it hangs, and nothing
    /// is expected of it.
    pub(crate) fn left_ms(self, age_ms: u64) -> Option<u64> {
        (age_ms <= self.deadline_ms).then_some(left_ms(self.mean_ms, age_ms))
    }
}

/// Number of machines that a pool lacks, with the underlying numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Number of machines to request now.
    pub add: u32,
    /// Waiting work, ms of a whole machine.
    pub work_ms: u64,
    /// Work that the suitable machines do within the horizon, ms.
    pub supply_ms: u64,
    /// Horizon, ms.
    pub horizon_ms: u64,
    /// Number of machines wanted before the limits of the pool.
    pub wanted: u32,
}
