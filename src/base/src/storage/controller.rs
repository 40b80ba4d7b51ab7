//! The controller of a flow: looks at what is due, some of it at one time, and again after a failure.
//!
//! Alarms, timers, webhooks, parents of shards, sequences, clusters and results all work like this. A flow remembers a
//! key with the time at which somebody must look at it. When the time comes, the controller calls the flow's *look*. The
//! look reads the truth from the store and writes by compare-and-set, so it does no harm when two replicas look. Other
//! replicas remember the same key for a little later, each by its rank ([`Row::later_ms`]).
//!
//! Example: three replicas know an alarm of 12:00:00, and each next one looks 2 s later. The first replica looks at
//! 12:00:00. If it was lost, the second looks at 12:00:02. If the first one's store refused the write, the look failed,
//! and this replica looks again at 12:00:02, too.
//!
//! A key has one look at a time. If it becomes due meanwhile, its next look begins when the present one has ended. Each
//! look counts in `fairlead_looks_total`, each failed one in `fairlead_looks_failed_total`, and what is remembered for a look in
//! `fairlead_looks_due`.

use std::{fmt::Debug, sync::Arc, time::Duration};

use fairlead_store::Version;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    clock::Clock,
    errors::Refusal,
    metrics::{Looks, Metrics},
    storage::due_queue::{DueQueue, Entry},
    tasks::Tasks,
};

/// Shortest time between two looks at the clock, ms. Keys that are due within it share a look.
const TICK_MS: u64 = 100;
/// Longest time between two looks at the clock, ms. The wall clock may step.
const CLOCK_LOOK_MS: u64 = 1_000;

/// Clock of a flow's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Clock of this process, which never steps.
    Own,
    /// Wall clock. While it is off from the other replicas', the flow rests.
    Wall,
}

/// Parameters of a flow's controller.
#[derive(Debug)]
pub struct Row {
    /// Its name in logs and metrics.
    pub name: &'static str,
    pub by: By,
    /// Maximum number of keys. Beyond it the latest are forgotten; the flow finds them again in the store.
    pub keys_max: usize,
    /// Maximum number of simultaneous looks.
    pub width: usize,
    /// Maximum number of keys in one look.
    pub batch: usize,
    /// Delay of the next look after a failure, ms.
    pub again_ms: u64,
    /// Delay of each replica behind the one that comes before it, ms.
    pub others_later_ms: u64,
}

impl Row {
    /// Returns the delay of a replica of this rank behind the first one, ms.
    pub fn later_ms(&self, rank: usize) -> u64 {
        let rank = u64::try_from(rank).unwrap_or(u64::MAX);
        rank.saturating_mul(self.others_later_ms)
    }
}

/// Keys that a flow must look at, with the times. `K` names a key; `V` is its value.
#[derive(Debug)]
pub struct Controller<K, V = ()> {
    row: &'static Row,
    clock: Clock,
    counts: Looks,
    known: Mutex<Known<K, V>>,
    /// Notified if something may be due sooner than the controller expects.
    changed: Notify,
}

#[derive(Debug)]
struct Known<K, V> {
    queue: DueQueue<K, V>,
    /// Number of looks that have not ended.
    looks: usize,
    /// True if due keys wait for the end of a look.
    is_held_up: bool,
}

/// Keys of one look, each with its value. After it is dropped, the next look may begin.
struct Batch<K: Ord + Clone, V> {
    of: Arc<Controller<K, V>>,
    keys: Vec<(K, Entry<V>)>,
    /// True if the look has succeeded. A look that failed or broke off is repeated.
    is_over: bool,
}

impl<K: Ord + Clone, V> Drop for Batch<K, V> {
    fn drop(&mut self) {
        let at_ms = self.of.again_ms();
        let mut known = self.of.known.lock();
        known.looks = known.looks.saturating_sub(1);
        let mut is_news = std::mem::take(&mut known.is_held_up);
        for (key, entry) in self.keys.drain(..) {
            known.queue.looked_at(&key);
            if !self.is_over {
                is_news |= known.queue.put_back(key, Entry { at_ms, ..entry });
            }
        }
        drop(known);
        if is_news {
            self.of.changed.notify_one();
        }
    }
}

impl<K: Ord + Clone, V> Controller<K, V> {
    /// Creates a controller without keys.
    pub fn new(row: &'static Row, clock: &Clock, metrics: &Metrics) -> Arc<Self> {
        Arc::new(Self {
            row,
            clock: clock.clone(),
            counts: metrics.looks.of(row.name),
            known: Mutex::new(Known {
                queue: DueQueue::new(row.keys_max),
                looks: 0,
                is_held_up: false,
            }),
            changed: Notify::new(),
        })
    }

    /// Returns the time by the clock of this flow, ms.
    pub fn now_ms(&self) -> u64 {
        match self.row.by {
            By::Own => self.clock.now().0,
            By::Wall => self.clock.wall_ms(),
        }
    }

    /// Schedules a look at `at_ms`. Replaces a known value unless that is as new.
    pub fn set(&self, key: K, version: Version, at_ms: u64, value: V) {
        let entry = Entry {
            at_ms,
            version,
            value,
        };
        self.change(|queue| queue.set(key, entry));
    }

    /// Schedules a look at `at_ms`, or sooner if that was scheduled before.
    pub fn look_at(&self, key: K, at_ms: u64, value: V) {
        self.change(|queue| queue.look_at(key, at_ms, value));
    }

    /// Schedules a look before all others, even if the clock is set back meanwhile.
    pub fn look_now(&self, key: K, value: V) {
        self.look_at(key, 0, value);
    }

    /// Reads the value of a key.
    pub fn look<R>(&self, key: &K, read: impl FnOnce(&V) -> R) -> Option<R> {
        self.known.lock().queue.get(key).map(read)
    }

    /// Forgets a key that needs no more looks as of this version.
    pub fn forget(&self, key: &K, version: Version) {
        self.known.lock().queue.forget(key, version);
    }

    /// Forgets all keys: they are read again.
    pub fn clear(&self) {
        self.known.lock().queue.clear();
    }

    /// Removes all keys due by `by_ms`, in the order of time, without a look. For tests of flows, which step the
    /// clock by hand.
    pub fn due(&self, by_ms: u64) -> Vec<(K, V)> {
        let queue = &mut self.known.lock().queue;
        let due = queue.take(by_ms, usize::MAX).into_iter();
        due.map(|(key, entry)| {
            queue.looked_at(&key);
            (key, entry.value)
        })
        .collect()
    }

    /// Returns the time of the next look after a failure now, ms.
    fn again_ms(&self) -> u64 {
        self.now_ms().saturating_add(self.row.again_ms)
    }

    /// Runs `work`, which returns true if the changed key is now due first.
    fn change(&self, work: impl FnOnce(&mut DueQueue<K, V>) -> bool) {
        if work(&mut self.known.lock().queue) {
            self.changed.notify_one();
        }
    }
}

impl<K, V> Controller<K, V>
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Starts the task that looks at due keys until the replica drains. A look that has begun is completed.
    pub fn start<C, L, F>(self: &Arc<Self>, tasks: &Tasks, owner: &Arc<C>, look: L)
    where
        C: Send + Sync + 'static,
        L: Fn(Arc<C>, Vec<(K, V)>) -> F + Send + 'static,
        F: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        let (this, owner, all) = (Arc::clone(self), Arc::clone(owner), tasks.clone());
        tasks.run(self.row.name, async move {
            while all.until_draining(this.pause()).await.is_some() {
                while let Some(batch) = this.take(this.now_ms(), this.row.width) {
                    let work = Box::pin(look(Arc::clone(&owner), batch.values()));
                    all.spawn(batch.see_to(work));
                }
            }
        });
    }

    /// Looks at all keys due by `by_ms`, and waits for the end. Fails with the first error of a look.
    pub async fn look_at_due<C, L, F>(
        self: &Arc<Self>,
        by_ms: u64,
        owner: &Arc<C>,
        look: L,
    ) -> Result<(), Refusal>
    where
        L: Fn(Arc<C>, Vec<(K, V)>) -> F,
        F: Future<Output = Result<(), Refusal>>,
    {
        let batches = std::iter::from_fn(|| self.take(by_ms, usize::MAX));
        // All at once: what fails is for a later call.
        let batches: Vec<Batch<K, V>> = batches.collect();
        let looks = stream::iter(batches).map(|batch| {
            let work = Box::pin(look(Arc::clone(owner), batch.values()));
            batch.see_to(work)
        });
        let looked: Vec<_> = looks.buffer_unordered(self.row.width).collect().await;
        looked.into_iter().collect()
    }

    /// Logs the failure of one key in a look, and looks at this key again.
    pub fn failed(&self, key: K, value: V, error: &Refusal) {
        self.tell(Some(&key), 1, error);
        let entry = Entry {
            at_ms: self.again_ms(),
            version: Version::default(),
            value,
        };
        self.change(|queue| queue.put_back(key, entry));
    }

    /// Returns the keys of the next look, if one is due and fewer than `width` looks run.
    fn take(self: &Arc<Self>, by_ms: u64, width: usize) -> Option<Batch<K, V>> {
        let mut known = self.known.lock();
        let keys = if known.looks < width {
            known.queue.take(by_ms, self.row.batch)
        } else {
            Vec::new()
        };
        let due = i64::try_from(known.queue.len()).unwrap_or(i64::MAX);
        self.counts.due.set(due);
        if keys.is_empty() {
            known.is_held_up = known.queue.is_due(by_ms);
            return None;
        }
        known.looks += 1;
        Some(Batch {
            of: Arc::clone(self),
            keys,
            is_over: false,
        })
    }

    /// Waits until something may be due, or a look has ended.
    async fn pause(&self) {
        let next_ms = self.known.lock().queue.next_ms();
        let left_ms = next_ms.map_or(CLOCK_LOOK_MS, |ms| ms.saturating_sub(self.now_ms()));
        let left = Duration::from_millis(left_ms.clamp(TICK_MS, CLOCK_LOOK_MS));
        tokio::select! {
            biased;
            () = self.changed.notified() => {}
            () = self.clock.sleep(left) => {}
        }
        if self.row.by == By::Wall && self.clock.off_ms().is_some() {
            self.clock.rest(Duration::ZERO).await;
        }
    }

    fn tell(&self, first: Option<&K>, keys: usize, error: &Refusal) {
        self.counts.failed.inc();
        let controller = self.row.name;
        tracing::warn!(controller, ?first, keys, %error, "a look failed; it is repeated soon");
    }
}

impl<K, V> Batch<K, V>
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Returns the keys and values for the flow.
    fn values(&self) -> Vec<(K, V)> {
        let keys = self.keys.iter();
        keys.map(|(key, entry)| (key.clone(), entry.value.clone()))
            .collect()
    }

    async fn see_to<F>(mut self, look: F) -> Result<(), Refusal>
    where
        F: Future<Output = Result<(), Refusal>>,
    {
        self.of.counts.begun.inc();
        let looked = look.await;
        self.is_over = looked.is_ok();
        if let Err(error) = &looked {
            let first = self.keys.first().map(|(key, _)| key);
            self.of.tell(first, self.keys.len(), error);
        }
        looked
    }
}

#[cfg(test)]
mod tests;
