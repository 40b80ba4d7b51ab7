//! Tests of timers and runs that are refused.

use super::*;
use crate::testing::built;

async fn refusal(flows: &Arc<Flows>, more: &Value) -> Refusal {
    flows
        .timers
        .submit_timer(spec(more), &ann())
        .await
        .unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn what_is_no_timer_is_refused_with_a_hint() {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config::embedded(data.path().to_owned());
    config.limits.timers_max = 2;
    let flows = flows_over(embedded(&data), config, clock(START_MS));
    for (more, code, says) in [
        (json!({}), ErrorCode::BadField, "every or cron is missing"),
        (
            json!({"every": "59s"}),
            ErrorCode::BadField,
            "a run every 59 s; the shortest interval is 60 s",
        ),
        (
            json!({"every": "1h", "timer": null}),
            ErrorCode::BadField,
            "timer: missing",
        ),
        (
            json!({"every": "1h", "timer": "a/b"}),
            ErrorCode::BadName,
            "a/b",
        ),
        (json!({"cron": "61 * * * *"}), ErrorCode::BadField, "minute"),
        (
            json!({"every": "1h", "need_memory": "lots"}),
            ErrorCode::BadField,
            "lots",
        ),
        (
            json!({"every": "1h", "wait_on": {"5": null}}),
            ErrorCode::BadField,
            "unknown job",
        ),
        (
            json!({"every": "1h", "needs": "x"}),
            ErrorCode::BadField,
            "x",
        ),
    ] {
        let refusal = refusal(&flows, &more).await;
        assert_eq!(refusal.body().code, code, "{more}: {refusal}");
        assert!(refusal.to_string().contains(says), "{more}: {refusal}");
        assert!(!refusal.body().hint.is_empty());
    }
    submit(&flows, &json!({"every": "1h"})).await;
    let again = refusal(&flows, &json!({"every": "1h"})).await;
    assert_eq!(again.body().code, ErrorCode::Conflict);
    submit(&flows, &json!({"every": "1h", "timer": "second"})).await;
    let many = refusal(&flows, &json!({"every": "1h", "timer": "third"})).await;
    assert_eq!(many.body().code, ErrorCode::TooMany);
    assert!(many.to_string().contains("has 2 timers; the limit is 2"));
    let all = flows.timers.timer_views("ann", "", 1).await.unwrap();
    assert_eq!(
        (all.total, all.timers.len(), all.next.as_deref()),
        (2, 1, Some("ann/nightly"))
    );
    let rest = flows
        .timers
        .timer_views("ann", "ann/nightly", 9)
        .await
        .unwrap();
    assert_eq!((rest.timers[0].timer.as_str(), rest.next), ("second", None));
    assert_eq!(
        flows.timers.timer_views("bob", "", 9).await.unwrap().total,
        0
    );
    // A plain submit of such a job is no run of it.
    let refused = built(&flows, spec(&json!({"cron": "@daily"})), &ann()).unwrap_err();
    assert!(refused.body().hint.contains("fairlead timers submit"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_submit_would_refuse_is_refused_and_the_timer_goes_on() {
    let data = tempfile::tempdir().unwrap();
    let config = Config {
        access: Access::Tokens,
        admin: Some(("ann".to_owned(), "secret".to_owned())),
        ..Config::embedded(data.path().to_owned())
    };
    let flows = flows_over(embedded(&data), config.clone(), clock(START_MS));
    let said = Credentials {
        token: Some("secret".to_owned()),
        ..Credentials::default()
    };
    let spec = spec(&json!({"every": "10m", "my_token": "secret"}));
    flows.timers.submit_timer(spec, &said).await.unwrap();
    let doc = flows
        .ctx
        .store
        .get_doc(DocKind::Timer, "ann/nightly")
        .await
        .unwrap();
    assert!(!doc.unwrap().body.to_string().contains("my_token"));
    step(10 * MIN_MS).await;
    // Another replica, to which that account is unknown.
    let config = Config {
        admin: None,
        ..config
    };
    let other = flows_over(
        Arc::clone(&flows.ctx.store),
        config,
        flows.ctx.clock.clone(),
    );
    look(&other).await;
    let view = view(&other).await;
    assert_eq!((view.runs, view.refused_runs), (0, 1));
    assert!(
        view.why.contains("no account 'ann' any more"),
        "{}",
        view.why
    );
    step(10 * MIN_MS).await;
    look(&flows).await;
    assert_eq!(runs(&flows).await, ["02:56"]);
}
