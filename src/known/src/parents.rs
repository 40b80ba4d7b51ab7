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

/// Time without news after which a parent is checked, ms.
const SILENT_MS: u64 = 60_000;
/// Maximum number of such parents at one time.
const SILENT_MAX: usize = 100;
/// Maximum number of cached specs of parents. Each grant of a shard needs its parent's spec.
const SPECS_MAX: usize = 64;

/// Numbers from 1 to 1,000.
#[derive(Debug, Clone, Default)]
struct Numbers {
    words: Vec<u64>,
    len: u16,
}

impl Numbers {
    /// Adds a number. Returns false if it was in the set before.
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

/// Phase of a parent, apart from its shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The parent waits, and so do its shards.
    #[default]
    Waits,
    /// The shards were released, or jobs may join the group.
    Released,
    /// No job may join any more, and a replica counts the shards.
    Closed,
    /// The shards are counted.
    Counted,
    /// The shards must stop.
    Stops,
}

/// Known state of one parent.
#[derive(Debug, Clone, Default)]
struct Parent {
    count: u16,
    fail_fast: bool,
    /// True if somebody is notified of the first failure.
    tells: bool,
    phase: Phase,
    /// Shards that have ended.
    over: Numbers,
    /// Ended shards whose data is complete.
    settled: Numbers,
    failed: u16,
    /// Versions of ends that the store acknowledged, by shard.
    sure: BTreeMap<u16, Version>,
    /// Time of the last news about it or its shards.
    heard: Millis,
    /// Time since which it was read as ended.
    over_since: Option<Millis>,
    /// Greatest known number of a job that joined the group. `None`: not a group, or not read.
    last: Option<u16>,
    /// Lower numbers that were taken for jobs which were then not stored.
    free: Vec<u16>,
    /// The parent as this replica created it. Its shards cannot exist yet.
    fresh: Option<Box<StoredJob>>,
}

impl Parent {
    /// Notes the end of shard `n`. Returns true twice for news: that it failed, and that its data is complete.
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

/// Parents that have not ended, as far as this replica knows.
#[derive(Debug)]
pub struct Parents {
    known: Mutex<Known>,
    /// Times of the next checks, on this replica's clock.
    pub looks: Arc<Controller<JobId>>,
}

/// Progress of the shards of a parent, as far as this replica knows.
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

    /// Notes the state of a parent. `turn` is the number of replicas that check it before this one.
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
            // The progress of a parent that was met late is unknown.
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
            // Other replicas get time for the checks that they began.
            if is_late || (is_news && phase > Phase::Waits && turn > 0) {
                self.look_later(id, now, turn);
            }
        });
    }

    /// Notes the state of a parent that this replica wrote, and checks it at once.
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

    /// Notes the state of a shard. Returns true if it is the first failure and somebody must be notified.
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
                // Shard 0 lists the tests, and has ended.
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

    /// Notes the ends among shards that were read for a check of their parent. It schedules no further check.
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

    /// Notes that the store acknowledged this version of a shard.
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

    /// Returns true if this replica knows that the store acknowledged this version of a shard's end.
    pub fn is_sure(&self, shard: &StoredJob) -> bool {
        let Some(place) = shard.state.shard else {
            return false;
        };
        self.with(|known| {
            let parent = known.parents.get(&place.of);
            parent.is_some_and(|parent| parent.sure.get(&place.n) == Some(&shard.version))
        })
    }

    /// Takes a number for one more shard of a group. `None`: the taken numbers are not known.
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

    /// Returns a number to the group, because its job was not stored.
    pub fn give_number_back(&self, id: JobId, n: u16) {
        self.with(|known| {
            if let Some(parent) = known.parents.get_mut(&id) {
                parent.free.push(n);
            }
        });
    }

    /// Notes that the numbers of a group are taken up to this one.
    pub fn numbers_taken(&self, id: JobId, last: u16) {
        self.with(|known| {
            if let Some(parent) = known.parents.get_mut(&id) {
                parent.last = parent.last.max(Some(last));
            }
        });
    }

    /// Schedules a check of a parent at this time or earlier.
    pub fn look_at(&self, id: JobId, at: Millis) {
        if self.with(|known| known.parents.contains_key(&id)) {
            self.look_later(id, at, 0);
        }
    }

    /// Schedules a check of a parent at this time, delayed by its rank among the replicas.
    fn look_later(&self, id: JobId, at: Millis, rank: usize) {
        let at_ms = at.0.saturating_add(PARENTS.later_ms(rank));
        self.looks.look_at(id, at_ms, ());
    }

    /// Returns the number of shards, and the parent's state if its shards cannot exist yet. `None`: no such running
    /// parent is known here.
    pub fn begin(&self, id: JobId) -> Option<(u16, Option<Box<StoredJob>>)> {
        self.with(|known| {
            let parent = known.parents.get_mut(&id)?;
            Some((parent.count, parent.fresh.take()))
        })
    }

    /// Takes the released parents without news, the most silent first. They count as heard of now.
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

    /// Returns the progress of a parent. `None`: no such running parent is known here.
    pub fn progress(&self, id: JobId) -> Option<Progress> {
        self.with(|known| {
            let parent = known.parents.get(&id)?;
            Some(Progress {
                over: parent.over.len,
                failed: parent.failed,
            })
        })
    }

    /// Notes that a parent was read as ended. A write that the store never acknowledged can be read for a while and
    /// then vanish. So the parent is checked once more before it is forgotten.
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

    /// Forgets a parent whose end the store acknowledged.
    pub fn forget(&self, id: JobId) {
        self.with(|known| known.parents.remove(&id));
        self.looks.forget(&id, Version::default());
    }

    /// Returns the cached spec of a parent.
    pub fn spec(&self, id: JobId) -> Option<Arc<Spec>> {
        self.with(|known| {
            let kept = known.specs.iter().find(|(of, _)| *of == id);
            kept.map(|(_, spec)| Arc::clone(spec))
        })
    }

    /// Caches the spec of a parent. Specs never change.
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
