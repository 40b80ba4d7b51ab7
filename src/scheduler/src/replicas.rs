//! Who else serves this lab: each replica's own small document, renewed every two seconds, and its number.
//!
//! A document bears the name of one *run* of a replica, so that a restart never has to wait for its past
//! self. A replica is thought to live while its document changes, on the reader's own clock. Numbers (they
//! are part of job ids, see `numbers`) are documents too: whoever creates one has it, until nobody renews its owner.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fairlead_dispatch::{Event, JobKey, Millis, Peers};
use fairlead_job::JobId;
use fairlead_store::{Doc, DocKind, DocWrite, Expect, ItemError, StoreError, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    core::Core,
    numbers::{NUMBER, Number},
    writer::only,
};

/// How often a replica renews its document and reads the others', ms.
const BEAT_MS: u64 = 2_000;
/// A replica whose document did not change for this long is told nothing, ms.
const SILENT_MS: u64 = 8_000;
/// One whose document did not change for this long is gone: its document and number are removed, ms.
const GONE_MS: u64 = 60_000;

/// Another replica, as last seen.
#[derive(Debug, Clone)]
struct Seen {
    version: Version,
    changed: Millis,
    /// Whether it was seen to change, or spoke to this one: a document alone may be that of a dead one.
    lives: bool,
    body: Value,
}

/// What is known of all replicas.
#[derive(Debug, Default)]
pub(crate) struct Replicas(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    others: BTreeMap<String, Seen>,
    /// This run's own document.
    own: Option<Version>,
    number: Option<Number>,
    /// What the engine was told last.
    told: Option<Peers>,
}

/// A replica that lives, for people and for hints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// One run of it.
    pub(crate) run: String,
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Replicas {
    /// The others that live.
    pub(crate) fn peers(&self, now: Millis) -> Vec<Peer> {
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

    /// A replica spoke to this one, perhaps before lists show it.
    pub(crate) fn heard(&self, peer: &Peer, now: Millis) {
        self.with(|known| {
            let seen = known.others.entry(peer.run.clone()).or_insert(Seen {
                version: Version::default(),
                changed: now,
                lives: true,
                body: json!({ "name": peer.name, "url": peer.url }),
            });
            seen.lives = true;
            seen.changed = seen.changed.max(now);
        });
    }

    /// How many live replicas come before this run for a job.
    pub(crate) fn rank(&self, job: JobId, own: &str, now: Millis) -> usize {
        self.as_peers(own, now).rank(JobKey(job.get()))
    }

    /// The replicas that surely live, in the engine's words.
    fn as_peers(&self, own: &str, now: Millis) -> Peers {
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
    pub(crate) fn number(&self) -> Option<u16> {
        self.numbered().map(|known| known.value)
    }

    /// The same, with when that was sure.
    pub(crate) fn numbered(&self) -> Option<Number> {
        self.with(|known| known.number)
    }

    pub(crate) fn set_number(&self, number: Number) {
        self.with(|known| known.number = Some(number));
    }

    fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in a list of all documents; returns those that nobody renews any more, numbers of which the
    /// owner is gone among them.
    fn listed(&self, docs: Vec<Doc>, own: &str, now: Millis) -> Vec<(String, Version)> {
        self.with(|known| {
            let mut others = BTreeMap::new();
            for doc in docs.into_iter().filter(|doc| doc.id != own) {
                let before = known.others.remove(&doc.id);
                let (changed, lives) = match before {
                    Some(seen) if seen.version == doc.version => (seen.changed, seen.lives),
                    before => (now, before.is_some()),
                };
                let seen = Seen {
                    version: doc.version,
                    changed,
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

fn text(body: &Value, name: &str) -> String {
    let text = body.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

impl Core {
    /// Says that this replica is there, learns who else is, and takes a number.
    pub(crate) async fn join(&self) -> Result<(), StoreError> {
        self.beat().await?;
        self.look_around().await?;
        self.take_a_number().await
    }

    async fn put_replica(&self, write: DocWrite) -> Result<Version, ItemError> {
        only(self.store.put_docs(DocKind::Replica, vec![write]).await)
    }

    /// Tells the engine who lives, if that changed.
    pub(crate) fn tell_peers(&self) {
        let peers = self.replicas.as_peers(&self.run, self.clock.now());
        let news = self.replicas.with(|known| {
            let news = known.told.as_ref() != Some(&peers);
            known.told = Some(peers.clone());
            news
        });
        if news {
            self.engine.tell(Event::PeersChanged(peers));
        }
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let write = DocWrite {
            id: self.run.clone(),
            expect: Expect::Any,
            body: Some(json!({
                "name": self.config.replica, "url": self.url, "beat_ms": self.clock.wall_ms(),
                "version": env!("CARGO_PKG_VERSION"), "number": self.replicas.number(),
            })),
        };
        let version = self.put_replica(write).await;
        let version = version.map_err(|error| StoreError::Unavailable {
            reason: error.to_string(),
        })?;
        self.replicas.with(|known| known.own = Some(version));
        Ok(())
    }

    async fn look_around(&self) -> Result<(), StoreError> {
        let docs = self.store.list_docs(DocKind::Replica).await?;
        let gone = self.replicas.listed(docs, &self.run, self.clock.now());
        self.tell_peers();
        for (id, version) in gone {
            tracing::info!(replica = id, "it is gone, and forgotten");
            let write = DocWrite {
                id,
                expect: Expect::Version(version),
                body: None,
            };
            // Another replica may have removed it first.
            let _ = self.put_replica(write).await;
        }
        Ok(())
    }

    /// Renews this replica's document and reads the others', until the replica stops; then takes it away.
    pub(crate) async fn stay_known(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => break,
                () = self.clock.sleep(Duration::from_millis(BEAT_MS)) => {}
            }
            if let Err(error) = self.be_known().await {
                tracing::warn!(%error, "this replica could not make itself known");
            }
        }
        self.leave().await;
    }

    /// Renews this replica's document, makes sure of its number, and reads the others'.
    pub(crate) async fn be_known(&self) -> Result<(), StoreError> {
        self.beat().await?;
        self.look_at_number().await?;
        self.look_around().await
    }

    pub(crate) async fn leave(&self) {
        self.free_number().await;
        let write = DocWrite {
            id: self.run.clone(),
            expect: Expect::Any,
            body: None,
        };
        if let Err(error) = self.put_replica(write).await {
            tracing::debug!(%error, "this replica's document goes in a minute");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(id: &str, seq_no: u64, body: Value) -> Doc {
        Doc {
            id: id.to_owned(),
            version: Version {
                primary_term: 1,
                seq_no,
            },
            body,
        }
    }

    fn replica(id: &str, seq_no: u64) -> Doc {
        doc(
            id,
            seq_no,
            json!({"name": id, "url": format!("http://{id}")}),
        )
    }

    #[test]
    fn replicas_live_while_their_documents_change() {
        let all = Replicas::default();
        let names = |now| {
            let peers = all.peers(Millis(now));
            peers.into_iter().map(|peer| peer.name).collect::<Vec<_>>()
        };
        all.listed(
            vec![replica("a", 1), replica("b", 2), replica("me", 3)],
            "me",
            Millis(0),
        );
        assert_eq!(names(0), ["a", "b"]);
        all.listed(
            vec![replica("a", 9), replica("b", 2), replica("me", 3)],
            "me",
            Millis(5_000),
        );
        assert_eq!(names(SILENT_MS + 1), ["a"]);
        let gone = all.listed(
            vec![replica("a", 10), replica("b", 2)],
            "me",
            Millis(GONE_MS + 1),
        );
        assert_eq!(
            gone.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["b"]
        );
    }

    #[test]
    fn a_document_alone_is_no_living_replica() {
        let all = Replicas::default();
        let others = |now| all.as_peers("me", Millis(now)).others.len();
        all.listed(vec![replica("a", 1), replica("dead", 2)], "me", Millis(0));
        assert_eq!(others(0), 0);
        all.listed(
            vec![replica("a", 3), replica("dead", 2)],
            "me",
            Millis(2_000),
        );
        assert_eq!(others(2_000), 1);
    }

    #[test]
    fn a_number_is_free_again_when_its_owner_is_gone_and_not_before() {
        let all = Replicas::default();
        let number =
            |n: u64, owner: &str| doc(&format!("{NUMBER}{n:02}"), n, json!({"owner": owner}));
        let docs = || vec![number(1, "dead"), number(2, "me"), number(3, "a")];
        all.listed([docs(), vec![replica("a", 1)]].concat(), "me", Millis(0));
        let gone = all.listed(
            [docs(), vec![replica("a", 7)]].concat(),
            "me",
            Millis(GONE_MS + 1),
        );
        assert_eq!(
            gone.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["number-01"]
        );
    }
}
