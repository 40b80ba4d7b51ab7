//! Hosts that get no new job: an admin cordoned them, or they failed too often (`suspect`).
//!
//! Each cordon is its own small document, because testboxes write the document that describes the host. Every replica
//! reads cordons every other second. A request of a cordoned host waits like any other and is answered empty. Jobs on
//! the host continue. A suspect host gets only health checks (`health_checks`).

use std::{future::ready, time::Duration};

use fairlead_dispatch::{Event, Millis};
use fairlead_store::{ItemError, StoreError, Version};
use serde_json::json;

use crate::hosts::HostFlow;
use fairlead_base::{
    errors::{HostError, Refusal},
    names::check_name,
    storage::small_doc::{DocError, Stored},
};
use fairlead_known::cordons::{Cordon, CordonKind, REASON_MAX};

impl HostFlow {
    /// Reads which hosts are closed. Requests of those that are so now are answered.
    pub(crate) async fn reload_closures(&self) -> Result<(), StoreError> {
        let read = self.ctx.docs.list::<Cordon>().await?;
        if self.lab.cordons.with(|known| known.listed(read)) {
            // Whoever opens it again begins a new count everywhere.
            let is_open = |host: &String| self.lab.cordons.of(host).is_none();
            self.lab.cordons.streaks.retain(|host, _| is_open(host));
            self.closures_changed();
        }
        Ok(())
    }

    fn closures_changed(&self) {
        self.lab.cordons.changed();
        if self.lab.hosts.count_loaded(self.ctx.clock.now()) > 0 {
            self.tell_closed();
        }
        self.jobs.waiters.hurry(|waiter| {
            self.lab.cordons.is_shut(&waiter.offerer.host) || self.placement.is_outdated(waiter)
        });
    }

    /// Tells the engine which hosts are closed. It matters only where hosts are loaded: no job waits for a closed one.
    pub(crate) fn tell_closed(&self) {
        let names = self.lab.cordons.with(|known| {
            let names = known.iter().map(|(host, _)| host.clone());
            names.collect()
        });
        self.ctx.engine.tell(Event::HostsClosed(names));
    }

    /// Waits while a host gets no job at all, until `until` at most; says whether it gets some.
    pub(crate) async fn opens(&self, host: &str, until: Millis) -> bool {
        loop {
            // Begins before the look, so that no change is missed. Whoever waits longest is told first.
            let change = self.lab.cordons.changes.notified();
            if !self.lab.cordons.is_shut(host) {
                return true;
            }
            let left_ms = until.0.saturating_sub(self.ctx.clock.now().0);
            if left_ms == 0 {
                return false;
            }
            tokio::select! {
                biased;
                () = self.ctx.tasks.draining.cancelled() => return false,
                () = change => {}
                () = self.ctx.clock.sleep(Duration::from_millis(left_ms)) => {}
            }
        }
    }

    /// Closes a host. Closing it again changes why.
    pub(crate) async fn close_host(
        &self,
        host: &str,
        how: CordonKind,
        reason: &str,
        by: &str,
    ) -> Result<(), Refusal> {
        check_name("hostname", host)?;
        let closure = self.closure(how, reason, by);
        let next = |_| ready(Ok::<_, DocError>(closure.clone()));
        let stored = self.ctx.docs.change(host, next).await?;
        self.closure_is(host, stored.version, Some(stored.doc));
        Ok(())
    }

    /// A closure from now on.
    fn closure(&self, how: CordonKind, reason: &str, by: &str) -> Cordon {
        Cordon {
            how,
            reason: reason.chars().take(REASON_MAX).collect(),
            by: by.to_owned(),
            at_ms: self.ctx.clock.wall_ms(),
            check: None,
        }
    }

    /// Opens a host again.
    pub(crate) async fn open_host(&self, host: &str) -> Result<(), Refusal> {
        check_name("hostname", host)?;
        let Some(version) = self.ctx.docs.delete::<Cordon>(host).await? else {
            return Err(HostError::NotClosed(host.to_owned()).into());
        };
        self.closure_is(host, version, None);
        Ok(())
    }

    /// Writes a closure over this one, or where there is none; `None` opens the host. `false`: somebody else changed it.
    pub(crate) async fn write_closure(
        &self,
        host: &str,
        over: Option<&Stored<Cordon>>,
        closure: Option<Cordon>,
    ) -> Result<bool, ItemError> {
        match self.ctx.docs.put(host, over, closure.as_ref()).await {
            Ok(version) => {
                self.closure_is(host, version, closure);
                Ok(true)
            }
            Err(ItemError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn closure_is(&self, host: &str, version: Version, closure: Option<Cordon>) {
        self.lab
            .cordons
            .with(|known| known.wrote(host, version, closure));
        self.lab.cordons.streaks.remove(host);
        self.lab.cordons.evidence.lock().forget(host);
        self.closures_changed();
    }

    /// Writes the cordons of hosts that this replica found suspect. It gives them no job meanwhile.
    pub(crate) async fn put_suspects_aside(&self) {
        let found = self.lab.cordons.found_suspect.lock().clone();
        for (host, reason) in found {
            if self.put_aside(&host, &reason).await {
                self.lab.cordons.found_suspect.lock().remove(&host);
            }
        }
    }

    /// Whether the host has a cordon now.
    async fn put_aside(&self, host: &str, reason: &str) -> bool {
        let closure = self.closure(CordonKind::Suspect, reason, &self.ctx.config.replica);
        match self.write_closure(host, None, Some(closure)).await {
            Ok(true) => {
                tracing::warn!(host, reason, "the host is suspect and gets no new job");
                let detail = json!({ "reason": reason });
                self.ctx
                    .audit(&self.ctx.config.replica, "host.suspect", host, detail);
                true
            }
            // Somebody else closed it.
            Ok(false) => true,
            Err(error) => {
                tracing::warn!(host, reason, %error, "a suspect host could not be cordoned; other replicas still give it jobs");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_job::Health;
    use fairlead_job::Stage;
    use fairlead_store::JobState;

    use fairlead_api::ErrorCode;

    use super::*;
    use crate::testing::{flows, flows_beside, state};
    use fairlead_base::names::HEALTH_CHECK;

    fn ended(host: &str, account: &str, dispatch_ms: u64, health: Health) -> (JobState, JobState) {
        let held = JobState {
            stage: Stage::Running,
            host: host.to_owned(),
            account: account.to_owned(),
            dispatch_ms,
            ..state(dispatch_ms + 1)
        };
        let after = JobState {
            stage: Stage::Finish,
            health,
            ..held.clone()
        };
        (held, after)
    }

    #[tokio::test]
    async fn a_host_that_fails_jobs_of_several_accounts_is_put_aside() {
        let (_data, flows) = flows().await;
        let now_ms = flows.ctx.clock.wall_ms();
        let count = |(before, after)| flows.jobs.count_host_failure(&before, &after);
        let fail = |account: &str, at| {
            count(ended("h", account, now_ms + at, Health::AbortProvider));
        };
        // Of one trouble: what was under way when it began does not count again.
        fail("ann", 0);
        count(ended("h", "bob", 1, Health::AbortProvider));
        // What the job itself did speaks for the host.
        fail("bob", 60_000);
        count(ended("h", "bob", now_ms + 61_000, Health::Fail));
        fail("ann", 120_000);
        fail("ann", 180_000);
        fail("ann", 240_000);
        flows.hosts.put_suspects_aside().await;
        assert_eq!(
            flows.hosts.lab.cordons.of("h"),
            None,
            "of one account alone"
        );
        let (offer, _told) = flows.hosts.waiter_of("h");
        fail("bob", 300_000);
        assert_eq!(
            flows.placement.served_accounts("h"),
            [HEALTH_CHECK],
            "at once"
        );
        let hurry = Arc::clone(&flows.jobs.waiters.get(offer).unwrap().hurry);
        hurry.notified().await;
        flows.hosts.put_suspects_aside().await;
        assert!(flows.hosts.lab.cordons.found_suspect.lock().is_empty());
        let other = flows_beside(&flows);
        other.hosts.reload_closures().await.unwrap();
        assert_eq!(
            other.hosts.lab.cordons.of("h").map(|closure| closure.how),
            Some(CordonKind::Suspect)
        );
    }

    #[tokio::test]
    async fn a_closed_host_waits_until_it_is_opened() {
        let (_data, flows) = flows().await;
        let soon = Millis(flows.ctx.clock.now().0 + 10);
        flows
            .hosts
            .close_host("h", CordonKind::Drain, "new disk", "ann")
            .await
            .unwrap();
        assert!(!flows.hosts.opens("h", soon).await);
        assert!(flows.hosts.opens("other", soon).await);
        let late = Millis(flows.ctx.clock.now().0 + 60_000);
        let (opened, done) = tokio::join!(flows.hosts.opens("h", late), flows.hosts.open_host("h"));
        assert!(opened && done.is_ok());
        let again = flows.hosts.open_host("h").await.unwrap_err();
        assert_eq!(again.body().code, ErrorCode::NotFound);
    }

    #[test]
    fn a_host_says_how_it_is_closed() {
        let closure = Cordon {
            how: CordonKind::Drain,
            reason: "new disk".to_owned(),
            by: "ann".to_owned(),
            at_ms: 5,
            check: None,
        };
        assert_eq!(
            (closure.state(2), closure.state(0)),
            ("draining", "drained")
        );
        assert!(closure.words().contains("ann") && closure.words().ends_with(": new disk"));
        assert_eq!(closure.view().how, "drain");
    }
}
