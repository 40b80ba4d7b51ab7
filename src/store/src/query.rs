//! Requests to the store: counts, pulls, finds, and searches for people.

use std::collections::BTreeMap;

use fairlead_job::{Health, JobId, Stage};

use crate::{StoredJob, Version};

/// Bound of the counted names. Submitters may invent names, so frequent counts should be bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountOf {
    /// Maximum number of accounts and queues to count, largest first. Pairs are counted only below this number.
    /// `None`: no limit.
    pub names_max: Option<usize>,
    /// Host keys to count. `None`: all.
    pub host_keys: Option<Vec<String>>,
}

/// Exact number of waiting jobs (`stage == submit && ready`). Zero counts are left out; sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub total: u64,
    /// By account.
    pub accounts: Vec<(String, u64)>,
    /// By queue.
    pub queues: Vec<(String, u64)>,
    /// By queue and account. Empty when [`Self::partial`].
    pub pairs: Vec<(String, String, u64)>,
    /// By host key. A job with several keys counts under each.
    pub host_keys: Vec<(String, u64)>,
    /// True if there are more pairs than were asked for. If accounts or queues are left out as well, the other counts
    /// may be too low.
    pub partial: bool,
}

/// One way of grouping the waiting jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullBy {
    /// All of them.
    All,
    /// Jobs of one account.
    Account(String),
    /// Jobs of one queue.
    Queue(String),
    /// Under one host key.
    HostKey(String),
}

/// A page of waiting jobs, in order of class (high first), priority (high first), id (old first).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Group of jobs.
    pub by: PullBy,
    /// Maximum number of jobs, 1 to 10,000.
    pub limit: u32,
    /// Continue behind this job of the last page.
    pub after: Option<(u8, i16, JobId)>,
}

/// Query for waiting jobs that an offer could take, best first in the order of [`Pull`]. It returns the best `limit`
/// jobs of each pair of queue and account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// The host.
    pub host: String,
    /// Host keys that the host offers.
    pub keys: Vec<String>,
    /// Its architecture.
    pub arch: String,
    /// Its free memory, MB.
    pub free_memory_mb: u32,
    /// Its free CPUs; `None`: it did not say, so jobs of any number are found.
    pub free_cpus: Option<u32>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its devices.
    pub devices: Vec<String>,
    /// Accounts whose jobs to find; empty: all.
    pub accounts: Vec<String>,
    /// Maximum number of jobs of each (queue, account), 1 to 100.
    pub limit: u32,
    /// Maximum number of pairs of queue and account, at least 1. If there are more, the page also has the best jobs
    /// of all. It tells where the next find continues, so that finds in turn cover all pairs.
    pub pairs_max: u32,
    /// Pair behind which the find begins, in the store's own order. After the last pair it continues with the first.
    pub after: Option<(String, String)>,
}

/// Number of best jobs that are found in addition when there are more pairs.
pub const FIND_BEST: u32 = 64;

/// Result of a pull or find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<StoredJob>,
    /// True if the store holds more.
    pub more: bool,
    /// Last pair that a find looked at, if it did not look at all.
    pub next: Option<(String, String)>,
}

/// Position of a reader of changes. It is the greatest change that was read, by place (an index and shard of
/// Elasticsearch, one place in the embedded store). A place that is missing was never read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeMark(pub BTreeMap<String, u64>);

/// Numbers of changes by place: first and last of each range, ascending.
pub type ChangeRanges = BTreeMap<String, Vec<(u64, u64)>>;

/// Query for jobs whose state changed behind a mark, in their present form. A job that changed often is returned
/// once.
///
/// A change may become visible after a later one. A reader that must not miss any reads again from a mark that is
/// older than a refresh. It recognizes known changes by their version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Mark behind which to read.
    pub since: ChangeMark,
    /// Ranges of changes, by place. Empty: all of all places.
    pub within: ChangeRanges,
    /// `true`: only jobs that wait (`stage == submit && ready`); `false`: only the others.
    pub waiting: bool,
    /// Maximum number of jobs of each place, 1 to 10,000, oldest change first.
    pub limit: u32,
}

/// Page of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangePage {
    /// The jobs and the versions of their states, oldest change first within each place.
    pub jobs: Vec<(JobId, Version)>,
    /// Mark where the next read continues. It may lie beyond the last job that was read.
    pub mark: ChangeMark,
    /// True if more changed than is here.
    pub more: bool,
}

/// Query for the testbox time of jobs whose last attempt ended at `since_ms` or later, and for the uploads of jobs at
/// any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// UTC epoch ms.
    pub since_ms: u64,
    /// Accounts to sum.
    pub accounts: Vec<String>,
    /// Queues to sum.
    pub queues: Vec<String>,
    /// Accounts whose kept jobs' uploads to sum, bytes.
    pub uploads_of: Vec<String>,
}

/// A search for people. Empty filters do not filter; several filters are all to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// Only jobs that are (or are not) ready to run.
    pub ready: Option<bool>,
    /// Any of these stages.
    pub stages: Vec<Stage>,
    /// Any of these ends.
    pub healths: Vec<Health>,
    /// Any of these accounts.
    pub accounts: Vec<String>,
    /// Any of these queues, or of `queue_labels`.
    pub queues: Vec<String>,
    /// Any of these labels, or of `queues`.
    pub queue_labels: Vec<String>,
    /// Any of these hosts.
    pub hosts: Vec<String>,
    /// Any of these suites.
    pub suites: Vec<String>,
    /// Any of these `submit_id`s.
    pub submit_ids: Vec<String>,
    /// Any of these `group_id`s.
    pub group_ids: Vec<String>,
    /// Any of these sequences.
    pub sequences: Vec<String>,
    /// Any of these testbox groups.
    pub tbox_groups: Vec<String>,
    /// Any of these fingerprints.
    pub fingerprints: Vec<String>,
    /// Lists of words `key=value`. A job must have one word of each list.
    pub keywords: Vec<Vec<String>>,
    /// This crash signature; with `*` at its end: all that begin so.
    pub crash_signature: Option<String>,
    /// Parents and shards, or not.
    pub parts: Parts,
    /// Only shards of this parent.
    pub shards_of: Option<JobId>,
    /// Submitted at or after, epoch ms.
    pub since_ms: Option<u64>,
    /// Submitted before, epoch ms.
    pub until_ms: Option<u64>,
    /// Only jobs that come before this place in the order of [`Pull`]: class, priority and id.
    pub before: Option<(u8, i16, JobId)>,
    /// Order of the jobs.
    pub order: SearchOrder,
    /// Continue behind this job of the last page.
    pub after: Option<JobId>,
    /// Maximum number of jobs, 1 to 1,000 (0 counts only).
    pub limit: u32,
}

impl Search {
    /// Returns true if a job with this crash signature is found; empty: it has none.
    pub fn finds_crash(&self, signature: &str) -> bool {
        let Some(wanted) = &self.crash_signature else {
            return true;
        };
        let begin = wanted.strip_suffix('*');
        !signature.is_empty()
            && begin.map_or(signature == wanted, |begin| signature.starts_with(begin))
    }
}

/// Selection among jobs that have parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Parts {
    /// All of them.
    #[default]
    All,
    /// No shards: each submitted job once.
    NoShards,
    /// No parents: each running job once.
    NoParents,
    /// Shards alone.
    OnlyShards,
}

impl Parts {
    /// Returns true if a job is found.
    pub fn finds(self, state: &crate::JobState) -> bool {
        match self {
            Self::All => true,
            Self::NoShards => state.shard.is_none(),
            Self::NoParents => state.shards.is_none(),
            Self::OnlyShards => state.shard.is_some(),
        }
    }
}

/// Order of a search, always by id, which is by time of submit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SearchOrder {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The jobs.
    pub jobs: Vec<StoredJob>,
    /// Exact total number of jobs.
    pub total: u64,
    /// Number of jobs without words that match all else in a search by words. An older version stored them.
    pub wordless: u64,
    /// True if there are more behind the last one.
    pub more: bool,
}

impl Search {
    /// Returns lists of names, each with its field in both stores. A job must have one name of each list that is not
    /// empty.
    pub(crate) fn named(&self) -> [(&'static str, &[String]); 8] {
        [
            ("account", &self.accounts),
            ("host", &self.hosts),
            ("suite", &self.suites),
            ("submit_id", &self.submit_ids),
            ("group_id", &self.group_ids),
            ("sequence", &self.sequences),
            ("tbox_group", &self.tbox_groups),
            ("fingerprint", &self.fingerprints),
        ]
    }
}

/// Returns the stages in which a testbox has a job.
pub(crate) fn held() -> impl Iterator<Item = Stage> {
    Stage::ALL.iter().copied().filter(|stage| stage.is_held())
}

/// Returns the names of the terminal stages.
pub(crate) fn ends() -> Vec<&'static str> {
    let ends = Stage::ALL.iter().filter(|stage| stage.is_terminal());
    ends.map(|stage| stage.as_str()).collect()
}
