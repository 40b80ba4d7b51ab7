//! Tests suspect hosts: a job of the account `health-check` that passes there reopens its host.
//!
//! A suspect host gets only jobs of that account, whoever submitted them. A site with its own health check needs no
//! submit. The host's cordon first takes the job's id (compare-and-set), then the job is created under that id. So if a
//! replica dies between, another one continues, and no host has two checks.

use std::sync::Arc;

use fairlead_job::{Health, Spec, Stage};
use fairlead_store::{JobState, Search, StoreError, StoredJob};
use serde_json::json;

use crate::{
    hosts::HostFlow,
    submission::built_jobs::{BuiltJobs, Ids},
};
use fairlead_base::{
    errors::Refusal, health_check::PASSED_MAX, names::HEALTH_CHECK, storage::small_doc::Stored,
};
use fairlead_known::{
    accounts::Who,
    cordons::{Check, Cordon, CordonKind},
};

/// How long after a health check that did not pass the next one is made, ms: twice as long each time.
const PAUSE_FIRST_MS: u64 = 10 * 60 * 1_000;
/// At most, ms: a day.
const PAUSE_MAX_MS: u64 = 24 * 3_600_000;

/// The pause after this health check of a host, ms.
fn pause_ms(number: u32) -> u64 {
    let doubled = 1u64.checked_shl(number.saturating_sub(1));
    doubled
        .map_or(PAUSE_MAX_MS, |times| PAUSE_FIRST_MS.saturating_mul(times))
        .min(PAUSE_MAX_MS)
}

/// Whether the host passed this health check.
fn has_passed(job: &JobState, host: &str) -> bool {
    job.stage == Stage::Finish && job.health == Health::Success && job.host == host
}

/// Whether a health check is over, and the pause after it, too.
fn is_past(job: &JobState, number: u32, now_ms: u64) -> bool {
    job.stage.is_terminal() && job.end_ms.saturating_add(pause_ms(number)) <= now_ms
}

impl HostFlow {
    /// Looks after the suspect hosts: one on which a health check passed is given back, another one gets a health
    /// check when its time has come, if the site has one.
    pub(crate) async fn check_suspects(self: &Arc<Self>) -> Result<(), StoreError> {
        let hosts = self.lab.cordons.suspects();
        if hosts.is_empty() {
            return Ok(());
        }
        for (host, closure) in self.ctx.docs.read_some::<Cordon>(&hosts).await? {
            if closure.doc.how != CordonKind::Suspect {
                continue;
            }
            if let Err(refusal) = Box::pin(self.check_suspect(&host, &closure)).await {
                tracing::warn!(
                    host,
                    error = %refusal,
                    "the health check of a suspect host could not be handled; it is tried again"
                );
            }
        }
        Ok(())
    }

    async fn check_suspect(
        self: &Arc<Self>,
        host: &str,
        stored: &Stored<Cordon>,
    ) -> Result<(), Refusal> {
        let closure = &stored.doc;
        let last = match closure.check {
            Some(check) => self.ctx.store.get(&[check.job_id]).await?.pop().flatten(),
            None => None,
        };
        let passed = last.as_ref().filter(|job| has_passed(&job.state, host));
        let passed = match passed {
            Some(job) => Some(job.clone()),
            None => self.passed_on(host, closure.at_ms).await?,
        };
        if let Some(job) = passed {
            return self.is_well(host, stored, job).await;
        }
        let known = self.lab.hosts.get(host).unwrap_or_default();
        let template = self.ctx.config.health_check.as_ref();
        let job = template.and_then(|check| check.on(host, &known.kinds, &known.arch));
        self.peers.sure_of_number().await?;
        let check = self.next_check(closure.check, last.as_ref().map(|job| &job.state));
        let Some((job, check)) = job.zip(check) else {
            return Ok(());
        };
        if self.is_retired(host).await? {
            return Ok(());
        }
        // What is only read may vanish: the end of the last check, and a check that is still to be made.
        if !self.jobs.are_proven(last.into_iter().collect()).await? {
            return Ok(());
        }
        let closure = Cordon {
            check: Some(check),
            ..closure.clone()
        };
        let closure = Some(closure);
        if self.write_closure(host, Some(stored), closure).await? {
            self.make_check(host, check, job).await?;
        }
        Ok(())
    }

    /// A health check passed on the host: gives it back, if the store has that end for sure.
    async fn is_well(
        self: &Arc<Self>,
        host: &str,
        stored: &Stored<Cordon>,
        passed: StoredJob,
    ) -> Result<(), Refusal> {
        let job = passed.state.job_id;
        if !self.jobs.are_proven(vec![passed]).await? {
            return Ok(());
        }
        if self.write_closure(host, Some(stored), None).await? {
            tracing::info!(host, job_id = %job, "the suspect host passed its health check and gets jobs again");
            let detail = json!({ "job_id": job.to_string() });
            self.ctx
                .audit(&self.ctx.config.replica, "host.passed", host, detail);
        }
        Ok(())
    }

    /// The latest job of the account that began on the host since `since_ms` and passed.
    async fn passed_on(&self, host: &str, since_ms: u64) -> Result<Option<StoredJob>, StoreError> {
        let search = Search {
            stages: vec![Stage::Finish],
            healths: vec![Health::Success],
            accounts: vec![HEALTH_CHECK.to_owned()],
            hosts: vec![host.to_owned()],
            limit: PASSED_MAX,
            ..Search::default()
        };
        let mut passed = self.ctx.store.search(&search).await?.jobs.into_iter();
        Ok(passed.find(|job| job.state.dispatch_ms >= since_ms))
    }

    /// The health check to be made now; `None`: the last one is still on, or too fresh.
    fn next_check(&self, last: Option<Check>, job: Option<&JobState>) -> Option<Check> {
        let new = |number| Check {
            job_id: self.peers.next_id(),
            number,
        };
        match (last, job) {
            (None, _) => Some(new(1)),
            (Some(last), Some(job)) => is_past(job, last.number, self.ctx.clock.wall_ms())
                .then(|| new(last.number.saturating_add(1))),
            // Whoever wrote it down did not get so far as to make it.
            (Some(last), None) => Some(last),
        }
    }

    async fn make_check(
        self: &Arc<Self>,
        host: &str,
        check: Check,
        job: Spec,
    ) -> Result<(), Refusal> {
        let made = self
            .submission
            .make_job_of(job, Who::health_checks(), check.job_id);
        let made = BuiltJobs::from(vec![made]);
        let outcomes = self.submission.create(made, Ids::WrittenDown).await;
        for outcome in outcomes {
            let id = outcome?.state.job_id.to_string();
            let detail = json!({ "job_id": id, "number": check.number });
            self.ctx
                .audit(&self.ctx.config.replica, "host.check", host, detail);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairlead_fault_store::FaultStore;
    use fairlead_job::{JobFields, JobId, SiteDefaults, TboxType};

    use super::*;
    use crate::{
        Clock, Config, Pause,
        flows::Flows,
        testing::{embedded, flows_beside, flows_over, state, store_job},
    };
    use fairlead_base::health_check::HealthCheck;
    use fairlead_known::hosts::Host;
    use fairlead_lifecycle::attempt::ended;

    /// 2026-11-21T02:36:00Z.
    const START_MS: u64 = 1_795_228_560_000;

    fn spec(fields: serde_json::Value) -> Spec {
        serde_json::from_value(fields).unwrap()
    }

    fn check_of(fields: serde_json::Value) -> HealthCheck {
        HealthCheck::of(spec(fields), &SiteDefaults::default()).unwrap()
    }

    fn host(kinds: &[TboxType]) -> Host {
        Host {
            kinds: kinds.to_vec(),
            arch: "riscv64".to_owned(),
            ..Host::default()
        }
    }

    /// A replica on whose lab host h is suspect.
    async fn lab(health_check: Option<HealthCheck>) -> (tempfile::TempDir, Arc<Flows>) {
        let data = tempfile::tempdir().unwrap();
        let config = Config {
            health_check,
            ..Config::embedded(data.path().to_owned())
        };
        let clock = Clock::simulated(START_MS, Arc::new(Pause::default()));
        let flows = flows_over(embedded(&data), config, clock);
        flows
            .hosts
            .close_host("h", CordonKind::Suspect, "it failed", "r1")
            .await
            .unwrap();
        (data, knows_h(flows))
    }

    fn knows_h(flows: Arc<Flows>) -> Arc<Flows> {
        let known = host(&[TboxType::Dc]);
        flows
            .hosts
            .lab
            .hosts
            .update("h", |host| *host = known)
            .unwrap();
        flows
    }

    async fn look(flows: &Arc<Flows>) -> Option<Cordon> {
        flows.hosts.reload_closures().await.unwrap();
        flows.hosts.check_suspects().await.unwrap();
        flows.hosts.lab.cordons.of("h")
    }

    async fn checks(flows: &Flows) -> Vec<StoredJob> {
        let search = Search {
            accounts: vec![HEALTH_CHECK.to_owned()],
            limit: 100,
            ..Search::default()
        };
        flows.ctx.store.search(&search).await.unwrap().jobs
    }

    /// The host has the job, and it ends so.
    async fn end(flows: &Arc<Flows>, job: JobId, health: Health) {
        let now_ms = flows.ctx.clock.wall_ms();
        for is_over in [false, true] {
            let next = |state: &JobState| {
                let held = JobState {
                    stage: Stage::Running,
                    host: "h".to_owned(),
                    dispatch_ms: now_ms,
                    ..state.clone()
                };
                let over = || ended(state, Stage::Finish, health, now_ms, "");
                Ok(Some(if is_over { over() } else { held }))
            };
            flows.jobs.change(job, next).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_host_is_tried_out_until_it_passes_whoever_looks() {
        let template = json!({"suite": "selftest", "script": "true", "testbox": "hw", "arch": "x"});
        let (_data, flows) = lab(Some(check_of(template))).await;
        let other = knows_h(flows_beside(&flows));
        let both = async || {
            look(&flows).await;
            look(&other).await
        };
        both().await;
        let first = both().await.and_then(|closure| closure.check).unwrap();
        let [made] = <[_; 1]>::try_from(checks(&flows).await).unwrap();
        assert_eq!((made.state.job_id, first.number), (first.job_id, 1));
        assert_eq!(made.state.host_keys, ["dc.riscv64@h"]);
        end(&flows, first.job_id, Health::Fail).await;
        tokio::time::advance(Duration::from_millis(PAUSE_FIRST_MS - 1)).await;
        both().await;
        assert_eq!(checks(&flows).await.len(), 1, "not yet");
        tokio::time::advance(Duration::from_millis(1)).await;
        both().await;
        let second = both().await.and_then(|closure| closure.check).unwrap();
        assert_eq!((checks(&flows).await.len(), second.number), (2, 2));
        end(&other, second.job_id, Health::Success).await;
        assert_eq!(both().await, None, "given back");
        both().await;
        assert_eq!(checks(&flows).await.len(), 2);
        let open = flows_beside(&flows);
        assert_eq!(look(&open).await, None, "for everybody");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_vanishes_gives_no_host_back() {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(embedded(&data), []));
        let config = Config {
            health_check: Some(check_of(json!({"script": "true"}))),
            ..Config::embedded(data.path().to_owned())
        };
        let clock = Clock::simulated(START_MS, Arc::new(Pause::default()));
        let flows = knows_h(flows_over(Arc::clone(&store) as _, config, clock));
        flows
            .hosts
            .close_host("h", CordonKind::Suspect, "it failed", "r1")
            .await
            .unwrap();
        let check = look(&flows)
            .await
            .and_then(|closure| closure.check)
            .unwrap();
        let mut vanishing = flows.jobs.stored_job(check.job_id).await.unwrap();
        vanishing.state = ended(&vanishing.state, Stage::Finish, Health::Success, 5, "");
        vanishing.state.host = "h".to_owned();
        vanishing.version.seq_no += 1;
        store.show(Some(vanishing));
        assert!(look(&flows).await.is_some());
        store.show(None);
        end(&flows, check.job_id, Health::Success).await;
        assert_eq!(look(&flows).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_health_check_waits_for_a_host_that_is_gone() {
        let template = check_of(json!({"script": "true"}));
        let (_data, flows) = lab(Some(template.clone())).await;
        let state = async |flows: &Flows| checks(flows).await.remove(0).state;
        look(&flows).await;
        assert_eq!(state(&flows).await.stage, Stage::Submit);
        flows.hosts.forget_documents("h", |_| false).await.unwrap();
        let ended = state(&flows).await;
        assert_eq!(
            (ended.stage, ended.reason.as_str()),
            (Stage::Cancel, "host h is gone")
        );
        // A replica made it that did not know that the machine retired.
        let (_data, flows) = lab(Some(template)).await;
        look(&flows).await;
        flows.hosts.end_stray_checks().await.unwrap();
        assert_eq!(state(&flows).await.stage, Stage::Submit, "it is there");
        assert!(flows.hosts.retire_host("h").await.unwrap());
        flows.hosts.end_stray_checks().await.unwrap();
        assert_eq!(state(&flows).await.stage, Stage::Cancel);
        tokio::time::advance(Duration::from_millis(PAUSE_FIRST_MS)).await;
        look(&flows).await;
        assert_eq!(checks(&flows).await.len(), 1, "a machine that retired");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_replica_that_died_began_another_one_ends() {
        let (_data, flows) = lab(Some(check_of(json!({"script": "true"})))).await;
        let check = Check {
            job_id: flows.peers.next_id(),
            number: 3,
        };
        let closure = Cordon {
            check: Some(check),
            ..flows.hosts.lab.cordons.of("h").unwrap()
        };
        let present = flows.ctx.docs.read("h").await.unwrap();
        let written = flows
            .hosts
            .write_closure("h", present.as_ref(), Some(closure.clone()));
        assert!(written.await.unwrap());
        assert_eq!(look(&flows).await, Some(closure));
        let made = checks(&flows).await;
        let made: Vec<JobId> = made.iter().map(|job| job.state.job_id).collect();
        assert_eq!(made, [check.job_id]);
    }

    #[tokio::test(start_paused = true)]
    async fn any_job_of_the_account_that_passes_there_gives_the_host_back() {
        let (_data, flows) = lab(None).await;
        let passed = async |id: u64, account: &str, host: &str, dispatch_ms: u64| {
            let job = JobState {
                stage: Stage::Finish,
                health: Health::Success,
                account: account.to_owned(),
                host: host.to_owned(),
                dispatch_ms,
                ready: false,
                ..state(id)
            };
            store_job(&flows, job).await;
            look(&flows).await.is_none()
        };
        assert!(!passed(1, "user1", "h", START_MS).await, "not the account");
        assert!(!passed(2, HEALTH_CHECK, "g", START_MS).await, "elsewhere");
        assert!(!passed(3, HEALTH_CHECK, "h", START_MS - 1).await, "before");
        assert_eq!(flows.ctx.metrics.submitted.get(), 0, "the site has none");
        assert!(passed(4, HEALTH_CHECK, "h", START_MS).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspect_host_asks_for_health_checks_alone_and_a_closed_one_for_nothing() {
        let (_data, flows) = lab(None).await;
        let soon = fairlead_dispatch::Millis(flows.ctx.clock.now().0 + 10);
        assert!(flows.hosts.opens("h", soon).await);
        assert_eq!(flows.placement.served_accounts("h"), [HEALTH_CHECK]);
        let (offer, _told) = flows.hosts.waiter_of("h");
        let is_outdated = || {
            flows
                .placement
                .is_outdated(&flows.jobs.waiters.get(offer).unwrap())
        };
        assert!(!is_outdated());
        flows
            .hosts
            .close_host("h", CordonKind::Cordon, "", "root")
            .await
            .unwrap();
        assert!(!flows.hosts.opens("h", soon).await);
        flows.hosts.open_host("h").await.unwrap();
        assert!(is_outdated() && flows.placement.served_accounts("h").is_empty());
    }

    #[test]
    fn a_health_check_runs_on_its_host_whatever_it_says() {
        let on = |check: &HealthCheck, kinds: &[TboxType]| {
            let known = host(kinds);
            let job = check.on("a66", &known.kinds, &known.arch)?;
            let plan = JobFields::parse(&job, &SiteDefaults::default()).unwrap();
            assert_eq!(plan.account, HEALTH_CHECK);
            Some((plan.testbox, plan.host_keys.concat()))
        };
        let text = |testbox: &str, key: &str| Some((testbox.to_owned(), key.to_owned()));
        let sized = check_of(json!({"script": "true", "testbox": "vm-2p8g", "my_account": "ann"}));
        let both = [TboxType::Dc, TboxType::Vm];
        assert_eq!(on(&sized, &both), text("vm-2p8g", "vm.riscv64@a66"));
        assert_eq!(on(&sized, &[TboxType::Hw]), text("hw", "hw@a66"));
        let placed = check_of(json!({"script": "true", "testbox": "dc--b7", "arch": "x86_64"}));
        assert_eq!(on(&placed, &both), text("dc", "dc.riscv64@a66"));
        let named = check_of(json!({"script": "true", "testbox": "b7", "tbox_group": "b"}));
        assert_eq!(on(&named, &[TboxType::Hw]), text("hw", "hw@a66"));
        assert_eq!(on(&named, &[]), None);
        assert!(HealthCheck::of(Spec::new(), &SiteDefaults::default()).is_err());
    }

    #[test]
    fn pauses_between_health_checks_grow_to_a_day() {
        let minutes = |number| pause_ms(number) / 60_000;
        let first: Vec<u64> = (1..=4).map(minutes).collect();
        assert_eq!(first, [10, 20, 40, 80]);
        assert_eq!((minutes(9), minutes(200)), (24 * 60, 24 * 60));
    }
}
