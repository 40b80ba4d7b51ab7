//! Reuse of jobs that run in parts: shards and groups.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_job::{Health, JobId, Stage};
use serde_json::json;

use super::{accepted, audit, fail, id_of, lab, read, run, spec, submit_all};
use crate::flows::Flows;

/// Does what this replica has to do about its parents now.
async fn go_on(flows: &Arc<Flows>) {
    for (id, ()) in flows.jobs.parents.looks.due(flows.ctx.clock.now().0) {
        Box::pin(flows.shards.look_at_parent(id, None))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn shards_are_reused_one_by_one_and_the_whole_ends() {
    let (_data, flows) = lab().await;
    let whole = json!({"shards": 4});
    let first = accepted(&flows, &whole).await;
    go_on(&flows).await;
    let keys: BTreeSet<String> = shard_keys(&flows, first, 4).await;
    assert_eq!(keys.len(), 4, "each has a key of its own");
    for n in 1..=3 {
        run(&flows, first.behind(n)).await;
    }
    fail(&flows, first.behind(4)).await;
    go_on(&flows).await;
    let second = accepted(&flows, &whole).await;
    go_on(&flows).await;
    for n in 1..=3 {
        assert_eq!(
            read(&flows, second.behind(n)).await.reused_from,
            Some(first.behind(n))
        );
    }
    let last = read(&flows, second.behind(4)).await;
    assert!(last.ready && last.reused_from.is_none());
    run(&flows, second.behind(4)).await;
    go_on(&flows).await;
    assert_eq!(read(&flows, second).await.health, Health::Success);
    // All of another one but the flaky shard.
    let (eight, again) = (json!({"shards": 3, "n": 8}), json!({"shards": 3, "n": 8}));
    let first = accepted(&flows, &eight).await;
    go_on(&flows).await;
    for n in 1..=3 {
        run(&flows, first.behind(n)).await;
    }
    go_on(&flows).await;
    let second = accepted(&flows, &again).await;
    go_on(&flows).await;
    go_on(&flows).await;
    let parent = read(&flows, second).await;
    assert_eq!(
        (parent.stage, parent.health),
        (Stage::Finish, Health::Success)
    );
    assert_eq!((parent.used_ms, parent.running_ms), (0, 0));
}

/// The second of two jobs of 200 shards costs a few batches, however many shards it has.
#[tokio::test]
#[expect(
    clippy::print_stdout,
    reason = "the time is shown, and asserts nothing"
)]
async fn two_hundred_shards_are_answered_without_a_testbox() {
    let (_data, flows) = lab().await;
    audit(&flows, 1).await;
    let whole = json!({"shards": 200});
    let first = accepted(&flows, &whole).await;
    go_on(&flows).await;
    for n in 1..=200 {
        run(&flows, first.behind(n)).await;
    }
    go_on(&flows).await;
    assert_eq!(read(&flows, first).await.health, Health::Success);
    let began = flows.ctx.clock.now();
    let second = accepted(&flows, &whole).await;
    go_on(&flows).await;
    let mut audits = Vec::new();
    for n in 1..=200 {
        let state = read(&flows, second.behind(n)).await;
        match state.reused_from {
            Some(from) => assert_eq!(from, first.behind(n)),
            None => audits.push(state),
        }
    }
    for audit in &audits {
        assert_eq!(
            audit.reuse.as_ref().and_then(|it| it.audit_of),
            Some(first.behind(audit.shard.unwrap().n))
        );
        run(&flows, audit.job_id).await;
    }
    go_on(&flows).await;
    let over = read(&flows, second).await;
    assert_eq!((over.stage, over.health), (Stage::Finish, Health::Success));
    let took_ms = flows.ctx.clock.now().0 - began.0;
    println!(
        "200 shards: {} reused, {} audits, {took_ms} ms",
        200 - audits.len(),
        audits.len()
    );
    assert!(audits.len() <= 10, "{} audits", audits.len());
}

async fn shard_keys(flows: &Flows, parent: JobId, many: u16) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for n in 1..=many {
        keys.insert(read(flows, parent.behind(n)).await.reuse.unwrap().key);
    }
    keys
}

#[tokio::test]
async fn jobs_of_a_group_are_reused_one_by_one() {
    let (_data, flows) = lab().await;
    let joins = |group: &str, n: u32| json!({"group": group, "n": n});
    let mut first = Vec::new();
    for n in 1..=3 {
        let id = accepted(&flows, &joins("one", n)).await;
        run(&flows, id).await;
        first.push(id);
    }
    let second = submit_all(&flows, (1..=3).map(|n| spec(&joins("two", n))).collect()).await;
    for (item, from) in second.iter().zip(first) {
        let state = read(&flows, id_of(item)).await;
        assert_eq!(
            (state.reused_from, state.stage),
            (Some(from), Stage::Finish)
        );
        assert!(state.shard.is_some());
    }
}
