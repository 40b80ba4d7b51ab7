//! A dry run and a submit refuse the same fields, with the same code, message and hint.

use fairlead_job::{Spec, Submitted, dry_run};
use serde_json::{Value, json};

use crate::{
    submission::{intake::read_submit, submit::SubmitOptions},
    testing::flows,
};
use fairlead_known::accounts::Credentials;

/// Fields that no submit accepts, each in a job that is good without them.
fn bad_fields() -> Vec<Value> {
    let two = |fields: Value| {
        let mut job = json!({"cluster": "cs-s1-c1"});
        job.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        job
    };
    vec![
        json!({"suite": "a/b"}),
        json!({"suite": null}),
        json!({"script": ["x"]}),
        json!({"category": "x".repeat(200)}),
        json!({"my_account": "a b"}),
        json!({"my_account": "a/b"}),
        json!({"queue": "a b"}),
        json!({"queue": ["a"]}),
        json!({"priority": 1_000}),
        json!({"testbox": "a b"}),
        json!({"tbox_type": "car"}),
        json!({"arch": "x86/64"}),
        json!({"target_machines": {"a": 1}}),
        json!({"need_memory": "lots"}),
        json!({"tags": {"a": 1}}),
        json!({"sched": "gpu"}),
        json!({"cache_dirs": ["x".repeat(300)]}),
        json!({"timeout": 0}),
        json!({"runtime": "long"}),
        json!({"stage_timeouts": {"run": 1}}),
        json!({"queue_timeout": 0}),
        json!({"silence_timeout": "soon"}),
        json!({"start_at": "tomorrow"}),
        json!({"deadline": "2020-01-01"}),
        json!({"start_at": "2990-01-02", "deadline": "2990-01-01"}),
        json!({"retry": {"on": "rain"}}),
        json!({"retry_elsewhere": 7}),
        json!({"stop_when_cut_off": "maybe"}),
        json!({"on_shutdown": "run"}),
        json!({"submit_id": "a/b"}),
        json!({"group_id": ["a"]}),
        json!({"max_run": 0}),
        json!({"idempotency_key": ""}),
        json!({"idempotency_key": ["k"]}),
        json!({"wait_on": 5}),
        json!({"wait_on": {}}),
        json!({"wait_on": {"x": null}}),
        json!({"wait_on": {"7": {"job_stage": "done"}}}),
        json!({"sequence": ["k"]}),
        json!({"sequence": "k", "sequence_host": "h1"}),
        json!({"sequence_host": "same"}),
        json!({"needs": 7}),
        json!({"needs": "nobody"}),
        json!({"name": "a", "needs": ["a"]}),
        json!({"if": "sunday"}),
        json!({"every": "1h"}),
        json!({"cron": "@daily"}),
        json!({"cluster": 7}),
        json!({"cluster": "cs-s1-c99"}),
        json!({"cluster": "x", "node_roles": "a/b"}),
        json!({"cluster": "x", "cluster_spec": {"nodes": {"a": {"need_memory": "lots"}, "b": null}}}),
        two(json!({"cluster_wait": 0})),
        two(json!({"sequence": "k"})),
        two(json!({"timeout": 0})),
        two(json!({"needs": "nobody"})),
        json!({"note": "x".repeat(300 << 10)}),
        json!({"note": (0..70).fold(json!(1), |value, _| json!([value]))}),
        json!({"shards": 0}),
        json!({"shards": {"count": 2, "with": 1}}),
        json!({"shards": {"count": 1_001}}),
        json!({"shards": {"count": 2, "within": 0}}),
        json!({"shards": {"list": ["a"]}}),
        json!({"shards": {"by": {"arch": ["x86_64", "x86/64"]}}}),
        json!({"shards": {"by": {"need_memory": ["1G", "lots"]}}}),
        json!({"shards": 2, "cluster": "cs-s1-c1"}),
        json!({"group": ["g"]}),
        json!({"group": "a b/c d"}),
        json!({"group": {"shard": "x"}}),
        json!({"group": {"id": "g", "within": "2d"}}),
        json!({"group": {"id": "g", "fail_fast": 7}}),
        json!({"group": "g", "needs": ["a"]}),
        json!({"group": "g", "shards": 2}),
        json!({"callback": 7}),
        json!({"crash": "loud"}),
        json!({"any_of": 7}),
        json!({"else": {"tags": ["a"]}}),
    ]
}

type Words = (String, String, String);

/// What a submit of these specs refuses: nothing of a job that is accepted.
async fn submitted(specs: &[Spec], key: &str) -> Vec<Option<Words>> {
    let (_data, flows) = flows().await;
    let said = Credentials {
        account: Some("ann".to_owned()),
        ..Credentials::default()
    };
    let how = SubmitOptions {
        key: Some(key),
        ..SubmitOptions::default()
    };
    let body = json!(specs).to_string();
    let items = read_submit(None, body.as_bytes(), &flows.ctx.config.limits).unwrap();
    let submitted = flows.submission.submit(items, &said, how).await.unwrap();
    let refused = submitted.items.into_iter().map(|item| {
        let words = (item.code, item.message, item.hint);
        (item.job_id == "0").then_some(words)
    });
    refused.collect()
}

/// The same of a dry run: as many as a submit answers.
async fn dry(specs: &[Spec]) -> Vec<Option<Words>> {
    let (_data, flows) = flows().await;
    let site = &flows.ctx.config.site;
    let outcomes = dry_run(
        specs.to_vec(),
        site,
        &flows.ctx.config.limits.of_submits(),
        flows.ctx.clock.wall_ms(),
    );
    let each = specs.iter().zip(outcomes).flat_map(|(spec, outcome)| {
        let words = outcome.err().map(|error| {
            let code = error.fault.code().to_owned();
            (code, error.to_string(), error.hint)
        });
        vec![words; Submitted::of(spec.clone(), site).count]
    });
    each.collect()
}

async fn refused_alike(specs: &[Value]) -> Vec<Option<Words>> {
    let specs: Vec<Spec> = specs
        .iter()
        .map(|fields| {
            let mut spec = Spec::from_iter([("suite".to_owned(), json!("sleep"))]);
            spec.extend(fields.as_object().unwrap().clone());
            spec
        })
        .collect();
    let refused = submitted(&specs, "k").await;
    assert_eq!(refused, dry(&specs).await, "{specs:?}");
    refused
}

#[tokio::test]
async fn a_dry_run_refuses_what_a_submit_refuses_in_the_same_words() {
    let mut accepted = Vec::new();
    for fields in bad_fields() {
        let refused = refused_alike(std::slice::from_ref(&fields)).await;
        if refused.iter().any(Option::is_none) {
            accepted.push(fields.to_string());
        }
    }
    assert!(accepted.is_empty(), "{accepted:?}");
    let good =
        json!({"wait_on": null, "sequence": "k", "labels": ["a"], "max_run": 5, "queue": "q"});
    assert_eq!(refused_alike(&[good]).await, [None]);
}

#[tokio::test]
async fn what_all_jobs_are_together_is_refused_alike() {
    let cut = |n: usize| vec![json!({"shards": 1_000}); n];
    let refused = refused_alike(&cut(12)).await;
    let is_refused: Vec<bool> = refused.iter().map(Option::is_some).collect();
    assert_eq!(is_refused, [[false; 10].as_slice(), &[true; 2]].concat());
    let joins = |n: usize| json!({"group": format!("g{n}"), "my_account": "ann"});
    let refused = refused_alike(&(0..12).map(joins).collect::<Vec<_>>()).await;
    let is_refused: Vec<bool> = refused.iter().map(Option::is_some).collect();
    assert_eq!(is_refused, [[false; 10].as_slice(), &[true; 2]].concat());
    let codes = refused.into_iter().flatten().map(|(code, ..)| code);
    assert!(codes.into_iter().all(|code| code == "too_large"));
}

#[tokio::test]
async fn jobs_that_need_each_other_are_refused_alike() {
    let refused = refused_alike(&[
        json!({"name": "a"}),
        json!({"name": "b", "needs": "a"}),
        json!({"name": "c", "timeout": 0}),
        json!({"name": "d", "needs": "c"}),
        json!({"name": "e", "needs": "d", "cluster": "cs-s1-c1"}),
        json!({"needs": "e"}),
        json!({"name": "f", "needs": "g"}),
        json!({"name": "g", "needs": ["f", "a"]}),
    ])
    .await;
    let is_refused: Vec<bool> = refused.iter().map(Option::is_some).collect();
    assert_eq!(
        is_refused,
        [false, false, true, true, true, true, true, true, true]
    );
}
