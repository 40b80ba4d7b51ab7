//! Parents of shards that have not ended: which of their shards are over, and when somebody looks at them.
//!
//! Memory only finds the parents to look at. The store has the truth.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use fairlead_dispatch::Millis;
use fairlead_job::{JobId, Spec, Stage};
use fairlead_store::{JobState, StoredJob, Version};
use parking_lot::Mutex;

use super::{controllers::PARENTS, dependants::VANISHES_MS};
use fairlead_base::storage::controller::Controller;
use fairlead_lifecycle::shards::{DATA_COMES_MS, has_failed, is_data_due};

/// A parent of which nothing was heard for so long is looked at, ms.
const SILENT_MS: u64 = 60_000;
/// Most such parents at one time.
const SILENT_MAX: usize = 100;
/// Specs of parents that are kept, because each grant of a shard needs its parent's.
const SPECS_MAX: usize = 64;

/// Numbers from 1 to 1,000.
#[derive(Debug, Clone, Default)]
struct Numbers {
    words: Vec<u64>,
    len: u16,
}

impl Numbers {
    /// False: it was in.
    fn insert(&mut self, n: u16) -> bool {
        let (word, bit) = (usize::from(n / 64), 1_u64 << (n % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let Some(word) = self.words.get_mut(word).filter(|word| **word & bit == 0) else {
            return false;
        };
        *word |= bit;
        self.len = self.len.saturating_add(1);
        true
    }
}

/// How far a parent is by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It waits, and its shards with it.
    #[default]
    Waits,
    /// Its shards were released, or jobs may join it.
    Released,
    /// No job may join it any more, and somebody counts its shards.
    Closed,
    /// Its shards are counted.
    Counted,
    /// They are to stop.
    Stops,
}

/// What is known of one parent.
#[derive(Debug, Clone, Default)]
struct Parent {
    count: u16,
    fail_fast: bool,
    /// Whether somebody is told of the first failure.
    tells: bool,
    phase: Phase,
    /// Shards that are over.
    over: Numbers,
    /// Those of them whose data is in.
    settled: Numbers,
    failed: u16,
    /// Versions of ends that the store acknowledged.
    sure: BTreeMap<u16, Version>,
    /// When something was last heard of it or of its shards.
    heard: Millis,
    /// Since when it was read as one that has ended.
    over_since: Option<Millis>,
    /// Of a group: the greatest number that a job has which joined it, as far as is known; `None`: nobody looked.
    last: Option<u16>,
    /// Lower numbers that were taken for jobs that were not stored.
    free: Vec<u16>,
    /// The parent as this replica created it: nobody can have made its shards yet.
    fresh: Option<Box<StoredJob>>,
}

impl Parent {
    /// Notes the end of shard `n`. Whether it is news that it failed, and whether it is news that its data is in.
    fn note_end(&mut self, n: u16, state: &JobState) -> (bool, bool) {
        let is_failure = self.over.insert(n) && has_failed(state);
        self.failed = self.failed.saturating_add(u16::from(is_failure));
        (is_failure, !is_data_due(state) && self.settled.insert(n))
    }
}

#[derive(Debug, Default)]
struct Known {
    parents: BTreeMap<JobId, Parent>,
    specs: VecDeque<(JobId, Arc<Spec>)>,
}

/// The parents that have not ended, as far as is known here.
#[derive(Debug)]
pub struct Parents {
    known: Mutex<Known>,
    /// When to look at some of them, by this replica's own clock.
    pub looks: Arc<Controller<JobId>>,
}

/// How far the shards of a parent are, as far as is known here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub over: u16,
    pub failed: u16,
}

impl Parents {
    pub fn new(looks: Arc<Controller<JobId>>) -> Self {
        Self {
            known: Mutex::default(),
            looks,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.known.lock())
    }

    /// A parent was seen in this state. `turn`: how many replicas come before this one for it.
    pub fn seen(&self, state: &JobState, turn: usize, now: Millis) {
        let Some(sharding) = &state.shards else {
            return;
        };
        let id = state.job_id;
        if state.stage != Stage::Submit {
            self.seems_over(id, now);
            return;
        }
        self.with(|known| {
            // How far the shards are of one that is heard of late is not known.
            let is_late = sharding.made && !known.parents.contains_key(&id);
            let parent = known.parents.entry(id).or_default();
            parent.count = sharding.count;
            parent.fail_fast = sharding.fail_fast;
            let mut told = [state.callback, state.notify].into_iter().flatten();
            parent.tells = told.any(|events| events.failing);
            parent.heard = now;
            parent.over_since = None;
            parent.fresh = None;
            let phase = match (state.stop_asked, sharding.released_ms) {
                (true, _) => Phase::Stops,
                (false, 0) => Phase::Waits,
                _ if !sharding.is_group() || sharding.is_open() => Phase::Released,
                _ if sharding.is_uncounted() => Phase::Closed,
                _ => Phase::Counted,
            };
            let is_news = parent.phase != phase;
            parent.phase = phase;
            // Others have time for what they began.
            if is_late || (is_news && phase > Phase::Waits && turn > 0) {
                self.look_later(id, now, turn);
            }
        });
    }

    /// This replica wrote the state of a parent: it looks at it now.
    pub fn stirred(&self, stored: &StoredJob, is_new: bool, now: Millis) {
        self.seen(&stored.state, 0, now);
        self.with(|known| {
            let Some(parent) = known.parents.get_mut(&stored.state.job_id) else {
                return;
            };
            if parent.phase > Phase::Waits {
                parent.fresh = is_new.then(|| Box::new(stored.clone()));
                self.look_later(stored.state.job_id, now, 0);
            }
        });
    }

    /// A shard was seen in this state. True: it is the first that failed, and somebody is to be told.
    pub fn shard_seen(&self, state: &JobState, turn: usize, now: Millis) -> bool {
        let Some(place) = state.shard else {
            return false;
        };
        self.with(|known| {
            let Some(parent) = known.parents.get_mut(&place.of) else {
                return false;
            };
            parent.heard = now;
            parent.last = parent.last.max(Some(place.n));
            if !state.stage.is_terminal() {
                return false;
            }
            if place.n == 0 {
                // Its list is there.
                self.look_later(place.of, now, turn);
                return false;
            }
            let (is_failure, is_settled) = parent.note_end(place.n, state);
            let is_told =
                is_failure && parent.failed == 1 && parent.tells && parent.phase != Phase::Stops;
            let all = |numbers: &Numbers| parent.count > 0 && numbers.len >= parent.count;
            if is_settled && all(&parent.settled)
                || parent.fail_fast && parent.failed == 1 && has_failed(state)
            {
                self.look_later(place.of, now, turn);
            } else if all(&parent.over) {
                let data_comes = Millis(now.0.saturating_add(DATA_COMES_MS));
                self.look_later(place.of, data_comes, turn);
            }
            is_told
        })
    }

    /// Shards were read by whoever looks at their parent now: what is over is noted, and nothing follows.
    pub fn shards_read(&self, shards: &[Option<StoredJob>]) {
        self.with(|known| {
            for job in shards.iter().flatten() {
                let state = &job.state;
                let is_over = state.stage.is_terminal();
                let Some(place) = state.shard.filter(|place| is_over && place.n > 0) else {
                    continue;
                };
                let Some(parent) = known.parents.get_mut(&place.of) else {
                    return;
                };
                parent.note_end(place.n, state);
            }
        });
    }

    /// The store acknowledged this version of a shard.
    pub fn shard_sure(&self, stored: &StoredJob) {
        let Some(place) = stored.state.shard else {
            return;
        };
        if stored.state.stage.is_terminal() {
            self.with(|known| {
                if let Some(parent) = known.parents.get_mut(&place.of) {
                    parent.sure.insert(place.n, stored.version);
                }
            });
        }
    }

    /// Whether the store acknowledged this version of the end of a shard, as far as is known here.
    pub fn is_sure(&self, shard: &StoredJob) -> bool {
        let Some(place) = shard.state.shard else {
            return false;
        };
        self.with(|known| {
            let parent = known.parents.get(&place.of);
            parent.is_some_and(|parent| parent.sure.get(&place.n) == Some(&shard.version))
        })
    }

    /// A number for one more shard of a group; `None`: it is not known which numbers are taken.
    pub fn take_number(&self, id: JobId) -> Option<u16> {
        self.with(|known| {
            let parent = known.parents.get_mut(&id)?;
            if let Some(n) = parent.free.pop() {
                return Some(n);
            }
            parent.last = Some(parent.last?.saturating_add(1));
            parent.last
        })
    }

    /// A number was taken for a job that was not stored.
    pub fn give_number_back(&self, id: JobId, n: u16) {
        self.with(|known| {
            if let Some(parent) = known.parents.get_mut(&id) {
                parent.free.push(n);
            }
        });
    }

    /// The numbers of a group are taken up to this one.
    pub fn numbers_taken(&self, id: JobId, last: u16) {
        self.with(|known| {
            if let Some(parent) = known.parents.get_mut(&id) {
                parent.last = parent.last.max(Some(last));
            }
        });
    }

    /// Looks at a parent at this time, or sooner.
    pub fn look_at(&self, id: JobId, at: Millis) {
        if self.with(|known| known.parents.contains_key(&id)) {
            self.look_later(id, at, 0);
        }
    }

    /// Looks at a parent at this time, after the replicas that come before this one.
    fn look_later(&self, id: JobId, at: Millis, rank: usize) {
        let at_ms = at.0.saturating_add(PARENTS.later_ms(rank));
        self.looks.look_at(id, at_ms, ());
    }

    /// How many shards a parent has, and its state if nobody can have made them yet; `None`: it is not known here as one
    /// that has not ended.
    pub fn begin(&self, id: JobId) -> Option<(u16, Option<Box<StoredJob>>)> {
        self.with(|known| {
            let parent = known.parents.get_mut(&id)?;
            Some((parent.count, parent.fresh.take()))
        })
    }

    /// Released parents of which nothing was heard for long, the longest first. They count as heard of now.
    pub fn take_silent(&self, now: Millis) -> Vec<JobId> {
        self.with(|known| {
            let is_silent = |parent: &Parent| {
                parent.phase > Phase::Waits
                    && parent.over_since.is_none()
                    && parent.heard.0 + SILENT_MS <= now.0
            };
            let silent = known.parents.iter().filter(|(_, parent)| is_silent(parent));
            let mut silent: Vec<(Millis, JobId)> =
                silent.map(|(id, parent)| (parent.heard, *id)).collect();
            silent.sort_unstable();
            silent.truncate(SILENT_MAX);
            for (_, id) in &silent {
                if let Some(parent) = known.parents.get_mut(id) {
                    parent.heard = now;
                }
            }
            silent.into_iter().map(|(_, id)| id).collect()
        })
    }

    /// How far a parent is; `None`: it is not known here as one that has not ended.
    pub fn progress(&self, id: JobId) -> Option<Progress> {
        self.with(|known| {
            let parent = known.parents.get(&id)?;
            Some(Progress {
                over: parent.over.len,
                failed: parent.failed,
            })
        })
    }

    /// It was read as one that has ended. A write that the store never acknowledged can be read for a while, and vanish:
    /// it is looked at once more before it is forgotten.
    pub fn seems_over(&self, id: JobId, now: Millis) {
        self.with(|known| {
            let Some(parent) = known.parents.get_mut(&id) else {
                return;
            };
            let since = *parent.over_since.get_or_insert(now);
            parent.fresh = None;
            let until = Millis(since.0.saturating_add(VANISHES_MS));
            if until <= now {
                known.parents.remove(&id);
                self.looks.forget(&id, Version::default());
            } else {
                self.look_later(id, until, 0);
            }
        });
    }

    /// It has ended: the store acknowledged that.
    pub fn forget(&self, id: JobId) {
        self.with(|known| known.parents.remove(&id));
        self.looks.forget(&id, Version::default());
    }

    /// The spec of a parent, if it was used lately.
    pub fn spec(&self, id: JobId) -> Option<Arc<Spec>> {
        self.with(|known| {
            let kept = known.specs.iter().find(|(of, _)| *of == id);
            kept.map(|(_, spec)| Arc::clone(spec))
        })
    }

    /// Keeps the spec of a parent, which never changes.
    pub fn keep_spec(&self, id: JobId, spec: &Arc<Spec>) {
        self.with(|known| {
            if known.specs.iter().all(|(of, _)| *of != id) {
                known.specs.push_back((id, Arc::clone(spec)));
            }
            if known.specs.len() > SPECS_MAX {
                known.specs.pop_front();
            }
        });
    }
}
