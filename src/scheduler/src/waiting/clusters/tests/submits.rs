//! Tests of submits of a cluster: a job of each node, all or none.

use super::*;

async fn submit(flows: &Arc<Flows>, fields: &Value, key: &str) -> Vec<(String, String)> {
    let items = submitted(flows, fields, key).await.into_iter();
    items.map(|item| (item.job_id, item.message)).collect()
}

async fn submitted(flows: &Arc<Flows>, fields: &Value, key: &str) -> Vec<SubmitItem> {
    let mut job = json!({"suite": "net", "testbox": "dc", "script": "true"});
    let all = job.as_object_mut().unwrap();
    all.extend(fields.as_object().unwrap().clone());
    let said = Credentials {
        account: Some("ann".to_owned()),
        token: None,
        ..Credentials::default()
    };
    let how = SubmitOptions {
        key: Some(key).filter(|key| !key.is_empty()),
        ..SubmitOptions::default()
    };
    let items = vec![Ok(all.clone())];
    flows
        .submission
        .submit(items, &said, how)
        .await
        .unwrap()
        .items
}

#[tokio::test(start_paused = true)]
async fn a_submit_makes_a_job_of_each_node_all_or_none_and_once() {
    let lab = lab(1).await;
    let pair = json!({"cluster": "cs-s1-c1", "max_run": 1});
    let ids = submit(&lab.flows, &pair, "k").await;
    assert!(ids.len() == 2 && ids[0].1.is_empty(), "{ids:?}");
    let parsed: Vec<JobId> = ids.iter().map(|(id, _)| id.parse().unwrap()).collect();
    let found = lab.flows.ctx.store.get(&parsed).await.unwrap();
    let bodies = lab.flows.ctx.store.get_bodies(&parsed).await.unwrap();
    for (n, (job, body)) in found.into_iter().zip(bodies).enumerate() {
        let (place, body) = (job.unwrap().state.cluster.unwrap(), body.unwrap());
        assert_eq!((&place.jobs, place.wait_s), (&parsed, 300));
        assert_eq!(place.roles, ["server", "client"][n]);
        assert_eq!(body["node_roles"], ["server", "client"][n]);
        assert_eq!(body["cluster_jobs"], json!(parsed));
        assert_eq!(body["cluster_id"], json!(parsed[0]));
    }
    let beside = flows_beside(&lab.flows);
    assert_eq!(submit(&beside, &pair, "k").await, ids, "the same again");
    // The whole of it counts once, and is refused as a whole.
    lab.flows.ctx.store.refresh().await.unwrap();
    let refused = submit(&lab.flows, &pair, "l").await;
    let all = refused
        .iter()
        .filter(|(id, why)| id == "0" && why.contains("max_run: 1 job with"));
    assert_eq!((all.count(), refused.len()), (2, 2), "{refused:?}");
    let one = submit(&lab.flows, &json!({"cluster": "cs-localhost"}), "m").await;
    assert_eq!(one.len(), 1);
    let wrong = submit(
        &lab.flows,
        &json!({"cluster": "cs-s1-c1", "sequence": "q"}),
        "n",
    )
    .await;
    assert!(wrong[0].1.contains("sequence"), "{wrong:?}");
}

#[tokio::test(start_paused = true)]
async fn that_there_are_fewer_machines_than_nodes_is_said() {
    let lab = lab(1).await;
    let host = |n: u8| {
        let host = fairlead_known::hosts::Host {
            kinds: vec![TboxType::Hw],
            arch: "x86_64".to_owned(),
            memory_mb: 8_192,
            ..fairlead_known::hosts::Host::default()
        };
        let known = lab
            .flows
            .hosts
            .lab
            .hosts
            .update(&format!("h{n}"), |known| *known = host);
        known.unwrap();
    };
    host(1);
    let pair = json!({"cluster": "cs-s1-c1", "testbox": "hw", "arch": "x86_64"});
    let hints = async || {
        let items = submitted(&lab.flows, &pair, "").await.into_iter();
        items.map(|item| item.hint).collect::<Vec<_>>()
    };
    let few = "2 nodes of the cluster need a whole machine each; 1 of the known hosts could be one";
    assert_eq!(hints().await, [few, few]);
    host(2);
    assert_eq!(hints().await, ["", ""]);
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_without_its_peers_does_not_stay_unless_it_may_be_sent_again() {
    for ids in [Ids::New, Ids::WrittenDown] {
        let lab = lab(1).await;
        let stored = lab.flows.jobs.stored_job(lab.jobs[0]).await.unwrap();
        let refusal = Refusal::Stopping;
        let mut outcomes = vec![Err(refusal.clone()), Ok(stored.clone()), Err(refusal)];
        let both = 1..3;
        lab.flows
            .submission
            .all_or_none(&mut outcomes, std::slice::from_ref(&both), ids)
            .await;
        let codes = outcomes
            .iter()
            .map(|outcome| outcome.as_ref().unwrap_err().body().code);
        let nothing_is_in = [ErrorCode::Unavailable; 3];
        assert_eq!(codes.collect::<Vec<_>>(), nothing_is_in);
        let stage = lab.job(1).await.stage;
        let expected = match ids {
            Ids::New => Stage::Cancel,
            Ids::WrittenDown | Ids::OfGroup => Stage::Submit,
        };
        assert_eq!(stage, expected);
    }
}

/// Seed 5131: of a cluster's nodes one was certainly not stored and one perhaps; "nothing was written" was said of both.
#[tokio::test(start_paused = true)]
async fn that_nothing_was_written_is_not_said_while_a_node_may_be_in() {
    let lab = lab(1).await;
    let both = 0..2;
    let refused = async |nodes: [Result<StoredJob, Refusal>; 2]| {
        let mut outcomes = Vec::from(nodes);
        let both = std::slice::from_ref(&both);
        Box::pin(
            lab.flows
                .submission
                .all_or_none(&mut outcomes, both, Ids::New),
        )
        .await;
        let code = |outcome: &Result<StoredJob, Refusal>| outcome.as_ref().unwrap_err().body().code;
        outcomes.iter().map(code).collect::<Vec<_>>()
    };
    let not_taken = || Err(Refusal::Stopping);
    let unknown = || {
        let reason = "no answer".to_owned();
        Err(Refusal::from(fairlead_store::ItemError::Unknown { reason }))
    };
    let perhaps = [ErrorCode::Unknown; 2];
    assert_eq!(refused([not_taken(), unknown()]).await, perhaps);
    assert_eq!(refused([unknown(), not_taken()]).await, perhaps);
    lab.dispatch(1, Stage::Running).await;
    let runs = lab.flows.jobs.stored_job(lab.jobs[0]).await.unwrap();
    assert_eq!(refused([Ok(runs), not_taken()]).await, perhaps);
}
