//! Checks whether what a store holds fits together. Reads only.
//!
//! [`check_jobs`] looks at the jobs of any store. Each store knows faults of its own kind besides
//! ([`crate::EmbeddedStore::check_tables`], [`crate::ElasticStore::check_bodies`]).

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::JobId;
use serde::Serialize;

use crate::{DocKind, JobState, JobStore, Search, SearchOrder, StoreError, StoredJob};

/// Kind of fault.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name for programs.
    pub name: &'static str,
    /// Meaning of each counted case.
    pub meaning: &'static str,
    /// Advice on the repair.
    pub todo: &'static str,
    /// True if a case is wrong. Otherwise it may also be intended.
    pub is_wrong: bool,
}

/// Number of cases of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind.
    pub kind: &'static str,
    /// Meaning of each case.
    pub meaning: &'static str,
    /// Number of cases.
    pub count: u64,
    /// First cases.
    pub examples: Vec<String>,
    /// Advice on the repair.
    #[serde(rename = "do")]
    pub todo: &'static str,
    /// True if a case is wrong. Otherwise it may also be intended.
    pub is_wrong: bool,
}

/// Findings of a check, in the order in which it looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    examples_max: usize,
    kinds: Vec<Finding>,
}

impl Findings {
    /// Creates an empty list that keeps at most this many examples of each kind.
    pub fn new(examples_max: usize) -> Self {
        Self {
            examples_max,
            kinds: Vec::new(),
        }
    }

    /// Returns the number of examples that are kept of each kind.
    pub fn examples_max(&self) -> usize {
        self.examples_max
    }

    /// Lists a kind, even if no case of it is found.
    pub fn look_for(&mut self, fault: &'static Fault) {
        self.of(fault);
    }

    /// Adds a case of a kind.
    pub fn add(&mut self, fault: &'static Fault, example: impl FnOnce() -> String) {
        let max = self.examples_max;
        let finding = self.of(fault);
        finding.count += 1;
        if finding.examples.len() < max {
            finding.examples.push(example());
        }
    }

    /// Adds cases of a kind without their names.
    pub fn add_nameless(&mut self, fault: &'static Fault, many: u64) {
        self.of(fault).count += many;
    }

    fn of(&mut self, fault: &'static Fault) -> &mut Finding {
        let known = self.kinds.iter().position(|one| one.kind == fault.name);
        let at = known.unwrap_or(self.kinds.len());
        if known.is_none() {
            self.kinds.push(Finding {
                kind: fault.name,
                meaning: fault.meaning,
                count: 0,
                examples: Vec::new(),
                todo: fault.todo,
                is_wrong: fault.is_wrong,
            });
        }
        // It is there: just pushed, or found.
        #[expect(clippy::indexing_slicing, reason = "the place was just found or made")]
        &mut self.kinds[at]
    }

    /// All kinds that were looked for.
    pub fn kinds(&self) -> &[Finding] {
        &self.kinds
    }

    /// Returns the number of cases of a kind.
    pub fn count(&self, name: &str) -> u64 {
        let finding = self.kinds.iter().find(|one| one.kind == name);
        finding.map_or(0, |one| one.count)
    }
}

pub(crate) const UNREADABLE: Fault = Fault {
    name: "unreadable",
    meaning: "states that this version cannot read",
    todo: "use the newest version of the lab; otherwise restore a backup",
    is_wrong: true,
};
const NO_BODY: Fault = Fault {
    name: "state_without_body",
    meaning: "jobs whose submitted text is missing",
    todo: "restore a backup; a waiting one ends by itself with abort_invalid",
    is_wrong: true,
};
const SHARD_MISSING: Fault = Fault {
    name: "shard_missing",
    meaning: "shards that their parent counts and that are not there",
    todo: "a running lab makes them within seconds; those of an ended parent are lost",
    is_wrong: true,
};
const NO_PARENT: Fault = Fault {
    name: "shard_without_parent",
    meaning: "shards whose parent is not there",
    todo: "fairlead cancel JOB or fairlead terminate JOB",
    is_wrong: true,
};
const HOST_UNKNOWN: Fault = Fault {
    name: "host_unknown",
    meaning: "running jobs of a host that nobody knows",
    todo: "start the lab: they are lost after a lease, and run again; or fairlead terminate JOB",
    is_wrong: true,
};
const AHEAD: Fault = Fault {
    name: "id_ahead_of_clock",
    meaning: "jobs whose id is of a time to come",
    todo: "set the clock of this machine; if it is right, ids go on behind these",
    is_wrong: true,
};

/// Jobs of one page.
const PAGE: u32 = 500;
/// Time for which a state without a body may be half of a submit that is under way, ms.
const UNDER_WAY_MS: u64 = 60_000;
/// Upper bound of the difference between the clocks of replicas, ms.
const CLOCKS_DIFFER_MS: u64 = 5 * 60_000;

/// Looks at every job, at UTC epoch ms `now_ms`, and shows each to `each`. Returns the number of jobs.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn check_jobs(
    store: &dyn JobStore,
    now_ms: u64,
    found: &mut Findings,
    mut each: impl FnMut(&JobState, &mut Findings) + Send,
) -> Result<u64, StoreError> {
    let is_counted = found.kinds.iter().any(|one| one.kind == UNREADABLE.name);
    for fault in [
        &UNREADABLE,
        &NO_BODY,
        &SHARD_MISSING,
        &NO_PARENT,
        &HOST_UNKNOWN,
        &AHEAD,
    ] {
        found.look_for(fault);
    }
    let mut search = Search {
        order: SearchOrder::OldestFirst,
        limit: PAGE,
        ..Search::default()
    };
    let (mut read, mut expected) = (0_u64, None);
    let mut known_hosts = BTreeMap::new();
    loop {
        let page = store.search(&search).await?;
        expected = expected.or(Some(page.total));
        read += u64::try_from(page.jobs.len()).unwrap_or(u64::MAX);
        bodies(store, &page.jobs, now_ms, found).await?;
        shards(store, &page.jobs, now_ms, found).await?;
        hosts(store, &page.jobs, &mut known_hosts, found).await?;
        for job in &page.jobs {
            let id = job.state.job_id;
            if id.born_s().saturating_mul(1_000) > now_ms.saturating_add(CLOCKS_DIFFER_MS) {
                found.add(&AHEAD, || id.to_string());
            }
            each(&job.state, found);
        }
        search.after = page.jobs.last().map(|job| job.state.job_id);
        if !page.more || search.after.is_none() {
            break;
        }
    }
    if !is_counted {
        // Searches pass over what they cannot read. Jobs that came meanwhile were read, too.
        found.add_nameless(&UNREADABLE, expected.unwrap_or(0).saturating_sub(read));
    }
    Ok(read)
}

async fn bodies(
    store: &dyn JobStore,
    jobs: &[StoredJob],
    now_ms: u64,
    found: &mut Findings,
) -> Result<(), StoreError> {
    // A shard runs what its parent's body says, unless it joined a group.
    let has_own = |job: &&StoredJob| job.state.shard.is_none_or(crate::ShardPlace::has_own_body);
    let ids: Vec<JobId> = jobs
        .iter()
        .filter(has_own)
        .map(|job| job.state.job_id)
        .collect();
    let bodies = store.get_bodies(&ids).await?;
    let lacking = ids.iter().zip(bodies).filter(|(_, body)| body.is_none());
    for (id, _) in lacking {
        if id
            .born_s()
            .saturating_mul(1_000)
            .saturating_add(UNDER_WAY_MS)
            < now_ms
        {
            found.add(&NO_BODY, || id.to_string());
        }
    }
    Ok(())
}

async fn shards(
    store: &dyn JobStore,
    jobs: &[StoredJob],
    now_ms: u64,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let parents: BTreeSet<JobId> = jobs
        .iter()
        .filter_map(|job| Some(job.state.shard?.of))
        .collect();
    let missing = missing(store, parents.into_iter().collect()).await?;
    for job in jobs {
        if job
            .state
            .shard
            .is_some_and(|shard| missing.contains(&shard.of))
        {
            found.add(&NO_PARENT, || job.state.job_id.to_string());
        }
    }
    for parent in jobs.iter().map(|job| &job.state) {
        let Some(shards) = parent.shards.as_ref().filter(|shards| shards.made) else {
            continue;
        };
        let may_be_under_way = parent.submit_ms.saturating_add(UNDER_WAY_MS) > now_ms;
        if shards.is_open() || may_be_under_way {
            continue;
        }
        let ids: Vec<JobId> = shards.ids(parent.job_id).collect();
        for id in self::missing(store, ids).await? {
            found.add(&SHARD_MISSING, || id.to_string());
        }
    }
    Ok(())
}

/// Returns those of these jobs that are missing.
async fn missing(store: &dyn JobStore, ids: Vec<JobId>) -> Result<BTreeSet<JobId>, StoreError> {
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let got = match store.get(&ids).await {
        Ok(got) => got,
        // One of them cannot be read, and is counted as such.
        Err(StoreError::Refused { .. }) => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let missing = ids.into_iter().zip(got).filter(|(_, job)| job.is_none());
    Ok(missing.map(|(id, _)| id).collect())
}

async fn hosts(
    store: &dyn JobStore,
    jobs: &[StoredJob],
    known: &mut BTreeMap<String, bool>,
    found: &mut Findings,
) -> Result<(), StoreError> {
    let held = jobs.iter().map(|job| &job.state);
    for job in held.filter(|state| state.stage.is_held()) {
        let is_known = if let Some(is_known) = known.get(&job.host) {
            *is_known
        } else {
            let session = store.get_doc(DocKind::Session, &job.host).await?;
            let is_known =
                session.is_some() || store.get_doc(DocKind::Host, &job.host).await?.is_some();
            known.insert(job.host.clone(), is_known);
            is_known
        };
        if !is_known {
            found.add(&HOST_UNKNOWN, || format!("{} on {}", job.job_id, job.host));
        }
    }
    Ok(())
}
