//! Leases: shares signs of life between replicas, in one small document per host, changed by compare-and-set.
//!
//! A host that names its jobs renews their leases: here at once, and in its lease document before the answer, for the
//! other replicas. Each change of the document is a sign of life of the jobs in it. A lease is lost when its agent was
//! silent for `lease_ms` on this replica's own monotonic clock, while the store could be read. The replica that finds
//! this first writes it into the document. So a renewal comes before that write, and the lease lives, or after it, and
//! the host is told. A start, an outage of the store and a pause of this process do not count as silence: they requeue
//! no job.

use std::{collections::BTreeSet, future::ready, sync::Arc, time::Duration};

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::{JobState, StoreError};
use serde_json::json;

use crate::{hosts::HostFlow, jobs::time_limits::Passed};
use fairlead_base::{errors::Refusal, storage::small_doc::DocError};
use fairlead_known::leases::{Held, LOST_MAX, LeaseDoc};
use fairlead_lifecycle::attempt::BOOT_SESSION;

/// Looks in a lease.
const LOOKS: u64 = 12;
/// Shortest and longest time between looks, ms.
const LOOK_MS: std::ops::RangeInclusive<u64> = 100..=5_000;

impl HostFlow {
    /// Renews the leases of these jobs for all replicas. Answers the tokens of those that were lost before:
    /// the host must stop them.
    ///
    /// # Errors
    /// The store did not take it: nobody is renewed, and the agent must know.
    pub(crate) async fn renew(
        &self,
        host: &str,
        held: &[Held],
    ) -> Result<BTreeSet<String>, Refusal> {
        if held.is_empty() {
            return Ok(BTreeSet::new());
        }
        let memory = &self.renewals.0;
        let known = self.renewals.known(host);
        let believed = known.as_ref().map(|known| known.doc.clone());
        let next = |present: Option<LeaseDoc>| {
            let is_news = present != believed;
            let LeaseDoc {
                jobs: heard_of,
                lost: before,
                ..
            } = present.unwrap_or_default();
            let is_lost = |(_, token): &Held| before.contains(token);
            let (lost, live): (Vec<Held>, Vec<Held>) = held.iter().cloned().partition(is_lost);
            let mut jobs: Vec<JobId> = live.into_iter().map(|(id, _)| id).collect();
            if is_news {
                // Another replica heard of the host meanwhile. This request may be older, and not know a newer job.
                let is_named = |id: &JobId| held.iter().any(|(named, _)| named == id);
                jobs.extend(heard_of.into_iter().filter(|id| !is_named(id)));
            }
            let lost = lost.into_iter().map(|(_, token)| token).collect();
            ready(Ok::<_, DocError>(self.lease_doc(jobs, lost)))
        };
        let renewed = self
            .ctx
            .docs
            .change_known(host, known, Some(memory), next)
            .await?;
        self.renew_named(host, &renewed.doc, self.ctx.clock.now());
        Ok(renewed.doc.lost.into_iter().collect())
    }

    /// When a replica heard last of jobs that the host has, UTC epoch ms; 0: never.
    pub(crate) async fn beat_ms(&self, host: &str) -> Result<u64, DocError> {
        let known = self.ctx.docs.read::<LeaseDoc>(host).await?;
        Ok(known.map_or(0, |known| known.doc.beat_ms))
    }

    /// The document in which a host is heard of now.
    pub(crate) fn lease_doc(&self, jobs: Vec<JobId>, mut lost: Vec<String>) -> LeaseDoc {
        let over = lost.len().saturating_sub(LOST_MAX);
        lost.drain(..over);
        LeaseDoc {
            jobs,
            lost,
            replica: self.ctx.config.replica.clone(),
            beat_ms: self.ctx.clock.wall_ms(),
        }
    }

    /// Time between two looks at leases, ms.
    fn look_ms(&self) -> u64 {
        (self.ctx.config.lease_ms / LOOKS).clamp(*LOOK_MS.start(), *LOOK_MS.end())
    }

    /// Looks after leases and limits until the replica stops.
    pub(crate) async fn watch_leases(self: Arc<Self>) {
        let look_ms = self.look_ms();
        // A look that comes later than this means that this process was paused.
        let late_ms = look_ms.saturating_add(self.ctx.config.lease_ms / 4);
        let mut last = self.ctx.clock.now();
        let look = Duration::from_millis(look_ms);
        let pause = || self.ctx.tasks.until_draining(self.ctx.clock.sleep(look));
        while pause().await.is_some() {
            let read = self.read_renewals().await;
            self.tell_of_hosts_back();
            let now = self.ctx.clock.now();
            let gap = now.0.saturating_sub(last.0);
            last = now;
            if gap > late_ms || read.is_err() || !self.ctx.store.health().is_well() {
                self.jobs.live.forgive(gap);
                continue;
            }
            for id in self.jobs.live.ids() {
                self.look_after(id).await;
            }
        }
    }

    /// Takes in what other replicas heard.
    async fn read_renewals(&self) -> Result<(), StoreError> {
        let docs = self.ctx.docs.list::<LeaseDoc>().await?;
        let now = self.ctx.clock.now();
        for (host, known) in docs {
            if self.renewals.is_news(&host, &known) {
                self.renew_named(&host, &known.doc, now);
            }
        }
        Ok(())
    }

    /// Notes that a host with jobs was lost, once.
    fn tell_of_lost_host(&self, host: &str, silent_ms: u64) {
        if self.lost.lost(host, self.ctx.clock.wall_ms()) {
            let detail = json!({ "silent_s": silent_ms / 1000 });
            self.ctx
                .audit(&self.ctx.config.replica, "host.lost", host, detail);
        }
    }

    /// Notes which lost hosts asked for work since, this replica or, in a new session, another one.
    fn tell_of_hosts_back(&self) {
        let heard_ms = |host: &str| self.lab.hosts.get(host).map_or(0, |known| known.seen_ms);
        for (host, lost_ms) in self.lost.back(heard_ms) {
            let away_s = self.ctx.clock.wall_ms().saturating_sub(lost_ms) / 1000;
            let detail = json!({ "away_s": away_s });
            self.ctx
                .audit(&self.ctx.config.replica, "host.back", &host, detail);
        }
    }

    fn renew_named(&self, host: &str, doc: &LeaseDoc, now: Millis) {
        for id in &doc.jobs {
            self.jobs.live.renew_of(*id, host, now);
        }
    }

    pub(crate) async fn look_after(self: &Arc<Self>, id: JobId) {
        // As it is now: looking after another job of the same host may have renewed it.
        let Some(live) = self.jobs.live.get(id) else {
            return;
        };
        let state = &live.stored.state;
        let silent_ms = self.silent_ms(id);
        if silent_ms > self.ctx.config.lease_ms && !state.session.starts_with(BOOT_SESSION) {
            let reason = format!(
                "host {} was not heard of for {} s",
                state.host,
                silent_ms / 1000
            );
            match self.mark_lost(state).await {
                Ok(true) if self.jobs.lose_silent(state, &reason).await => {
                    self.tell_of_lost_host(&state.host, silent_ms);
                }
                Ok(true) => self.unmark_lost(state).await,
                Ok(false) => {}
                Err(error) => tracing::debug!(job_id = %state.job_id, %error, "looked at later"),
            }
            return;
        }
        let passed = Passed::of(&live, self.ctx.clock.now());
        if passed.is_due(state) {
            self.jobs
                .time_out(state.job_id, &state.claim_token, passed)
                .await;
        }
    }

    /// How long nothing was heard of a job's agent, ms; 0: no agent has it, as far as is known.
    fn silent_ms(&self, id: JobId) -> u64 {
        let now = self.ctx.clock.now();
        let live = self.jobs.live.get(id);
        live.map_or(0, |live| now.0.saturating_sub(live.renewed.0))
    }

    /// Takes back that the lease is lost: its job was reported of meanwhile.
    async fn unmark_lost(&self, state: &JobState) {
        let known = self.renewals.known(&state.host);
        let believed = known.as_ref().map(|known| known.doc.clone());
        let next = |present: Option<LeaseDoc>| {
            // What this replica writes is no news to it. So it takes in now what others heard meanwhile.
            if present != believed
                && let Some(heard) = &present
            {
                self.renew_named(&state.host, heard, self.ctx.clock.now());
            }
            let LeaseDoc { jobs, mut lost, .. } = present.unwrap_or_default();
            lost.retain(|token| *token != state.claim_token);
            ready(Ok::<_, DocError>(self.lease_doc(jobs, lost)))
        };
        let memory = &self.renewals.0;
        let written = self
            .ctx
            .docs
            .change_known(&state.host, known, Some(memory), next);
        if let Err(error) = written.await {
            tracing::debug!(job_id = %state.job_id, %error, "its host will be told to stop it");
        }
    }

    /// Writes into the host's document that the lease is lost; `false` when the host was heard of meanwhile. Nobody
    /// loses a lease while the document cannot be read: it may name the job.
    async fn mark_lost(&self, state: &JobState) -> Result<bool, DocError> {
        let host = &state.host;
        // Lists lag behind: the last word is read in real time.
        let found = self.ctx.docs.read::<LeaseDoc>(host).await?;
        if let Some(found) = &found
            && self.renewals.is_news(host, found)
        {
            self.renew_named(host, &found.doc, self.ctx.clock.now());
            if found.doc.jobs.contains(&state.job_id) {
                return Ok(false);
            }
        }
        // So was its own renewal, if it came while that was read: it is no news.
        if self.silent_ms(state.job_id) <= self.ctx.config.lease_ms {
            return Ok(false);
        }
        let doc = found.as_ref().map(|found| found.doc.clone());
        let LeaseDoc { jobs, mut lost, .. } = doc.unwrap_or_default();
        // That it is there already may be a write that vanishes: only an acknowledged one decides.
        if !lost.contains(&state.claim_token) {
            lost.push(state.claim_token.clone());
        }
        // Once: somebody else who wrote it may have renewed. The next look knows.
        let mut doc = Some(self.lease_doc(jobs, lost));
        let next = |_| ready(doc.take().ok_or(None::<DocError>));
        let memory = &self.renewals.0;
        let written = self.ctx.docs.change_known(host, found, Some(memory), next);
        Ok(written.await.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;
    use fairlead_store::JobState;

    use super::*;
    use crate::testing::{flows, flows_beside, noted, sight_at, state, store_job};

    fn held(n: u64, token: &str) -> JobState {
        JobState {
            stage: Stage::Running,
            host: "h".to_owned(),
            claim_token: token.to_owned(),
            ..state(n)
        }
    }

    #[tokio::test]
    async fn what_one_replica_hears_renews_the_job_at_the_others() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let job = store_job(&a, held(5, "t")).await;
        let (id, long_ago) = (job.state.job_id, Millis(1));
        b.jobs.live.put(job.clone(), sight_at(long_ago));
        let held = [(id, "t".to_owned())];
        assert!(a.hosts.renew("h", &held).await.unwrap().is_empty());
        b.hosts.read_renewals().await.unwrap();
        let renewed = b.jobs.live.get(id).unwrap().renewed;
        assert!(renewed > long_ago);
        b.jobs.live.put(job, sight_at(long_ago));
        b.hosts.read_renewals().await.unwrap();
        assert_eq!(
            b.jobs.live.get(id).unwrap().renewed,
            long_ago,
            "the document did not change"
        );
    }

    #[tokio::test]
    async fn a_lost_host_is_told_of_once_and_when_it_is_back() {
        let (_data, flows) = flows().await;
        let seen_ms = flows.ctx.clock.wall_ms();
        let hear = |at_ms: u64| {
            flows
                .hosts
                .lab
                .hosts
                .update("h", |host| host.seen_ms = at_ms)
        };
        hear(seen_ms).unwrap();
        flows.hosts.tell_of_lost_host("h", 61_000);
        flows.hosts.tell_of_lost_host("h", 62_000);
        flows.hosts.tell_of_hosts_back();
        hear(seen_ms + 3_600_000).unwrap();
        flows.hosts.tell_of_hosts_back();
        flows.hosts.tell_of_hosts_back();
        let mut events = noted(&flows, 2).await;
        events.sort_by(|a, b| b.what.cmp(&a.what));
        let told: Vec<(&str, &str)> = events
            .iter()
            .map(|event| (event.what.as_str(), event.subject.as_str()))
            .collect();
        assert_eq!(told, [("host.lost", "h"), ("host.back", "h")]);
        assert_eq!(events[0].detail["silent_s"], 61);
    }

    /// The look at leases had begun; the renewal of the same replica was no news to it.
    #[tokio::test]
    async fn a_lease_that_this_replica_renewed_meanwhile_is_not_lost() {
        let (_data, flows) = flows().await;
        let job = store_job(&flows, held(5, "t")).await;
        flows.jobs.live.put(job.clone(), sight_at(Millis(1)));
        let named = [(job.state.job_id, "t".to_owned())];
        flows.hosts.renew("h", &named).await.unwrap();
        assert!(!flows.hosts.mark_lost(&job.state).await.unwrap());
    }

    /// A heartbeat that was long on its way does not name the newest job. Seed 2864.
    #[tokio::test]
    async fn a_late_renewal_keeps_what_another_replica_heard_meanwhile() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let first = store_job(&a, held(5, "t5")).await.state.job_id;
        let second = store_job(&a, held(6, "t6")).await;
        let newest = second.state.job_id;
        b.jobs.live.put(second, sight_at(Millis(1)));
        let named = |id, n| (id, format!("t{n}"));
        b.hosts.renew("h", &[named(first, 5)]).await.unwrap();
        let both = [named(first, 5), named(newest, 6)];
        a.hosts.renew("h", &both).await.unwrap();
        b.hosts.renew("h", &[named(first, 5)]).await.unwrap();
        let doc = a.ctx.docs.read::<LeaseDoc>("h").await.unwrap().unwrap().doc;
        assert_eq!(doc.jobs, [first, newest]);
        assert!(b.hosts.silent_ms(newest) < 1_000);
        b.hosts.renew("h", &[named(first, 5)]).await.unwrap();
        let doc = a.ctx.docs.read::<LeaseDoc>("h").await.unwrap().unwrap().doc;
        assert_eq!(doc.jobs, [first], "once");
    }

    /// The host was heard of by another replica while this one took back a loss. Seed 707572373.
    #[tokio::test]
    async fn a_loss_that_is_taken_back_hides_no_renewal_of_another_job() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let ended = store_job(&a, held(5, "t5")).await;
        let lives = store_job(&a, held(6, "t6")).await;
        for job in [&ended, &lives] {
            a.jobs.live.put(job.clone(), sight_at(Millis(1)));
        }
        assert!(a.hosts.mark_lost(&ended.state).await.unwrap());
        let named = [(lives.state.job_id, "t6".to_owned())];
        b.hosts.renew("h", &named).await.unwrap();
        a.hosts.unmark_lost(&ended.state).await;
        assert!(!a.hosts.mark_lost(&lives.state).await.unwrap());
    }

    /// Its own document is no sign of life of the other jobs in it.
    #[tokio::test]
    async fn a_loss_that_is_taken_back_renews_nothing_by_itself() {
        let (_data, a) = flows().await;
        let job = store_job(&a, held(5, "t")).await;
        let named = [(job.state.job_id, "t".to_owned())];
        a.hosts.renew("h", &named).await.unwrap();
        a.jobs.live.put(job.clone(), sight_at(Millis(1)));
        assert!(a.hosts.mark_lost(&job.state).await.unwrap());
        a.hosts.unmark_lost(&job.state).await;
        assert!(a.hosts.mark_lost(&job.state).await.unwrap());
    }

    /// Seed 447.
    #[tokio::test]
    async fn a_loss_that_was_only_read_is_written_before_it_counts() {
        let (_data, a) = flows().await;
        let job = store_job(&a, held(5, "t")).await;
        a.jobs.live.put(job.clone(), sight_at(Millis(1)));
        let mark = a.hosts.lease_doc(Vec::new(), vec!["t".to_owned()]);
        let read = a.ctx.docs.put("h", None, Some(&mark)).await.unwrap();
        assert!(a.hosts.mark_lost(&job.state).await.unwrap());
        let now = a.ctx.docs.read::<LeaseDoc>("h").await.unwrap().unwrap();
        assert!(now.version > read);
        assert_eq!(now.doc.lost, ["t"]);
    }

    #[tokio::test]
    async fn a_renewal_comes_before_the_loss_or_the_host_is_told() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        let job = store_job(&a, held(5, "t")).await;
        b.jobs.live.put(job.clone(), sight_at(Millis(1)));
        let named = [(job.state.job_id, "t".to_owned())];
        a.hosts.renew("h", &named).await.unwrap();
        assert!(
            !b.hosts.mark_lost(&job.state).await.unwrap(),
            "it was renewed"
        );
        b.jobs.live.put(job.clone(), sight_at(Millis(1)));
        assert!(b.hosts.mark_lost(&job.state).await.unwrap(), "not since");
        let lost = a.hosts.renew("h", &named).await.unwrap();
        assert_eq!(lost.into_iter().collect::<Vec<_>>(), ["t"]);
    }
}
