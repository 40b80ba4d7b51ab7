//! Tests of sharded jobs over a real store: made, stopped and ended by several replicas.

use crate::shards::ShardFlow;
use std::sync::Arc;

use fairlead_fault_store::{Fault, FaultStore, On, Step};
use fairlead_job::{DataReadiness, Health, JobId, Spec, Stage};
use fairlead_store::{JobState, StoredJob};
use serde_json::{Value, json};

use crate::{
    Clock, Config,
    flows::Flows,
    submission::submit::SubmitOptions,
    testing::{embedded, flows, flows_beside, flows_over},
};
use fairlead_known::accounts::Credentials;
use fairlead_lifecycle::attempt::{cancelled, ended};

mod again;
mod groups;

/// Submits a job with these shards; its id.
async fn submit(flows: &Arc<Flows>, shards: &Value) -> JobId {
    submit_job(flows, &json!({"shards": shards})).await
}

async fn submit_job(flows: &Arc<Flows>, more: &Value) -> JobId {
    submit_together(flows, [more]).await[0]
}

async fn submit_together<const N: usize>(flows: &Arc<Flows>, more: [&Value; N]) -> [JobId; N] {
    let specs = more.map(|more| {
        let mut spec = Spec::from_iter([
            ("suite".to_owned(), json!("sleep")),
            ("testbox".to_owned(), json!("dc")),
            ("my_account".to_owned(), json!("user1")),
        ]);
        spec.extend(more.as_object().cloned().unwrap_or_default());
        Ok(spec)
    });
    let said = Credentials::default();
    let submitted = flows
        .submission
        .submit(specs.into(), &said, SubmitOptions::default());
    let items = submitted.await.unwrap().items;
    std::array::from_fn(|n| items[n].job_id.parse().unwrap())
}

/// Does what this replica has to do about its parents now.
async fn go_on(flows: &Arc<Flows>) {
    let looks = &flows.jobs.parents.looks;
    let looked = looks.look_at_due(looks.now_ms(), &flows.shards, ShardFlow::look_at_parents);
    drop(looked.await);
}

async fn read(flows: &Flows, id: JobId) -> JobState {
    flows.jobs.stored_job(id).await.unwrap().state
}

async fn end_as(flows: &Arc<Flows>, id: JobId, health: Health) {
    let over = |state: &JobState| {
        Ok(Some(JobState {
            data_readiness: DataReadiness::Uploaded,
            ..ended(state, Stage::Finish, health, flows.ctx.clock.wall_ms(), "")
        }))
    };
    flows.jobs.change(id, over).await.unwrap();
}

/// What another replica is told of a job.
async fn tell(from: &Flows, to: &Flows, id: JobId) {
    to.jobs.observe(&from.jobs.stored_job(id).await.unwrap());
}

#[tokio::test]
async fn a_job_runs_in_parts_and_has_one_result() {
    let (_data, flows) = flows().await;
    let id = submit(&flows, &json!(3)).await;
    let parent = read(&flows, id).await;
    assert_eq!((parent.stage, parent.ready), (Stage::Submit, false));
    go_on(&flows).await;
    assert!(read(&flows, id).await.shards.unwrap().made);
    for n in 1..=3 {
        let shard = read(&flows, id.behind(n)).await;
        assert_eq!((shard.ready, shard.shard.unwrap().of), (true, id));
        let spec = flows
            .jobs
            .specs(&[&shard])
            .await
            .unwrap()
            .pop()
            .flatten()
            .unwrap();
        assert_eq!(
            (&spec["suite"], &spec["shard_index"]),
            (&json!("sleep"), &json!(n - 1))
        );
    }
    for n in [2, 1] {
        end_as(&flows, id.behind(n), Health::Success).await;
        go_on(&flows).await;
        assert_eq!(read(&flows, id).await.stage, Stage::Submit);
    }
    end_as(&flows, id.behind(3), Health::Fail).await;
    go_on(&flows).await;
    let over = read(&flows, id).await;
    assert_eq!((over.stage, over.health), (Stage::Finish, Health::Fail));
    assert_eq!(over.reason, "1 of 3 shards failed: 3 (fail)");
    assert_eq!(flows.jobs.parents.progress(id), None);
}

#[tokio::test]
async fn whoever_sees_shards_missing_makes_them() {
    let data = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultStore::new(embedded(&data), []));
    let config = Config::embedded(data.path().to_owned());
    let a = flows_over(Arc::clone(&store) as _, config, Clock::system());
    let id = submit(&a, &json!(4)).await;
    // This replica dies before it made any. Another one begins and finds the parent.
    let b = flows_beside(&a);
    b.upkeep.restore().await.unwrap();
    go_on(&b).await;
    assert!(read(&b, id).await.shards.unwrap().made);
    // The first one was only slow: it makes none twice.
    let before = read_all(&a, id, 4).await;
    go_on(&a).await;
    let ids = |jobs: &[StoredJob]| jobs.iter().map(|job| job.state.clone()).collect::<Vec<_>>();
    let after = read_all(&a, id, 4).await;
    let same = |(a, b): (&JobState, &JobState)| a.submit_ms == b.submit_ms && a.stage == b.stage;
    assert!(ids(&before).iter().zip(&ids(&after)).all(same));
    // Creates that fail are tried again.
    let id = submit(&a, &json!(4)).await;
    store.then(Step {
        on: On::Submit,
        fault: Fault::Unavailable,
        times: 1,
    });
    go_on(&a).await;
    Box::pin(a.shards.look_at_parent(id, None)).await.unwrap();
    assert!(read(&a, id).await.shards.unwrap().made);
}

async fn read_all(flows: &Flows, id: JobId, count: u16) -> Vec<StoredJob> {
    let (_, shards) = flows.jobs.read_shards(id, count).await.unwrap();
    shards.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_cancel_stops_all_of_it_and_a_late_shard_never_runs() {
    let (_data, flows) = flows().await;
    let id = submit(&flows, &json!(3)).await;
    let cancel = |state: &JobState| Ok(Some(cancelled(state, 9, "cancelled by ann")));
    // Before the shards are made, and after.
    flows.jobs.change(id, cancel).await.unwrap();
    go_on(&flows).await;
    Box::pin(flows.shards.look_at_parent(id, None))
        .await
        .unwrap();
    let parent = read(&flows, id).await;
    assert_eq!(
        (parent.stage, parent.health),
        (Stage::Cancel, Health::Cancel)
    );
    let all = read_all(&flows, id, 3).await;
    assert!(
        all.iter().all(|job| job.state.stage == Stage::Cancel),
        "{all:?}"
    );
    assert_eq!(all.len(), 3);
    let id = submit(&flows, &json!(3)).await;
    go_on(&flows).await;
    end_as(&flows, id.behind(1), Health::Success).await;
    flows.jobs.change(id, cancel).await.unwrap();
    go_on(&flows).await;
    let parent = read(&flows, id).await;
    assert_eq!(
        (parent.stage, parent.reason.as_str()),
        (Stage::Cancel, "cancelled by ann")
    );
    assert_eq!(parent.shards.unwrap().ends[&Health::Success], 1);
}

#[tokio::test]
async fn one_that_waits_for_another_job_releases_its_shards_after_it() {
    let (_data, flows) = flows().await;
    let first = submit_job(&flows, &json!({})).await;
    let waits = json!({"shards": 2, "wait_on": {first.to_string(): {"job_health": "success"}}});
    let id = submit_job(&flows, &waits).await;
    go_on(&flows).await;
    assert_eq!(read(&flows, id).await.shards.unwrap().released_ms, 0);
    assert!(flows.jobs.stored_job(id.behind(1)).await.is_err());
    end_as(&flows, first, Health::Success).await;
    flows.waiting.look_at_dependant(id).await.unwrap();
    go_on(&flows).await;
    assert!(read(&flows, id.behind(2)).await.ready);
    // One whose condition never holds ends without any.
    let never = submit_job(&flows, &waits).await;
    assert!(read(&flows, never).await.stage == Stage::Submit);
}

#[tokio::test]
async fn the_shards_of_one_that_needs_a_job_of_its_submit_come_after_that() {
    let (_data, flows) = flows().await;
    let needs = json!({"shards": 2, "needs": ["build"]});
    let [build, id] = submit_together(&flows, [&json!({"name": "build"}), &needs]).await;
    go_on(&flows).await;
    assert!(flows.jobs.stored_job(id.behind(1)).await.is_err());
    end_as(&flows, build, Health::Success).await;
    flows.waiting.look_at_dependant(id).await.unwrap();
    go_on(&flows).await;
    assert!(read(&flows, id.behind(2)).await.ready);
}

#[tokio::test]
async fn ends_that_were_only_read_are_made_sure_of() {
    let (_data, a) = flows().await;
    let id = submit(&a, &json!(2)).await;
    go_on(&a).await;
    let b = flows_beside(&a);
    for n in [0, 1, 2] {
        tell(&a, &b, id.behind(n)).await;
    }
    end_as(&a, id.behind(1), Health::Success).await;
    end_as(&a, id.behind(2), Health::Success).await;
    let before = read_all(&a, id, 2).await;
    for n in [1, 2] {
        tell(&a, &b, id.behind(n)).await;
    }
    go_on(&b).await;
    let after = read_all(&a, id, 2).await;
    let newer = |(a, b): (&StoredJob, &StoredJob)| a.version < b.version;
    assert!(before.iter().zip(&after).all(newer), "they were only read");
    assert_eq!(read(&b, id).await.health, Health::Success);
    // The other one finds it done, and writes nothing.
    go_on(&a).await;
    assert_eq!(read_all(&a, id, 2).await, after);
}

#[tokio::test]
async fn shards_differ_where_the_job_says_so() {
    let (_data, flows) = flows().await;
    let shards = json!({"by": {"testbox": ["dc", "vm-2p8g"]}});
    let id = submit(&flows, &shards).await;
    go_on(&flows).await;
    let keys = |state: &JobState| state.host_keys.clone();
    let [first, second] = [1, 2].map(|n| id.behind(n));
    let (first, second) = (read(&flows, first).await, read(&flows, second).await);
    assert_ne!(keys(&first), keys(&second));
    assert!(second.memory_mb > 8_000, "{}", second.memory_mb);
}
