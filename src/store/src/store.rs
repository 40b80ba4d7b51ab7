//! The seam: what a store must do, and its promises.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use fairlead_job::{Health, JobId, Spec, Stage};
use serde_json::Value;

use crate::{
    ChangeMark, ChangePage, Changes, CountOf, Counts, Find, Group, GroupBy, ItemError, NewJob,
    Page, Pull, Search, SearchPage, StatePatch, StoreError, StoreHealth, StoredJob, Usage, Version,
};

/// Maximum number of queues of [`StageCounts::oldest_ready_ms`].
pub(crate) const QUEUES_MAX: u32 = 1_000;

/// A compare-and-set change of one job's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The job.
    pub id: JobId,
    /// The version it must have.
    pub expect: Version,
    /// Fields to set.
    pub set: StatePatch,
}

/// Result of the creation of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// The version of its state.
    pub version: Version,
    /// Version of its body, if it takes a number among the changes of the state's place.
    pub body: Option<Version>,
}

/// Kinds of small documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocKind {
    /// Queue policies.
    Queue,
    /// Facts about hosts.
    Host,
    /// Hosts that get no new job, with the reason.
    Closure,
    /// Hosts that are reserved for the jobs of some accounts.
    Reservation,
    /// Accounts and their hashed tokens.
    Account,
    /// Live schedulers.
    Replica,
    /// Request of each host's session that is being served, with the serving replica.
    Session,
    /// Ownership of running jobs by a host's session. A renewal is one write per host.
    Lease,
    /// Results of submits by idempotency key.
    Submit,
    /// Jobs that have their turn, by sequence.
    Sequence,
    /// Jobs that run repeatedly.
    Timer,
    /// Tests of each shard of a job.
    Plan,
    /// The history of the tests of a suite in a group of hosts.
    TestTimes,
    /// Run times of a suite's jobs, by group of hosts.
    RunTimes,
    /// Messages to receivers that jobs name.
    Webhook,
    /// Samples of each minute and hour.
    Sample,
    /// Results that jobs may reuse, by reuse key.
    Reuse,
    /// Admins' settings of pools of machines that come and go.
    Pool,
    /// Machines of each pool, with the deciding replica.
    Fleet,
    /// Each decision to ask for machines or to retire some.
    Decision,
    /// Actions on many jobs, hosts or queues, as previewed.
    Preview,
    /// Settings that all replicas share, including the sealing key.
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

    /// Returns its name in stores.
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
    /// Content: a JSON object, stored whole and not searchable except for [`AT_MS`].
    pub body: Value,
}

/// Small document that must be looked at, by the facts that a search knows without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDoc {
    /// Its id inside its kind.
    pub id: String,
    /// Its version.
    pub version: Version,
    /// Its [`AT_MS`], UTC epoch ms.
    pub at_ms: u64,
}

/// Field of a small document's body with the time at which it must be looked at, UTC epoch ms; 0 or absent: never.
pub const AT_MS: &str = "at_ms";

/// A part of the small documents of a kind, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocFind {
    /// Prefix of their ids. Empty: all of them.
    pub prefix: String,
    /// Id after which the page begins. Empty: from the first on.
    pub after: String,
    /// Maximum number, 1 to 1,000.
    pub limit: u32,
}

/// Small documents that were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocPage {
    /// Sorted by id.
    pub docs: Vec<Doc>,
    /// Number of documents with the prefix, wherever the page begins.
    pub total: u64,
}

/// Expectation of a write of a small document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Any version, or none, is replaced.
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
    /// Expected version.
    pub expect: Expect,
    /// New content.
    pub body: Option<Value>,
}

/// One line of the append-only record of acts.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRecord {
    /// Time of the act, UTC epoch ms; names the month's index.
    pub at_ms: u64,
    /// Actor (an account, a host or a replica).
    pub who: String,
    /// Kind of act, one word with dots, for example `job.cancel`.
    pub what: String,
    /// Object of the act: a job id, a queue, a host.
    pub subject: String,
    /// Details, a JSON object.
    pub detail: Value,
}

/// Filter of events. Empty filters do not filter; several filters are all to hold.
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
    /// Number of newest events to skip: those of one millisecond that were read before.
    pub skip: u32,
    /// Maximum number of events, 1 to 1,000.
    pub limit: u32,
}

/// Number of jobs by stage and health. Parents of shards are not counted: their shards are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageCounts {
    /// Jobs that have not ended, by stage; zero counts are left out.
    pub open: BTreeMap<Stage, u64>,
    /// Jobs in stage submit that wait for a time, a turn or other jobs.
    pub not_ready: u64,
    /// Jobs that were submitted since the requested time and have ended, by health.
    pub ended: BTreeMap<Health, u64>,
    /// Time since which the longest-waiting job of a queue could run, UTC epoch ms, by queue; at most 1,000 queues.
    pub oldest_ready_ms: BTreeMap<String, u64>,
}

/// Month that was considered for dropping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldMonth {
    /// Name in the form of [`JobId::month`].
    pub month: String,
    /// Jobs born in it that have not ended. 0: it was dropped.
    pub unfinished: u64,
}

/// A store of jobs.
///
/// Every item of a batch has its own result, in the order of the batch. A batch may be of any size (the store splits
/// it). `get`, `get_bodies` and documents by id are read in real time; counts, pulls, finds, searches and `list_docs`
/// may lag behind by the refresh interval. A write that returned `Ok` is durable.
#[async_trait]
pub trait JobStore: Send + Sync + std::fmt::Debug {
    /// Creates jobs. `Ok` only when both documents of *that* job are in. `Conflict`: the id exists.
    async fn submit(&self, jobs: Vec<NewJob>) -> Vec<Result<Created, ItemError>>;

    /// Returns the cached body of a job that this process created recently. It is JSON for [`Self::keep_created`] of
    /// another process with a store of the same kind. Makes no request.
    fn body_at_hand(&self, _id: JobId) -> Option<String> {
        None
    }

    /// Notes a job that another process created with this state and version. A store may cache it, to change the job
    /// without reading it. `state` is JSON with all stored fields. `body` is the cached body of the other process.
    fn keep_created(&self, _id: JobId, _version: Version, _state: &str, _body: Option<&str>) {}

    /// Reads states in real time, in the order asked for.
    async fn get(&self, ids: &[JobId]) -> Result<Vec<Option<StoredJob>>, StoreError>;

    /// Reads those states that exist and that this version can read. A document of a newer version must not hide all
    /// others.
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

    /// Reads bodies in real time, in the order asked for. Bodies never change, so a store may return a cached one.
    async fn get_bodies(&self, ids: &[JobId]) -> Result<Vec<Option<Spec>>, StoreError>;

    /// Compare-and-set of states. `Ok` holds the new version.
    async fn patch(&self, patches: Vec<Patch>) -> Vec<Result<Version, ItemError>>;

    /// Compare-and-set of states, each answered with the resulting job. The result is also `Unknown` if the job could
    /// not be read, or had changed again.
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

    /// Counts the waiting jobs by account, queue and host key, exact, without a limit of names.
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.count(&CountOf::default()).await
    }

    /// Counts the waiting jobs of a bounded number of names. The total is exact.
    async fn count(&self, of: &CountOf) -> Result<Counts, StoreError>;

    /// Pulls pages of waiting jobs.
    async fn pull(&self, requests: &[Pull]) -> Result<Vec<Page>, StoreError>;

    /// Finds waiting jobs by the whole requirement of offers.
    async fn find(&self, requests: &[Find]) -> Result<Vec<Page>, StoreError>;

    /// Returns the mark behind which only later changes are found, as far as searches see now.
    async fn change_mark(&self) -> Result<ChangeMark, StoreError>;

    /// Returns the place of a job's changes, as [`Self::change_mark`] names it. `None`: unknown, or the numbers of
    /// its versions do not tell the place. Makes no request.
    fn place_of(&self, _id: JobId) -> Option<Arc<str>> {
        None
    }

    /// Returns the jobs whose states changed behind marks, a page for each request. Lags like a search. Cheaper than
    /// reading the states, most of which the caller knows.
    async fn changes(&self, requests: &[Changes]) -> Result<Vec<ChangePage>, StoreError>;

    /// Jobs in stage submit whose alarm is set and before `before_ms`, earliest first, at most `limit` (1 to 10,000).
    /// Lags like a search.
    async fn alarms(&self, before_ms: u64, limit: u32) -> Result<Page, StoreError>;

    /// Returns the testbox time of jobs, ms: of the requested accounts, then of the queues. The bytes that jobs
    /// uploaded follow. Lags like a search.
    async fn usage(&self, usage: &Usage) -> Result<Vec<u64>, StoreError>;

    /// Searches for people. `order` and `after` page through it; exact totals.
    async fn search(&self, search: &Search) -> Result<SearchPage, StoreError>;

    /// Counts the jobs that a search finds by the values of a field, most jobs first, at most 1,000 values. `order`,
    /// `after` and `limit` are ignored. Lags like a search.
    async fn groups(&self, search: &Search, by: GroupBy) -> Result<Vec<Group>, StoreError>;

    /// Tells for each of these ids, at most 1,000, if any kept job names it as an input or as its outputs. Sees all
    /// jobs that were stored before the call. Expensive: for collections only.
    async fn named(&self, content: &[String]) -> Result<Vec<bool>, StoreError>;

    /// Reads small documents in real time, in the order asked for.
    async fn get_docs(&self, kind: DocKind, ids: &[String])
    -> Result<Vec<Option<Doc>>, StoreError>;

    /// Reads a small document in real time.
    async fn get_doc(&self, kind: DocKind, id: &str) -> Result<Option<Doc>, StoreError> {
        let found = self.get_docs(kind, &[id.to_owned()]).await?;
        Ok(found.into_iter().next().flatten())
    }

    /// Returns versions of small documents in real time, in the order asked for. Never costs more than reading them.
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

    /// Returns all small documents of a kind, sorted by id.
    async fn list_docs(&self, kind: DocKind) -> Result<Vec<Doc>, StoreError>;

    /// Returns a page of the small documents of a kind, sorted by id, and their total number. Lags like a search.
    async fn page_docs(&self, kind: DocKind, find: &DocFind) -> Result<DocPage, StoreError>;

    /// Returns small documents of a kind whose [`AT_MS`] is set and before `before_ms`, earliest first, at most
    /// `limit` (1 to 10,000). Lags like a search.
    async fn due_docs(
        &self,
        kind: DocKind,
        before_ms: u64,
        limit: u32,
    ) -> Result<Vec<DueDoc>, StoreError>;

    /// Counts jobs by stage and health, for people. Lags like a search.
    async fn stage_counts(&self, since_ms: u64) -> Result<StageCounts, StoreError>;

    /// Appends to the record of events. Best effort: an error loses only the record.
    async fn append_events(&self, events: Vec<EventRecord>) -> Result<(), StoreError>;

    /// Reads the record of events, the newest first, at most 1,000. Lags like a search.
    async fn read_events(&self, find: &EventFind) -> Result<Vec<EventRecord>, StoreError>;

    /// Drops the oldest month before that of `before` of which all jobs have ended, with their states, bodies and
    /// events. Returns the months that were considered, oldest first. Months with jobs that have not ended stay. No
    /// month behind the dropped one is considered. May be repeated.
    async fn drop_oldest(&self, before: JobId) -> Result<Vec<OldMonth>, StoreError>;

    /// Returns the store's own clock, UTC epoch ms; `None`: it uses the clock of this machine.
    async fn wall_ms(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Returns the missing rights for dropping months, as text; `None`: none is missing, or it is unknown.
    async fn lacks_to_drop(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Makes everything written so far visible to counts, pulls, finds and searches. Expensive: at start and in tests
    /// only.
    async fn refresh(&self) -> Result<(), StoreError>;

    /// Checks parts that calls do not tell [`health`](Self::health) about: unused parts, and parts that may be well
    /// again. Called each second; does nothing in a store whose calls tell all.
    async fn look_after(&self) {}

    /// Returns the health of the store as last seen, without a request.
    fn health(&self) -> StoreHealth;
}
