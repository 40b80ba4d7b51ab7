//! Membership: each replica has a small document, renews it every two seconds, and reads those of the others.
//!
//! A document has the name of one *run* of a replica. So a restart never has to wait for its past self. A replica
//! counts as alive while its document changes, on the reader's own clock. The documents also tell the time (see
//! `clocks`). Numbers, which are part of job ids (see `numbers`), are documents too. The creator of such a document has
//! the number, until nobody renews its owner.

use std::{sync::Arc, time::Duration};

use fairlead_dispatch::Event;
use fairlead_store::{DocKind, DocWrite, Expect, ItemError, StoreError, Version};
use serde_json::{Value, json};

use crate::peers::PeerFlow;
use fairlead_base::storage::group_commit::only;

/// How often a replica renews its document and reads the others', ms.
const BEAT_MS: u64 = 2_000;

impl PeerFlow {
    /// Says that this replica is there, learns who else is, and takes a number.
    pub(crate) async fn join(&self) -> Result<(), StoreError> {
        self.beat().await?;
        self.look_around().await?;
        self.take_a_number().await
    }

    async fn put_replica(&self, write: DocWrite) -> Result<Version, ItemError> {
        only(self.ctx.store.put_docs(DocKind::Replica, vec![write]).await)
    }

    /// Tells the engine and the outbox who lives.
    pub(crate) fn tell_peers(&self) {
        let mut peers = self.ctx.replicas.peers(self.ctx.clock.now());
        // Whoever had this address before is gone.
        peers.retain(|peer| peer.url != self.ctx.replicas.url);
        self.ctx.outbox.follow(peers);
        let peers = self.ctx.replicas.as_peers(self.ctx.clock.now());
        let news = self.ctx.replicas.with(|known| {
            let news = known.told.as_ref() != Some(&peers);
            known.told = Some(peers.clone());
            news
        });
        if news {
            self.ctx.engine.tell(Event::PeersChanged(peers));
        }
    }

    async fn beat(&self) -> Result<(), StoreError> {
        let write = DocWrite {
            id: self.ctx.replicas.run.clone(),
            expect: Expect::Any,
            body: Some(json!({
                "name": self.ctx.config.replica, "url": self.ctx.replicas.url, "beat_ms": self.ctx.clock.wall_ms(),
                "tick_ms": self.ctx.clock.now().0, "heard": self.ctx.replicas.echoes(self.ctx.clock.ahead_ms()),
                "number": self.ctx.replicas.number(), "vitals": self.vitals(),
            })),
        };
        let version = self.put_replica(write).await;
        let version = version.map_err(|error| StoreError::Unavailable {
            reason: error.to_string(),
        })?;
        self.ctx.replicas.with(|known| known.own = Some(version));
        Ok(())
    }

    async fn look_around(&self) -> Result<(), StoreError> {
        let docs = self.ctx.store.list_docs(DocKind::Replica).await?;
        let gone = self.ctx.replicas.listed(docs, self.ctx.clock.now());
        self.compare_clocks().await;
        self.tell_peers();
        for (id, version) in gone {
            tracing::info!(replica = id, "this replica is gone and was removed");
            let write = DocWrite {
                id,
                expect: Expect::Version(version),
                body: None,
            };
            let name = self.ctx.replicas.name_of(&write.id);
            // Another replica may have removed it first.
            if self.put_replica(write).await.is_ok()
                && let Some(name) = name
            {
                let own = &self.ctx.config.replica;
                self.ctx.audit(own, "replica.lost", &name, Value::Null);
            }
        }
        Ok(())
    }

    /// Renews this replica's document and reads the others', until the replica stops; then takes it away.
    pub(crate) async fn stay_known(self: Arc<Self>) {
        let beat = Duration::from_millis(BEAT_MS);
        let pause = || self.ctx.tasks.until_draining(self.ctx.clock.sleep(beat));
        while pause().await.is_some() {
            if let Err(error) = self.be_known().await {
                tracing::warn!(%error, "this replica could not register itself in the store");
            }
        }
        let name = &self.ctx.config.replica;
        self.ctx
            .audit(name, "replica.stop", name, self.its_version());
        self.leave().await;
    }

    /// Notes that this replica has started, with its version.
    pub(crate) fn tell_of_start(&self) {
        let name = &self.ctx.config.replica;
        self.ctx
            .audit(name, "replica.start", name, self.its_version());
    }

    fn its_version(&self) -> Value {
        json!({ "version": env!("CARGO_PKG_VERSION"), "run": self.ctx.replicas.run })
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
            id: self.ctx.replicas.run.clone(),
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
    use fairlead_dispatch::Millis;
    use fairlead_store::Doc;

    use super::*;
    use fairlead_known::replicas::{GONE_MS, NUMBER, Replicas, SILENT_MS};

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
        let all = Replicas::new("me".to_owned(), String::new());
        let names = |now| {
            let peers = all.peers(Millis(now));
            peers.into_iter().map(|peer| peer.name).collect::<Vec<_>>()
        };
        all.listed(
            vec![replica("a", 1), replica("b", 2), replica("me", 3)],
            Millis(0),
        );
        assert_eq!(names(0), ["a", "b"]);
        all.listed(
            vec![replica("a", 9), replica("b", 2), replica("me", 3)],
            Millis(5_000),
        );
        assert_eq!(names(SILENT_MS + 1), ["a"]);
        let gone = all.listed(vec![replica("a", 10), replica("b", 2)], Millis(GONE_MS + 1));
        assert_eq!(
            gone.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["b"]
        );
    }

    #[test]
    fn a_document_alone_is_no_living_replica() {
        let all = Replicas::new("me".to_owned(), String::new());
        let others = |now| all.as_peers(Millis(now)).others.len();
        all.listed(vec![replica("a", 1), replica("dead", 2)], Millis(0));
        assert_eq!(others(0), 0);
        all.listed(vec![replica("a", 3), replica("dead", 2)], Millis(2_000));
        assert_eq!(others(2_000), 1);
    }

    #[test]
    fn a_number_is_free_again_when_its_owner_is_gone_and_not_before() {
        let all = Replicas::new("me".to_owned(), String::new());
        let number =
            |n: u64, owner: &str| doc(&format!("{NUMBER}{n:02}"), n, json!({"owner": owner}));
        let docs = || vec![number(1, "dead"), number(2, "me"), number(3, "a")];
        all.listed([docs(), vec![replica("a", 1)]].concat(), Millis(0));
        let gone = all.listed(
            [docs(), vec![replica("a", 7)]].concat(),
            Millis(GONE_MS + 1),
        );
        assert_eq!(
            gone.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["number-01"]
        );
    }
}
