//! Tests of timers with a stepped clock: one, two and dying replicas over one store.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fairlead_api::{ErrorCode, TimerView};
use fairlead_fault_store::{Fault, FaultStore, On, Step};
use fairlead_job::{Health, JobId, Spec, Stage};
use fairlead_store::{DocKind, Search, StoredJob};
use serde_json::{Value, json};

use crate::{
    Access, Clock, Config, Pause,
    flows::Flows,
    submission::built_jobs::{BuiltJobs, Ids},
    testing::{embedded, flows_beside, flows_over},
};
use fairlead_base::errors::Refusal;
use fairlead_known::{
    accounts::Credentials,
    timers::{Known, STRETCHES_MAX, Stored, Timer},
};
use fairlead_lifecycle::attempt::ended;

mod refusals;
mod steps;

/// 2026-11-21T02:36:00Z.
const START_MS: u64 = 1_795_228_560_000;
const MIN_MS: u64 = 60_000;

fn ann() -> Credentials {
    Credentials {
        account: Some("ann".to_owned()),
        ..Credentials::default()
    }
}

fn clock(wall_ms: u64) -> Clock {
    Clock::simulated(wall_ms, Arc::new(Pause::default()))
}

/// A replica at this time, over a store of its own.
fn replica(wall_ms: u64) -> (tempfile::TempDir, Arc<Flows>) {
    let data = tempfile::tempdir().unwrap();
    let config = Config::embedded(data.path().to_owned());
    let flows = flows_over(embedded(&data), config, clock(wall_ms));
    (data, flows)
}

fn spec(more: &Value) -> Spec {
    let mut spec = json!({"suite": "sleep", "testbox": "dc", "script": "true", "timer": "nightly"});
    let fields = spec.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    fields.clone()
}

async fn submit(flows: &Arc<Flows>, more: &Value) -> TimerView {
    let submitted = flows.timers.submit_timer(spec(more), &ann()).await;
    submitted.unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

async fn step(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
}

/// What a replica does each second and each tick.
async fn look(flows: &Arc<Flows>) {
    // A read may fail: the next one will not.
    drop(flows.timers.read_timers().await);
    let due = flows.timers.known.book.due(flows.ctx.clock.wall_ms());
    Arc::clone(&flows.timers).look_at_timers(due).await.unwrap();
}

async fn jobs(flows: &Flows) -> Vec<StoredJob> {
    let search = Search {
        limit: 100,
        order: fairlead_store::SearchOrder::OldestFirst,
        ..Search::default()
    };
    flows.ctx.store.search(&search).await.unwrap().jobs
}

/// When each run was due, by its job.
async fn runs(flows: &Flows) -> Vec<String> {
    let ids: Vec<JobId> = jobs(flows)
        .await
        .iter()
        .map(|job| job.state.job_id)
        .collect();
    let bodies = flows.ctx.store.get_bodies(&ids).await.unwrap();
    let due = bodies.into_iter().flatten().map(|body| {
        assert_eq!(body["timer"], "nightly");
        body["timer_due"].as_str().unwrap()[11..16].to_owned()
    });
    due.collect()
}

async fn view(flows: &Flows) -> TimerView {
    flows.timers.timer_view("ann", "nightly").await.unwrap()
}

async fn stored(flows: &Flows) -> Stored {
    let doc = flows.ctx.store.get_doc(DocKind::Timer, "ann/nightly").await;
    Stored::of(doc.unwrap().unwrap()).unwrap()
}

async fn end(flows: &Arc<Flows>, job: &StoredJob) {
    let now_ms = flows.ctx.clock.wall_ms();
    let over = |state: &fairlead_store::JobState| {
        Ok(Some(ended(
            state,
            Stage::Finish,
            Health::Success,
            now_ms,
            "",
        )))
    };
    flows.jobs.change(job.state.job_id, over).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_meets_the_submit_rules_of_its_time() {
    let (_data, flows) = replica(START_MS);
    submit(&flows, &json!({"every": "10m"})).await;
    let rule = json!({"name": "r", "if": "account == 'ann'", "then": {"priority": 3}});
    let rules = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
    flows.people.set_submit_rules(rules).await.unwrap();
    step(10 * MIN_MS).await;
    look(&flows).await;
    let run = jobs(&flows).await.remove(0);
    assert_eq!(run.state.priority, 3);
    let body = flows
        .ctx
        .store
        .get_bodies(&[run.state.job_id])
        .await
        .unwrap();
    assert_eq!(body[0].as_ref().unwrap()["submit_rule"]["rule"], "r");
}

#[tokio::test(start_paused = true)]
async fn each_due_run_is_made_once_by_two_replicas_beside_each_other() {
    let (_data, a) = replica(START_MS);
    let b = flows_beside(&a);
    let view_now = submit(&a, &json!({"every": "10m", "secrets": {"key": "s3cret"}})).await;
    assert_eq!(view_now.next_run.unwrap(), "2026-11-21T02:46:00+0000");
    step(10 * MIN_MS - 1).await;
    look(&a).await;
    assert_eq!(jobs(&a).await, []);
    step(1).await;
    for _ in 0..3 {
        tokio::join!(look(&a), look(&b));
        tokio::join!(look(&b), look(&a));
        for job in jobs(&a).await {
            end(&a, &job).await;
        }
        step(10 * MIN_MS).await;
    }
    assert_eq!(runs(&a).await, ["02:46", "02:56", "03:06"]);
    let view = view(&b).await;
    assert_eq!((view.runs, view.skipped_runs, view.missed_runs), (3, 0, 0));
    let last = &jobs(&a).await[2].state;
    assert_eq!(view.last_run.unwrap().job_id, last.job_id.to_string());
    assert_eq!(
        (last.account.as_str(), last.submit_ms),
        ("ann", START_MS + 30 * MIN_MS)
    );
    // Its id says when it was made.
    assert!(
        last.job_id.to_string().starts_with("261121030"),
        "{}",
        last.job_id
    );
    // The secret is nowhere in the clear, and is in each run.
    let doc = a
        .ctx
        .store
        .get_doc(DocKind::Timer, "ann/nightly")
        .await
        .unwrap();
    assert!(!doc.unwrap().body.to_string().contains("s3cret"));
    assert!(!json!(view.job).to_string().contains("secrets"));
    let body = a
        .ctx
        .store
        .get_bodies(&[last.job_id])
        .await
        .unwrap()
        .remove(0);
    let mut body = body.unwrap();
    assert!(!json!(body).to_string().contains("s3cret"));
    a.ctx.sealer.open_secrets(&mut body).unwrap();
    assert_eq!(body["secrets"], json!({"key": "s3cret"}));
    let said = crate::views::explain::explain_job(&a.views, last.job_id)
        .await
        .unwrap();
    assert!(
        said.reasons[0].contains("timer 'nightly'"),
        "{:?}",
        said.reasons
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_replica_that_died_began_another_one_ends() {
    let (_data, a) = replica(START_MS);
    let b = flows_beside(&a);
    submit(&a, &json!({"every": "10m"})).await;
    step(10 * MIN_MS).await;
    // It wrote which id the run will have, and died.
    let before = stored(&a).await;
    let now_ms = a.ctx.clock.wall_ms();
    let next = a.timers.next_of(&before.timer, &BTreeMap::new(), now_ms);
    let begun = a.timers.begin(vec![before], vec![next]).await;
    let id = begun[0].run.job_id;
    assert_eq!((begun.len(), jobs(&b).await.len()), (1, 0));
    step(700).await;
    look(&b).await;
    assert_eq!(jobs(&b).await[0].state.job_id, id);
    // It was only slow: it makes nothing twice, and undoes nothing.
    let after = stored(&b).await;
    assert_eq!((after.timer.runs, after.timer.pending), (1, None));
    a.timers.run_begun(begun).await;
    look(&a).await;
    assert_eq!((jobs(&a).await.len(), stored(&a).await), (1, after));

    // It made the job, and died before it wrote so.
    end(&a, &jobs(&a).await[0]).await;
    step(10 * MIN_MS).await;
    let before = stored(&a).await;
    let now_ms = a.ctx.clock.wall_ms();
    let next = a
        .timers
        .next_of(&before.timer, &[(id, true)].into(), now_ms);
    let begun = a.timers.begin(vec![before], vec![next]).await;
    let run = BuiltJobs::from(vec![a.submission.job_of_run(&begun[0].timer, begun[0].run)]);
    a.submission.create(run, Ids::WrittenDown).await;
    step(700).await;
    look(&b).await;
    assert_eq!(runs(&b).await, ["02:46", "02:56"]);
    assert_eq!(
        (view(&b).await.runs, stored(&b).await.timer.pending),
        (2, None)
    );
}

#[tokio::test(start_paused = true)]
async fn what_another_replica_is_at_is_left_to_it() {
    let (_data, a) = replica(START_MS);
    let b = flows_beside(&a);
    submit(&a, &json!({"every": "10m"})).await;
    step(10 * MIN_MS).await;
    let seen_by_b = async || {
        let version = stored(&b).await.version;
        let id = "ann/nightly".to_owned();
        let is_first = false;
        vec![Known::Seen {
            id,
            version,
            is_first,
        }]
    };
    let early = seen_by_b().await;
    let before = stored(&a).await;
    let next = a
        .timers
        .next_of(&before.timer, &BTreeMap::new(), a.ctx.clock.wall_ms());
    let begun = a.timers.begin(vec![before], vec![next]).await;
    b.timers.fire(early).await;
    assert_eq!(jobs(&b).await, []);
    // It still is as the other left it: it may have died.
    b.timers.fire(seen_by_b().await).await;
    assert_eq!(jobs(&b).await[0].state.job_id, begun[0].run.job_id);
    assert_eq!(stored(&b).await.timer.runs, 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_begins_what_came_due_meanwhile() {
    let (_data, a) = replica(START_MS);
    submit(&a, &json!({"every": "10m", "missed": "skip"})).await;
    step(10 * MIN_MS + 50_000).await;
    let again = flows_beside(&a);
    look(&again).await;
    assert_eq!(runs(&again).await, ["02:46"]);
    assert_eq!(view(&again).await.missed_runs, 0);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_could_start_is_run_once_or_left() {
    for (missed, runs_then, missed_then) in [("once", vec!["03:06"], 2), ("skip", vec![], 3)] {
        let (_data, flows) = replica(START_MS);
        submit(
            &flows,
            &json!({"cron": "6-56/10 * * * *", "missed": missed}),
        )
        .await;
        step(35 * MIN_MS).await;
        let again = flows_beside(&flows);
        look(&again).await;
        look(&again).await;
        assert_eq!(runs(&again).await, runs_then);
        let view = view(&again).await;
        assert_eq!(view.missed_runs, missed_then);
        assert_eq!(view.why.is_empty(), missed == "once", "{}", view.why);
        assert_eq!(view.next_run.unwrap(), "2026-11-21T03:16:00+0000");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_left_out_while_the_one_before_goes_on() {
    let (_data, flows) = replica(START_MS);
    submit(&flows, &json!({"every": "10m"})).await;
    for _ in 0..3 {
        step(10 * MIN_MS).await;
        look(&flows).await;
    }
    let all = jobs(&flows).await;
    assert_eq!(all.len(), 1);
    let before = view(&flows).await;
    assert_eq!((before.runs, before.skipped_runs), (1, 2));
    assert!(
        before.why.contains(&all[0].state.job_id.to_string()),
        "{}",
        before.why
    );
    end(&flows, &all[0]).await;
    step(10 * MIN_MS).await;
    look(&flows).await;
    assert_eq!(runs(&flows).await, ["02:46", "03:16"]);
    assert_eq!(view(&flows).await.why, "");
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_begins_when_the_one_before_has_ended() {
    let (_data, flows) = replica(START_MS);
    submit(&flows, &json!({"every": "10m", "overlap": "queue"})).await;
    for _ in 0..2 {
        step(10 * MIN_MS).await;
        look(&flows).await;
    }
    let all = jobs(&flows).await;
    assert_eq!(
        (all.len(), all[0].state.ready, all[1].state.ready),
        (2, true, false)
    );
    end(&flows, &all[0]).await;
    flows
        .waiting
        .look_at_dependant(all[1].state.job_id)
        .await
        .unwrap();
    assert!(jobs(&flows).await[1].state.ready);
}

#[tokio::test(start_paused = true)]
async fn a_run_replaces_the_one_before() {
    let (_data, flows) = replica(START_MS);
    submit(&flows, &json!({"every": "10m", "overlap": "replace"})).await;
    step(10 * MIN_MS).await;
    look(&flows).await;
    step(10 * MIN_MS).await;
    look(&flows).await;
    let all = jobs(&flows).await;
    assert_eq!((all.len(), all[0].state.stage), (2, Stage::Cancel));
    let by = all[1].state.job_id.to_string();
    assert!(all[0].state.reason.contains(&by), "{}", all[0].state.reason);
    assert!(all[1].state.ready, "what it replaces has ended");
    // One that runs is told to stop, and waited for.
    let id = all[1].state.job_id;
    let run = |state: &fairlead_store::JobState| {
        Ok(Some(fairlead_store::JobState {
            stage: Stage::Running,
            host: "h1".to_owned(),
            ..state.clone()
        }))
    };
    flows.jobs.change(id, run).await.unwrap();
    step(10 * MIN_MS).await;
    look(&flows).await;
    let all = jobs(&flows).await;
    assert_eq!(
        (all.len(), all[1].state.stop_asked, all[2].state.ready),
        (3, true, false)
    );
    assert_eq!(view(&flows).await.runs, 3);
}

#[tokio::test(start_paused = true)]
async fn a_timer_is_paused_goes_on_changes_and_goes() {
    let (_data, flows) = replica(START_MS);
    let who = flows.people.accounts.identify(&ann()).unwrap();
    let this = ("ann", "nightly");
    submit(&flows, &json!({"every": "10m"})).await;
    step(10 * MIN_MS).await;
    // What was due before it was paused is begun.
    let paused = flows.timers.pause_timer(&who, this, true).await.unwrap();
    assert_eq!(
        (paused.paused, paused.next_run, paused.runs),
        (true, None, 1)
    );
    step(25 * MIN_MS).await;
    look(&flows).await;
    assert_eq!(runs(&flows).await, ["02:46"]);
    let on = flows.timers.pause_timer(&who, this, false).await.unwrap();
    assert_eq!(on.next_run.unwrap(), "2026-11-21T03:16:00+0000");
    assert_eq!(on.missed_runs, 0);

    let change = |fields: Value| fields.as_object().unwrap().clone();
    let said = change(json!({"cron": "0 5 * * *", "timezone": "Asia/Shanghai"}));
    let changed = flows.timers.update_timer(&who, this, said).await.unwrap();
    assert_eq!(
        (changed.every, changed.cron),
        (None, Some("0 5 * * *".to_owned()))
    );
    assert_eq!(changed.next_run.unwrap(), "2026-11-21T21:00:00+0000");
    let said = change(json!({"suite": "other", "testbox": "dc", "script": "true"}));
    let changed = flows.timers.update_timer(&who, this, said).await.unwrap();
    assert_eq!(
        (changed.suite.as_str(), changed.cron.as_deref()),
        ("other", Some("0 5 * * *"))
    );
    for (bad, field) in [
        (json!({}), "no change"),
        (json!({"cron": "5"}), "cron"),
        (json!({"overlap": "x"}), "overlap"),
        (json!({"suite": "x", "need_memory": "lots"}), "memory"),
    ] {
        let refusal = flows
            .timers
            .update_timer(&who, this, change(bad))
            .await
            .unwrap_err();
        assert!(refusal.to_string().contains(field), "{refusal}");
    }
    let eve = flows.people.accounts.identify(&Credentials {
        account: Some("eve".to_owned()),
        token: None,
        ..Credentials::default()
    });
    let refusal = flows
        .timers
        .delete_timer(&eve.unwrap(), this)
        .await
        .unwrap_err();
    assert_eq!(refusal.body().code, ErrorCode::Forbidden);
    end(&flows, &jobs(&flows).await[0]).await;

    step(24 * 60 * MIN_MS).await;
    flows.timers.delete_timer(&who, this).await.unwrap();
    look(&flows).await;
    assert_eq!(
        jobs(&flows).await[1].state.suite,
        "other",
        "it was due before"
    );
    let gone = flows.timers.timer_view("ann", "nightly").await.unwrap_err();
    assert_eq!(gone.body().code, ErrorCode::NotFound);
    step(24 * 60 * MIN_MS).await;
    look(&flows).await;
    assert_eq!(jobs(&flows).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_store_loses_or_does_unheard_makes_no_run_twice_and_loses_none() {
    let faults = [
        Fault::Conflict,
        Fault::CommitWithoutAnswer,
        Fault::CommitAsConflict,
        Fault::LostWithoutAnswer,
        Fault::Unavailable,
    ];
    for on in [On::PutDocs, On::Submit, On::Write, On::Get] {
        for fault in faults {
            let data = tempfile::tempdir().unwrap();
            let sound = embedded(&data);
            let store = Arc::new(FaultStore::new(Arc::clone(&sound), []));
            let config = Config::embedded(data.path().to_owned());
            let flows = flows_over(Arc::clone(&store) as _, config, clock(START_MS));
            submit(&flows, &json!({"every": "10m"})).await;
            step(10 * MIN_MS).await;
            store.then(Step {
                on,
                fault,
                times: 2,
            });
            for _ in 0..12 {
                look(&flows).await;
                step(500).await;
            }
            // Faults that nothing met are met by nobody.
            let flows = flows_over(sound, flows.ctx.config.clone(), flows.ctx.clock.clone());
            assert_eq!(runs(&flows).await, ["02:46"], "{on:?} {fault:?}");
            let timer = stored(&flows).await.timer;
            assert_eq!((timer.runs, timer.pending), (1, None), "{on:?} {fault:?}");
        }
    }
}
