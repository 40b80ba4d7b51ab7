//! A pool, and its machines as they are now.

/// Boot time of a pool of which no boot was measured, and that says nothing, ms.
pub const BOOT_UNKNOWN_MS: u64 = 180_000;

/// Run time of a job in a pool of which nothing is known, ms.
pub const RUN_UNKNOWN_MS: u64 = 300_000;

/// What an admin says of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Machines that it never falls below. Default 2.
    pub min: u32,
    /// Machines that it never exceeds.
    pub max: u32,
    /// Machines that one decision adds at most.
    pub step_max: u32,
    /// How long a job should wait at most, ms.
    pub target_ms: u64,
}

/// Added to the boot time: a machine that is asked for now should be of use for so long within the horizon, ms.
const USE_MIN_MS: u64 = 60_000;

impl Pool {
    /// How far ahead it is looked, ms: what does not begin by then lacks a machine. No shorter than a boot and a minute.
    pub fn horizon_ms(&self, boots: Boots) -> u64 {
        let least_ms = boots.mean_ms.saturating_add(USE_MIN_MS);
        self.target_ms.max(least_ms)
    }
}

/// What a machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It was asked for, and has not asked for work yet.
    Boots {
        /// Since when.
        since_ms: u64,
    },
    /// It has a job.
    Runs {
        /// How much longer it is expected to have it, ms. See [`left_ms`].
        left_ms: u64,
    },
    /// It waits for work.
    Idle {
        /// Since when.
        since_ms: u64,
    },
    /// It gets no work: it is drained, loaded or suspect.
    Closed,
}

/// How much longer a job runs that was expected to take `expected_ms` and has run for `elapsed_ms`, if nothing better is
/// known, ms. One that runs over its time is not believed to end at once.
pub fn left_ms(expected_ms: u64, elapsed_ms: u64) -> u64 {
    expected_ms.saturating_sub(elapsed_ms).max(expected_ms / 4)
}

/// A machine of a pool, or a host of none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it does.
    pub activity: Activity,
    /// Shapes of work that it cannot run, ascending. See [`Work::shape`].
    pub unfit: Vec<u32>,
}

impl Machine {
    /// A machine that can run whatever waits.
    pub fn new(name: impl Into<String>, activity: Activity) -> Self {
        Self {
            name: name.into(),
            activity,
            unfit: Vec::new(),
        }
    }

    /// Whether it can run jobs now, or runs some.
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
    /// The largest part of a machine that it takes, thousandths, 1 to 1,000.
    pub share: u32,
    /// How long it is expected to take, ms; none: the mean of the pool, else [`RUN_UNKNOWN_MS`].
    pub expected_ms: Option<u64>,
    /// The number of its shape: jobs of one shape can run on the same machines.
    pub shape: u32,
}

/// How long machines of a pool take from the request to their first question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boots {
    /// The mean, ms.
    pub mean_ms: u64,
    /// For how long a machine counts as one that boots, ms. After that it hangs.
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
    /// How long until a machine that boots for `age_ms` asks for work, ms; none: it hangs, and nothing is expected of it.
    pub(crate) fn left_ms(self, age_ms: u64) -> Option<u64> {
        (age_ms <= self.deadline_ms).then_some(left_ms(self.mean_ms, age_ms))
    }
}

/// How many machines a pool lacks, with the numbers that say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Machines to ask for now.
    pub add: u32,
    /// What waits, ms of a whole machine.
    pub work_ms: u64,
    /// What the machines that can run it take of it within the horizon, ms.
    pub supply_ms: u64,
    /// How far it looks ahead, ms.
    pub horizon_ms: u64,
    /// What was wanted before the limits of the pool.
    pub wanted: u32,
}
