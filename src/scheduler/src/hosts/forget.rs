//! Forgets hosts that are gone for good.

use crate::{
    base::errors::{HostError, Refusal},
    core::Core,
    known::hosts::{GONE_MS, Host},
};

impl Core {
    /// Forgets a host: what is registered of it, what closes it, and for whom it is kept. One that asks again later is new.
    pub(crate) async fn forget_host(&self, name: &str) -> Result<(), Refusal> {
        self.know_host(name).await?;
        let known = self.lab.hosts.get(name).unwrap_or_default();
        let silent_ms = self.clock.wall_ms().saturating_sub(known.seen_ms);
        let is_heard = known.waiting > 0 || (known.registered.is_none() && silent_ms < GONE_MS);
        let jobs = self.jobs.live.of_host(name).len();
        if is_heard || jobs > 0 {
            let name = name.to_owned();
            return Err(HostError::NotGone { name, jobs }.into());
        }
        self.forget_documents(name).await
    }

    /// Forgets what is known of a host that is gone. What keeps jobs off it goes last: one that is half forgotten gets no job
    /// by that.
    pub(crate) async fn forget_documents(&self, name: &str) -> Result<(), Refusal> {
        self.docs.delete::<Host>(name).await?;
        unless_none(self.unreserve_host(name).await)?;
        unless_none(self.open_host(name).await)?;
        self.lab.hosts.0.remove(name);
        Ok(())
    }
}

/// Nothing to open or to give back is as good.
fn unless_none(outcome: Result<(), Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(Refusal::Host(HostError::NotClosed(_) | HostError::NotReserved(_))) => Ok(()),
        outcome => outcome,
    }
}
