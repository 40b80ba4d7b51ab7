//! Requests to the store: counts, pulls, finds, and searches for people.

use std::collections::BTreeMap;

use fairlead_job::{Health, JobId, Stage};

use crate::{StoredJob, Version};

/// How many names are counted. Whoever submits may invent some, so who counts often asks for a bounded number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountOf {
    /// So many accounts and queues at most, those with most jobs, and pairs of both only if there are no more. None: all.
    pub names_max: Option<usize>,
    /// Only these host keys. None: all.
    pub host_keys: Option<Vec<String>>,
}

/// How many jobs wait (`stage == submit && ready`), exact. Zero counts are left out; sorted by name.
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
    /// There are more pairs than were asked for. Where accounts or queues are left out, too, the store may count too few
    /// of those that are not.
    pub partial: bool,
}

/// One way of slicing the waiting jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullBy {
    /// All of them.
    All,
    /// Of one account.
    Account(String),
    /// Of one queue.
    Queue(String),
    /// Under one host key.
    HostKey(String),
}

/// A page of waiting jobs, in order of class (high first), priority (high first), id (old first).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    /// Which.
    pub by: PullBy,
    /// How many at most, 1 to 10,000.
    pub limit: u32,
    /// Continue behind this job of the last page.
    pub after: Option<(u8, i16, JobId)>,
}

/// Waiting jobs that an offer could take, best first in the order of [`Pull`]: of each pair of queue and
/// account the best `limit` ones.
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
    /// Its free CPUs; none: it did not say, so jobs of any number are found.
    pub free_cpus: Option<u32>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its devices.
    pub devices: Vec<String>,
    /// Only jobs of these accounts; empty: of all.
    pub accounts: Vec<String>,
    /// How many jobs of each (queue, account) at most, 1 to 100.
    pub limit: u32,
    /// Of how many pairs of queue and account at most, at least 1. Where there are more, the page has the best jobs of
    /// all besides, and tells where the next one goes on: by turns all are found.
    pub pairs_max: u32,
    /// The pairs behind this one come first, in the store's own order, and after the last one the first.
    pub after: Option<(String, String)>,
}

/// Jobs that are found besides those of some pairs, when there are more: the best of all.
pub const FIND_BEST: u32 = 64;

/// What a pull or find found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<StoredJob>,
    /// Whether the store holds more.
    pub more: bool,
    /// Of a find that did not look at all pairs: the last one that it looked at.
    pub next: Option<(String, String)>,
}

/// Where a reader of changes stands: the greatest change that it has read, by place (an index and shard of
/// Elasticsearch, one place in the embedded store). A place that is missing was never read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeMark(pub BTreeMap<String, u64>);

/// Numbers of changes by place: first and last of each range, ascending.
pub type ChangeRanges = BTreeMap<String, Vec<(u64, u64)>>;

/// Jobs whose state changed behind a mark, as they are now: one that changed often is read once.
///
/// A change may become visible after a later one, so a reader that must not miss any reads again from a
/// mark that is older than a refresh; what it knows already it tells by the version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Behind which mark.
    pub since: ChangeMark,
    /// Only these changes of these places. Empty: all of all places.
    pub within: ChangeRanges,
    /// `true`: only jobs that wait (`stage == submit && ready`); `false`: only the others.
    pub waiting: bool,
    /// How many at most of each place, 1 to 10,000, oldest change first.
    pub limit: u32,
}

/// What changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangePage {
    /// The jobs and the versions of their states, oldest change first within each place.
    pub jobs: Vec<(JobId, Version)>,
    /// Where to go on: not behind the last job that was read.
    pub mark: ChangeMark,
    /// Whether more changed than is here.
    pub more: bool,
}

/// How long testboxes had jobs whose last attempt was over at `since_ms` or later, and what jobs uploaded at any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// UTC epoch ms.
    pub since_ms: u64,
    /// Of each of these accounts.
    pub accounts: Vec<String>,
    /// And of each of these queues.
    pub queues: Vec<String>,
    /// What the kept jobs of each of these accounts uploaded, bytes.
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
    /// For each list one of its words `key=value`.
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
    /// Which first.
    pub order: SearchOrder,
    /// Continue behind this job of the last page.
    pub after: Option<JobId>,
    /// How many at most, 1 to 1,000 (0 counts only).
    pub limit: u32,
}

impl Search {
    /// Whether a job with this crash signature is found; empty: it has none.
    pub fn finds_crash(&self, signature: &str) -> bool {
        let Some(wanted) = &self.crash_signature else {
            return true;
        };
        let begin = wanted.strip_suffix('*');
        !signature.is_empty()
            && begin.map_or(signature == wanted, |begin| signature.starts_with(begin))
    }
}

/// Which jobs of those that have parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Parts {
    /// All of them.
    #[default]
    All,
    /// No shards: each job that somebody submitted, once.
    NoShards,
    /// No parents: each job that runs, once.
    NoParents,
    /// Shards alone.
    OnlyShards,
}

impl Parts {
    /// Whether a job is found.
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

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The jobs.
    pub jobs: Vec<StoredJob>,
    /// How many there are in all, exact.
    pub total: u64,
    /// Of a search by words: how many jobs that match all else have none, because an older version stored them.
    pub wordless: u64,
    /// Whether there are more behind the last one.
    pub more: bool,
}

impl Search {
    /// Names of which a job must have one, each list under its field in both stores; an empty list: any will do.
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

/// The stages in which a testbox has a job.
pub(crate) fn held() -> impl Iterator<Item = Stage> {
    Stage::ALL.iter().copied().filter(|stage| stage.is_held())
}

/// The names of the ends.
pub(crate) fn ends() -> Vec<&'static str> {
    let ends = Stage::ALL.iter().filter(|stage| stage.is_terminal());
    ends.map(|stage| stage.as_str()).collect()
}
