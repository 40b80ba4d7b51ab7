//! The other replicas of this lab, and this replica's number, as last read.

use std::collections::BTreeMap;

use fairlead_dispatch::{JobKey, Millis, Peers};
use fairlead_job::JobId;
use fairlead_store::{Doc, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use fairlead_base::lab_clock::Witness;

/// Time without a change of its document after which a replica gets no messages, ms.
pub const SILENT_MS: u64 = 8_000;

/// The same limit while a replica starts, ms. It exceeds two beats, because the other replica may still live.
const MAY_LIVE_MS: u64 = 5_000;

/// Time without a change of its document after which a replica is gone, ms. Its document and number are then deleted.
pub const GONE_MS: u64 = 60_000;

/// Another replica, as last seen.
#[derive(Debug, Clone)]
pub struct Seen {
    pub version: Version,
    changed: Millis,
    /// Time of the read of this version.
    read: Millis,
    /// True if its document changed while watched, or if it sent a message. An unchanged document may be a dead
    /// replica's.
    pub lives: bool,
    pub body: Value,
}

impl Seen {
    /// Returns the minimum lead of its wall clock over this replica's monotonic clock, ms. `None`: it does not report
    /// its time.
    fn least_ms(&self) -> Option<i64> {
        Some(number(&self.body, "beat_ms")?.saturating_sub(signed(self.read.0)))
    }

    /// Returns the replica as a witness of the time for run `own`. `or_most_ms` is its maximum lead while it has not
    /// yet reported its own readings.
    fn witness(&self, own: &str, or_most_ms: Option<i64>) -> Option<Witness> {
        let least_ms = self.least_ms()?;
        let heard = self.body.get("heard").and_then(|heard| number(heard, own));
        let most_ms = heard.or(or_most_ms)?;
        // A clock that stepped in between reports contradicting bounds.
        (least_ms <= most_ms).then_some(Witness { least_ms, most_ms })
    }
}

/// This replica, and the known state of all others.
#[derive(Debug)]
pub struct Replicas {
    /// This run of the replica: its name and a random word.
    pub run: String,
    /// Address at which other replicas reach this one.
    pub url: String,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
pub struct Known {
    pub others: BTreeMap<String, Seen>,
    /// Version of this run's own document.
    pub own: Option<Version>,
    pub number: Option<Number>,
    /// Replicas that the engine got last.
    pub told: Option<Peers>,
}

/// A live replica, for people and for hints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Name of this run of it.
    pub run: String,
    pub name: String,
    pub url: String,
}

/// Vital signs of a replica when it last renewed its document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vitals {
    /// Version of its program.
    pub version: String,
    /// Age of the newest store change that it knew, ms.
    pub lag_ms: u64,
    /// Number of unprocessed messages of its engine.
    pub inbox: u64,
    /// Number of jobs on testboxes, as it knew.
    pub held: u64,
    /// Number of its pending store requests.
    pub store_requests: u64,
}

impl Replicas {
    /// Knows no other replica yet. `run`: this run; `url`: address at which other replicas reach this one.
    pub fn new(run: String, url: String) -> Self {
        Self {
            run,
            url,
            known: Mutex::default(),
        }
    }

    /// Returns the last known vital signs of another run.
    pub fn vitals(&self, run: &str) -> Vitals {
        self.with(|known| {
            let seen = known.others.get(run);
            let vitals = seen.and_then(|seen| seen.body.get("vitals").cloned());
            let vitals = vitals.and_then(|vitals| serde_json::from_value(vitals).ok());
            vitals.unwrap_or_default()
        })
    }

    /// Returns the other live replicas.
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

    /// Returns the lead of each other live replica's wall clock over this replica's monotonic clock.
    pub fn witnesses(&self, now: Millis) -> Vec<Witness> {
        self.with(|known| {
            let others = known.others.values();
            let live = others.filter(|seen| seen.lives && is_within(seen, now, SILENT_MS));
            live.filter_map(|seen| seen.witness(&self.run, None))
                .collect()
        })
    }

    /// Returns the same for all replicas that may live, for a replica that has just started. None of them has heard of
    /// it yet, and old documents may be those of dead replicas. Earlier runs of its own `name` do not count.
    pub fn suspected_witnesses(&self, name: &str, now: Millis) -> Vec<Witness> {
        self.with(|known| {
            let others = known.others.values();
            let others = others.filter(|seen| text(&seen.body, "name") != name);
            let live = others.filter(|seen| is_within(seen, now, MAY_LIVE_MS));
            live.filter_map(|seen| seen.witness(&self.run, seen.least_ms()))
                .collect()
        })
    }

    /// Returns the maximum lead of this replica's wall clock over the monotonic clock of each other replica, ms.
    /// `ahead_ms` is its lead over its own monotonic clock. The others get these values.
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

    /// Notes a message from a replica. It may arrive before lists show the sender.
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

    /// Returns the number of live replicas that handle a job before this run.
    pub fn rank(&self, job: JobId, now: Millis) -> usize {
        self.as_peers(now).rank(JobKey(job.get()))
    }

    /// Returns the replicas known to live, as the engine's type.
    pub fn as_peers(&self, now: Millis) -> Peers {
        let lives =
            |run: &str| self.with(|known| known.others.get(run).is_some_and(|seen| seen.lives));
        let others = self.peers(now).into_iter();
        Peers {
            own: run_number(&self.run),
            others: others
                .filter(|peer| lives(&peer.run))
                .map(|peer| run_number(&peer.run))
                .collect(),
        }
    }

    /// Returns this replica's number, once it has one.
    pub fn number(&self) -> Option<u16> {
        self.numbered().map(|known| known.value)
    }

    /// Returns the number, with the time at which it was certain.
    pub fn numbered(&self) -> Option<Number> {
        self.with(|known| known.number)
    }

    pub fn set_number(&self, number: Number) {
        self.with(|known| known.number = Some(number));
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> R {
        work(&mut self.known.lock())
    }

    /// Returns the replica name of a run. `None`: unknown, or the document of a number.
    pub fn name_of(&self, run: &str) -> Option<String> {
        let name = self.with(|known| known.others.get(run).map(|seen| text(&seen.body, "name")));
        name.filter(|name| !run.starts_with(NUMBER) && !name.is_empty())
    }

    /// Takes in a list of all documents. Returns the expired ones, including the numbers of replicas that are gone.
    pub fn listed(&self, docs: Vec<Doc>, now: Millis) -> Vec<(String, Version)> {
        self.with(|known| {
            let mut others = BTreeMap::new();
            for doc in docs.into_iter().filter(|doc| doc.id != self.run) {
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
            // These replicas sent messages, but are not listed yet.
            let unlisted = std::mem::take(&mut known.others)
                .into_iter()
                .filter(|(_, seen)| seen.version == Version::default())
                .filter(|(_, seen)| is_within(seen, now, SILENT_MS));
            others.extend(unlisted);
            known.others = others;
            let lives = |run: &str| {
                let seen = known.others.get(run);
                run == self.run || seen.is_some_and(|seen| is_within(seen, now, GONE_MS))
            };
            let gone = known.others.iter().filter(|(id, seen)| {
                let owner = text(&seen.body, "owner");
                !is_within(seen, now, GONE_MS) && (!id.starts_with(NUMBER) || !lives(&owner))
            });
            gone.map(|(id, seen)| (id.clone(), seen.version)).collect()
        })
    }
}

/// Returns a number for a run's name. All replicas derive the same one.
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

/// Prefix of the ids of documents that are numbers.
pub const NUMBER: &str = "number-";

/// Maximum time since the last check of the number at which ids are made, ms. It is far below the time after which
/// others free the number.
const SURE_MS: u64 = 10_000;

/// A number, with the time at which it was certainly this run's.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    pub value: u16,
    pub version: Version,
    pub at: Millis,
    pub wall_ms: u64,
}

impl Number {
    /// Returns true if it is certainly still this run's: neither clock has moved further than the limit.
    pub fn is_sure(&self, now: Millis, wall_ms: u64) -> bool {
        now.0.saturating_sub(self.at.0) <= SURE_MS && wall_ms.abs_diff(self.wall_ms) <= SURE_MS
    }

    /// Returns the last second for ids before the number is checked again. Until then no other replica can have it.
    pub fn until_s(&self) -> u64 {
        self.wall_ms.saturating_add(SURE_MS) / 1000
    }
}

pub fn document(number: u16) -> String {
    format!("{NUMBER}{number:02}")
}
