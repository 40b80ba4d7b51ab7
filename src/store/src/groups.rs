//! Counts of jobs by a field, for people: where the jobs of an account are, or of a suite.

use fairlead_job::{Health, Stage};

use crate::JobState;

/// Maximum number of counted values: those with most jobs; of submits: the newest.
pub(crate) const GROUPS_MAX: u32 = 1_000;

/// Field by which jobs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Their stage.
    Stage,
    /// Their health at the end.
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
    /// All fields with their names.
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

    /// Returns its name, which is that of the field in both stores.
    pub fn as_str(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, by)| *by == self);
        named.map_or("stage", |(name, _)| name)
    }

    /// Returns true if the newest values come first, and not those with most jobs.
    pub fn is_by_time(self) -> bool {
        self == Self::SubmitId
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
    /// Those that people cancelled or terminated.
    pub stopped: u64,
    /// Submit time of the first of them, UTC epoch ms.
    pub since_ms: u64,
    /// Their suite; empty: there are several.
    pub suite: String,
}

impl Group {
    /// Returns the number of those that ended in another way.
    pub fn failed(&self) -> u64 {
        let others = self.waiting + self.running + self.succeeded + self.stopped;
        self.jobs.saturating_sub(others)
    }

    /// Counts a job that has this value.
    pub fn count(&mut self, job: &JobState) {
        if self.jobs == 0 {
            self.since_ms = job.submit_ms;
            self.suite.clone_from(&job.suite);
        }
        self.since_ms = self.since_ms.min(job.submit_ms);
        if self.suite != job.suite {
            self.suite.clear();
        }
        self.jobs += 1;
        self.waiting += u64::from(job.stage == Stage::Submit);
        self.running += u64::from(job.stage.is_held());
        let ended_as =
            |healths: &[Health]| job.stage.is_terminal() && healths.contains(&job.health);
        self.succeeded += u64::from(ended_as(&[Health::Success]));
        self.stopped += u64::from(ended_as(&Health::STOPPED));
    }
}
