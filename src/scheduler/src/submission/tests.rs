//! A dry run and a submit refuse the same fields, with the same code, message and hint.

use fairlead_job::{Spec, Submitted, dry_run};
use serde_json::{Value, json};

use crate::{known::accounts::Credentials, submission::submit::SubmitOptions, testing::core};

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
    ]
}

type Words = (String, String, String);

/// What a submit of these specs refuses: nothing of a job that is accepted.
async fn submitted(specs: &[Spec], key: &str) -> Vec<Option<Words>> {
    let (_data, core) = core().await;
    let said = Credentials {
        account: Some("ann".to_owned()),
        token: None,
    };
    let how = SubmitOptions {
        key: Some(key),
        ..SubmitOptions::default()
    };
    let items = specs.iter().cloned().map(Ok).collect();
    let submitted = core.submit(items, &said, how).await.unwrap();
    let refused = submitted.items.into_iter().map(|item| {
        let words = (item.code, item.message, item.hint);
        (item.job_id == "0").then_some(words)
    });
    refused.collect()
}

/// The same of a dry run: as many as a submit answers.
async fn dry(specs: &[Spec]) -> Vec<Option<Words>> {
    let (_data, core) = core().await;
    let site = &core.config.site;
    let outcomes = dry_run(specs.to_vec(), site, core.clock.wall_ms());
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
    for fields in bad_fields() {
        let refused = refused_alike(std::slice::from_ref(&fields)).await;
        assert!(refused.iter().all(Option::is_some), "{fields}: {refused:?}");
    }
    let good =
        json!({"wait_on": null, "sequence": "k", "labels": ["a"], "max_run": 5, "queue": "q"});
    assert_eq!(refused_alike(&[good]).await, [None]);
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
