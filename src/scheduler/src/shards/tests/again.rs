//! Tests of jobs that run again with others of their submit.

use fairlead_api::SubmitItem;

use super::*;
use crate::shards::rerun::Again;
use fairlead_known::accounts::Who;

/// A build, a test that takes its outputs, and a report, which need each other; their ids.
async fn submit_graph(flows: &Arc<Flows>) -> Vec<JobId> {
    let job = |more: Value| {
        let mut spec = json!({"suite": "sleep", "testbox": "dc", "my_account": "user1"});
        let fields = spec.as_object_mut().unwrap();
        fields.extend(more.as_object().cloned().unwrap());
        Ok(spec.as_object().cloned().unwrap())
    };
    let items = vec![
        job(json!({"name": "report", "needs": ["test"]})),
        job(json!({"name": "test", "needs": ["build"], "inputs": {"from": "build"}})),
        job(json!({"name": "build", "outputs": ["."]})),
    ];
    let said = Credentials::default();
    let submitted = flows
        .submission
        .submit(items, &said, SubmitOptions::default())
        .await;
    ids_of(&submitted.unwrap().items)
}

fn ids_of(items: &[SubmitItem]) -> Vec<JobId> {
    let id = |item: &SubmitItem| {
        assert_eq!(item.code, "", "{item:?}");
        item.job_id.parse().unwrap()
    };
    items.iter().map(id).collect()
}

fn person(flows: &Flows) -> (Who, Credentials) {
    let said = Credentials {
        account: Some("user1".to_owned()),
        ..Credentials::default()
    };
    (flows.people.accounts.identify(&said).unwrap(), said)
}

async fn again(flows: &Arc<Flows>, ids: &[JobId], again: &Again) -> Vec<SubmitItem> {
    let (who, said) = person(flows);
    let ran = flows.shards.rerun_many(ids, again, &who, &said).await;
    let ran = ran.unwrap_or_else(|refusal| panic!("{:?}", refusal.body()));
    ran.items
}

/// What a job waits for.
async fn waits_for(flows: &Flows, id: JobId) -> Value {
    let state = read(flows, id).await;
    state
        .waits
        .map_or(Value::Null, |waits| json!(waits)["wait_on"].clone())
}

fn success_of(id: JobId) -> Value {
    json!({id.to_string(): {"job_health": "success"}})
}

#[tokio::test]
async fn jobs_that_run_again_need_each_other_as_before() {
    let (_data, flows) = flows().await;
    let old = submit_graph(&flows).await;
    let other = submit_graph(&flows).await;
    let all = [old.as_slice(), &other].concat();
    let mut new = ids_of(&again(&flows, &all, &Again::default()).await);
    // Those of another submit have their own build.
    for new in [new.split_off(3), new] {
        assert_eq!(waits_for(&flows, new[0]).await, success_of(new[1]));
        assert_eq!(waits_for(&flows, new[1]).await, success_of(new[2]));
        let inputs = read(&flows, new[1]).await.inputs;
        assert_eq!(inputs, [format!("{}{}", JobState::INPUT_FROM, new[2])]);
        // A second time, too.
        let third = ids_of(&again(&flows, &new, &Again::default()).await);
        assert_eq!(waits_for(&flows, third[1]).await, success_of(third[2]));
    }
}

#[tokio::test]
async fn what_never_ran_because_of_a_failure_runs_again_with_it() {
    let (_data, flows) = flows().await;
    let old = submit_graph(&flows).await;
    end_as(&flows, old[2], Health::Fail).await;
    flows.waiting.sweep_dependants().await;
    flows.waiting.sweep_dependants().await;
    assert_eq!(read(&flows, old[0]).await.stage, Stage::AbortWait);
    let failed = Again {
        only_failed: true,
        ..Again::default()
    };
    let items = again(&flows, &old[2..], &failed).await;
    let of: Vec<&str> = items.iter().map(|item| item.rerun_of.as_str()).collect();
    let ids = [old[2], old[0], old[1]].map(|id| id.to_string());
    assert_eq!(of, ids);
    let new = ids_of(&items);
    assert_eq!(waits_for(&flows, new[1]).await, success_of(new[2]));
    assert_eq!(waits_for(&flows, new[2]).await, success_of(new[0]));
    // By its own address, too.
    let (who, said) = person(&flows);
    let one = flows.shards.rerun(old[2], &failed, &who, &said).await;
    let one = one.unwrap_or_else(|refusal| panic!("{:?}", refusal.body()));
    assert_eq!(one.items.len(), 3);
}
