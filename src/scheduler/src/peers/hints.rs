//! Sends hints to the other replicas: each state that this replica wrote, at once and without a guarantee.
//!
//! A hint has states as the store acknowledged them. The receiver (`upkeep/hints`) observes them like states that it
//! read itself. A lost, late or repeated hint does no harm, because the store tells the same within a second.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::Route;

use crate::{
    core::Core,
    known::{
        outbox::{Message, Waiting},
        replicas::Peer,
    },
};

/// Largest message that is taken, bytes.
pub(crate) const BODY_MAX: usize = 8 << 20;

impl Core {
    /// Tells the other replicas that this one is there, and what was written here, until the replica stops.
    /// While one message is on its way the next collects.
    pub(crate) async fn send_hints(self: Arc<Self>) {
        self.tell_all(Waiting::default()).await;
        loop {
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.others.outbox.ready.notified() => {}
            }
            while let Some(next) = self.others.outbox.take() {
                self.tell_all(next).await;
            }
        }
    }

    fn as_peer(&self) -> Peer {
        Peer {
            run: self.others.run.clone(),
            name: self.config.replica.clone(),
            url: self.others.url.clone(),
        }
    }

    async fn tell_all(&self, next: Waiting) {
        let mut peers = self.others.replicas.peers(self.clock.now());
        // Whoever had this address before is gone.
        peers.retain(|peer| peer.url != self.others.url);
        if peers.is_empty() {
            return;
        }
        let message = Message::of(next, self.as_peer());
        let body = match serde_json::to_vec(&message) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                tracing::error!(%error, "a hint could not be encoded");
                return;
            }
        };
        let token = self.sealer.peer_token();
        let path = Route::Hints.endpoint().path;
        let each = peers.iter().map(|peer| {
            let (url, token, body) = (format!("{}{path}", peer.url), &token, body.clone());
            async move {
                self.metrics.hints_sent.inc();
                if let Err(error) = self.others.peers.post(&url, token, body).await {
                    self.metrics.hints_lost.inc();
                    tracing::debug!(peer = peer.name, error, "a hint was lost");
                }
            }
        });
        futures_util::future::join_all(each).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::outbox::stored;
    use crate::{
        known::outbox::{BATCH_MAX, Outbox, WAITING_MAX},
        testing::{core, state},
    };
    use fairlead_api::ErrorCode;
    use fairlead_store::StoredJob;

    fn job(n: u64) -> StoredJob {
        stored(state(n), 1, n)
    }

    fn peer() -> Peer {
        Peer {
            run: "a.1".to_owned(),
            name: "a".to_owned(),
            url: "http://a".to_owned(),
        }
    }

    #[test]
    fn what_waits_is_told_in_batches_and_has_a_limit() {
        let outbox = Outbox::default();
        assert!(outbox.take().is_none());
        for n in 0..u64::try_from(WAITING_MAX).unwrap() + 10 {
            outbox.job(Arc::new(job(n)));
        }
        let mut told = 0;
        while let Some(next) = outbox.take() {
            assert!(next.jobs.len() <= BATCH_MAX);
            told += next.jobs.len();
        }
        assert_eq!(told, WAITING_MAX);
    }

    #[tokio::test]
    async fn a_hint_is_taken_from_a_replica_of_the_lab_and_from_nobody_else() {
        let (_data, core) = core().await;
        let outbox = Outbox::default();
        let mut held = job(5);
        held.state.stage = fairlead_job::Stage::Running;
        held.state.host = "h".to_owned();
        outbox.job(Arc::new(held.clone()));
        let message = Message::of(outbox.take().unwrap(), peer());
        let body = serde_json::to_vec(&message).unwrap();
        let refused = core.take_hints(Some("wrong"), &body).await.unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::Forbidden);
        assert_eq!(core.jobs.live.len(), 0);
        let token = core.sealer.peer_token();
        core.take_hints(Some(&token), &body).await.unwrap();
        assert_eq!(*core.jobs.live.of_host("h")[0].stored, held);
        assert_eq!(core.others.replicas.peers(core.clock.now()), [peer()]);
        let nonsense = core.take_hints(Some(&token), b"{").await.unwrap_err();
        assert_eq!(nonsense.body().code, ErrorCode::BadBody);
    }
}
