//! Forgets hosts that are gone for good, and sees to the jobs that waited for them alone.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_job::{JobId, Stage};
use fairlead_store::{JobState, Search, StoreError};

use crate::{hosts::HostFlow, placement::feasibility::fits_template};
use fairlead_base::{
    errors::{HostError, JobError, Refusal},
    names::HEALTH_CHECK,
};
use fairlead_known::{
    cordons::Cordon,
    host_turns::TurnDoc,
    hosts::{GONE_MS, Host},
};
use fairlead_lifecycle::{alarm::anywhere, attempt::cancelled};

/// Health checks that wait, of one look.
const CHECKS_MAX: u32 = 1_000;
/// Jobs that wait for another host, of one look.
const ALARMS_MAX: u32 = 10_000;

impl HostFlow {
    /// Forgets a host: what is registered of it, and for whom it is kept. One that asks again later is new. A host that an
    /// admin closed stays closed by its name: it may only have been silent.
    pub(crate) async fn forget_host(self: &Arc<Self>, name: &str) -> Result<(), Refusal> {
        self.know_host(name).await?;
        let turn = self.ctx.docs.read::<TurnDoc>(name).await?;
        let turn = turn.map(|read| read.doc).unwrap_or_default();
        let jobs = self.count_held(name, &turn).await?;
        if jobs > 0 || self.is_heard_anywhere(name, &turn) {
            let name = name.to_owned();
            return Err(HostError::NotGone { name, jobs }.into());
        }
        self.forget_documents(name, Cordon::is_shut).await
    }

    /// Whether a replica hears of the host: this one, or another one by the documents in the store.
    fn is_heard_anywhere(&self, name: &str, turn: &TurnDoc) -> bool {
        let now_ms = self.ctx.clock.wall_ms();
        let known = self.lab.hosts.get(name).unwrap_or_default();
        let silent_ms = now_ms.saturating_sub(known.seen_ms);
        if known.waiting > 0 || (known.registered.is_none() && silent_ms < GONE_MS) {
            return true;
        }
        let asks_elsewhere = turn.replica != self.ctx.replicas.run && turn.alive_ms > now_ms;
        if turn.retired || turn.replica.is_empty() || !asks_elsewhere {
            return false;
        }
        let replicas = self.ctx.replicas.peers(self.ctx.clock.now());
        replicas.iter().any(|peer| peer.run == turn.replica)
    }

    /// Forgets what is known of a host that is gone. What keeps jobs off it goes last: one that is half forgotten gets no job
    /// by that.
    pub(crate) async fn forget_documents(
        self: &Arc<Self>,
        name: &str,
        stays: fn(&Cordon) -> bool,
    ) -> Result<(), Refusal> {
        let known = self.lab.hosts.get(name);
        self.ctx.docs.delete::<Host>(name).await?;
        unless_none(self.unreserve_host(name).await)?;
        let closure = self.ctx.docs.read::<Cordon>(name).await?;
        let closure = closure.map(|read| read.doc);
        if let Some(check) = closure.as_ref().and_then(|cordon| cordon.check.as_ref()) {
            self.end_check(check.job_id, name).await?;
        }
        if !closure.as_ref().is_some_and(stays) {
            unless_none(self.open_host(name).await)?;
        }
        self.lab.hosts.0.remove(name);
        if let Some(host) = known {
            self.avoid_no_more(name, &host).await;
        }
        Ok(())
    }

    /// A health check that waits for a host that is gone ends.
    async fn end_check(self: &Arc<Self>, id: JobId, host: &str) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        let reason = format!("host {host} is gone");
        let end = |state: &JobState| {
            let waits = state.stage == Stage::Submit;
            Ok(waits.then(|| cancelled(state, now_ms, &reason)))
        };
        match self.jobs.change(id, end).await {
            // Whoever wrote it down did not make it.
            Ok(_) | Err(Refusal::Job(JobError::Unknown(_))) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Ends the health checks that wait for machines that retired: they were made by replicas that did not know it yet.
    pub(crate) async fn end_stray_checks(self: &Arc<Self>) -> Result<(), StoreError> {
        let search = Search {
            stages: vec![Stage::Submit],
            accounts: vec![HEALTH_CHECK.to_owned()],
            limit: CHECKS_MAX,
            ..Search::default()
        };
        let checks = self.ctx.store.search(&search).await?.jobs;
        let named: BTreeSet<&str> = checks
            .iter()
            .flat_map(|job| hosts_of(&job.state))
            .flatten()
            .collect();
        let named: Vec<String> = named.into_iter().map(str::to_owned).collect();
        let turns = self
            .ctx
            .docs
            .read_some::<TurnDoc>(&named)
            .await?
            .into_iter();
        let gone: BTreeSet<String> = turns
            .filter_map(|(host, turn)| turn.doc.retired.then_some(host))
            .collect();
        let is_gone = |host: Option<&str>| host.is_some_and(|host| gone.contains(host));
        for job in checks {
            let Some(host) = hosts_of(&job.state).next().flatten() else {
                continue;
            };
            if !hosts_of(&job.state).all(is_gone) {
                continue;
            }
            if let Err(refusal) = self.end_check(job.state.job_id, host).await {
                tracing::warn!(host, error = %refusal, "a health check of a machine that is gone could not be ended; it is tried again");
            }
        }
        Ok(())
    }

    /// Jobs that are kept off hosts where they failed may have waited for this one. If no other could run them, they may
    /// run anywhere.
    async fn avoid_no_more(self: &Arc<Self>, name: &str, host: &Host) {
        let until_ms = self
            .ctx
            .clock
            .wall_ms()
            .saturating_add(JobState::ELSEWHERE_MS)
            .saturating_add(1);
        let waited = |state: &JobState| {
            let avoids = state.stage == Stage::Submit && !state.not_on.is_empty();
            avoids
                && !state.not_on.iter().any(|not| not == name)
                && fits_template(state, name, host)
        };
        let page = match self.ctx.store.alarms(until_ms, ALARMS_MAX).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(host = name, %error, "jobs that waited for a host that is gone could not be read; they wait an hour at most");
                return;
            }
        };
        for job in page.jobs.iter().filter(|job| waited(&job.state)) {
            let next = |state: &JobState| {
                let is_stuck = waited(state) && !self.placement.has_elsewhere(state);
                Ok(is_stuck.then(|| anywhere(state, "the other hosts are gone")))
            };
            let id = job.state.job_id;
            if let Err(refusal) = self.jobs.change(id, next).await {
                tracing::warn!(job_id = %id, error = %refusal, "a job waited for a host that is gone; it waits an hour at most");
            }
        }
    }
}

/// The hosts that a job waits for; `None` among them: any.
fn hosts_of(state: &JobState) -> impl Iterator<Item = Option<&str>> {
    let keys = state.host_keys.iter();
    keys.map(|key| key.split_once('@').map(|(_, host)| host))
}

/// Nothing to open or to give back is as good.
fn unless_none(outcome: Result<(), Refusal>) -> Result<(), Refusal> {
    match outcome {
        Err(Refusal::Host(HostError::NotClosed(_) | HostError::NotReserved(_))) => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::TboxType;

    use super::*;
    use crate::testing::{flows, flows_beside, state, store_job};
    use fairlead_known::{accounts::Who, cordons::CordonKind, work_request::WorkRequest};

    /// Its agent asked at another replica. It was forgotten with its cordon, and got a job.
    #[tokio::test]
    async fn a_host_that_another_replica_hears_of_is_not_forgotten() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let registered = serde_json::json!({"kinds": "dc", "memory_mb": 1024, "arch": "x86_64"});
        let open = Who::health_checks();
        let body = registered.as_object().unwrap();
        a.hosts.register_host("h", body, &open).await.unwrap();
        let request = serde_json::json!({
            "session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 1024, "free_memory_mb": 1024,
        });
        let ask = WorkRequest::of("h", serde_json::from_value(request).unwrap()).unwrap();
        a.hosts.take_turn(&ask).await.unwrap();
        a.hosts
            .close_host("h", CordonKind::Cordon, "it burns", "ann")
            .await
            .unwrap();
        a.peers.join().await.unwrap();
        b.peers.join().await.unwrap();
        let refused = b.hosts.forget_host("h").await.unwrap_err();
        assert!(refused.to_string().contains('h'), "{refused}");
        // The one that served it knows that it asks no more.
        a.hosts.forget_host("h").await.unwrap();
        assert!(a.hosts.lab.hosts.get("h").is_none() && a.hosts.lab.cordons.is_shut("h"));
    }

    #[tokio::test]
    async fn a_job_waits_for_no_host_that_is_gone() {
        let (_data, flows) = flows().await;
        let known = Host {
            kinds: vec![TboxType::Dc],
            arch: "x86_64".to_owned(),
            memory_mb: 4_096,
            ..Host::default()
        };
        for name in ["bad", "good", "spare"] {
            let update = |host: &mut Host| *host = known.clone();
            flows.hosts.lab.hosts.update(name, update).unwrap();
        }
        let kept_off = JobState {
            tbox_type: TboxType::Dc,
            host_keys: vec!["dc.x86_64".to_owned()],
            memory_mb: 1_024,
            not_on: vec!["bad".to_owned()],
            reason: "attempt 1 ended".to_owned(),
            ..state(1)
        };
        let id = store_job(&flows, kept_off.set_alarm()).await.state.job_id;
        let read = async || {
            flows
                .ctx
                .store
                .get(&[id])
                .await
                .unwrap()
                .remove(0)
                .unwrap()
                .state
        };
        flows
            .hosts
            .forget_documents("spare", |_| false)
            .await
            .unwrap();
        assert_eq!(read().await.not_on, ["bad"], "host good is left");
        flows
            .hosts
            .forget_documents("good", |_| false)
            .await
            .unwrap();
        let job = read().await;
        assert!(job.not_on.is_empty() && job.ready, "{job:?}");
        let reason = "attempt 1 ended; the other hosts are gone: it may run again where it failed";
        assert_eq!(job.reason, reason);
    }
}
