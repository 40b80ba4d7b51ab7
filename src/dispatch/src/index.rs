//! The waiting jobs, by host key → queue → account → shape → order.
//!
//! A *bucket* holds the jobs of one account in one queue that have one shape, in order. A *cell* holds, for one
//! host key, queue and account, the first job of each bucket. So a job that names three hosts is stored once, and
//! finding the next job looks at heads only. Classes are not a level here: they belong to queues, and may change
//! without any of this moving. Never decides anything.

use crate::atoms::{Atom, Fixed, Numbers};
use crate::bits::ByNeed;
use crate::event::{JobKey, Version};
use crate::ledger::{MemberId, Owner, QueueId};
use crate::shape::{Shape, ShapeId, Shapes};
use indexmap::IndexMap;
use slotmap::{SlotMap, new_key_type};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

new_key_type! {
    /// The jobs of one owner and shape.
    pub(crate) struct BucketId;
}

/// Order inside an account: priority, higher first, then submit order.
pub(crate) type Place = (Reverse<i16>, JobKey);

/// A waiting job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub version: Version,
    pub bucket: BucketId,
    pub submitted: u64,
    pub timeout_ms: u64,
    pub suite: Atom,
    /// Sorted.
    pub caches: Option<Arc<[Atom]>>,
    pub priority: i16,
}

/// Jobs of one owner and shape.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub owner: Owner,
    pub shape: ShapeId,
    pub jobs: BTreeSet<Place>,
}

/// The first job of a bucket, with what rules most of them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Head {
    pub place: Place,
    pub memory_mb: u32,
    pub bucket: BucketId,
}

/// Binary digits of the memory that is needed: queues are told apart by it roughly.
pub(crate) fn digits(memory_mb: u32) -> u32 {
    u32::BITS - memory_mb.leading_zeros()
}

/// All that waits under one host key.
#[derive(Debug, Default)]
pub(crate) struct KeyCells {
    pub cells: BTreeMap<(QueueId, MemberId), BTreeSet<Head>>,
    /// Shapes by a requirement that few hosts meet, then by memory: what cannot fit is never visited.
    pub shapes: BTreeMap<Option<Atom>, BTreeSet<(u32, ShapeId)>>,
    /// Queues that have jobs, by the same requirement and by memory in powers of two.
    pub queues: ByNeed,
    /// Which of the shapes ever listed was the last one here.
    pub listed_at: u64,
    /// Jobs under this key.
    pub jobs: u64,
}

/// What a removed job was.
#[derive(Debug)]
pub(crate) struct Removed {
    pub job: Job,
    pub owner: Owner,
    pub shape: Arc<Shape>,
}

/// The index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub jobs: IndexMap<JobKey, Job, Numbers>,
    pub buckets: SlotMap<BucketId, Bucket>,
    pub shapes: Shapes,
    pub keys: HashMap<Atom, KeyCells, Fixed>,
    /// Shapes ever listed.
    pub listed: u64,
    by_owner: BTreeMap<(MemberId, ShapeId), BucketId>,
}

impl Index {
    /// Adds a job that is not in here yet. Its `bucket` is set here.
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
        let Self {
            buckets,
            by_owner,
            shapes,
            ..
        } = self;
        let id = *by_owner.entry((owner.member, shape_id)).or_insert_with(|| {
            buckets.insert(Bucket {
                owner,
                shape: shape_id,
                jobs: BTreeSet::new(),
            })
        });
        let place = (Reverse(job.priority), key);
        let (Some(bucket), Some(entry)) = (buckets.get_mut(id), shapes.get_mut(shape_id)) else {
            return id;
        };
        let before = bucket.jobs.first().copied();
        let is_new = before.is_none() && entry.holders.insert(id);
        bucket.jobs.insert(place);
        let shape = Arc::clone(&entry.shape);
        if before.is_none_or(|before| place < before) {
            self.move_head(&shape, owner, id, before, Some(place));
        }
        if is_new {
            self.count_queue(&shape, owner.queue, ByNeed::one_more);
        }
        self.count(&shape, 1);
        job.bucket = id;
        self.jobs.insert(key, job);
        id
    }

    /// Takes a job out.
    pub(crate) fn remove(&mut self, key: JobKey) -> Option<Removed> {
        let job = self.jobs.swap_remove(&key)?;
        let bucket = self.buckets.get_mut(job.bucket)?;
        let (owner, shape_id, place) = (bucket.owner, bucket.shape, (Reverse(job.priority), key));
        let before = bucket.jobs.first().copied();
        bucket.jobs.remove(&place);
        let after = bucket.jobs.first().copied();
        let shape = Arc::clone(&self.shapes.get(shape_id)?.shape);
        if before != after {
            self.move_head(&shape, owner, job.bucket, before, after);
        }
        self.count(&shape, -1);
        if after.is_none() {
            self.drop_bucket(job.bucket, owner, shape_id);
        }
        Some(Removed { job, owner, shape })
    }

    /// The shape of a waiting job, and whose it is.
    pub(crate) fn shape_of(&self, job: &Job) -> Option<(&Arc<Shape>, Owner)> {
        let bucket = self.buckets.get(job.bucket)?;
        Some((&self.shapes.get(bucket.shape)?.shape, bucket.owner))
    }

    /// The buckets of one account in one queue.
    pub(crate) fn buckets_of(&self, member: MemberId) -> impl Iterator<Item = (BucketId, &Bucket)> {
        let all = (member, ShapeId::from(slotmap::KeyData::from_ffi(0)))
            ..=(member, ShapeId::from(slotmap::KeyData::from_ffi(u64::MAX)));
        self.by_owner
            .range(all)
            .filter_map(|(_, id)| self.buckets.get(*id).map(|bucket| (*id, bucket)))
    }

    fn list_shape(&mut self, id: ShapeId) {
        let Some(entry) = self.shapes.get(id) else {
            return;
        };
        let shape = Arc::clone(&entry.shape);
        self.listed = self.listed.saturating_add(1);
        for key in &shape.keys {
            let cells = self.keys.entry(Arc::clone(key)).or_default();
            cells.listed_at = self.listed;
            cells
                .shapes
                .entry(shape.anchor().cloned())
                .or_default()
                .insert((shape.memory_mb, id));
        }
    }

    fn unlist_shape(&mut self, id: ShapeId, shape: &Shape) {
        for key in &shape.keys {
            let Some(cells) = self.keys.get_mut(key) else {
                continue;
            };
            let anchor = shape.anchor().cloned();
            if let Some(listed) = cells.shapes.get_mut(&anchor) {
                listed.remove(&(shape.memory_mb, id));
                if listed.is_empty() {
                    cells.shapes.remove(&anchor);
                }
            }
            if cells.shapes.is_empty() {
                self.keys.remove(key);
            }
        }
    }

    fn drop_bucket(&mut self, id: BucketId, owner: Owner, shape_id: ShapeId) {
        self.buckets.remove(id);
        self.by_owner.remove(&(owner.member, shape_id));
        let Some(entry) = self.shapes.get_mut(shape_id) else {
            return;
        };
        entry.holders.remove(&id);
        let shape = Arc::clone(&entry.shape);
        let unused = entry.holders.is_empty();
        self.count_queue(&shape, owner.queue, ByNeed::one_less);
        if unused {
            self.shapes.forget(shape_id);
            self.unlist_shape(shape_id, &shape);
        }
    }

    fn move_head(
        &mut self,
        shape: &Shape,
        owner: Owner,
        bucket: BucketId,
        from: Option<Place>,
        to: Option<Place>,
    ) {
        let head = |place| Head {
            place,
            memory_mb: shape.memory_mb,
            bucket,
        };
        for key in &shape.keys {
            let Some(cells) = self.keys.get_mut(key) else {
                continue;
            };
            let at = (owner.queue, owner.member);
            let heads = cells.cells.entry(at).or_default();
            if let Some(from) = from {
                heads.remove(&head(from));
            }
            if let Some(to) = to {
                heads.insert(head(to));
            }
            if heads.is_empty() {
                cells.cells.remove(&at);
            }
        }
    }

    fn count_queue(
        &mut self,
        shape: &Shape,
        queue: QueueId,
        change: impl Fn(&mut ByNeed, Option<&Atom>, u32, QueueId),
    ) {
        for key in &shape.keys {
            let Some(cells) = self.keys.get_mut(key) else {
                continue;
            };
            let digits = digits(shape.memory_mb);
            change(&mut cells.queues, shape.anchor(), digits, queue);
        }
    }

    fn count(&mut self, shape: &Shape, by: i64) {
        for key in &shape.keys {
            if let Some(cells) = self.keys.get_mut(key) {
                cells.jobs = cells.jobs.saturating_add_signed(by);
            }
        }
    }

    /// Panics if any part of the index disagrees with another. For tests and simulation.
    pub(crate) fn sanity_check(&self) {
        let mut jobs = 0;
        for (id, bucket) in &self.buckets {
            assert!(!bucket.jobs.is_empty(), "an empty bucket stays");
            assert_eq!(
                self.by_owner.get(&(bucket.owner.member, bucket.shape)),
                Some(&id)
            );
            let entry = self.shapes.get(bucket.shape);
            assert!(
                entry.is_some_and(|entry| entry.holders.contains(&id)),
                "a shape does not know its bucket"
            );
            for (priority, key) in &bucket.jobs {
                let job = self.jobs.get(key);
                assert!(
                    job.is_some_and(|job| job.bucket == id && Reverse(job.priority) == *priority)
                );
            }
            jobs += bucket.jobs.len();
            let (Some(entry), Some(place)) = (entry, bucket.jobs.first()) else {
                continue;
            };
            let head = Head {
                place: *place,
                memory_mb: entry.shape.memory_mb,
                bucket: id,
            };
            for key in &entry.shape.keys {
                let cells = self.keys.get(key).map(|cells| &cells.cells);
                let heads =
                    cells.and_then(|cells| cells.get(&(bucket.owner.queue, bucket.owner.member)));
                assert!(
                    heads.is_some_and(|heads| heads.contains(&head)),
                    "a head is missing under {key}"
                );
            }
        }
        assert_eq!(jobs, self.jobs.len());
        assert_eq!(self.by_owner.len(), self.buckets.len());
        assert_eq!(
            self.shapes
                .iter()
                .map(|(_, entry)| entry.holders.len())
                .sum::<usize>(),
            self.buckets.len()
        );
        let listed = |entry: &Shape| entry.keys.len();
        let heads: usize = self
            .keys
            .values()
            .flat_map(|cells| cells.cells.values())
            .map(BTreeSet::len)
            .sum();
        let expected = self
            .shapes
            .iter()
            .map(|(_, e)| e.holders.len() * listed(&e.shape))
            .sum::<usize>();
        assert_eq!(heads, expected, "heads that no bucket has");
        let shapes: usize = self
            .keys
            .values()
            .flat_map(|cells| cells.shapes.values())
            .map(BTreeSet::len)
            .sum();
        assert_eq!(
            shapes,
            self.shapes
                .iter()
                .map(|(_, e)| listed(&e.shape))
                .sum::<usize>()
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
        assert_eq!(self.keys.len(), queues.len());
        for (key, counted) in &queues {
            let known = self.keys.get(*key).map(|cells| &cells.queues);
            known.unwrap_or(&ByNeed::default()).check_like(counted);
        }
        let counted: u64 = self.keys.values().map(|cells| cells.jobs).sum();
        let under_keys = self
            .jobs
            .values()
            .filter_map(|job| self.shape_of(job))
            .map(|(shape, _)| shape.keys.len());
        assert_eq!(counted, under_keys.sum::<usize>() as u64);
    }
}
