//! What is really stored, and what searches see of it: the simulated store without its faults.
//!
//! Jobs lie in places (shards), each with its own count of changes, its own refreshes and its own term.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Spec};
use fairlead_store::{
    Doc, DocKind, DocWrite, Expect, ItemError, JobState, NewJob, Patch, StoredJob, Version,
};
use serde_json::Value;

/// A state of a job as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) state: Arc<JobState>,
    pub(super) version: Version,
}

impl Entry {
    pub(super) fn stored(&self) -> StoredJob {
        StoredJob {
            state: JobState::clone(&self.state),
            version: self.version,
        }
    }
}

/// What searches see of a place, or of all of them.
pub(super) type View = BTreeMap<JobId, Entry>;

/// One shard.
#[derive(Debug, Default)]
struct Place {
    term: u64,
    seq: u64,
    jobs: View,
    seen: Arc<View>,
    seen_before: Arc<View>,
}

impl Place {
    fn next(&mut self) -> Version {
        self.seq += 1;
        Version {
            primary_term: self.term,
            seq_no: self.seq,
        }
    }
}

/// One kind of small documents.
#[derive(Debug, Default)]
struct Docs {
    seq: u64,
    present: BTreeMap<String, Doc>,
    seen: Arc<Vec<Doc>>,
    seen_before: Arc<Vec<Doc>>,
}

/// A write that was taken by a primary which had been cut off: seen by those who reach it, never kept.
#[derive(Debug)]
struct Phantom {
    entry: Entry,
    /// Which replica still reaches that primary, and until when, ms.
    slot: usize,
    until_ms: u64,
}

/// A change of a state that was just made.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) before: Option<Arc<JobState>>,
    pub(super) after: Arc<JobState>,
    pub(super) version: Version,
}

/// All documents.
#[derive(Debug)]
pub(super) struct Truth {
    places: Vec<Place>,
    bodies: BTreeMap<JobId, Spec>,
    docs: BTreeMap<DocKind, Docs>,
    phantoms: BTreeMap<JobId, Phantom>,
}

impl Truth {
    pub(super) fn new(places: usize) -> Self {
        let place = || Place {
            term: 1,
            ..Place::default()
        };
        Self {
            places: (0..places.max(1)).map(|_| place()).collect(),
            bodies: BTreeMap::new(),
            docs: DocKind::ALL
                .into_iter()
                .map(|kind| (kind, Docs::default()))
                .collect(),
            phantoms: BTreeMap::new(),
        }
    }

    fn place_of(&self, id: JobId) -> usize {
        let many = u64::try_from(self.places.len()).unwrap_or(1);
        usize::try_from(id.get() % many.max(1)).unwrap_or(0)
    }

    fn place_mut(&mut self, id: JobId) -> Option<&mut Place> {
        let number = self.place_of(id);
        self.places.get_mut(number)
    }

    /// The state as it is in truth.
    pub(super) fn job(&self, id: JobId) -> Option<&Entry> {
        self.places.get(self.place_of(id))?.jobs.get(&id)
    }

    /// The state as a replica reads it in real time.
    pub(super) fn read(&self, id: JobId, slot: usize, now_ms: u64) -> Option<StoredJob> {
        let phantom = self.phantoms.get(&id);
        let phantom = phantom.filter(|phantom| phantom.slot == slot && phantom.until_ms > now_ms);
        phantom
            .map(|phantom| &phantom.entry)
            .or_else(|| self.job(id))
            .map(Entry::stored)
    }

    pub(super) fn bodies(&self) -> impl Iterator<Item = &Spec> {
        self.bodies.values()
    }

    pub(super) fn body(&self, id: JobId) -> Option<&Spec> {
        self.bodies.get(&id)
    }

    /// Stores the body of a new job; `false`: another one is there.
    pub(super) fn create_body(&mut self, job: &NewJob) -> bool {
        let body = self.bodies.entry(job.state.job_id);
        *body.or_insert_with(|| job.body.clone()) == job.body
    }

    /// Stores the state of a new job, once: a repeat of what is there is written over it.
    pub(super) fn create_state(&mut self, job: &NewJob) -> Result<Change, ItemError> {
        let id = job.state.job_id;
        let before = self.job(id).map(|entry| Arc::clone(&entry.state));
        if before.as_deref().is_some_and(|state| *state != job.state) {
            return Err(ItemError::Conflict { current: None });
        }
        Ok(self.write(before, Arc::new(job.state.clone())))
    }

    /// Compare-and-set.
    pub(super) fn patch(&mut self, patch: &Patch) -> Result<Change, ItemError> {
        let Some(entry) = self.job(patch.id) else {
            return Err(ItemError::Missing);
        };
        if entry.version != patch.expect {
            return Err(ItemError::Conflict { current: None });
        }
        let before = Arc::clone(&entry.state);
        let Some(after) = patch.set.apply(&before) else {
            return Err(ItemError::Refused {
                reason: "these fields do not make a state".to_owned(),
            });
        };
        Ok(self.write(Some(before), Arc::new(after)))
    }

    fn write(&mut self, before: Option<Arc<JobState>>, after: Arc<JobState>) -> Change {
        let id = after.job_id;
        let mut version = Version::default();
        if let Some(place) = self.place_mut(id) {
            version = place.next();
            let state = Arc::clone(&after);
            place.jobs.insert(id, Entry { state, version });
        }
        Change {
            before,
            after,
            version,
        }
    }

    /// A write that will be seen by one replica for a while, and then never was: the place has a new
    /// primary, which counts on from where the old one was.
    pub(super) fn phantom(&mut self, patch: &Patch, slot: usize, until_ms: u64) {
        let Some(entry) = self.job(patch.id).filter(|it| it.version == patch.expect) else {
            return;
        };
        let Some(state) = patch.set.apply(&entry.state) else {
            return;
        };
        let Some(place) = self.place_mut(patch.id) else {
            return;
        };
        let version = Version {
            primary_term: place.term,
            seq_no: place.seq + 1,
        };
        place.term += 1;
        let entry = Entry {
            state: Arc::new(state),
            version,
        };
        self.phantoms.insert(
            patch.id,
            Phantom {
                entry,
                slot,
                until_ms,
            },
        );
    }

    /// Makes what a place holds visible to searches.
    pub(super) fn refresh_place(&mut self, number: usize) {
        if let Some(place) = self.places.get_mut(number) {
            let now = Arc::new(place.jobs.clone());
            place.seen_before = std::mem::replace(&mut place.seen, now);
        }
    }

    /// Makes everything visible to searches.
    pub(super) fn refresh_all(&mut self) {
        for place in 0..self.places.len() {
            self.refresh_place(place);
        }
        self.refresh_docs();
    }

    /// The same for all small documents.
    pub(super) fn refresh_docs(&mut self) {
        for docs in self.docs.values_mut() {
            let now = Arc::new(docs.present.values().cloned().collect());
            docs.seen_before = std::mem::replace(&mut docs.seen, now);
        }
    }

    /// What searches see of each place; one refresh earlier when `stale`.
    pub(super) fn seen(&self, stale: bool) -> Vec<Arc<View>> {
        let views = self.places.iter().map(|place| {
            let view = if stale {
                &place.seen_before
            } else {
                &place.seen
            };
            Arc::clone(view)
        });
        views.collect()
    }

    pub(super) fn doc(&self, kind: DocKind, id: &str) -> Option<Doc> {
        self.docs.get(&kind)?.present.get(id).cloned()
    }

    pub(super) fn list(&self, kind: DocKind, stale: bool) -> Vec<Doc> {
        let docs = self.docs.get(&kind);
        let list = docs.map(|docs| if stale { &docs.seen_before } else { &docs.seen });
        list.map(|list| Vec::clone(list)).unwrap_or_default()
    }

    pub(super) fn put(&mut self, kind: DocKind, write: &DocWrite) -> Result<Version, ItemError> {
        let docs = self.docs.entry(kind).or_default();
        let current = docs.present.get(&write.id).map(|doc| doc.version);
        let as_expected = match write.expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(version) => current == Some(version),
        };
        if !as_expected {
            return Err(ItemError::Conflict { current: None });
        }
        if write.body.is_none() && current.is_none() {
            return Err(ItemError::Missing);
        }
        docs.seq += 1;
        let version = Version {
            primary_term: 1,
            seq_no: docs.seq,
        };
        let body: Option<Value> = write.body.clone();
        match body {
            Some(body) => {
                let id = write.id.clone();
                docs.present
                    .insert(write.id.clone(), Doc { id, version, body });
            }
            None => {
                docs.present.remove(&write.id);
            }
        }
        Ok(version)
    }
}
