//! The other replicas of this lab, and this replica's number, as last read.

use std::collections::BTreeMap;

use fairlead_dispatch::{JobKey, Millis, Peers};
use fairlead_job::JobId;
use fairlead_store::{Doc, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use fairlead_base::lab_clock::Witness;

/// A replica whose document did not change for this long is told nothing, ms.
pub const SILENT_MS: u64 = 8_000;

/// One whose document did not change while a replica starts may still live for so long, ms: longer than two beats take.
const MAY_LIVE_MS: u64 = 5_000;

/// One whose document did not change for this long is gone: its document and number are removed, ms.
pub const GONE_MS: u64 = 60_000;

/// Another replica, as last seen.
#[derive(Debug, Clone)]
pub struct Seen {
    pub version: Version,
    changed: Millis,
    /// When this version was read.
    read: Millis,
    /// Whether it was seen to change, or spoke to this one: a document alone may be that of a dead one.
    pub lives: bool,
    pub body: Value,
}

impl Seen {
    /// What its wall clock is ahead of this replica's monotonic clock at least. None: it does not tell the time.
    fn least_ms(&self) -> Option<i64> {
        Some(number(&self.body, "beat_ms")?.saturating_sub(signed(self.read.0)))
    }

    /// The same as `own` can know it, a run of this replica. `or_most_ms`: what it is ahead at most, as long as it does not
    /// say what it heard.
    fn witness(&self, own: &str, or_most_ms: Option<i64>) -> Option<Witness> {
        let least_ms = self.least_ms()?;
        let heard = self.body.get("heard").and_then(|heard| number(heard, own));
        let most_ms = heard.or(or_most_ms)?;
        // A clock that stepped between has said both.
        (least_ms <= most_ms).then_some(Witness { least_ms, most_ms })
    }
}

/// What is known of all replicas.
#[derive(Debug, Default)]
pub struct Replicas(Mutex<Known>);

#[derive(Debug, Default)]
pub struct Known {
    pub others: BTreeMap<String, Seen>,
    /// This run's own document.
    pub own: Option<Version>,
    pub number: Option<Number>,
    /// What the engine was told last.
    pub told: Option<Peers>,
}

/// A replica that lives, for people and for hints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// One run of it.
    pub run: String,
    pub name: String,
    pub url: String,
}

/// How a replica was when it last renewed its document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vitals {
    /// Of its program.
    pub version: String,
    /// How long ago it knew all changes of the store, ms.
    pub lag_ms: u64,
    /// Messages that its engine had not processed.
    pub inbox: u64,
    /// Jobs on testboxes, as it knew.
    pub held: u64,
    /// Its requests that the store had not answered.
    pub store_requests: u64,
}

impl Replicas {
    /// How another run was when it was last heard of.
    pub fn vitals(&self, run: &str) -> Vitals {
        self.with(|known| {
            let seen = known.others.get(run);
            let vitals = seen.and_then(|seen| seen.body.get("vitals").cloned());
            let vitals = vitals.and_then(|vitals| serde_json::from_value(vitals).ok());
            vitals.unwrap_or_default()
        })
    }

    /// The others that live.
    pub fn peers(&self, now: Millis) -> Vec<Peer> {
        self.with(|known| {
            let live = known
                .others
                .iter()
                .filter(|(id, seen)| !id.starts_with(NUMBER) && is_within(seen, now, SILENT_MS));
            live.map(|(run, seen)| Peer {
                run: run.clone(),
                name: text(&seen.body, "name"),
                url: text(&seen.body, "url"),
            })
            .collect()
        })
    }

    /// What the wall clocks of the others that live are ahead of this replica's monotonic clock.
    pub fn witnesses(&self, own: &str, now: Millis) -> Vec<Witness> {
        self.with(|known| {
            let others = known.others.values();
            let live = others.filter(|seen| seen.lives && is_within(seen, now, SILENT_MS));
            live.filter_map(|seen| seen.witness(own, None)).collect()
        })
    }

    /// The same of all that may live, for a replica that has just come: none has heard of it, and a document whose time is
    /// over may be that of a dead one. Earlier runs of its own `name` are no witnesses.
    pub fn suspected_witnesses(&self, own: &str, name: &str, now: Millis) -> Vec<Witness> {
        self.with(|known| {
            let others = known.others.values();
            let others = others.filter(|seen| text(&seen.body, "name") != name);
            let live = others.filter(|seen| is_within(seen, now, MAY_LIVE_MS));
            live.filter_map(|seen| seen.witness(own, seen.least_ms()))
                .collect()
        })
    }

    /// For each of the others what this replica's wall clock, which is `ahead_ms` ahead of its monotonic one, was ahead of
    /// their monotonic clock at most, ms: as they are told.
    pub fn echoes(&self, ahead_ms: i64) -> BTreeMap<String, i64> {
        self.with(|known| {
            let echoes = known.others.iter().filter_map(|(run, seen)| {
                let tick_ms = number(&seen.body, "tick_ms")?;
                let read_ms = signed(seen.read.0).saturating_add(ahead_ms);
                Some((run.clone(), read_ms.saturating_sub(tick_ms)))
            });
            echoes.collect()
        })
    }

    /// A replica spoke to this one, perhaps before lists show it.
    pub fn heard(&self, peer: &Peer, now: Millis) {
        self.with(|known| {
            let seen = known.others.entry(peer.run.clone()).or_insert(Seen {
                version: Version::default(),
                changed: now,
                read: now,
                lives: true,
                body: json!({ "name": peer.name, "url": peer.url }),
            });
            seen.lives = true;
            seen.changed = seen.changed.max(now);
        });
    }

    /// How many live replicas come before this run for a job.
    pub fn rank(&self, job: JobId, own: &str, now: Millis) -> usize {
        self.as_peers(own, now).rank(JobKey(job.get()))
    }

    /// The replicas that surely live, in the engine's words.
    pub fn as_peers(&self, own: &str, now: Millis) -> Peers {
        let lives =
            |run: &str| self.with(|known| known.others.get(run).is_some_and(|seen| seen.lives));
        let others = self.peers(now).into_iter();
        Peers {
            own: run_number(own),
            others: others
                .filter(|peer| lives(&peer.run))
                .map(|peer| run_number(&peer.run))
                .collect(),
        }
    }

    /// This replica's number, once it has one.
    pub fn number(&self) -> Option<u16> {
        self.numbered().map(|known| known.value)
    }

    /// The same, with when that was sure.
    pub fn numbered(&self) -> Option<Number> {
        self.with(|known| known.number)
    }

    pub fn set_number(&self, number: Number) {
        self.with(|known| known.number = Some(number));
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> R {
        work(&mut self.0.lock())
    }

    /// The name of a run of a replica; none: it is a number's document, or unknown.
    pub fn name_of(&self, run: &str) -> Option<String> {
        let name = self.with(|known| known.others.get(run).map(|seen| text(&seen.body, "name")));
        name.filter(|name| !run.starts_with(NUMBER) && !name.is_empty())
    }

    /// Takes in a list of all documents; returns those that nobody renews any more, numbers of which the
    /// owner is gone among them.
    pub fn listed(&self, docs: Vec<Doc>, own: &str, now: Millis) -> Vec<(String, Version)> {
        self.with(|known| {
            let mut others = BTreeMap::new();
            for doc in docs.into_iter().filter(|doc| doc.id != own) {
                let before = known.others.remove(&doc.id);
                let (changed, read, lives) = match before {
                    Some(seen) if seen.version == doc.version => {
                        (seen.changed, seen.read, seen.lives)
                    }
                    before => (now, now, before.is_some()),
                };
                let seen = Seen {
                    version: doc.version,
                    changed,
                    read,
                    lives,
                    body: doc.body,
                };
                others.insert(doc.id, seen);
            }
            // Heard of, and not listed yet.
            let unlisted = std::mem::take(&mut known.others)
                .into_iter()
                .filter(|(_, seen)| seen.version == Version::default())
                .filter(|(_, seen)| is_within(seen, now, SILENT_MS));
            others.extend(unlisted);
            known.others = others;
            let lives = |run: &str| {
                let seen = known.others.get(run);
                run == own || seen.is_some_and(|seen| is_within(seen, now, GONE_MS))
            };
            let gone = known.others.iter().filter(|(id, seen)| {
                let owner = text(&seen.body, "owner");
                !is_within(seen, now, GONE_MS) && (!id.starts_with(NUMBER) || !lives(&owner))
            });
            gone.map(|(id, seen)| (id.clone(), seen.version)).collect()
        })
    }
}

/// A number that all replicas derive alike from a run's name.
fn run_number(run: &str) -> u64 {
    let hash = blake3::hash(run.as_bytes());
    let first = hash.as_bytes().first_chunk::<8>();
    first.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn is_within(seen: &Seen, now: Millis, ms: u64) -> bool {
    now.0.saturating_sub(seen.changed.0) <= ms
}

fn number(body: &Value, name: &str) -> Option<i64> {
    body.get(name)?.as_i64()
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn text(body: &Value, name: &str) -> String {
    let text = body.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Begins the ids of the documents that are numbers.
pub const NUMBER: &str = "number-";

/// After a pause of this length, ms, the number is looked at before the next id is made. Far less than the time after
/// which others free it.
const SURE_MS: u64 = 10_000;

/// A number, and when it was surely this run's.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    pub value: u16,
    pub version: Version,
    pub at: Millis,
    pub wall_ms: u64,
}

impl Number {
    /// Whether it is this run's still: neither clock says that much time has passed.
    pub fn is_sure(&self, now: Millis, wall_ms: u64) -> bool {
        now.0.saturating_sub(self.at.0) <= SURE_MS && wall_ms.abs_diff(self.wall_ms) <= SURE_MS
    }

    /// The last second that its ids may bear before it is looked at again: nobody else can have had it then.
    pub fn until_s(&self) -> u64 {
        self.wall_ms.saturating_add(SURE_MS) / 1000
    }
}

pub fn document(number: u16) -> String {
    format!("{NUMBER}{number:02}")
}
