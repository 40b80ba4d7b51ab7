//! Tests of joins, audits, defaults of suites, and what two replicas do with one key.

use super::*;
use fairlead_lifecycle::reuse::reused;

/// What became of a job that joined one which ended so.
async fn joined_after(end: impl Fn(&mut JobState) + Send + Sync) -> (Arc<Flows>, JobId, JobState) {
    let (_data, flows) = lab().await;
    let first = accepted(&flows, &json!({})).await;
    let second = submit(&flows, &json!({})).await;
    assert_eq!(second.joined, first.to_string());
    let id = id_of(&second);
    assert!(!read(&flows, id).await.ready);
    run_with(&flows, first, end).await;
    flows.waiting.sweep_dependants().await;
    let state = read(&flows, id).await;
    (flows, first, state)
}

#[tokio::test]
async fn a_job_that_runs_already_is_waited_for_and_shared() {
    let (_core, first, state) = joined_after(|_| {}).await;
    assert_eq!(
        (state.stage, state.reused_from),
        (Stage::Finish, Some(first))
    );
    assert_eq!(state.reuse.unwrap().joined, Some(first));
}

#[tokio::test]
async fn a_job_whose_twin_failed_runs_itself() {
    let (flows, _, state) = joined_after(|state| state.health = Health::Fail).await;
    assert_eq!((state.stage, state.ready), (Stage::Submit, true));
    assert!(
        state
            .reuse
            .as_ref()
            .unwrap()
            .why
            .contains("ended with fail")
    );
    // It succeeds where its twin failed.
    run(&flows, state.job_id).await;
    assert!(has(&taken(&flows, &json!({})).await, "flaky"));
}

#[tokio::test]
async fn a_job_that_waits_takes_nothing_when_the_same_thing_failed_meanwhile() {
    let (_data, flows) = lab().await;
    let first = accepted(&flows, &json!({})).await;
    let second = id_of(&submit(&flows, &json!({})).await);
    let key = read(&flows, first).await.reuse.unwrap().key;
    let fails = async |entry: Option<Entry>| {
        let mut entry = entry.unwrap_or_default();
        entry.is_bad("it is flaky");
        Ok::<_, fairlead_base::errors::Refusal>(entry)
    };
    let doc = entry_id(&key, Some("ann"));
    flows.ctx.docs.change(&doc, fails).await.unwrap();
    run(&flows, first).await;
    flows.waiting.sweep_dependants().await;
    let state = read(&flows, second).await;
    assert_eq!((state.stage, state.ready), (Stage::Submit, true));
    assert!(state.reuse.unwrap().why.contains("flaky"));
}

/// Each job says itself how old a result may be, also if the one that it waits for takes an older one.
#[tokio::test]
async fn a_job_that_waits_takes_no_result_that_is_too_old_for_it() {
    let (_data, flows) = lab().await;
    let old = accepted(&flows, &json!({})).await;
    run_with(&flows, old, |state| state.end_ms -= 60_000).await;
    let within = |text: &str| json!({"reuse": {"within": text}});
    let first = accepted(&flows, &within("20s")).await;
    let second = submit(&flows, &within("30s")).await;
    assert_eq!(second.joined, first.to_string());
    let origin = read(&flows, old).await;
    let takes_old = |state: &JobState| Ok(Some(reused(state, &origin, origin.end_ms + 60_000)));
    flows.jobs.change(first, takes_old).await.unwrap();
    flows.waiting.sweep_dependants().await;
    let second = read(&flows, id_of(&second)).await;
    assert_eq!((second.ready, second.reused_from), (true, None));
    assert!(second.reuse.unwrap().why.contains("too old"));
}

#[tokio::test]
async fn equal_jobs_of_one_submit_run_once_and_a_cancelled_twin_is_no_result() {
    let (_data, flows) = lab().await;
    let items = submit_all(&flows, vec![spec(&json!({})); 3]).await;
    let joined: Vec<&str> = items.iter().map(|item| item.joined.as_str()).collect();
    let first = items[0].job_id.as_str();
    assert_eq!(joined, ["", first, first]);
    let cancel = |state: &JobState| Ok(Some(cancelled(state, 9, "")));
    flows
        .jobs
        .change(first.parse().unwrap(), cancel)
        .await
        .unwrap();
    flows.waiting.sweep_dependants().await;
    for item in &items[1..] {
        assert!(read(&flows, id_of(item)).await.ready);
    }
}

#[tokio::test]
async fn a_job_that_waits_for_others_is_looked_at_after_that() {
    let (_data, flows) = lab().await;
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    let build = accepted(&flows, &json!({"n": 7})).await;
    let waits = json!({"wait_on": {build.to_string(): {"job_health": "success"}}});
    let test = accepted(&flows, &waits).await;
    assert_eq!(read(&flows, test).await.stage, Stage::Submit, "it waits");
    run(&flows, build).await;
    flows.waiting.sweep_dependants().await;
    assert_eq!(read(&flows, test).await.reused_from, Some(id));
}

#[tokio::test]
async fn a_job_with_outputs_of_another_one_has_a_key_once_these_are_known() {
    let (_data, flows) = lab().await;
    let (content, _) = put(&flows, "kernel").await;
    let mut tests = Vec::new();
    for n in [1, 2] {
        // The build differs, and leaves the same.
        let build = spec(&json!({"name": "build", "outputs": ["."], "n": n}));
        let test = spec(&json!({"script": "test", "needs": "build", "inputs": {"from": "build"}}));
        let items = submit_all(&flows, vec![build, test]).await;
        let (build, test) = (id_of(&items[0]), id_of(&items[1]));
        assert_eq!(read(&flows, test).await.reuse.unwrap().key, "");
        run_with(&flows, build, |state| state.outputs = content.to_string()).await;
        flows.waiting.sweep_dependants().await;
        tests.push(test);
        if n == 1 {
            run(&flows, test).await;
        }
    }
    assert_eq!(read(&flows, tests[1]).await.reused_from, Some(tests[0]));
}

#[tokio::test]
async fn an_audit_that_differs_drops_the_key_and_tells() {
    let (_data, flows) = lab().await;
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    audit(&flows, 100).await;
    let audited = accepted(&flows, &json!({})).await;
    let state = read(&flows, audited).await;
    assert_eq!(
        (state.ready, state.reuse.unwrap().audit_of),
        (true, Some(id))
    );
    run(&flows, audited).await;
    audit(&flows, 0).await;
    assert_eq!(taken(&flows, &json!({})).await, Ok(audited), "it agreed");
    audit(&flows, 100).await;
    let poisoned = accepted(&flows, &json!({})).await;
    run_with(&flows, poisoned, |state| {
        state.cases = Some(Box::new(CaseCounts {
            failed: 1,
            ..CaseCounts::default()
        }));
    })
    .await;
    audit(&flows, 0).await;
    let answer = taken(&flows, &json!({})).await;
    assert!(has(&answer, "an audit failed"), "{answer:?}");
    assert_eq!(flows.ctx.metrics.reuse_mismatches.get(), 1);
}

#[tokio::test]
async fn suites_have_defaults_and_those_that_measure_always_run() {
    let (_data, flows) = lab().await;
    let one = |suite: &str| SuiteReuse {
        suite: suite.to_owned(),
        within: "1d".to_owned(),
    };
    let settings = ReuseSettings {
        audit_percent: Some(0),
        performance: vec!["io*".to_owned()],
        suites: vec![one("build"), one("io*")],
        ..ReuseSettings::default()
    };
    flows.reuse.set_reuse_settings(settings).await.unwrap();
    let unsaid = json!({"reuse": null});
    let id = accepted(&flows, &unsaid).await;
    run(&flows, id).await;
    assert_eq!(taken(&flows, &unsaid).await, Ok(id));
    assert!(taken(&flows, &json!({"reuse": "no"})).await.is_err());
    assert!(
        taken(&flows, &json!({"reuse": null, "rerun_of": "1"}))
            .await
            .is_err()
    );
    // A default refuses nothing.
    let secret = json!({"reuse": null, "secrets": {"t": "x"}});
    let secret = accepted(&flows, &secret).await;
    assert!(
        read(&flows, secret)
            .await
            .reuse
            .unwrap()
            .why
            .contains("secrets")
    );
    let measures = json!({"reuse": null, "suite": "iozone"});
    let measures = accepted(&flows, &measures).await;
    assert_eq!(read(&flows, measures).await.reuse, None);
    for (more, word) in [
        (json!({"suite": "iozone"}), "measures"),
        (json!({"secrets": {"t": "x"}}), "secrets"),
        (json!({"reuse": "400d"}), "366d"),
    ] {
        let refused = submit(&flows, &more).await;
        assert_eq!(refused.code, "bad_field", "{refused:?}");
        assert!(refused.message.contains(word), "{refused:?}");
    }
}

#[tokio::test]
async fn another_replica_takes_and_joins_what_this_one_ran() {
    let (_data, flows) = lab().await;
    let beside = flows_beside(&flows);
    host(&beside, "h1", "6.1");
    beside.reuse.rules.reload(&beside.ctx.docs).await.unwrap();
    let first = accepted(&flows, &json!({})).await;
    let joined = submit(&beside, &json!({})).await;
    assert_eq!(joined.joined, first.to_string());
    run(&flows, first).await;
    flows.reuse.write_results().await.unwrap();
    beside
        .jobs
        .observe(&flows.jobs.stored_job(first).await.unwrap());
    beside.waiting.sweep_dependants().await;
    assert_eq!(read(&beside, id_of(&joined)).await.reused_from, Some(first));
    assert_eq!(taken(&beside, &json!({})).await, Ok(first));
}

#[tokio::test]
async fn two_replicas_that_note_one_key_let_one_job_run() {
    let (_data, flows) = lab().await;
    let beside = flows_beside(&flows);
    host(&beside, "h1", "6.1");
    let (here, there) = (json!({}), json!({}));
    let (a, b) = tokio::join!(submit(&flows, &here), submit(&beside, &there));
    let joined = [&a, &b].map(|item| item.joined.clone());
    let one_runs =
        joined == [String::new(), a.job_id.clone()] || joined == [b.job_id.clone(), String::new()];
    assert!(one_runs, "{joined:?}");
}

#[tokio::test]
async fn an_explanation_names_what_differs_from_the_nearest_earlier_job() {
    let (_data, flows) = lab().await;
    let far = accepted(&flows, &json!({"n": 1, "script": "x", "os": "debian"})).await;
    run(&flows, far).await;
    let near = accepted(&flows, &json!({"n": 1, "m": 2})).await;
    run(&flows, near).await;
    let id = accepted(&flows, &json!({"n": 5, "m": 2})).await;
    let why = flows.reuse.explain_reuse(id).await.unwrap();
    assert_eq!((why.verdict.as_str(), why.parts.len()), ("runs", 7));
    assert!(
        why.summary.contains("no earlier job succeeded"),
        "{}",
        why.summary
    );
    let nearest = why.nearest.unwrap();
    assert_eq!(nearest.job_id, near.to_string());
    assert_eq!(json!(nearest.differs), json!({"parameters": ["n"]}));
    let same = accepted(&flows, &json!({"n": 1, "m": 2})).await;
    let why = flows.reuse.explain_reuse(same).await.unwrap();
    assert_eq!(
        (why.verdict.as_str(), why.reused_from),
        ("reused", near.to_string())
    );
    assert!(why.nearest.unwrap().differs.is_empty());
    let never = accepted(&flows, &json!({"reuse": "no"})).await;
    assert_eq!(
        flows.reuse.explain_reuse(never).await.unwrap().verdict,
        "never"
    );
}

#[tokio::test]
async fn a_check_of_a_submit_takes_and_notes_nothing() {
    let (_data, flows) = lab().await;
    let how = SubmitOptions {
        dry_run: true,
        ..SubmitOptions::default()
    };
    let said = Credentials::default();
    let checked = flows
        .submission
        .submit(vec![Ok(spec(&json!({})))], &said, how)
        .await
        .unwrap();
    assert_eq!(checked.items[0].message, "");
    let first = submit(&flows, &json!({})).await;
    assert_eq!(first.joined, "", "nothing was noted");
}

#[tokio::test]
async fn old_entries_are_forgotten() {
    let (_data, flows) = lab().await;
    let id = accepted(&flows, &json!({})).await;
    run(&flows, id).await;
    flows.reuse.write_results().await.unwrap();
    let key = read(&flows, id).await.reuse.unwrap().key;
    let doc = entry_id(&key, Some("ann"));
    flows.reuse.sweep_results().await.unwrap();
    assert!(flows.ctx.docs.read::<Entry>(&doc).await.unwrap().is_some());
    let aged = async |entry: Option<Entry>| {
        let entry = Entry {
            at_ms: 1,
            ..entry.unwrap_or_default()
        };
        Ok::<_, fairlead_base::errors::Refusal>(entry)
    };
    flows.ctx.docs.change(&doc, aged).await.unwrap();
    flows.reuse.sweep_results().await.unwrap();
    assert_eq!(flows.ctx.docs.read::<Entry>(&doc).await.unwrap(), None);
}
