//! Two agents of one name: decides which of them has the host, and when the other one may take it.
//!
//! An agent names its `instance`: its work folder and the boot of its machine. The host's session document keeps the
//! instance that has the turn. The same instance takes over at once, as after a restart of the agent. Another instance
//! takes over when no replica heard of the first for two heartbeats. Until then it is refused, and the first is
//! untouched. Older agents and machines that boot over the network name no instance, and are not checked.

use std::sync::Arc;

use fairlead_api::ConflictView;

use crate::hosts::HostFlow;
use fairlead_base::errors::{HostError, Refusal};
use fairlead_known::instances::{Holder, MISSED_BEATS, Refused, SHOWN_MS};

/// An open request of an agent: it lives as long as this.
#[derive(Debug)]
pub(crate) struct Presence {
    flow: Arc<HostFlow>,
    host: String,
    session: String,
}

impl Drop for Presence {
    fn drop(&mut self) {
        let now = self.flow.ctx.clock.now();
        self.flow.instances.end(&self.host, &self.session, now);
    }
}

impl HostFlow {
    /// Notes a request of an agent, as long as it is open.
    pub(crate) fn presence(
        self: &Arc<Self>,
        host: &str,
        session: &str,
    ) -> Result<Presence, Refusal> {
        self.lab.hosts.check_room(host)?;
        self.instances.begin(host, session, self.ctx.clock.now());
        Ok(Presence {
            flow: Arc::clone(self),
            host: host.to_owned(),
            session: session.to_owned(),
        })
    }

    /// Whether `instance` may take the host from this holder; a refusal when that one lives.
    pub(crate) async fn may_take_over(
        &self,
        host: &str,
        holder: Holder<'_>,
        instance: &str,
    ) -> Result<(), Refusal> {
        let is_other = holder.instance != instance;
        if !is_other || holder.instance.is_empty() || instance.is_empty() {
            return Ok(());
        }
        let patience_ms = self.ctx.config.heartbeat_ms.saturating_mul(MISSED_BEATS);
        let (now, wall_ms) = (self.ctx.clock.now(), self.ctx.clock.wall_ms());
        // A replica that has just begun has heard of nobody yet.
        let is_new = self.ctx.clock.age_ms() < patience_ms;
        let asks_elsewhere =
            !holder.is_here && wall_ms < holder.asks_until_ms.saturating_add(patience_ms);
        let lives = is_new
            || asks_elsewhere
            || self
                .instances
                .is_heard(host, holder.session, now, patience_ms)
            || wall_ms < self.beat_ms(host).await?.saturating_add(patience_ms);
        if !lives {
            tracing::warn!(
                host,
                instance,
                "another agent takes over this host, because the previous one is silent"
            );
            return Ok(());
        }
        let refused = Refused {
            instance: instance.to_owned(),
            at: now,
            at_ms: wall_ms,
        };
        self.instances.refused.insert(host.to_owned(), refused);
        Err(HostError::OtherAgent(host.to_owned()).into())
    }

    /// The last instance that was refused, if that is not long ago.
    pub(crate) fn conflict(&self, host: &str) -> Option<ConflictView> {
        let refused = self.instances.refused.get(host)?;
        let is_now = self.ctx.clock.now().0.saturating_sub(refused.at.0) < SHOWN_MS;
        is_now.then(|| ConflictView {
            instance: refused.instance.clone(),
            at_ms: refused.at_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::Millis;

    use fairlead_api::ErrorCode;

    use super::*;
    use crate::testing::{flows, flows_beside};
    use fairlead_known::instances::{Instances, SESSIONS_MAX};

    fn holder<'a>(instance: &'a str, session: &'a str) -> Holder<'a> {
        Holder {
            instance,
            session,
            is_here: true,
            asks_until_ms: 0,
        }
    }

    #[test]
    fn a_session_is_heard_while_it_asks_and_for_a_while_after() {
        let instances = Instances::default();
        let heard = |now| instances.is_heard("h", "s", Millis(now), 20);
        assert!(!heard(0));
        instances.begin("h", "s", Millis(0));
        assert!(heard(1_000), "its request is open");
        instances.end("h", "s", Millis(1_000));
        assert!(heard(1_019) && !heard(1_020));
        for n in 0..10 {
            instances.begin("h", &format!("other{n}"), Millis(n));
        }
        assert_eq!(instances.heard.get("h").unwrap().len(), SESSIONS_MAX);
    }

    #[tokio::test]
    async fn another_instance_is_refused_while_the_first_lives_and_is_shown() {
        let (_data, flows) = flows().await;
        let refused = flows.hosts.may_take_over("h", holder("a", "s"), "b").await;
        assert_eq!(refused.unwrap_err().body().code, ErrorCode::HostConflict);
        assert_eq!(flows.hosts.conflict("h").unwrap().instance, "b");
        assert!(flows.hosts.conflict("other").is_none());
        for (has, asks) in [("a", "a"), ("", "b"), ("a", "")] {
            let allowed = flows.hosts.may_take_over("h", holder(has, "s"), asks).await;
            assert!(allowed.is_ok(), "{has:?} {asks:?}");
        }
    }

    #[tokio::test]
    async fn another_instance_takes_over_when_no_replica_hears_of_the_first() {
        let (_data, flows) = flows().await;
        let mut config = flows.ctx.config.clone();
        // Two heartbeats are over at once.
        config.heartbeat_ms = 0;
        let a = crate::testing::flows_over(
            Arc::clone(&flows.ctx.store),
            config,
            flows.ctx.clock.clone(),
        );
        assert!(
            a.hosts
                .may_take_over("h", holder("a", "s"), "b")
                .await
                .is_ok()
        );
        let open = a.hosts.presence("h", "s").unwrap();
        assert!(
            a.hosts
                .may_take_over("h", holder("a", "s"), "b")
                .await
                .is_err()
        );
        drop(open);
        assert!(
            a.hosts
                .may_take_over("h", holder("a", "s"), "b")
                .await
                .is_ok()
        );
        let elsewhere = Holder {
            is_here: false,
            asks_until_ms: a.ctx.clock.wall_ms() + 60_000,
            ..holder("a", "s")
        };
        assert!(a.hosts.may_take_over("h", elsewhere, "b").await.is_err());
    }

    #[tokio::test]
    async fn what_another_replica_hears_of_a_running_job_counts() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        assert_eq!(b.hosts.beat_ms("h").await.unwrap(), 0);
        let held = [(fairlead_job::JobId::new(7), "t".to_owned())];
        a.hosts.renew("h", &held).await.unwrap();
        assert!(b.hosts.beat_ms("h").await.unwrap() > 0);
    }
}
