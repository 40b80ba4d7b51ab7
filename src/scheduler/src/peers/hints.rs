//! Sends hints to the other replicas: each state that this replica wrote, at once and without a guarantee.
//!
//! A hint has states as the store acknowledged them. The receiver (`upkeep/hints`) observes them like states that it
//! read itself, and notes their numbers (`known/feed`). A lost, late or repeated hint does no harm: numbers that are
//! missing are read from the store within a second. Each replica has a queue and a sender of its own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use fairlead_api::Route;
use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::peers::PeerFlow;
use fairlead_known::{
    outbox::{Message, Next, Served, Waiting},
    replicas::Peer,
};

/// After a message the next one collects for so long: many small ones cost a peer more than what is in them.
const COLLECT: Duration = Duration::from_millis(5);

/// Largest message that is taken, bytes.
pub(crate) const BODY_MAX: usize = 8 << 20;

impl PeerFlow {
    /// Tells the other replicas that this one is there, and what was written here, until the replica stops.
    pub(crate) async fn send_hints(self: Arc<Self>) {
        let mut senders = FuturesUnordered::new();
        loop {
            let unserved = self.ctx.outbox.unserved().into_iter();
            senders.extend(unserved.map(|served| self.serve(served)));
            tokio::select! {
                biased;
                () = self.ctx.tasks.draining.cancelled() => return,
                () = self.ctx.outbox.joined.notified() => {}
                Some(()) = senders.next() => {}
            }
        }
    }

    /// Tells one replica, until it is gone. While one message is on its way the next collects.
    async fn serve(&self, served: Served) {
        self.tell(&served.peer, &Waiting::default()).await;
        loop {
            match self.ctx.outbox.next(&served) {
                Next::Send(next) => {
                    self.tell(&served.peer, &next).await;
                    self.ctx.clock.sleep(COLLECT).await;
                }
                Next::Wait => served.ready.notified().await,
                Next::Gone => return,
            }
        }
    }

    fn as_peer(&self) -> Peer {
        Peer {
            run: self.ctx.replicas.run.clone(),
            name: self.ctx.config.replica.clone(),
            url: self.ctx.replicas.url.clone(),
        }
    }

    async fn tell(&self, peer: &Peer, next: &Waiting) {
        let message = Message::of(next, self.as_peer());
        let body = match serde_json::to_vec(&message) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                tracing::error!(%error, "a hint could not be encoded");
                return;
            }
        };
        let url = format!("{}{}", peer.url, Route::Hints.endpoint().path);
        self.ctx.metrics.hints_sent.inc();
        let token = self.ctx.sealer.peer_token();
        if let Err(error) = self.link.post(&url, &token, body).await {
            self.ctx.metrics.hints_lost.inc();
            tracing::debug!(peer = peer.name, error, "a hint was lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flows, flows_beside, held, state, store_job};
    use fairlead_api::ErrorCode;
    use fairlead_dispatch::Millis;
    use fairlead_known::outbox::stored;
    use fairlead_known::outbox::{BATCH_MAX, Outbox, WAITING_MAX, Written};
    use fairlead_store::{ChangeMark, StoredJob};

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

    fn following() -> (Outbox, Served) {
        let outbox = Outbox::default();
        outbox.follow(vec![peer()]);
        let served = outbox.unserved().remove(0);
        (outbox, served)
    }

    fn taken((outbox, served): &(Outbox, Served)) -> Option<Waiting> {
        match outbox.next(served) {
            Next::Send(next) => Some(next),
            Next::Wait | Next::Gone => None,
        }
    }

    #[test]
    fn what_waits_is_told_in_batches_and_has_a_limit() {
        let outbox = following();
        assert!(taken(&outbox).is_none());
        for n in 0..u64::try_from(WAITING_MAX).unwrap() + 10 {
            outbox.0.job(&job(n), Written::Changed);
        }
        let (mut told, mut bare) = (0, 0);
        while let Some(next) = taken(&outbox) {
            assert!(next.jobs.len() <= BATCH_MAX);
            told += next.jobs.len();
            bare += next.bare.len();
        }
        assert_eq!((told, bare), (WAITING_MAX, 10));
    }

    #[test]
    fn each_replica_has_a_queue_and_one_that_is_gone_has_none() {
        let (outbox, first) = following();
        assert_eq!(first.peer, peer());
        assert!(outbox.unserved().is_empty());
        let again = Peer {
            run: "a.2".to_owned(),
            ..peer()
        };
        outbox.job(&job(1), Written::Created(None));
        outbox.follow(vec![peer(), again.clone()]);
        let second = outbox.unserved().remove(0);
        assert_eq!(second.peer, again);
        outbox.job(&job(2), Written::Changed);
        assert!(matches!(outbox.next(&first), Next::Send(next) if next.jobs.len() == 2));
        outbox.follow(vec![again.clone()]);
        assert!(matches!(outbox.next(&first), Next::Gone));
        assert!(matches!(outbox.next(&second), Next::Send(next) if next.jobs.len() == 1));
        // It is back before its first sender noticed.
        outbox.follow(vec![peer(), again]);
        let back = outbox.unserved().remove(0);
        assert!(matches!(outbox.next(&first), Next::Gone));
        assert!(matches!(outbox.next(&back), Next::Wait));
    }

    #[test]
    fn a_short_body_of_a_new_job_is_told_and_a_long_one_is_not() {
        let outbox = following();
        for length in [10, 10_000] {
            let body = format!("\"{}\"", "x".repeat(length));
            outbox.0.job(&job(1), Written::Created(Some(body)));
        }
        let next = taken(&outbox).unwrap();
        let told = serde_json::to_string(&Message::of(&next, peer())).unwrap();
        let read: Message = serde_json::from_str(&told).unwrap();
        let bodies = read.jobs.iter().map(|job| job.body.as_ref());
        let lengths: Vec<_> = bodies.map(|body| body.map(|b| b.get().len())).collect();
        assert_eq!(lengths, [Some(12), None]);
    }

    #[tokio::test]
    async fn the_number_of_a_body_that_was_told_is_not_read() {
        let (_data, flows) = flows().await;
        let (outbox, written) = (following(), job(1));
        let id = written.state.job_id;
        outbox.0.body(id, written.version);
        let next = taken(&outbox).unwrap();
        let body = serde_json::to_vec(&Message::of(&next, peer())).unwrap();
        let place = flows.ctx.store.place_of(id).unwrap();
        let mark = |last| ChangeMark([(place.to_string(), last)].into());
        flows.jobs.feed.begin(&mark(0));
        let token = flows.ctx.sealer.peer_token();
        flows.upkeep.take_hints(Some(&token), &body).await.unwrap();
        assert!(flows.jobs.feed.due(&mark(1), Millis(0)).is_empty());
        assert!(!flows.jobs.feed.due(&mark(2), Millis(0)).is_empty());
    }

    #[tokio::test]
    async fn a_job_of_which_only_the_version_is_told_is_read() {
        let (_data, flows) = flows().await;
        let stored = store_job(&flows, held()).await;
        let outbox = following();
        for n in 0..u64::try_from(WAITING_MAX).unwrap() {
            outbox.0.job(&job(n), Written::Changed);
        }
        outbox.0.job(&stored, Written::Changed);
        let next = taken(&outbox).unwrap();
        assert_eq!(next.bare.len(), 1);
        let bare = Waiting {
            bare: next.bare,
            ..Waiting::default()
        };
        let message = Message::of(&bare, peer());
        let other = flows_beside(&flows);
        let token = other.ctx.sealer.peer_token();
        let body = serde_json::to_vec(&message).unwrap();
        other.upkeep.take_hints(Some(&token), &body).await.unwrap();
        let held = other.jobs.live.get(stored.state.job_id).unwrap();
        assert_eq!(*held.stored, stored);
    }

    #[tokio::test]
    async fn a_hint_is_taken_from_a_replica_of_the_lab_and_from_nobody_else() {
        let (_data, flows) = flows().await;
        let outbox = following();
        let mut held = job(5);
        held.state.stage = fairlead_job::Stage::Running;
        held.state.host = "h".to_owned();
        outbox.0.job(&held, Written::Changed);
        let next = taken(&outbox).unwrap();
        let body = serde_json::to_vec(&Message::of(&next, peer())).unwrap();
        let refused = flows
            .upkeep
            .take_hints(Some("wrong"), &body)
            .await
            .unwrap_err();
        assert_eq!(refused.body().code, ErrorCode::Forbidden);
        assert_eq!(flows.jobs.live.count(), 0);
        let token = flows.ctx.sealer.peer_token();
        flows.upkeep.take_hints(Some(&token), &body).await.unwrap();
        assert_eq!(*flows.jobs.live.of_host("h")[0].stored, held);
        assert_eq!(flows.ctx.replicas.peers(flows.ctx.clock.now()), [peer()]);
        let nonsense = flows
            .upkeep
            .take_hints(Some(&token), b"{")
            .await
            .unwrap_err();
        assert_eq!(nonsense.body().code, ErrorCode::BadBody);
    }
}
