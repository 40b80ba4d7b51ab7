//! Tests of clusters with a stepped clock: one and two replicas over one store.

use std::{sync::Arc, time::Duration};

use fairlead_api::{ErrorCode, PeersAnswer, SubmitItem};
use fairlead_job::{Health, JobId, Stage, TboxType};
use fairlead_store::{ClusterPlace, JobState, StoredJob};
use serde_json::{Value, json};

use crate::{
    Clock, Config, Pause,
    flows::Flows,
    submission::{built_jobs::Ids, submit::SubmitOptions},
    testing::{embedded, flows_beside, flows_over, state, store_job},
};
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Credentials;
use fairlead_lifecycle::{
    after_report::{Speaker, after_report},
    alarm::at_alarm,
    attempt::{given_back, lost},
    report::Report,
};

mod rounds;
mod submits;

/// 2026-11-21T02:36:00Z.
const START_MS: u64 = 1_795_228_560_000;
const WAIT_MS: u64 = 300_000;

struct Lab {
    _data: tempfile::TempDir,
    flows: Arc<Flows>,
    jobs: Vec<JobId>,
}

/// A replica with a cluster of a server and so many clients, which wait for testboxes.
async fn lab(clients: u64) -> Lab {
    let data = tempfile::tempdir().unwrap();
    let config = Config::embedded(data.path().to_owned());
    let clock = Clock::simulated(START_MS, Arc::new(Pause::default()));
    let flows = flows_over(embedded(&data), config, clock);
    let jobs: Vec<JobId> = (1..=clients + 1).map(JobId::new).collect();
    for id in &jobs {
        let place = ClusterPlace {
            jobs: jobs.clone(),
            roles: if id.get() == 1 { "server" } else { "client" }.to_owned(),
            round: 1,
            wait_s: WAIT_MS / 1000,
            ..ClusterPlace::default()
        };
        let job = JobState {
            cluster: Some(place),
            submit_ms: flows.ctx.clock.wall_ms(),
            retry_fail_left: 1,
            ..state(id.get())
        };
        store_job(&flows, job).await;
    }
    Lab {
        _data: data,
        flows,
        jobs,
    }
}

async fn step(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
}

impl Lab {
    async fn set(&self, n: u64, set: impl Fn(&mut JobState) + Send + Sync) {
        let changed = self.flows.jobs.change(JobId::new(n), |state| {
            let mut next = state.clone();
            set(&mut next);
            Ok(Some(next))
        });
        changed.await.unwrap();
    }

    /// A host gets the job, and comes as far as this.
    async fn dispatch(&self, n: u64, stage: Stage) {
        let now_ms = self.flows.ctx.clock.wall_ms();
        let on = |state: &mut JobState| {
            state.stage = stage;
            state.host = format!("h{n}");
            state.session = "s".to_owned();
            state.claim_token = format!("t{n}");
            state.dispatch_ms = now_ms;
        };
        self.set(n, on).await;
    }

    async fn look(&self) {
        self.flows
            .waiting
            .look_at_cluster(&self.jobs)
            .await
            .unwrap();
    }

    async fn job(&self, n: u64) -> JobState {
        let stored = self.flows.jobs.stored_job(JobId::new(n)).await;
        stored.unwrap().state
    }

    async fn stages(&self) -> Vec<Stage> {
        let found = self.flows.ctx.store.get(&self.jobs).await.unwrap();
        found
            .into_iter()
            .map(|job| job.unwrap().state.stage)
            .collect()
    }

    /// The round of each, and whether it may run.
    async fn rounds(&self) -> Vec<(u32, bool)> {
        let found = self.flows.ctx.store.get(&self.jobs).await.unwrap();
        let place = |job: Option<StoredJob>| job.unwrap().state.cluster.unwrap();
        let places = found.into_iter().map(place);
        places
            .map(|place| (place.round, place.is_through()))
            .collect()
    }

    /// What a testbox hears that asks for its peers.
    async fn ask(&self, n: u64) -> Result<PeersAnswer, ErrorCode> {
        let state = self.job(n).await;
        let token = self
            .flows
            .ctx
            .sealer
            .job_token(state.job_id, state.attempt, &format!("t{n}"));
        let said = [("job_token", token.as_str()), ("attempt", "1")];
        let report = Report::of(said.into_iter()).unwrap();
        let answer = self
            .flows
            .waiting
            .wait_for_peers(state.job_id, &report)
            .await;
        answer.map_err(|refusal| refusal.body().code)
    }
}

fn report(state: &JobState, stage: Stage) -> Result<Option<JobState>, Refusal> {
    let report = Report {
        stage: Some(stage),
        ..Report::default()
    };
    Ok(after_report(state, Speaker::Present, &report, START_MS)?)
}

#[tokio::test(start_paused = true)]
async fn nobody_begins_before_all_are_there_and_then_all_do() {
    let lab = lab(2).await;
    for n in [1, 2] {
        lab.dispatch(n, Stage::WaitPeer).await;
    }
    lab.look().await;
    assert_eq!(lab.rounds().await, [(1, false); 3]);
    let early = report(&lab.job(1).await, Stage::Running).unwrap_err();
    assert_eq!(early.body().code, ErrorCode::WrongStage);
    assert_eq!(
        report(&lab.job(1).await, Stage::Finish)
            .unwrap()
            .unwrap()
            .stage,
        Stage::Finish
    );
    lab.dispatch(3, Stage::Setup).await;
    lab.look().await;
    assert_eq!(lab.rounds().await, [(1, false); 3], "it is not ready yet");
    lab.dispatch(3, Stage::WaitPeer).await;
    flows_beside(&lab.flows)
        .waiting
        .look_at_cluster(&lab.jobs)
        .await
        .unwrap();
    assert_eq!(lab.rounds().await, [(1, true); 3], "whoever looks");
    let runs = report(&lab.job(3).await, Stage::Running).unwrap().unwrap();
    assert_eq!(runs.stage, Stage::Running);
}

#[tokio::test(start_paused = true)]
async fn a_testbox_that_asks_hears_who_the_others_are() {
    let lab = lab(1).await;
    assert_eq!(
        lab.ask(2).await,
        Err(ErrorCode::Conflict),
        "it has no testbox"
    );
    lab.dispatch(2, Stage::Boot).await;
    assert_eq!(lab.ask(2).await, Err(ErrorCode::WrongStage));
    lab.dispatch(2, Stage::WaitPeer).await;
    // The clock goes on by itself until the request is answered.
    assert!(!lab.ask(2).await.unwrap().open);
    lab.dispatch(1, Stage::WaitPeer).await;
    let addressed = |state: &mut JobState| {
        let place = state.cluster.as_mut().unwrap();
        place.address = "10.0.0.1".to_owned();
    };
    lab.set(1, addressed).await;
    let answer = lab.ask(2).await.unwrap();
    let first = &answer.peers[0];
    assert!(answer.open && answer.peers.len() == 2);
    assert_eq!(
        (
            first.node_roles.as_str(),
            first.host.as_str(),
            first.address.as_str()
        ),
        ("server", "h1", "10.0.0.1")
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_others_gives_its_testbox_back_for_a_while() {
    let lab = lab(2).await;
    lab.dispatch(1, Stage::WaitPeer).await;
    lab.look().await;
    step(WAIT_MS - 1).await;
    lab.dispatch(2, Stage::Boot).await;
    lab.look().await;
    assert_eq!(
        lab.stages().await,
        [Stage::WaitPeer, Stage::Boot, Stage::Submit]
    );
    step(1).await;
    lab.look().await;
    // All at once, however long each of them waited: others may need several.
    assert_eq!(lab.stages().await, [Stage::Submit; 3]);
    assert_eq!(lab.rounds().await, [(2, false); 3]);
    let back = lab.job(1).await;
    assert!(!back.ready && back.start_ms > lab.flows.ctx.clock.wall_ms());
    assert_eq!(
        (back.attempt, back.retry_lost_left, back.retry_fail_left),
        (1, 1, 1)
    );
    assert!(
        back.attempts.is_empty() && back.reason.contains("300 s"),
        "{}",
        back.reason
    );
    assert_eq!(lab.ask(1).await, Err(ErrorCode::Conflict));
    let other = lab.job(2).await;
    assert_eq!(back.start_ms, other.start_ms, "they pause together");
    let again = at_alarm(&back, back.start_ms).unwrap();
    assert!(again.ready);
    // One that had none does not take what the others gave back, but then it comes first.
    let third = lab.job(3).await;
    let sooner_ms = back.start_ms.saturating_sub(third.start_ms);
    assert_eq!((third.ready, sooner_ms), (false, 3_000));
}

async fn running(clients: u64) -> Lab {
    let lab = lab(clients).await;
    for n in 1..=clients + 1 {
        lab.dispatch(n, Stage::WaitPeer).await;
    }
    lab.look().await;
    for n in 1..=clients + 1 {
        lab.set(n, |state| state.stage = Stage::Running).await;
    }
    lab
}

async fn finish(lab: &Lab, n: u64, health: Health) {
    let ends = |state: &JobState| {
        let report = Report {
            stage: Some(Stage::Finish),
            health: Some(health),
            ..Report::default()
        };
        let now_ms = lab.flows.ctx.clock.wall_ms();
        Ok(after_report(state, Speaker::Present, &report, now_ms)?)
    };
    lab.flows.jobs.change(JobId::new(n), ends).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_try_again_is_the_whole_cluster_s_and_costs_nobody_else() {
    let lab = running(1).await;
    finish(&lab, 2, Health::Fail).await;
    assert_eq!(lab.job(2).await.stage, Stage::Submit);
    lab.look().await;
    let told = lab.job(1).await;
    assert_eq!(
        (told.stop_asked, told.stop_health),
        (true, Some(Health::AbortWait))
    );
    assert!(told.reason.contains("must run again"), "{}", told.reason);
    // However it stops: it goes on with the others.
    finish(&lab, 1, Health::Success).await;
    let back = lab.job(1).await;
    assert_eq!(
        (back.stage, back.attempt, back.retry_fail_left),
        (Stage::Submit, 2, 1)
    );
    assert_eq!(lab.job(2).await.retry_fail_left, 0);
    assert_eq!(lab.rounds().await, [(2, false); 2]);
    // Once more, and nothing is left.
    for n in [1, 2] {
        lab.dispatch(n, Stage::WaitPeer).await;
    }
    lab.look().await;
    assert_eq!(lab.rounds().await, [(2, true); 2]);
    for n in [1, 2] {
        lab.set(n, |state| state.stage = Stage::Running).await;
    }
    finish(&lab, 2, Health::Fail).await;
    lab.look().await;
    let told = lab.job(1).await;
    assert!(
        told.stop_asked && told.reason.contains("ended with fail"),
        "{}",
        told.reason
    );
    finish(&lab, 1, Health::AbortWait).await;
    let end = lab.job(1).await;
    assert_eq!((end.stage, end.health), (Stage::Finish, Health::AbortWait));
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_takes_the_others_with_it_into_the_next_round() {
    let lab = lab(1).await;
    lab.dispatch(1, Stage::WaitPeer).await;
    lab.dispatch(2, Stage::Boot).await;
    let now_ms = lab.flows.ctx.clock.wall_ms();
    let is_lost = |state: &JobState| Ok(Some(lost(state, now_ms, "silent")));
    lab.flows.jobs.change(JobId::new(2), is_lost).await.unwrap();
    lab.look().await;
    assert_eq!(lab.rounds().await, [(2, false); 2]);
    assert_eq!(
        lab.stages().await,
        [Stage::WaitPeer, Stage::Submit],
        "it keeps its testbox"
    );
    // One that was only handed out and never taken costs no round.
    lab.dispatch(2, Stage::Dispatch).await;
    let back = |state: &JobState| Ok(Some(given_back(state, now_ms, "nobody took it")));
    lab.flows.jobs.change(JobId::new(2), back).await.unwrap();
    lab.look().await;
    assert_eq!(lab.rounds().await, [(2, false); 2]);
    lab.dispatch(2, Stage::WaitPeer).await;
    lab.look().await;
    assert_eq!(lab.rounds().await, [(2, true); 2]);
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_badly_ends_all() {
    let lab = lab(2).await;
    lab.dispatch(2, Stage::WaitPeer).await;
    let now_ms = lab.flows.ctx.clock.wall_ms();
    let cancel = |state: &JobState| {
        Ok(Some(fairlead_lifecycle::attempt::cancelled(
            state, now_ms, "by ann",
        )))
    };
    lab.flows.jobs.change(JobId::new(3), cancel).await.unwrap();
    lab.look().await;
    assert_eq!(
        lab.stages().await,
        [Stage::AbortWait, Stage::AbortWait, Stage::Cancel]
    );
    let reason = lab.job(1).await.reason;
    assert!(reason.contains("ended with cancel"), "{reason}");
    assert_eq!(lab.ask(2).await, Err(ErrorCode::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_server_is_done_when_all_its_clients_are() {
    let lab = running(2).await;
    finish(&lab, 2, Health::Success).await;
    lab.look().await;
    assert!(!lab.job(1).await.stop_asked);
    finish(&lab, 3, Health::Success).await;
    lab.look().await;
    let told = lab.job(1).await;
    assert_eq!(
        (told.stop_asked, told.stop_health),
        (true, Some(Health::Success))
    );
    finish(&lab, 1, Health::Success).await;
    assert_eq!(lab.job(1).await.health, Health::Success);
}

/// What has ended well does not run again: nobody can have it as a peer any more.
#[tokio::test(start_paused = true)]
async fn who_fails_after_a_peer_has_ended_well_is_not_tried_again() {
    let lab = running(2).await;
    finish(&lab, 2, Health::Success).await;
    finish(&lab, 3, Health::Fail).await;
    lab.look().await;
    let end = lab.job(3).await;
    assert_eq!(
        (end.stage, end.health),
        (Stage::Finish, Health::Fail),
        "{}",
        end.reason
    );
    let told = lab.job(1).await;
    assert_eq!(
        (told.stop_asked, told.stop_health),
        (true, Some(Health::AbortWait))
    );
    finish(&lab, 1, Health::AbortWait).await;
    assert_eq!(lab.job(1).await.stage, Stage::Finish);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_peer_was_never_stored_ends() {
    let lab = lab(1).await;
    let jobs = vec![JobId::new(7), JobId::new(8)];
    let place = ClusterPlace {
        jobs: jobs.clone(),
        round: 1,
        ..ClusterPlace::default()
    };
    let job = JobState {
        cluster: Some(place),
        submit_ms: lab.flows.ctx.clock.wall_ms(),
        ..state(7)
    };
    store_job(&lab.flows, job).await;
    lab.flows.waiting.look_at_cluster(&jobs).await.unwrap();
    assert_eq!(
        lab.job(7).await.stage,
        Stage::Submit,
        "it may be on its way"
    );
    step(60_000).await;
    lab.flows.waiting.look_at_cluster(&jobs).await.unwrap();
    let end = lab.job(7).await;
    assert!(end.stage == Stage::AbortWait && end.reason.contains("does not exist"));
}
