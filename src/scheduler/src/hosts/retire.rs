//! Machines that go for good: from then on no replica gives them a job.

use fairlead_store::{ItemError, JobState, StoreError};

use crate::hosts::HostFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::{host_turns::TurnDoc, outbox::HintedHost};

/// How often it is tried while the host asks.
const TRIES_MAX: usize = 4;
/// How long it is remembered that a machine retired, ms: a day. One that its provider did not end after all gets no job.
const REMEMBERED_MS: u64 = 86_400_000;

impl HostFlow {
    /// Takes the turn of a host for good. `false`: it has a job, or may have one, and nothing is changed.
    pub(crate) async fn retire_host(&self, host: &str) -> Result<bool, Refusal> {
        for _ in 0..TRIES_MAX {
            let read = self.ctx.docs.read::<TurnDoc>(host).await?;
            let present = read
                .as_ref()
                .map(|read| read.doc.clone())
                .unwrap_or_default();
            if present.retired {
                return Ok(true);
            }
            if self.count_held(host, &present).await? > 0 {
                return Ok(false);
            }
            let doc = TurnDoc {
                turn: uuid::Uuid::new_v4().simple().to_string(),
                retired: true,
                jobs: Vec::new(),
                at_ms: self.ctx.clock.wall_ms().saturating_add(REMEMBERED_MS),
                ..present
            };
            match self.ctx.docs.put(host, read.as_ref(), Some(&doc)).await {
                Ok(version) => {
                    let moved = HintedHost::of(host, version);
                    self.host_moved(&moved);
                    self.ctx.outbox.host(&moved);
                    return Ok(true);
                }
                // It asked meanwhile, or nobody knows.
                Err(ItemError::Conflict { .. } | ItemError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// How many jobs the host has: by its session document, which names all that was handed to it, and by what is known
    /// here, read in real time.
    pub(crate) async fn count_held(&self, host: &str, present: &TurnDoc) -> Result<usize, Refusal> {
        let known = self.jobs.live.of_host(host).into_iter();
        let mut ids: Vec<_> = known.map(|live| live.stored.state.job_id).collect();
        ids.extend(&present.jobs);
        ids.sort_unstable();
        ids.dedup();
        let found = self.ctx.store.get(&ids).await?;
        let holds = |state: &JobState| state.stage.is_held() && state.host == host;
        let found = found.iter().flatten();
        Ok(found.filter(|job| holds(&job.state)).count())
    }

    /// Whether a machine of this name goes for good.
    pub(crate) async fn is_retired(&self, host: &str) -> Result<bool, Refusal> {
        let read = self.ctx.docs.read::<TurnDoc>(host).await?;
        Ok(read.is_some_and(|read| read.doc.retired))
    }

    /// A new machine may have the name of one that retired.
    pub(crate) async fn welcome_host(&self, host: &str) -> Result<(), Refusal> {
        let read = self.ctx.docs.read::<TurnDoc>(host).await?;
        if read.is_some_and(|read| read.doc.retired) {
            self.ctx.docs.delete::<TurnDoc>(host).await?;
            self.host_turns.0.remove(host);
        }
        Ok(())
    }

    /// Forgets machines that retired a day ago.
    pub(crate) async fn forget_old_turns(&self) -> Result<(), StoreError> {
        self.ctx
            .docs
            .forget_due::<TurnDoc>(self.ctx.clock.wall_ms())
            .await
    }
}
