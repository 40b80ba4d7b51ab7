//! The true content of the simulated store, and what searches see of it, without the store's faults.
//!
//! Jobs are in places (shards), each with its own sequence numbers, refreshes and term.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Spec};
use fairlead_store::{
    Created, Doc, DocKind, DocWrite, Expect, ItemError, JobState, NewJob, Patch, StoredJob, Version,
};

/// A stored state of a job.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) state: Arc<JobState>,
    pub(super) version: Version,
    /// Time before which a refresh may miss it, because its writer has no answer yet, ms.
    hidden_until_ms: u64,
}

impl Entry {
    pub(super) fn stored(&self) -> StoredJob {
        StoredJob {
            state: JobState::clone(&self.state),
            version: self.version,
        }
    }
}

/// Jobs that searches see in a place, or in all places.
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
    term: u64,
    seq: u64,
    present: BTreeMap<String, Doc>,
    seen: Arc<Vec<Doc>>,
    seen_before: Arc<Vec<Doc>>,
}

/// A write that was taken by a primary that had been cut off. It is visible to those who reach that primary, and never
/// kept.
#[derive(Debug)]
struct Phantom<T> {
    what: T,
    /// Replica that still reaches that primary. The next field is the end of that time, ms.
    slot: usize,
    until_ms: u64,
}

impl<T> Phantom<T> {
    fn seen_by(&self, slot: usize, now_ms: u64) -> Option<&T> {
        (self.slot == slot && self.until_ms > now_ms).then_some(&self.what)
    }
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
    /// Bodies with their versions. A body takes a number among the changes of its state's place.
    bodies: BTreeMap<JobId, (Spec, Version)>,
    docs: BTreeMap<DocKind, Docs>,
    phantoms: BTreeMap<JobId, Phantom<Entry>>,
    phantom_docs: BTreeMap<(DocKind, String), Phantom<Doc>>,
}

/// Returns the place of a job among `places`.
pub(super) fn place_of(id: JobId, places: usize) -> usize {
    let many = u64::try_from(places).unwrap_or(1);
    usize::try_from(id.get() % many.max(1)).unwrap_or(0)
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
            phantom_docs: BTreeMap::new(),
        }
    }

    fn place_of(&self, id: JobId) -> usize {
        place_of(id, self.places.len())
    }

    fn place_mut(&mut self, id: JobId) -> Option<&mut Place> {
        let number = self.place_of(id);
        self.places.get_mut(number)
    }

    /// Returns the true state of a job.
    pub(super) fn job(&self, id: JobId) -> Option<&Entry> {
        self.places.get(self.place_of(id))?.jobs.get(&id)
    }

    /// Returns all true states.
    pub(super) fn states(&self) -> impl Iterator<Item = &JobState> {
        let places = self.places.iter().flat_map(|place| place.jobs.values());
        places.map(|entry| &*entry.state)
    }

    /// Returns the state as a replica reads it in real time.
    pub(super) fn read(&self, id: JobId, slot: usize, now_ms: u64) -> Option<StoredJob> {
        let phantom = self.phantoms.get(&id);
        phantom
            .and_then(|phantom| phantom.seen_by(slot, now_ms))
            .or_else(|| self.job(id))
            .map(Entry::stored)
    }

    /// Returns all small documents of a kind.
    pub(super) fn docs(&self, kind: DocKind) -> impl Iterator<Item = &Doc> {
        let docs = self.docs.get(&kind);
        docs.into_iter().flat_map(|docs| docs.present.values())
    }

    pub(super) fn bodies(&self) -> impl Iterator<Item = &Spec> {
        self.bodies.values().map(|(body, _)| body)
    }

    pub(super) fn body(&self, id: JobId) -> Option<&Spec> {
        self.bodies.get(&id).map(|(body, _)| body)
    }

    /// Returns the answers for new jobs, with the versions of their bodies.
    pub(super) fn created(
        &self,
        ids: &[JobId],
        written: Vec<Result<Version, ItemError>>,
    ) -> Vec<Result<Created, ItemError>> {
        let each = ids.iter().zip(written);
        let created = |(id, version): (&JobId, Result<Version, ItemError>)| {
            let body = self.bodies.get(id).map(|(_, version)| *version);
            version.map(|version| Created { version, body })
        };
        each.map(created).collect()
    }

    /// Stores the body of a new job. Returns false if another one exists.
    pub(super) fn create_body(&mut self, job: &NewJob) -> bool {
        let id = job.state.job_id;
        if let Some(body) = self.body(id) {
            return *body == *job.body;
        }
        let version = self.place_mut(id).map(Place::next).unwrap_or_default();
        self.bodies.insert(id, (Spec::clone(&job.body), version));
        true
    }

    /// Stores the state of a new job once. A repeat overwrites the existing state.
    pub(super) fn create_state(
        &mut self,
        job: &NewJob,
        hidden_until_ms: u64,
    ) -> Result<Change, ItemError> {
        let id = job.state.job_id;
        let before = self.job(id).map(|entry| Arc::clone(&entry.state));
        if before.as_deref().is_some_and(|state| *state != job.state) {
            return Err(ItemError::Conflict { current: None });
        }
        Ok(self.write(before, Arc::new(job.state.clone()), hidden_until_ms))
    }

    /// Applies a compare-and-set write.
    pub(super) fn patch(
        &mut self,
        patch: &Patch,
        hidden_until_ms: u64,
    ) -> Result<Change, ItemError> {
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
        Ok(self.write(Some(before), Arc::new(after), hidden_until_ms))
    }

    fn write(
        &mut self,
        before: Option<Arc<JobState>>,
        after: Arc<JobState>,
        hidden_until_ms: u64,
    ) -> Change {
        let id = after.job_id;
        let mut version = Version::default();
        if let Some(place) = self.place_mut(id) {
            version = place.next();
            let state = Arc::clone(&after);
            let entry = Entry {
                state,
                version,
                hidden_until_ms,
            };
            place.jobs.insert(id, entry);
        }
        Change {
            before,
            after,
            version,
        }
    }

    /// Makes a write visible to one replica for a while, without ever keeping it. The place has a new primary, which
    /// continues to count from the old one's number.
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
        let what = Entry {
            state: Arc::new(state),
            version,
            hidden_until_ms: u64::MAX,
        };
        let phantom = Phantom {
            what,
            slot,
            until_ms,
        };
        self.phantoms.insert(patch.id, phantom);
    }

    /// Does the same for a small document.
    pub(super) fn phantom_doc(
        &mut self,
        kind: DocKind,
        write: &DocWrite,
        slot: usize,
        until_ms: u64,
    ) {
        let docs = self.docs.entry(kind).or_default();
        let (Some(version), Some(body)) = (docs.next_if(write), write.body.clone()) else {
            return;
        };
        docs.term += 1;
        let id = write.id.clone();
        let phantom = Phantom {
            what: Doc { id, version, body },
            slot,
            until_ms,
        };
        self.phantom_docs.insert((kind, write.id.clone()), phantom);
    }

    /// Makes the writes of a place visible to searches.
    pub(super) fn refresh_place(&mut self, number: usize, now_ms: u64) {
        if let Some(place) = self.places.get_mut(number) {
            let mut now = place.jobs.clone();
            for (id, entry) in &place.jobs {
                if entry.hidden_until_ms > now_ms {
                    match place.seen.get(id) {
                        Some(before) => now.insert(*id, before.clone()),
                        None => now.remove(id),
                    };
                }
            }
            place.seen_before = std::mem::replace(&mut place.seen, Arc::new(now));
        }
    }

    /// Makes everything visible to searches, as after a refresh that every copy has acknowledged. No later search sees
    /// less.
    pub(super) fn refresh_all(&mut self) {
        for place in 0..self.places.len() {
            self.refresh_place(place, u64::MAX);
        }
        self.refresh_docs();
        for place in &mut self.places {
            place.seen_before = Arc::clone(&place.seen);
        }
        for docs in self.docs.values_mut() {
            docs.seen_before = Arc::clone(&docs.seen);
        }
    }

    /// Makes all small documents visible to searches.
    pub(super) fn refresh_docs(&mut self) {
        for docs in self.docs.values_mut() {
            let now = Arc::new(docs.present.values().cloned().collect());
            docs.seen_before = std::mem::replace(&mut docs.seen, now);
        }
    }

    /// Returns the jobs that searches see in each place, one refresh earlier where `stale` returns true.
    pub(super) fn seen(&self, mut stale: impl FnMut() -> bool) -> Vec<Arc<View>> {
        let views = self.places.iter().map(|place| {
            let view = if stale() {
                &place.seen_before
            } else {
                &place.seen
            };
            Arc::clone(view)
        });
        views.collect()
    }

    /// Returns a small document as a replica reads it in real time.
    pub(super) fn doc(&self, kind: DocKind, id: &str, slot: usize, now_ms: u64) -> Option<Doc> {
        let phantom = self.phantom_docs.get(&(kind, id.to_owned()));
        let seen = phantom.and_then(|phantom| phantom.seen_by(slot, now_ms));
        seen.or_else(|| self.docs.get(&kind)?.present.get(id))
            .cloned()
    }

    pub(super) fn list(&self, kind: DocKind, stale: bool) -> Vec<Doc> {
        let docs = self.docs.get(&kind);
        let list = docs.map(|docs| if stale { &docs.seen_before } else { &docs.seen });
        list.map(|list| Vec::clone(list)).unwrap_or_default()
    }

    pub(super) fn put(&mut self, kind: DocKind, write: &DocWrite) -> Result<Version, ItemError> {
        let docs = self.docs.entry(kind).or_default();
        let is_there = docs.present.contains_key(&write.id);
        let Some(version) = docs.next_if(write) else {
            return Err(ItemError::Conflict { current: None });
        };
        if write.body.is_none() && !is_there {
            return Err(ItemError::Missing);
        }
        docs.seq = version.seq_no;
        let id = write.id.clone();
        match write.body.clone() {
            Some(body) => docs
                .present
                .insert(id.clone(), Doc { id, version, body })
                .is_some(),
            None => docs.present.remove(&id).is_some(),
        };
        Ok(version)
    }
}

impl Docs {
    /// Returns the version that a write would get. `None`: it expects another one.
    fn next_if(&self, write: &DocWrite) -> Option<Version> {
        let current = self.present.get(&write.id).map(|doc| doc.version);
        let as_expected = match write.expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(version) => current == Some(version),
        };
        as_expected.then_some(Version {
            primary_term: self.term + 1,
            seq_no: self.seq + 1,
        })
    }
}
