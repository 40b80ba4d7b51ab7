//! Counts of jobs by a field, for people: where the jobs of an account are, or of a suite.

/// Most values that are counted, those with most jobs.
pub(crate) const GROUPS_MAX: u32 = 1_000;

/// By what jobs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Their stage.
    Stage,
    /// How they ended.
    Health,
    /// Their suite.
    Suite,
    /// Their account.
    Account,
    /// Their queue, as it is stored: labels are queues of their own.
    Queue,
    /// The host that has or had them; empty: none.
    Host,
    /// The group of testboxes that they asked for.
    TboxGroup,
    /// The submit that they belong to.
    SubmitId,
}

impl GroupBy {
    /// Each with its name.
    pub const ALL: [(&'static str, Self); 8] = [
        ("stage", Self::Stage),
        ("health", Self::Health),
        ("suite", Self::Suite),
        ("account", Self::Account),
        ("queue", Self::Queue),
        ("host", Self::Host),
        ("tbox_group", Self::TboxGroup),
        ("submit_id", Self::SubmitId),
    ];

    /// Its name, which is that of the field in both stores.
    pub fn as_str(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, by)| *by == self);
        named.map_or("stage", |(name, _)| name)
    }
}

/// Jobs with one value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The value; empty: they have none.
    pub value: String,
    /// All of them.
    pub jobs: u64,
    /// Those in stage submit.
    pub waiting: u64,
    /// Those that hosts have.
    pub running: u64,
    /// Those that ended with success.
    pub succeeded: u64,
}

impl Group {
    /// Those that ended in another way.
    pub fn failed(&self) -> u64 {
        let others = self.waiting + self.running + self.succeeded;
        self.jobs.saturating_sub(others)
    }

    /// Counts a job that has this value.
    pub fn count(&mut self, stage: fairlead_job::Stage, health: fairlead_job::Health) {
        self.jobs += 1;
        self.waiting += u64::from(stage == fairlead_job::Stage::Submit);
        self.running += u64::from(stage.is_held());
        let is_good = stage.is_terminal() && health == fairlead_job::Health::Success;
        self.succeeded += u64::from(is_good);
    }
}
