//! Receives hints from other replicas about their writes.

use fairlead_store::{StoredJob, codec};

use crate::upkeep::UpkeepFlow;
use fairlead_base::errors::{PeerError, Refusal};
use fairlead_known::outbox::{BareJob, HintedJob, Message, stored};

impl UpkeepFlow {
    /// Refuses all but the lab's other replicas.
    pub(crate) fn check_peer(&self, token: Option<&str>) -> Result<(), PeerError> {
        if token.is_some_and(|token| self.ctx.sealer.is_peer_token(token)) {
            return Ok(());
        }
        Err(PeerError::Stranger)
    }

    /// Takes in a message of another replica.
    pub(crate) async fn take_hints(&self, token: Option<&str>, body: &[u8]) -> Result<(), Refusal> {
        self.check_peer(token)?;
        let message: Message = serde_json::from_slice(body)
            .map_err(|error| PeerError::BadMessage(error.to_string()))?;
        self.ctx.replicas.heard(&message.from, self.ctx.clock.now());
        self.peers.tell_peers();
        for job in message.jobs {
            match codec::decode_text(job.state.get()) {
                Ok(state) => self.take_hint(&job, &stored(state, job.primary_term, job.seq_no)),
                Err(reason) => tracing::debug!(reason, "a hinted job is passed over"),
            }
        }
        for body in &message.bodies {
            self.jobs.acknowledged(body.job_id, body.version());
        }
        self.read_bare(&message.bare).await;
        for host in &message.hosts {
            self.hosts.host_moved(host);
        }
        for queue in &message.queues {
            self.people.reread_queue(queue).await?;
        }
        Ok(())
    }

    fn take_hint(&self, hinted: &HintedJob, job: &StoredJob) {
        let is_believed = self.jobs.observe_hinted(job);
        if is_believed && hinted.created && job.state.ready {
            let (state, body) = (hinted.state.get(), hinted.body.as_ref());
            let body = body.map(|body| body.get());
            self.ctx
                .store
                .keep_created(job.state.job_id, job.version, state, body);
        }
    }

    /// Reads jobs of which only the versions were told. Those that cannot be read now are read in the next round, as
    /// their numbers are missing.
    async fn read_bare(&self, bare: &[BareJob]) {
        let is_news = |job: &&BareJob| self.jobs.newest(job.job_id) < Some(job.version());
        let ids: Vec<_> = bare.iter().filter(is_news).map(|job| job.job_id).collect();
        if !ids.is_empty() {
            match self.ctx.store.get_readable(&ids).await {
                Ok(jobs) => jobs.iter().for_each(|job| self.jobs.observe(job)),
                Err(error) => tracing::debug!(%error, "hinted jobs could not be read"),
            }
        }
        for job in bare.iter().filter(|job| !is_news(job)) {
            self.jobs.acknowledged(job.job_id, job.version());
        }
    }
}
