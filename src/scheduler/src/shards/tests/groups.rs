//! Tests of open groups over a real store: joined, closed and ended by several replicas.

use fairlead_api::SubmitItem;

use super::*;
use crate::shards::rerun::Again;
use fairlead_lifecycle::{
    parent::{closed, counted},
    shards::{Next, next},
};

/// Submits a job into the group; what came of it.
async fn join(flows: &Arc<Flows>, group: &Value) -> SubmitItem {
    let spec = json!({"suite": "sleep", "testbox": "dc", "my_account": "user1", "group": group});
    let spec = spec.as_object().cloned().unwrap();
    let said = Credentials::default();
    let submitted = flows
        .submission
        .submit(vec![Ok(spec)], &said, SubmitOptions::default());
    submitted.await.unwrap().items.remove(0)
}

fn id_of(item: &SubmitItem) -> JobId {
    assert_eq!(item.code, "", "{item:?}");
    item.job_id.parse().unwrap()
}

async fn parent_of(flows: &Arc<Flows>, group: &str) -> JobId {
    flows
        .submission
        .find_group("user1", group)
        .await
        .unwrap()
        .unwrap()
}

async fn close(flows: &Arc<Flows>, group: &str) -> JobId {
    let said = Credentials {
        account: Some("user1".to_owned()),
        ..Credentials::default()
    };
    let who = flows.people.accounts.identify(&said).unwrap();
    let id = parent_of(flows, group).await;
    flows.submission.close_group(&who, id).await.unwrap();
    id
}

#[tokio::test]
async fn jobs_that_join_a_group_run_at_once_and_have_one_result() {
    let (_data, flows) = flows().await;
    let first = join(&flows, &json!("g")).await;
    let second = join(&flows, &json!({"id": "g", "shard": "b"})).await;
    let id = parent_of(&flows, "g").await;
    assert_eq!(first.shard_of, id.to_string());
    assert_eq!(id_of(&first), id.behind(1));
    assert_eq!(id_of(&second), id.behind(2));
    let shard = read(&flows, id.behind(2)).await;
    assert!(shard.ready && shard.stage == Stage::Submit);
    let spec = flows
        .jobs
        .specs(&[&shard])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_eq!(
        (&spec["suite"], &spec["shard"]),
        (&json!("sleep"), &json!(2))
    );
    // Its jobs end, and more may come.
    for n in [1, 2] {
        end_as(&flows, id.behind(n), Health::Success).await;
    }
    go_on(&flows).await;
    assert_eq!(read(&flows, id).await.stage, Stage::Submit);
    id_of(&join(&flows, &json!("g")).await);
    close(&flows, "g").await;
    let late = join(&flows, &json!("g")).await;
    assert_eq!(late.code, "conflict", "{late:?}");
    go_on(&flows).await;
    assert_eq!(read(&flows, id).await.shards.unwrap().count, 3);
    end_as(&flows, id.behind(3), Health::Fail).await;
    go_on(&flows).await;
    let over = read(&flows, id).await;
    assert_eq!((over.stage, over.health), (Stage::Finish, Health::Fail));
    assert_eq!(over.shards.unwrap().ends[&Health::Success], 2);
}

#[tokio::test]
async fn a_named_shard_joins_once_at_any_replica_and_numbers_are_taken_once() {
    let (_data, a) = flows().await;
    let b = flows_beside(&a);
    let named = |n: u16| json!({"id": "g", "shard": format!("s{n}")});
    let mut ids = Vec::new();
    for n in 0..6 {
        let at = if n % 2 == 0 { &a } else { &b };
        ids.push(id_of(&join(at, &named(n)).await));
    }
    for n in 0..6 {
        let at = if n % 2 == 0 { &b } else { &a };
        assert_eq!(id_of(&join(at, &named(n)).await), ids[usize::from(n)]);
    }
    let both = futures_util::future::join_all((20..40).map(|n| {
        let (a, b) = (Arc::clone(&a), Arc::clone(&b));
        async move {
            let group = json!({"id": "g", "shard": format!("s{}", n / 2)});
            id_of(&join(if n % 2 == 0 { &a } else { &b }, &group).await)
        }
    }));
    for pair in both.await.chunks(2) {
        assert_eq!(pair[0], pair[1]);
        ids.push(pair[0]);
    }
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all);
    let id = close(&b, "g").await;
    go_on(&b).await;
    let count = read(&a, id).await.shards.unwrap().count;
    assert!(usize::from(count) >= all, "{count} of {all}");
    let names: Vec<JobId> = read_all(&a, id, count)
        .await
        .iter()
        .filter(|job| job.state.shard.unwrap().has_own_body())
        .map(|job| job.state.job_id)
        .collect();
    assert_eq!(names, ids);
    // A shard that is in is in, also when it is submitted again after that.
    assert_eq!(id_of(&join(&a, &named(0)).await), id.behind(1));
}

#[tokio::test]
async fn whoever_hears_of_a_closed_group_counts_its_shards() {
    let (_data, a) = flows().await;
    join(&a, &json!("g")).await;
    // This replica dies after it closed the group.
    let id = close(&a, "g").await;
    let b = flows_beside(&a);
    b.upkeep.restore().await.unwrap();
    go_on(&b).await;
    assert_eq!(read(&b, id).await.shards.unwrap().count, 1);
}

#[tokio::test]
async fn a_number_that_no_job_has_is_filled() {
    let (_data, flows) = flows().await;
    join(&flows, &json!("g")).await;
    let id = parent_of(&flows, "g").await;
    flows.jobs.parents.numbers_taken(id, 2);
    id_of(&join(&flows, &json!("g")).await);
    close(&flows, "g").await;
    go_on(&flows).await;
    let shards = read_all(&flows, id, 3).await;
    let reasons: Vec<&str> = shards.iter().map(|job| job.state.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["", "no job joined the group under this number", ""]
    );
    for n in [1, 3] {
        end_as(&flows, id.behind(n), Health::Success).await;
    }
    go_on(&flows).await;
    let over = read(&flows, id).await;
    assert_eq!(over.health, Health::Success);
    assert_eq!(over.shards.unwrap().ends[&Health::Success], 2);
}

/// What is only read may vanish: then the group is open again, and a job joins it under that number.
#[tokio::test]
async fn a_number_is_filled_only_after_a_close_that_stays() {
    let data = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultStore::new(embedded(&data), []));
    let config = Config::embedded(data.path().to_owned());
    let a = flows_over(Arc::clone(&store) as _, config, Clock::system());
    join(&a, &json!("g")).await;
    let id = parent_of(&a, "g").await;
    a.jobs.parents.numbers_taken(id, 2);
    id_of(&join(&a, &json!("g")).await);
    let close = |state: &JobState| Ok(Some(counted(&closed(state, 5), 3)));
    a.jobs.change(id, close).await.unwrap();
    let b = flows_beside(&a);
    let filled = async || a.jobs.stored_job(id.behind(2)).await.is_ok();
    store.then(Step {
        on: On::Patch,
        fault: Fault::Unavailable,
        times: 1,
    });
    let looked = Box::pin(b.shards.look_at_parent(id, None)).await;
    assert!(looked.is_err() && !filled().await, "it was only read");
    Box::pin(b.shards.look_at_parent(id, None)).await.unwrap();
    assert!(filled().await);
}

#[tokio::test]
async fn the_first_failure_stops_a_group_that_says_so() {
    let (_data, flows) = flows().await;
    let group = json!({"id": "g", "fail_fast": true});
    for _ in 0..3 {
        join(&flows, &group).await;
    }
    let id = parent_of(&flows, "g").await;
    end_as(&flows, id.behind(2), Health::Fail).await;
    go_on(&flows).await;
    go_on(&flows).await;
    let over = read(&flows, id).await;
    assert_eq!((over.stage, over.health), (Stage::Finish, Health::Fail));
    assert_eq!(read(&flows, id.behind(3)).await.stage, Stage::Cancel);
    assert_eq!(join(&flows, &group).await.code, "conflict");
}

#[tokio::test]
async fn a_group_without_jobs_is_no_success() {
    let (_data, flows) = flows().await;
    join(&flows, &json!("g")).await;
    let id = parent_of(&flows, "g").await;
    let parent = closed(&read(&flows, id).await, 5);
    let Next::End(over) = next(&parent, &[], 9) else {
        panic!("it waits for jobs that cannot come");
    };
    assert_eq!((over.stage, over.health), (Stage::Finish, Health::Fail));
}

#[tokio::test]
async fn one_submit_joins_no_more_than_ten_groups() {
    let (_data, flows) = flows().await;
    let items = (0..12).map(|n| {
        let spec = json!({"suite": "sleep", "testbox": "dc", "my_account": "user1", "group": n});
        Ok(spec.as_object().cloned().unwrap())
    });
    let said = Credentials::default();
    let submitted = flows
        .submission
        .submit(items.collect(), &said, SubmitOptions::default());
    let items = submitted.await.unwrap().items;
    let codes: Vec<&str> = items.iter().map(|item| item.code.as_str()).collect();
    assert_eq!(codes[..10], [""; 10]);
    assert_eq!(codes[10..], ["too_large"; 2]);
}

#[tokio::test]
async fn a_group_that_cannot_run_again_hides_no_job_that_does() {
    let (_data, flows) = flows().await;
    let job = submit_job(&flows, &json!({})).await;
    join(&flows, &json!("g")).await;
    // A group that ended before a job joined it: nothing of it can run again.
    let joined = read(&flows, parent_of(&flows, "g").await).await;
    let id = flows.peers.next_ids(1);
    let empty = JobState {
        job_id: id,
        ..ended(&closed(&joined, 5), Stage::Finish, Health::Fail, 9, "")
    };
    let body = flows
        .jobs
        .specs(&[&joined])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let body = Arc::new(body);
    let empty = fairlead_store::NewJob { state: empty, body };
    flows.ctx.store.submit(vec![empty]).await.remove(0).unwrap();
    let said = Credentials {
        account: Some("user1".to_owned()),
        ..Credentials::default()
    };
    let who = flows.people.accounts.identify(&said).unwrap();
    let again = Again::default();
    let ran = flows
        .shards
        .rerun_many(&[job, id], &again, &who, &said)
        .await;
    let ran = ran.unwrap_or_else(|refusal| panic!("{:?}", refusal.body()));
    assert_eq!(ran.status, 200);
    let new = read(&flows, id_of(&ran.items[0])).await;
    assert_eq!((new.stage, new.account.as_str()), (Stage::Submit, "user1"));
    assert_eq!(ran.items[1].code, "wrong_stage", "{:?}", ran.items[1]);
    assert_eq!(ran.items[1].rerun_of, id.to_string());
    // Alone, its own refusal has the status.
    let ran = flows.shards.rerun_many(&[id], &again, &who, &said).await;
    let ran = ran.unwrap_or_else(|refusal| panic!("{:?}", refusal.body()));
    assert_eq!(
        (ran.status, ran.items[0].code.as_str()),
        (409, "wrong_stage")
    );
}
