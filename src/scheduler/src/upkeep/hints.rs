//! Receives hints from other replicas about their writes.

use fairlead_store::codec;

use crate::{
    base::errors::{PeerError, Refusal},
    core::Core,
    known::outbox::{Message, stored},
};

impl Core {
    /// Refuses all but the lab's other replicas.
    pub(crate) fn check_peer(&self, token: Option<&str>) -> Result<(), PeerError> {
        if token.is_some_and(|token| self.sealer.is_peer_token(token)) {
            return Ok(());
        }
        Err(PeerError::Stranger)
    }

    /// Takes in a message of another replica.
    pub(crate) async fn take_hints(&self, token: Option<&str>, body: &[u8]) -> Result<(), Refusal> {
        self.check_peer(token)?;
        let message: Message = serde_json::from_slice(body)
            .map_err(|error| PeerError::BadMessage(error.to_string()))?;
        self.others.replicas.heard(&message.from, self.clock.now());
        self.tell_peers();
        for job in message.jobs {
            match codec::decode_text(job.state.get()) {
                Ok(state) => self.observe_hinted(&stored(state, job.primary_term, job.seq_no)),
                Err(reason) => tracing::debug!(reason, "a hinted job is passed over"),
            }
        }
        for host in &message.hosts {
            self.host_moved(host);
        }
        for queue in &message.queues {
            self.reread_queue(queue).await?;
        }
        Ok(())
    }
}
