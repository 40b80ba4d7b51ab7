//! The true content of the simulated store, and what searches see of it, without the store's faults.
//!
//! Jobs are in places (shards), each with its own sequence numbers, refreshes and term.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Spec};
use fairlead_store::{
    Created, Doc, DocKind, DocWrite, Expect, ItemError, JobState, NewJob, Patch, StoredJob, Version,
};

/// A state of a job as it is stored.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) state: Arc<JobState>,
    pub(super) version: Version,
    /// A refresh before this time may miss it: whoever wrote it has not heard yet that it is in.
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
    term: u64,
    seq: u64,
    present: BTreeMap<String, Doc>,
    seen: Arc<Vec<Doc>>,
    seen_before: Arc<Vec<Doc>>,
}

/// A write that was taken by a primary which had been cut off: seen by those who reach it, never kept.
#[derive(Debug)]
struct Phantom<T> {
    what: T,
    /// Which replica still reaches that primary, and until when, ms.
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
    /// With their versions: a body takes a number among the changes of its state's place.
    bodies: BTreeMap<JobId, (Spec, Version)>,
    docs: BTreeMap<DocKind, Docs>,
    phantoms: BTreeMap<JobId, Phantom<Entry>>,
    phantom_docs: BTreeMap<(DocKind, String), Phantom<Doc>>,
}

/// The place of a job among so many.
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

    /// The state as it is in truth.
    pub(super) fn job(&self, id: JobId) -> Option<&Entry> {
        self.places.get(self.place_of(id))?.jobs.get(&id)
    }

    /// All states as they are in truth.
    pub(super) fn states(&self) -> impl Iterator<Item = &JobState> {
        let places = self.places.iter().flat_map(|place| place.jobs.values());
        places.map(|entry| &*entry.state)
    }

    /// The state as a replica reads it in real time.
    pub(super) fn read(&self, id: JobId, slot: usize, now_ms: u64) -> Option<StoredJob> {
        let phantom = self.phantoms.get(&id);
        phantom
            .and_then(|phantom| phantom.seen_by(slot, now_ms))
            .or_else(|| self.job(id))
            .map(Entry::stored)
    }

    /// All small documents of a kind, as they are.
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

    /// What is told of new jobs: with the versions of their bodies.
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

    /// Stores the body of a new job; `false`: another one is there.
    pub(super) fn create_body(&mut self, job: &NewJob) -> bool {
        let id = job.state.job_id;
        if let Some(body) = self.body(id) {
            return *body == *job.body;
        }
        let version = self.place_mut(id).map(Place::next).unwrap_or_default();
        self.bodies.insert(id, (Spec::clone(&job.body), version));
        true
    }

    /// Stores the state of a new job, once: a repeat of what is there is written over it.
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

    /// Compare-and-set.
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

    /// The same for a small document.
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

    /// Makes what a place holds visible to searches.
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

    /// Makes everything visible to searches, as a refresh that every copy has acknowledged does: no later search
    /// sees less.
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

    /// The same for all small documents.
    pub(super) fn refresh_docs(&mut self) {
        for docs in self.docs.values_mut() {
            let now = Arc::new(docs.present.values().cloned().collect());
            docs.seen_before = std::mem::replace(&mut docs.seen, now);
        }
    }

    /// What searches see of each place; one refresh earlier where `stale` says so.
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

    /// A small document as a replica reads it in real time.
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
    /// The version that a write would get; `None`: it expects another one.
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
