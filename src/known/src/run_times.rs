//! How long hosts were occupied by jobs, as it is stored: by suite and group of hosts, and by what ran.
//!
//! The engine counts the ends that it hears of. A replica adds those that it wrote itself to these documents, so that the
//! next one to start knows them.

use std::collections::BTreeMap;

use fairlead_dispatch::{Histogram, StoredTimes};
use fairlead_job::{Health, Stage};
use fairlead_store::{DocKind, JobState};
use serde::{Deserialize, Serialize};

use crate::{ids::id_of_texts, pending::Pending};
use fairlead_base::storage::small_doc::SmallDoc;
use fairlead_lifecycle::engine_facts::class_of;

/// Maximum number of remembered classes of a suite in a host group. The least recently run class is dropped first.
const CLASSES_MAX: usize = 64;
/// Time for which run times are kept after the last end, ms: 180 days.
const KEPT_MS: u64 = 180 * 86_400_000;

/// The times of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ClassTimes {
    /// Time of the last end, UTC epoch ms.
    last_ms: u64,
    /// Counts by bucket.
    counts: Vec<(u8, u16)>,
}

/// Run times of a suite in a group of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimesDoc {
    suite: String,
    group: String,
    /// Counts over all its jobs, by bucket.
    #[serde(default)]
    all: Vec<(u8, u16)>,
    /// Run times by class. The key has 16 hexadecimal digits.
    #[serde(default)]
    classes: BTreeMap<String, ClassTimes>,
    /// Time of its deletion, UTC epoch ms.
    #[serde(default)]
    at_ms: u64,
}

impl SmallDoc for TimesDoc {
    const KIND: DocKind = DocKind::RunTimes;
}

/// A suite in a group of hosts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub suite: String,
    pub group: String,
}

impl Pair {
    /// Returns the id of its document.
    pub fn id(&self) -> String {
        let mut id = id_of_texts(&[&self.suite, &self.group]);
        id.truncate(32);
        id
    }
}

/// An end that is not stored yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Took {
    class: u64,
    occupied_ms: u64,
    end_ms: u64,
}

impl TimesDoc {
    /// Returns the document with these ends added.
    pub fn learn(known: Option<Self>, pair: &Pair, ends: &[Took]) -> Self {
        let mut doc = known.unwrap_or_default();
        doc.suite.clone_from(&pair.suite);
        doc.group.clone_from(&pair.group);
        for end in ends {
            note(&mut doc.all, end.occupied_ms);
            doc.at_ms = doc.at_ms.max(end.end_ms.saturating_add(KEPT_MS));
            if end.class != 0 {
                let class = doc.classes.entry(format!("{:016x}", end.class));
                let class = class.or_default();
                note(&mut class.counts, end.occupied_ms);
                class.last_ms = class.last_ms.max(end.end_ms);
            }
        }
        while doc.classes.len() > CLASSES_MAX {
            let oldest = doc.classes.iter().min_by_key(|(_, class)| class.last_ms);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            doc.classes.remove(&oldest);
        }
        doc
    }

    /// Returns the run times for the engine.
    pub fn times(self) -> StoredTimes {
        let classes = self.classes.into_iter();
        let classes = classes.filter_map(|(name, class)| {
            let class_id = u64::from_str_radix(&name, 16).ok()?;
            Some((class_id, Histogram::from_counts(class.counts)))
        });
        StoredTimes {
            suite: self.suite,
            group: self.group,
            all: Histogram::from_counts(self.all),
            classes: classes.collect(),
        }
    }
}

fn note(counts: &mut Vec<(u8, u16)>, took_ms: u64) {
    let mut times = Histogram::from_counts(counts.drain(..));
    times.note(took_ms);
    counts.extend(times.counts());
}

/// Ends that are not stored yet.
pub type PendingEnds = Pending<Pair, Took>;

impl PendingEnds {
    /// Notes the end of a job that this replica wrote. Jobs that did not end by themselves do not count.
    pub fn ended(&self, before: &JobState, after: &JobState) {
        let has_ended = after.stage == Stage::Finish && before.stage.is_held();
        let ran = matches!(after.health, Health::Success | Health::Fail);
        if !has_ended || !ran || after.dispatch_ms == 0 {
            return;
        }
        let took = Took {
            class: class_of(&after.fingerprint),
            occupied_ms: after.end_ms.saturating_sub(after.dispatch_ms),
            end_ms: after.end_ms,
        };
        let pair = Pair {
            suite: after.suite.clone(),
            group: after.host_group.clone(),
        };
        self.add(pair, vec![took]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_fixtures::state;

    fn ended(took_ms: u64, health: Health) -> (JobState, JobState) {
        let before = JobState {
            stage: Stage::Running,
            dispatch_ms: 1_000,
            host_group: "g".to_owned(),
            fingerprint: "00000000000000ff0000000000000000".to_owned(),
            ..state(7)
        };
        let after = JobState {
            stage: Stage::Finish,
            health,
            end_ms: 1_000 + took_ms,
            ..before.clone()
        };
        (before, after)
    }

    #[test]
    fn an_end_of_its_own_is_stored_and_read_again() {
        let pending = PendingEnds::default();
        for health in [Health::Success, Health::Fail, Health::AbortInvalid] {
            let (before, after) = ended(10_000, health);
            pending.ended(&before, &after);
            // A repeated write of an end is no second end.
            pending.ended(&after, &after);
        }
        let all: Vec<(Pair, Vec<Took>)> = pending.take().into_iter().collect();
        let [(pair, ends)] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!((ends.len(), pending.take().len()), (2, 0));
        let doc = TimesDoc::learn(None, pair, ends);
        assert_eq!(doc.at_ms, 11_000 + KEPT_MS);
        let doc = serde_json::to_value(&doc).unwrap();
        let times = serde_json::from_value::<TimesDoc>(doc).unwrap().times();
        assert_eq!((times.suite.as_str(), times.group.as_str()), ("sleep", "g"));
        assert_eq!(times.all.samples(), 2);
        assert_eq!(times.classes, vec![(0xff, times.all.clone())]);
    }

    #[test]
    fn classes_that_ran_long_ago_make_room() {
        let pair = Pair {
            suite: "s".to_owned(),
            group: "g".to_owned(),
        };
        let ends = (1..200).map(|n| Took {
            class: n,
            occupied_ms: 5,
            end_ms: n,
        });
        let ends: Vec<Took> = ends.collect();
        let doc = TimesDoc::learn(None, &pair, &ends);
        assert_eq!(doc.classes.len(), CLASSES_MAX);
        let times = doc.times();
        assert!(times.classes.iter().all(|(class, _)| *class >= 136));
    }
}
