//! Claims: from the engine's decision to a committed state in the store.
//!
//! Two replicas may choose the same job for two hosts at the same moment. So a claim is a compare-and-set: it names the
//! version of the job that it expects, and the store accepts one of the two. The host gets the job only after the store
//! acknowledged the claim.
//!
//! The hard case is a claim without a clear answer. After a timeout the claim may be in the store, may be lost, or may
//! still be on its way. A conflict proves nothing either: Elasticsearch repeats writes inside, so a stored claim may be
//! answered with a conflict. If the replica guesses "lost", a second host may get the job. If it guesses "stored", a
//! host may run a job that waits. To read the job is not enough. A claim may land after the read, and the state that
//! was read may vanish with its node.
//!
//! So all these answers count as *unknown*, and only one more acknowledged write settles them (I2). For example, a
//! claim with token `a` expects number 41 of job 7 and times out:
//!
//! ```text
//! the read shows           then this replica writes the same state again    and, once acknowledged,
//! 41, still waiting        expecting 41, which becomes 42                   the claim can no longer land: try again
//! 42, token `a`            expecting 42, which becomes 43                   the job is ours: the host gets it
//! 42, another's token      expecting 42, which becomes 43                   the claim can no longer land: drop it
//! ```
//!
//! The last write is left out after a conflict, because then nothing of ours is on its way.
//!
//! Limits:
//!
//! - The normal claim costs one write. Only a claim without a clear answer costs a read and another write.
//! - After five tries, or if the store does not answer, the job rests for 500 ms. Then the engine may claim it again.
//! - A pause of the lab acts within two seconds. A replica whose knowledge of the queues is older reads it before a
//!   claim.

use std::{sync::Arc, time::Duration};

use fairlead_dispatch::{Event, JobKey, Millis, OfferKey, Refusal as ClaimRefusal};
use fairlead_job::{JobId, Stage};
use fairlead_store::{ItemError, Patch, StatePatch, StoredJob, Version};

use crate::dispatching::DispatchFlow;
use fairlead_base::{clock::Stopwatch, metrics::Claimed};
use fairlead_known::{
    open_requests::{KnownClaim, Requester},
    queues::LAB,
};
use fairlead_lifecycle::{changed::Changed, engine_facts::engine_version, touch::touch};

/// How often one claim is settled by another write before the job is left alone for a while.
const SETTLE_TRIES_MAX: usize = 5;
/// A pause of the lab acts within this time, ms: whoever has not read the queues for so long reads them before a claim.
const PAUSE_KNOWN_MS: u64 = 2_000;
/// How long a job rests when the store could not say, ms.
const REST_MS: u64 = 500;

/// A claim that the engine wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) job: JobId,
    pub(crate) expect: Version,
    pub(crate) offer: OfferKey,
}

/// What came of trying.
#[derive(Debug)]
enum Settled {
    /// Ours, acknowledged.
    Ours(Arc<StoredJob>),
    /// Not ours, or not now.
    Not(ClaimRefusal),
}

impl DispatchFlow {
    /// Tries claims, all in one batch of writes, and tells the engine what came of each.
    pub(crate) async fn claim(self: Arc<Self>, claims: Vec<Claim>) {
        if !self.may_claim().await {
            for claim in claims {
                self.refuse(claim, self.rest());
            }
            return;
        }
        let (mut sent, mut patches) = (Vec::new(), Vec::new());
        for claim in claims {
            let token = uuid::Uuid::new_v4().simple().to_string();
            let waiter = self.jobs.waiters.get(claim.offer);
            let set = waiter.map(|waiter| self.claim_patch(&waiter.offerer, &token));
            let Some(set) = set else {
                // Nobody waits any more: the job stays where it is.
                self.refuse(claim, ClaimRefusal::Moved(engine_version(claim.expect)));
                continue;
            };
            sent.push((claim, token));
            patches.push(Patch {
                id: claim.job,
                expect: claim.expect,
                set,
            });
        }
        let watch = Stopwatch::start();
        let outcomes = self.jobs.writer.claim(patches).await;
        self.ctx.metrics.times.claimed(watch.elapsed());
        for ((claim, token), outcome) in sent.into_iter().zip(outcomes) {
            self.claim_ended(claim, token, outcome);
        }
    }

    /// Whether jobs are dispatched at all. A replica that could not read the queues of late, because it or the store
    /// stood still, looks whether the lab was paused meanwhile.
    async fn may_claim(&self) -> bool {
        let now = self.ctx.clock.now();
        if !self
            .people
            .queues
            .are_fresh(Millis(now.0.saturating_sub(PAUSE_KNOWN_MS)))
        {
            // Nobody is passed over meanwhile: the store that does not answer takes no claim either.
            while let Err(error) = self.people.reread_queue(LAB).await {
                tracing::debug!(%error, "claims wait: nobody knows whether the lab is paused");
                if self.ctx.tasks.draining.is_cancelled() {
                    return false;
                }
                self.ctx.clock.sleep(Duration::from_millis(REST_MS)).await;
            }
            self.people.queues.were_read(now);
        }
        self.people.queues.lab_pause().is_none()
    }

    fn claim_ended(
        self: &Arc<Self>,
        claim: Claim,
        token: String,
        outcome: Result<Arc<StoredJob>, ItemError>,
    ) {
        self.ctx.metrics.claim(match &outcome {
            Ok(_) => Claimed::Committed,
            Err(ItemError::Conflict { .. }) => Claimed::Conflict,
            Err(ItemError::Unknown { .. }) => Claimed::Unknown,
            Err(_) => Claimed::Refused,
        });
        match outcome {
            Ok(stored) => self.claimed(claim, &stored),
            Err(error @ (ItemError::Conflict { .. } | ItemError::Unknown { .. })) => {
                let may_land = matches!(error, ItemError::Unknown { .. });
                let flow = Arc::clone(self);
                self.ctx.tasks.spawn(async move {
                    match flow.settle_unknown(claim, &token, may_land).await {
                        Settled::Ours(stored) => flow.claimed(claim, &stored),
                        Settled::Not(refusal) => flow.refuse(claim, refusal),
                    }
                });
            }
            Err(ItemError::Missing) => self.refuse(claim, ClaimRefusal::Gone),
            Err(ItemError::Refused { reason }) => {
                tracing::error!(job_id = %claim.job, reason, "the store refused a claim");
                self.refuse(claim, ClaimRefusal::Gone);
            }
            Err(ItemError::NotTaken { .. }) => self.refuse(claim, self.rest()),
        }
    }

    fn refuse(&self, claim: Claim, refusal: ClaimRefusal) {
        self.ctx.engine.tell(Event::ClaimRefused {
            job: JobKey(claim.job.get()),
            offer: claim.offer,
            refusal,
        });
    }

    fn claimed(self: &Arc<Self>, claim: Claim, stored: &Arc<StoredJob>) {
        // The asker hung up while the store was busy: it was never delivered.
        if !self.jobs.claim_committed(claim.offer, stored) {
            let (flow, claim) = (Arc::clone(self), KnownClaim::of(&stored.state));
            self.ctx.tasks.spawn(async move {
                flow.jobs.give_back(&claim, "nobody took the answer").await;
            });
        }
    }

    /// Reads back, and lets only an acknowledged write decide. `may_land`: the claim may still be on its way to the store.
    async fn settle_unknown(&self, claim: Claim, token: &str, may_land: bool) -> Settled {
        let job = claim.job;
        for _ in 0..SETTLE_TRIES_MAX {
            let Ok(mut found) = self.ctx.store.get(&[job]).await else {
                return Settled::Not(self.rest());
            };
            let newest = |stored: &StoredJob| stored.version >= claim.expect;
            let Some(stored) = found.pop().flatten().filter(newest) else {
                // A copy that lags behind what was known says nothing.
                return Settled::Not(self.rest());
            };
            let ours = stored.state.claim_token == token && stored.state.stage == Stage::Dispatch;
            let waits = stored.state.stage == Stage::Submit && stored.state.ready;
            if !ours && !waits && !may_land {
                // Should it vanish, it is known to be in doubt.
                self.jobs.observe(&stored);
                return Settled::Not(ClaimRefusal::Gone);
            }
            // Ours as it seems: confirm. Another's or still waiting as it seems: fence, so that a claim of ours that is
            // still on its way can no longer land, also if that state vanishes.
            let (wanted, patch) = touch(&stored);
            match self.jobs.writer.patch(patch).await {
                Ok(version) if waits => {
                    return Settled::Not(ClaimRefusal::Moved(engine_version(version)));
                }
                Ok(version) => {
                    let fenced = Arc::new(StoredJob {
                        state: wanted,
                        version,
                    });
                    if ours {
                        return Settled::Ours(fenced);
                    }
                    self.jobs.observe(&fenced);
                    return Settled::Not(ClaimRefusal::Gone);
                }
                Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => {}
                Err(ItemError::Missing | ItemError::Refused { .. }) => {
                    return Settled::Not(ClaimRefusal::Gone);
                }
                Err(ItemError::NotTaken { .. }) => return Settled::Not(self.rest()),
            }
        }
        Settled::Not(self.rest())
    }

    fn rest(&self) -> ClaimRefusal {
        ClaimRefusal::Unavailable {
            until: Millis(self.ctx.clock.now().0.saturating_add(REST_MS)),
        }
    }

    fn claim_patch(&self, offerer: &Requester, token: &str) -> StatePatch {
        let wall_ms = self.ctx.clock.wall_ms();
        StatePatch::claim(&fairlead_store::ClaimFields {
            host: &offerer.host,
            host_group: &offerer.group,
            host_memory_mb: offerer.memory_mb,
            host_cpus: offerer.cpus.unwrap_or(0),
            host_class: &offerer.class,
            session: &offerer.session,
            request: offerer.request,
            claim_token: token,
            replica: &self.ctx.config.replica,
            dispatch_ms: wall_ms,
        })
    }

    /// Hands a job that was only dispatched to its host's new session: same attempt, new token.
    pub(crate) async fn claim_again(
        self: &Arc<Self>,
        id: JobId,
        old_token: &str,
        offerer: &Requester,
    ) -> Option<Changed> {
        let token = uuid::Uuid::new_v4().simple().to_string();
        let changed = self
            .jobs
            .change(id, |state| {
                if state.stage != Stage::Dispatch || state.claim_token != old_token {
                    return Ok(None);
                }
                Ok(self.claim_patch(offerer, &token).apply(state))
            })
            .await
            .ok()?;
        (changed.after.state.claim_token == token).then_some(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use fairlead_store::JobState;

    use super::*;
    use crate::testing::{flows, state, store_job};
    use fairlead_base::mailbox::Message;

    /// It was taken for gone, and waited for ever.
    #[tokio::test]
    async fn a_read_that_lags_behind_what_is_known_says_nothing() {
        let (_data, flows) = flows().await;
        let parked = JobState {
            ready: false,
            ..state(7)
        };
        let job = store_job(&flows, parked).await;
        let claim = |expect| Claim {
            job: job.state.job_id,
            expect,
            offer: OfferKey(1),
        };
        let known = flows
            .dispatching
            .settle_unknown(claim(job.version), "t", false)
            .await;
        assert!(
            matches!(known, Settled::Not(ClaimRefusal::Gone)),
            "{known:?}"
        );
        let newer = Version {
            seq_no: job.version.seq_no + 1,
            ..job.version
        };
        for expect in [
            newer,
            Version {
                primary_term: 2,
                ..newer
            },
        ] {
            let lags = flows
                .dispatching
                .settle_unknown(claim(expect), "t", false)
                .await;
            let rests = matches!(lags, Settled::Not(ClaimRefusal::Unavailable { .. }));
            assert!(rests, "{lags:?}");
        }
    }

    /// Another's state was believed. It vanished, the claim landed, and the request had more jobs than it had room for.
    #[tokio::test]
    async fn a_claim_that_may_still_land_is_fenced_whatever_a_read_shows() {
        let (_data, flows) = flows().await;
        let others = JobState {
            stage: Stage::Dispatch,
            claim_token: "other".to_owned(),
            ..state(7)
        };
        let job = store_job(&flows, others).await;
        let claim = Claim {
            job: job.state.job_id,
            expect: job.version,
            offer: OfferKey(1),
        };
        for (may_land, is_fenced) in [(false, false), (true, true)] {
            let settled = flows.dispatching.settle_unknown(claim, "t", may_land).await;
            let is_gone = matches!(settled, Settled::Not(ClaimRefusal::Gone));
            assert!(is_gone, "{settled:?}");
            let now = flows.ctx.store.get(&[claim.job]).await.unwrap().remove(0);
            assert_eq!(now.unwrap().version > job.version, is_fenced);
        }
    }

    /// An answer that was quicker than the claim's own task was taken for one that nobody took, and the
    /// job went to a second host.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_answer_however_quick_does_not_put_the_job_back() {
        let (_data, flows) = flows().await;
        let over = Arc::new(AtomicBool::new(false));
        let (answering, ended) = (Arc::clone(&flows), Arc::clone(&over));
        // The engine at its quickest: each committed claim is answered at once.
        let engine = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for message in answering.ctx.engine.take() {
                    if let Message::Event(event) = message
                        && let Event::ClaimCommitted { job, offer, .. } = *event
                    {
                        answering
                            .dispatching
                            .answer_waiter(offer, vec![JobId::new(job.0)]);
                    }
                }
            }
        });
        for n in 1..=300 {
            let job = store_job(
                &flows,
                JobState {
                    stage: Stage::Dispatch,
                    host: "h".to_owned(),
                    ..state(n)
                },
            )
            .await;
            let (offer, told) = flows.hosts.waiter_of("h");
            let claim = Claim {
                job: job.state.job_id,
                expect: job.version,
                offer,
            };
            flows.dispatching.claimed(claim, &Arc::new(job));
            assert_eq!(told.await.unwrap(), [claim.job]);
            assert!(
                flows.jobs.live.get(claim.job).is_some(),
                "job {n} was put back"
            );
        }
        over.store(true, Ordering::Relaxed);
        engine.join().unwrap();
    }
}
