//! The seam: what a store must do, and its promises.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use fairlead_job::{Health, JobId, Spec, Stage};
use serde_json::Value;

use crate::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Find, Group, GroupBy, ItemError, NewJob,
    Page, Pull, Search, SearchPage, StatePatch, StoreError, StoreHealth, StoredJob, Usage, Version,
};

/// Most queues of [`StageCounts::oldest_ready_ms`].
pub(crate) const QUEUES_MAX: u32 = 1_000;

/// A compare-and-set change of one job's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The job.
    pub id: JobId,
    /// The version it must have.
    pub expect: Version,
    /// What to set.
    pub set: StatePatch,
}

/// What a store made of a new job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// The version of its state.
    pub version: Version,
    /// The version of its body, where that takes a number among the changes of the state's place.
    pub body: Option<Version>,
}

/// Kinds of small documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocKind {
    /// Queue policies.
    Queue,
    /// What is known of hosts.
    Host,
    /// Hosts that get no new job, and why.
    Closure,
    /// Hosts that are kept for the jobs of some accounts.
    Reservation,
    /// Accounts and their hashed tokens.
    Account,
    /// Live schedulers.
    Replica,
    /// Which request of which session of a host is being served, and by whom.
    Session,
    /// Ownership of running jobs by a host's session: one write a host a renewal.
    Lease,
    /// What was submitted under idempotency keys.
    Submit,
    /// Which job of each sequence has its turn.
    Sequence,
    /// Jobs that are run again and again.
    Timer,
    /// Which tests each shard of a job runs.
    Plan,
    /// The history of the tests of a suite in a group of hosts.
    TestTimes,
    /// How long hosts were occupied by the jobs of a suite, by group of hosts.
    RunTimes,
    /// Messages to receivers that jobs name.
    Webhook,
    /// What ran in each minute and hour.
    Sample,
    /// Results that jobs may take for their own, by the key of what ran.
    Reuse,
    /// What an admin says of pools of machines that come and go.
    Pool,
    /// The machines of each pool, and which replica decides.
    Fleet,
    /// Each decision to ask for machines or to retire some.
    Decision,
    /// Actions on many jobs, hosts or queues, as they were shown before.
    Preview,
    /// Settings that all replicas share, among them the sealing key.
    Setting,
}

impl DocKind {
    /// Every kind.
    pub const ALL: [Self; 22] = [
        Self::Queue,
        Self::Host,
        Self::Closure,
        Self::Reservation,
        Self::Account,
        Self::Replica,
        Self::Session,
        Self::Lease,
        Self::Submit,
        Self::Sequence,
        Self::Timer,
        Self::Plan,
        Self::TestTimes,
        Self::RunTimes,
        Self::Webhook,
        Self::Sample,
        Self::Reuse,
        Self::Pool,
        Self::Fleet,
        Self::Decision,
        Self::Preview,
        Self::Setting,
    ];

    /// Its name in stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queues",
            Self::Host => "hosts",
            Self::Closure => "closures",
            Self::Reservation => "reservations",
            Self::Account => "accounts",
            Self::Replica => "replicas",
            Self::Session => "sessions",
            Self::Lease => "leases",
            Self::Submit => "submits",
            Self::Sequence => "sequences",
            Self::Timer => "timers",
            Self::Plan => "plans",
            Self::TestTimes => "test_times",
            Self::RunTimes => "run_times",
            Self::Webhook => "webhooks",
            Self::Sample => "samples",
            Self::Reuse => "reuse",
            Self::Pool => "pools",
            Self::Fleet => "fleets",
            Self::Decision => "decisions",
            Self::Preview => "previews",
            Self::Setting => "settings",
        }
    }
}

/// A small document as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Doc {
    /// Its id inside its kind, 1 to [`DOC_ID_BYTES_MAX`](crate::codec::DOC_ID_BYTES_MAX) bytes.
    pub id: String,
    /// Its version.
    pub version: Version,
    /// What it holds: a JSON object, stored whole and not searchable but for [`AT_MS`].
    pub body: Value,
}

/// A small document that must be looked at, by what a search knows of it without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDoc {
    /// Its id inside its kind.
    pub id: String,
    /// Its version.
    pub version: Version,
    /// Its [`AT_MS`], UTC epoch ms.
    pub at_ms: u64,
}

/// The field of a small document's body that says when somebody must look at it, UTC epoch ms; 0 or absent: never.
pub const AT_MS: &str = "at_ms";

/// A part of the small documents of a kind, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocFind {
    /// Their ids begin so. Empty: all of them.
    pub prefix: String,
    /// Only those whose ids come after this one. Empty: from the first on.
    pub after: String,
    /// At most so many, 1 to 1,000.
    pub limit: u32,
}

/// Small documents that were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocPage {
    /// Sorted by id.
    pub docs: Vec<Doc>,
    /// How many have the prefix, wherever the page begins.
    pub total: u64,
}

/// What a write of a small document expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there is replaced.
    Any,
    /// Nothing: create, conflict if it exists.
    Absent,
    /// This version.
    Version(Version),
}

/// A write of a small document. `body: None` deletes it.
#[derive(Debug, Clone, PartialEq)]
pub struct DocWrite {
    /// Its id.
    pub id: String,
    /// What must be there.
    pub expect: Expect,
    /// What will be there.
    pub body: Option<Value>,
}

/// One line of the append-only record of who did what.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// When, UTC epoch ms; names the month's index.
    pub at_ms: u64,
    /// Who acted (an account, a host or a replica).
    pub who: String,
    /// What was done, one word with dots, for example `job.cancel`.
    pub what: String,
    /// To what: a job id, a queue, a host.
    pub subject: String,
    /// Details, a JSON object.
    pub detail: Value,
}

/// Which events. Empty filters do not filter; several filters are all to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFind {
    /// At or after, UTC epoch ms.
    pub since_ms: u64,
    /// Before, UTC epoch ms.
    pub until_ms: u64,
    /// Any of these, as [`EventRecord::who`].
    pub who: Vec<String>,
    /// Any of these, as [`EventRecord::what`]; with `*` at its end: all that begin so.
    pub what: Vec<String>,
    /// Any of these, as [`EventRecord::subject`].
    pub subjects: Vec<String>,
    /// So many of the newest are passed over: those of one millisecond that were read before.
    pub skip: u32,
    /// How many at most, 1 to 1,000.
    pub limit: u32,
}

/// How many jobs are how far. Parents of shards are not counted: their shards are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageCounts {
    /// Jobs that have not ended, by stage; zero counts are left out.
    pub open: BTreeMap<Stage, u64>,
    /// Of those in stage submit: that wait for a time, a turn or other jobs.
    pub not_ready: u64,
    /// Jobs that were submitted since the time that was asked for and have ended, by health.
    pub ended: BTreeMap<Health, u64>,
    /// Since when the job that waits longest for a host could run, UTC epoch ms, by queue; at most 1,000 queues.
    pub oldest_ready_ms: BTreeMap<String, u64>,
}

/// A month that was looked at whether it can be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldMonth {
    /// As [`JobId::month`] says it.
    pub month: String,
    /// Jobs born in it that have not ended. 0: it was dropped.
    pub unfinished: u64,
}

/// A store of jobs.
///
/// Every item of a batch has its own result, in the order of the batch; a batch may be of any size (the
/// store splits it). `get`, `get_bodies` and documents by id are read in real time; counts, pulls, finds,
/// searches and `list_docs` may lag behind by the refresh interval. A write that returned `Ok` is durable.
#[async_trait]
pub trait JobStore: Send + Sync + std::fmt::Debug {
    /// Creates jobs. `Ok` only when both documents of *that* job are in. `Conflict`: the id exists.
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>>;

    /// The body of a job that this process created lately, if it is at hand: JSON for [`Self::keep_created`] of another
    /// process with a store of the same kind. Asks nothing.
    fn body_at_hand(&self, _id: JobId) -> Option<String> {
        None
    }

    /// Another process created this job with this state, and got this version. A store may keep that, to change the job
    /// without reading it. `state` is JSON, and has all fields that were stored. `body` is what the other process had at
    /// hand.
    fn keep_created(&self, _id: JobId, _version: Version, _state: &str, _body: Option<&str>) {}

    /// Reads states in real time, in the order asked for.
    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError>;

    /// Reads those of these states that are there and that this version can read: one document of tomorrow must not
    /// hide all others.
    async fn get_readable(&self, ids: &[JobId]) -> Result<Vec<StoredJob>, StoreError> {
        match self.get(ids).await {
            Ok(found) => return Ok(found.into_iter().flatten().collect()),
            Err(StoreError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut readable = Vec::new();
        for id in ids {
            match self.get(&[*id]).await {
                Ok(found) => readable.extend(found.into_iter().flatten()),
                Err(StoreError::Refused { reason }) => {
                    tracing::warn!(job_id = %id, reason, "a stored job is malformed and was skipped");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(readable)
    }

    /// Reads bodies in real time, in the order asked for. They never change: a store may answer one that it took as it was
    /// taken.
    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError>;

    /// Compare-and-set of states. `Ok` holds the new version.
    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>>;

    /// Compare-and-set of states, each answered with the job as it left it. `Unknown` also when that could not be
    /// read, or when the job had changed again by then.
    async fn patch_and_get(&self, patches: Vec<Patch>) -> Vec<Result<StoredJob, ItemError>> {
        let ids: Vec<JobId> = patches.iter().map(|patch| patch.id).collect();
        let outcomes = self.patch(patches).await;
        let is_in = |(outcome, id): (&Result<Version, ItemError>, &JobId)| {
            outcome.as_ref().ok().map(|version| (*id, *version))
        };
        let (written, versions): (Vec<JobId>, Vec<Version>) =
            outcomes.iter().zip(&ids).filter_map(is_in).unzip();
        let unknown = |reason: String| ItemError::Unknown { reason };
        let mut read = match self.get(&written).await {
            Ok(read) => {
                let pairs = read.into_iter().zip(versions);
                pairs
                    .map(|(job, version)| {
                        job.filter(|job| job.version == version)
                            .ok_or_else(|| unknown("the document changed again".to_owned()))
                    })
                    .collect()
            }
            Err(error) => vec![Err(unknown(error.to_string())); written.len()],
        }
        .into_iter();
        let lost = || Err(unknown("the document was not read".to_owned()));
        outcomes
            .into_iter()
            .map(|outcome| outcome.and_then(|_| read.next().unwrap_or_else(lost)))
            .collect()
    }

    /// Counts the waiting jobs by account, queue and host key, exact, however many names there are.
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.count(&CountOf::default()).await
    }

    /// Counts the waiting jobs of a bounded number of names. The total is exact.
    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError>;

    /// Pulls pages of waiting jobs.
    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError>;

    /// Finds waiting jobs by the whole requirement of offers.
    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError>;

    /// The mark behind which only what changes from now on is found, as far as searches see by now.
    async fn change_mark(&self) -> Result<ChangeMark, StoreError>;

    /// The place whose changes the states of a job belong to, as [`Self::change_mark`] names it. `None`: unknown, or the
    /// numbers of its versions do not tell the place. Asks nothing.
    fn place_of(&self, _id: JobId) -> Option<Arc<str>> {
        None
    }

    /// Which jobs' states changed behind marks, a page for each request. Lags like a search. Far cheaper than reading
    /// the states: whoever asks knows most of them.
    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError>;

    /// Jobs in stage submit whose alarm is set and before `before_ms`, earliest first, at most `limit` (1 to 10,000).
    /// Lags like a search.
    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError>;

    /// How long testboxes had the jobs of accounts and queues, ms: the accounts asked for, then the queues. Behind them
    /// bytes that jobs uploaded. Lags like a search.
    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError>;

    /// Searches for people. `order` and `after` page through it; exact totals.
    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError>;

    /// Counts the jobs that a search finds by the values of a field, most jobs first, at most 1,000 values; `order`, `after`
    /// and `limit` do not matter. Lags like a search.
    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError>;

    /// Which of these ids any kept job names as an input or as its outputs, in this order. At most 1,000. All jobs that
    /// were taken before the call are seen. Dear: for collections only.
    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError>;

    /// Reads small documents in real time, in the order asked for.
    async fn get_docs(&self, kind: DocKind, ids: &[String])
    -> Result<Vec<Option<Doc>>, StoreError>;

    /// Reads a small document in real time.
    async fn get_doc(&self, kind: DocKind, id: &str) -> Result<Option<Doc>, StoreError> {
        let found = self.get_docs(kind, &[id.to_owned()]).await?;
        Ok(found.into_iter().next().flatten())
    }

    /// Versions of small documents in real time, in the order asked for. Never dearer than reading them.
    async fn doc_versions(
        &self,
        kind: DocKind,
        ids: &[String],
    ) -> Result<Vec<Option<Version>>, StoreError> {
        let docs = self.get_docs(kind, ids).await?;
        Ok(docs.iter().map(|doc| Some(doc.as_ref()?.version)).collect())
    }

    /// Writes small documents of one kind, each with its own expectation.
    async fn put_docs(
        &self,
        kind: DocKind,
        writes: Vec<DocWrite>,
    ) -> Vec<Result<Version, ItemError>>;

    /// All small documents of a kind, sorted by id.
    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError>;

    /// A page of the small documents of a kind, sorted by id, and how many there are. Lags like a search.
    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError>;

    /// Small documents of a kind whose [`AT_MS`] is set and before `before_ms`, earliest first, at most `limit`
    /// (1 to 10,000). Lags like a search.
    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError>;

    /// How many jobs are how far, for people. Lags like a search.
    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError>;

    /// Appends to the record of events. Best effort: an error loses only the record.
    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError>;

    /// Reads the record of events, the newest first, at most 1,000. Lags like a search.
    async fn read_events(&self, find: &EventFind) -> Result<Vec<EventRecord>, StoreError>;

    /// Drops the oldest month before that of `before` of which all jobs have ended: their states and bodies, and its
    /// events. Answers the months that were looked at, oldest first: those with jobs that have not ended stay, and none
    /// is looked at behind the one that was dropped. May be repeated.
    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError>;

    /// What the store's own clock says, UTC epoch ms; none: it has the clock of this machine.
    async fn wall_ms(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// What the store's user lacks to drop months, in words; `None`: nothing, or nobody knows.
    async fn lacks_to_drop(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Makes everything written so far visible to counts, pulls, finds and searches. Dear: at start and
    /// in tests only.
    async fn refresh(&self) -> Result<(), StoreError>;

    /// Looks after what calls do not tell of [`health`](Self::health): parts that nobody uses at present, and parts that
    /// may be well again. Asked each second; a store whose calls tell all does nothing.
    async fn look_after(&self) {}

    /// How the store is, from what was last seen; asks nothing.
    fn health(&self) -> StoreHealth;
}
