//! The index of waiting jobs: host key → queue → account → shape → order.
//!
//! A *bucket* holds the jobs of one account in one queue with one shape, in order. A *cell* holds, for one host key,
//! queue and account, the first job of each bucket. So a job that names three hosts is stored once, and a search for
//! the next job reads only heads. Classes are no level here: they belong to queues, and may change without any move.
//! The index decides nothing.

use crate::counted_bitset::ByNeed;
use crate::front_set::FrontSet;
use crate::ids::{BucketId, KeyId, Place};
use crate::ids::{JobKey, MemberId, Owner, QueueId, ShapeId, Version};
use crate::interner::{Atom, Fixed, Numbers};
use crate::peers::{Overtakers, WINDOW};
use crate::shape::{Head, Shape, Shapes};
use indexmap::IndexMap;
use slotmap::{SecondaryMap, SlotMap};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A waiting job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub version: Version,
    pub bucket: BucketId,
    pub submitted: u64,
    pub timeout_ms: u64,
    pub suite: Atom,
    /// Class of its run time, see [`JobFacts::class`].
    pub class: u64,
    /// Cache directories, sorted.
    pub caches: Option<Arc<[Atom]>>,
    pub priority: i16,
}

/// Jobs of one owner and shape.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub owner: Owner,
    pub shape: ShapeId,
    pub jobs: FrontSet<Place>,
    /// Jobs of the bucket that went before others.
    pub overtakers: Overtakers,
}

impl Bucket {
    /// Returns the first jobs of the bucket, as far as this replica may take them while the first one waits (I13).
    pub(crate) fn within_reach(&self) -> impl Iterator<Item = &Place> {
        let first = self.jobs.first();
        let reach = first.and_then(|first| self.overtakers.reach(*first));
        let is_within = move |place: &&Place| reach.is_none_or(|last| **place <= last);
        self.jobs.iter().take(WINDOW).take_while(is_within)
    }
}

/// Returns the binary digits of the needed memory, by which queues are roughly told apart.
pub(crate) fn digits(memory_mb: u32) -> u32 {
    u32::BITS - memory_mb.leading_zeros()
}

/// The heads of one account in one queue.
#[derive(Debug)]
pub(crate) struct Cell {
    pub queue: QueueId,
    pub heads: FrontSet<Head>,
}

/// Jobs that wait under one host key.
#[derive(Debug, Default)]
pub(crate) struct KeyCells {
    /// Cells by account in a queue.
    pub cells: IndexMap<MemberId, Cell, Numbers>,
    /// Shapes by a requirement that few hosts meet, then by memory. Shapes that cannot fit are never visited.
    pub shapes: BTreeMap<Option<Atom>, BTreeSet<(u32, ShapeId)>>,
    /// Queues that have jobs, by the same requirement and by memory in powers of two.
    pub queues: ByNeed,
    /// Number of the last shape that was listed here, among all shapes ever listed.
    pub listed_at: u64,
    /// Jobs under this key.
    pub jobs: u64,
}

impl KeyCells {
    fn list(&mut self, id: ShapeId, shape: &Shape) {
        let anchor = shape.anchor().cloned();
        let listed = self.shapes.entry(anchor).or_default();
        listed.insert((shape.memory_mb, id));
    }

    fn unlist(&mut self, id: ShapeId, shape: &Shape) {
        let anchor = shape.anchor().cloned();
        if let Some(listed) = self.shapes.get_mut(&anchor) {
            listed.remove(&(shape.memory_mb, id));
            if listed.is_empty() {
                self.shapes.remove(&anchor);
            }
        }
    }

    fn move_head(&mut self, owner: Owner, from: Option<Head>, to: Option<Head>) {
        let cell = self.cells.entry(owner.member).or_insert_with(|| Cell {
            queue: owner.queue,
            heads: FrontSet::default(),
        });
        if let Some(from) = from {
            cell.heads.remove(&from);
        }
        if let Some(to) = to {
            cell.heads.insert(to);
        }
        if cell.heads.is_empty() {
            self.cells.swap_remove(&owner.member);
        }
    }
}

/// Parts of a removed job.
#[derive(Debug)]
pub(crate) struct Removed {
    pub job: Job,
    pub owner: Owner,
    pub shape: Arc<Shape>,
}

/// Index of all waiting jobs in memory.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub jobs: HashMap<JobKey, Job, Numbers>,
    pub buckets: SlotMap<BucketId, Bucket>,
    pub shapes: Shapes,
    pub keys: SlotMap<KeyId, KeyCells>,
    /// Shapes ever listed.
    pub listed: u64,
    /// Number of keys ever made. While it stays the same, so do the ids of the keys that have one.
    pub keys_made: u64,
    key_ids: HashMap<Atom, KeyId, Fixed>,
    by_owner: SecondaryMap<MemberId, BTreeMap<ShapeId, BucketId>>,
}

/// Maximum number of jobs for which there is room from the start. A growing table is filled anew within one event. If
/// each job has its own names, several tables grow at once.
const ROOM_MAX: usize = 1 << 16;

/// Returns the number of entries to reserve if this many may come.
pub(crate) fn room_for(entries: u32) -> usize {
    usize::try_from(entries).unwrap_or(usize::MAX).min(ROOM_MAX)
}

impl Index {
    /// Creates an index with room for this many jobs.
    pub(crate) fn with_room(jobs: u32) -> Self {
        // A few more than are kept come before others go.
        let room = room_for(jobs.saturating_add(jobs / 8));
        let mut index = Self::default();
        index.jobs.reserve(room);
        index.key_ids.reserve(room);
        index.shapes.reserve(room);
        index
    }

    /// Adds a job that is not in the index yet. Sets its `bucket`.
    pub(crate) fn insert(
        &mut self,
        key: JobKey,
        mut job: Job,
        owner: Owner,
        shape: Shape,
    ) -> BucketId {
        let (shape_id, new) = self.shapes.intern(shape);
        if new {
            self.list_shape(shape_id);
        }
        let id = self.bucket_of(owner, shape_id);
        let (Some(bucket), Some(entry)) = (self.buckets.get_mut(id), self.shapes.get_mut(shape_id))
        else {
            return id;
        };
        let place = (Reverse(job.priority), key);
        let before = bucket.jobs.first().copied();
        bucket.jobs.insert(place);
        let is_first = before.is_none_or(|before| place < before);
        let is_new = before.is_none() && entry.holders.insert(id);
        let head = |place| entry.head(place, id);
        for key in &entry.keys {
            let Some(cells) = self.keys.get_mut(*key) else {
                continue;
            };
            cells.jobs = cells.jobs.saturating_add(1);
            if is_first {
                cells.move_head(owner, before.map(head), Some(head(place)));
            }
            if is_new {
                let (anchor, digits) = (entry.shape.anchor(), digits(entry.shape.memory_mb));
                cells.queues.one_more(anchor, digits, owner.queue);
            }
        }
        job.bucket = id;
        self.jobs.insert(key, job);
        id
    }

    /// Notes that a waiting job is about to go to a host, of this replica or of another. The jobs before it are
    /// overtaken.
    pub(crate) fn goes(&mut self, key: JobKey, is_here: bool) {
        let Some(job) = self.jobs.get(&key) else {
            return;
        };
        let place = (Reverse(job.priority), key);
        if let Some(bucket) = self.buckets.get_mut(job.bucket)
            && let Some(first) = bucket.jobs.first().copied()
        {
            bucket.overtakers.note(place, first, is_here);
        }
    }

    /// Removes a job.
    pub(crate) fn remove(&mut self, key: JobKey) -> Option<Removed> {
        let job = self.jobs.remove(&key)?;
        let id = job.bucket;
        let bucket = self.buckets.get_mut(id)?;
        let (owner, shape_id, place) = (bucket.owner, bucket.shape, (Reverse(job.priority), key));
        let before = bucket.jobs.first().copied();
        bucket.jobs.remove(&place);
        let after = bucket.jobs.first().copied();
        let entry = self.shapes.get_mut(shape_id)?;
        if after.is_none() {
            entry.holders.remove(&id);
        }
        let unused = entry.holders.is_empty();
        let head = |place| entry.head(place, id);
        for (key, name) in entry.keys.iter().zip(&entry.shape.keys) {
            let Some(cells) = self.keys.get_mut(*key) else {
                continue;
            };
            cells.jobs = cells.jobs.saturating_sub(1);
            if before != after {
                cells.move_head(owner, before.map(head), after.map(head));
            }
            if after.is_none() {
                let (anchor, digits) = (entry.shape.anchor(), digits(entry.shape.memory_mb));
                cells.queues.one_less(anchor, digits, owner.queue);
            }
            if unused {
                cells.unlist(shape_id, &entry.shape);
                if cells.shapes.is_empty() {
                    self.keys.remove(*key);
                    self.key_ids.remove(name);
                }
            }
        }
        let shape = Arc::clone(&entry.shape);
        if after.is_none() {
            self.drop_bucket(id, owner, shape_id);
        }
        if unused {
            self.shapes.forget(shape_id);
        }
        Some(Removed { job, owner, shape })
    }

    /// Returns the ids of those keys that jobs wait under.
    pub(crate) fn key_ids(&self, names: &[Atom]) -> Box<[KeyId]> {
        let known = names.iter().filter_map(|name| self.key_ids.get(name));
        known.copied().collect()
    }

    /// Returns the jobs that wait under a host key.
    pub(crate) fn under(&self, key: &str) -> Option<&KeyCells> {
        self.keys.get(*self.key_ids.get(key)?)
    }

    /// Returns the shape and the owner of a waiting job.
    pub(crate) fn shape_of(&self, job: &Job) -> Option<(&Arc<Shape>, Owner)> {
        let bucket = self.buckets.get(job.bucket)?;
        Some((&self.shapes.get(bucket.shape)?.shape, bucket.owner))
    }

    /// Returns the buckets of one account in one queue.
    pub(crate) fn buckets_of(&self, member: MemberId) -> impl Iterator<Item = (BucketId, &Bucket)> {
        let all = self.by_owner.get(member).into_iter().flatten();
        all.filter_map(|(_, id)| self.buckets.get(*id).map(|bucket| (*id, bucket)))
    }

    fn list_shape(&mut self, id: ShapeId) {
        let Some(entry) = self.shapes.get_mut(id) else {
            return;
        };
        self.listed = self.listed.saturating_add(1);
        let mut ids = Vec::with_capacity(entry.shape.keys.len());
        for name in &entry.shape.keys {
            let key = *self.key_ids.entry(Atom::clone(name)).or_insert_with(|| {
                self.keys_made = self.keys_made.saturating_add(1);
                self.keys.insert(KeyCells::default())
            });
            ids.push(key);
            if let Some(cells) = self.keys.get_mut(key) {
                cells.listed_at = self.listed;
                cells.list(id, &entry.shape);
            }
        }
        entry.keys = ids.into_boxed_slice();
    }

    fn bucket_of(&mut self, owner: Owner, shape: ShapeId) -> BucketId {
        let new = || Bucket {
            owner,
            shape,
            jobs: FrontSet::default(),
            overtakers: Overtakers::default(),
        };
        let Some(of_member) = self.by_owner.entry(owner.member) else {
            return BucketId::default();
        };
        let known = of_member.or_default().entry(shape);
        *known.or_insert_with(|| self.buckets.insert(new()))
    }

    fn drop_bucket(&mut self, id: BucketId, owner: Owner, shape: ShapeId) {
        self.buckets.remove(id);
        let Some(of_member) = self.by_owner.get_mut(owner.member) else {
            return;
        };
        of_member.remove(&shape);
        if of_member.is_empty() {
            self.by_owner.remove(owner.member);
        }
    }

    /// Panics if any part of the index disagrees with another. For tests and simulation.
    pub(crate) fn sanity_check(&self) {
        let mut jobs = 0;
        for (id, bucket) in &self.buckets {
            assert!(!bucket.jobs.is_empty(), "an empty bucket stays");
            let of_member = self.by_owner.get(bucket.owner.member);
            assert_eq!(of_member.and_then(|ids| ids.get(&bucket.shape)), Some(&id));
            let entry = self.shapes.get(bucket.shape);
            assert!(
                entry.is_some_and(|entry| entry.holders.contains(&id)),
                "a shape does not know its bucket"
            );
            bucket.jobs.sanity_check();
            for (priority, key) in bucket.jobs.iter() {
                let job = self.jobs.get(key);
                assert!(
                    job.is_some_and(|job| job.bucket == id && Reverse(job.priority) == *priority)
                );
            }
            jobs += bucket.jobs.len();
            let (Some(entry), Some(place)) = (entry, bucket.jobs.first()) else {
                continue;
            };
            let head = entry.head(*place, id);
            for (key, name) in entry.keys.iter().zip(&entry.shape.keys) {
                assert_eq!(self.key_ids.get(name), Some(key));
                let cells = self.keys.get(*key).map(|cells| &cells.cells);
                let cell = cells.and_then(|cells| cells.get(&bucket.owner.member));
                assert!(
                    cell.is_some_and(|cell| cell.queue == bucket.owner.queue
                        && cell.heads.iter().any(|known| *known == head)),
                    "a head is missing under {name}"
                );
            }
        }
        assert_eq!(jobs, self.jobs.len());
        let owned = self.by_owner.values().map(BTreeMap::len).sum::<usize>();
        assert_eq!(owned, self.buckets.len());
        assert_eq!(
            self.shapes
                .iter()
                .map(|(_, entry)| entry.holders.len())
                .sum::<usize>(),
            self.buckets.len()
        );
        self.check_heads();
        self.check_counts();
    }

    fn check_heads(&self) {
        let listed = |entry: &Shape| entry.keys.len();
        let heads: usize = self
            .keys
            .values()
            .flat_map(|cells| cells.cells.values())
            .map(|cell| {
                cell.heads.sanity_check();
                cell.heads.len()
            })
            .sum();
        let expected = self
            .shapes
            .iter()
            .map(|(_, e)| e.holders.len() * listed(&e.shape))
            .sum::<usize>();
        assert_eq!(heads, expected, "heads that no bucket has");
    }

    fn check_counts(&self) {
        let shapes: usize = self
            .keys
            .values()
            .flat_map(|cells| cells.shapes.values())
            .map(BTreeSet::len)
            .sum();
        assert_eq!(
            shapes,
            self.shapes.iter().map(|(_, e)| e.keys.len()).sum::<usize>()
        );
        let mut queues: BTreeMap<&Atom, ByNeed> = BTreeMap::new();
        for bucket in self.buckets.values() {
            let Some(entry) = self.shapes.get(bucket.shape) else {
                continue;
            };
            let (anchor, digits) = (entry.shape.anchor(), digits(entry.shape.memory_mb));
            for key in &entry.shape.keys {
                let counted = queues.entry(key).or_default();
                counted.one_more(anchor, digits, bucket.owner.queue);
            }
        }
        assert_eq!(
            (self.keys.len(), self.key_ids.len()),
            (queues.len(), queues.len())
        );
        for (key, counted) in &queues {
            let known = self.under(key).map(|cells| &cells.queues);
            known.unwrap_or(&ByNeed::default()).check_like(counted);
        }
        let counted: u64 = self.keys.values().map(|cells| cells.jobs).sum();
        let under_keys = self.buckets.values().filter_map(|bucket| {
            Some(bucket.jobs.len() * self.shapes.get(bucket.shape)?.keys.len())
        });
        assert_eq!(counted, under_keys.sum::<usize>() as u64);
    }
}
