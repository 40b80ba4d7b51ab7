//! Tests of time: earliest start, time limits, retries after a delay.

use fairlead_tests::{Http, Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    row_09_a_stage_that_takes_too_long_is_stopped,
    row_09_a_machine_that_vanishes_in_a_stage_has_no_hold_on_the_job,
    a_job_that_is_to_begin_later_waits_for_its_time,
    a_job_that_waits_too_long_is_given_up,
    a_job_that_failed_is_tried_elsewhere,
    a_job_is_run_no_more_often_than_it_says,
    row_28_a_deadline_ends_what_runs,
    a_failure_is_tried_again_after_its_pause,
    what_retry_does_not_name_is_not_tried_again,
    times_that_make_no_sense_are_refused,
);

fn job(more: &Value) -> Value {
    jobs::with(jobs::dc("alice"), more)
}

async fn ends(http: &Http, id: &str, health: &str) -> Value {
    eventually(&format!("it ends with {health}"), async || {
        (http.field(id, "job_health").await == health).then_some(())
    })
    .await;
    http.job(id).await
}

async fn told_to_stop(testbox: &Testbox, id: &str) {
    eventually("the agent is told to stop it", async || {
        testbox
            .heartbeat()
            .await
            .iter()
            .any(|job| job == id)
            .then_some(())
    })
    .await;
}

async fn row_09_a_stage_that_takes_too_long_is_stopped(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--lease", "6s"]).await;
    let http = scheduler.http();
    let limits = json!({"stage_timeouts": {"setup": "1s"}, "retry": 0});
    let id = http.submit(&job(&limits)).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(testbox.report(&grant, "job_stage=setup").await.status, 200);
    told_to_stop(&testbox, &id).await;
    // Its results are kept.
    let end = "job_stage=finish&job_health=timeout_setup&job_data_readiness=incomplete";
    assert_eq!(testbox.report(&grant, end).await.status, 200);
    let job = http.job(&id).await;
    assert_eq!(job["job_health"], "timeout_setup", "{job}");
    assert_eq!(job["failure"], "infra", "{job}");
}

async fn row_09_a_machine_that_vanishes_in_a_stage_has_no_hold_on_the_job(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--lease", "4s"]).await;
    let http = scheduler.http();
    let id = http.submit(&job(&json!({"retry": 0}))).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(testbox.report(&grant, "job_stage=boot").await.status, 200);
    let job = ends(&http, &id, "abort_provider").await;
    assert_eq!(job["job_stage"], "finish", "{job}");
    assert_eq!(job["failure"], "infra", "{job}");
}

async fn a_job_that_is_to_begin_later_waits_for_its_time(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http
        .submit(&job(&json!({"start_at": "+4s"})))
        .await
        .remove(0);
    let later = http
        .submit(&job(&json!({"start_at": "+1d"})))
        .await
        .remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    assert!(testbox.ask(0).await.is_empty());
    let told = http
        .get(&format!("/scheduler/v1/jobs/{later}/explain"))
        .await
        .text;
    assert!(told.contains("it waits for its time"), "{told}");
    scheduler.kill();
    scheduler.restart().await;
    let grant = eventually("its time comes", async || {
        testbox.ask(5).await.into_iter().next()
    })
    .await;
    assert_eq!((grant.job_id.as_str(), grant.attempt), (id.as_str(), 1));
    let (submitted, begun) = (
        http.field(&id, "submit_time").await,
        http.field(&id, "dispatch_time").await,
    );
    assert!(begun > submitted, "{submitted} {begun}");
    testbox.finish(&grant).await;
    assert!(testbox.ask(0).await.is_empty(), "the other has a day to go");
}

async fn a_job_that_waits_too_long_is_given_up(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let hopeless = json!({"queue_timeout": "1s", "need_memory": "900g"});
    let id = http.submit(&job(&hopeless)).await.remove(0);
    let job = ends(&http, &id, "timeout_submit").await;
    assert_eq!(
        (&job["job_stage"], &job["job_data_readiness"]),
        (&json!("finish"), &json!("norun"))
    );
    assert!(
        job["reason"]
            .as_str()
            .is_some_and(|why| why.contains("queue_timeout of 1 s")),
        "{job}"
    );
}

async fn a_job_that_failed_is_tried_elsewhere(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let fields = json!({
        "retry": {"max": 2, "backoff": {"first": 0}}, "retry_elsewhere": true,
    });
    let id = http.submit(&job(&fields)).await.remove(0);
    let mut bad = Testbox::dc(&http, "host-1", 2 << 10);
    let mut good = Testbox::dc(&http, "host-2", 2 << 10);
    // The job takes all of its memory. So the other host is known, and gets the job only when it may.
    let other = jobs::with(jobs::dc("bob"), &json!({"need_memory": "2g"}));
    let other = http.submit(&other).await.remove(0);
    let held = good.take_all().await;
    assert_eq!(held.len(), 1, "{held:?}");
    let (first, second) = (&mut bad, &mut good);
    let (fails, waits) = if held[0].job_id == id {
        (second, first)
    } else {
        assert_eq!(held[0].job_id, other);
        (first, second)
    };
    let grant = match fails.held().first() {
        Some(grant) => grant.clone(),
        None => fails.take().await,
    };
    assert_eq!(grant.job_id, id);
    let failed = "job_stage=finish&job_health=fail";
    waits.ask(0).await;
    assert_eq!(fails.report(&grant, failed).await.status, 200);
    fails.drop_job(&id);
    scheduler.kill();
    scheduler.restart().await;
    let mut elsewhere = fails.ask(1).await;
    elsewhere.retain(|grant| grant.job_id == id);
    assert!(elsewhere.is_empty(), "not where it failed");
    let path = format!("/scheduler/v1/jobs/{id}/explain");
    let told = http.get(&path).await.text;
    assert!(told.contains("an earlier attempt failed there"), "{told}");
    let held: Vec<_> = waits.held().to_vec();
    for grant in held {
        waits.finish(&grant).await;
    }
    let grant = waits.take().await;
    assert_eq!((grant.job_id.as_str(), grant.attempt), (id.as_str(), 2));
    assert_eq!(waits.report(&grant, failed).await.status, 200);
    waits.drop_job(&id);
    // No other host is left, so the job may run anywhere, and explains that.
    eventually("it may run where it failed", async || {
        let told = http.get(&path).await.text;
        told.contains("no other known host could run it")
            .then_some(())
    })
    .await;
    assert_eq!(fails.run_all(5).await, [id]);
}

async fn a_job_is_run_no_more_often_than_it_says(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let once = |size: u32| job(&json!({"max_run": 2, "size": size, "script": "true"}));
    let codes = async |jobs: &Value| -> Vec<String> {
        let items = http.submit_items(jobs).await;
        items.into_iter().map(|item| item.code).collect()
    };
    assert_eq!(codes(&jobs::times(3, &once(1))).await, ["", "", "quota"]);
    assert_eq!(codes(&once(2)).await, [""]);
    eventually("the store counts them", async || {
        let of_others = jobs::with(once(1), &json!({"my_account": "bob"}));
        (codes(&of_others).await == ["quota"]).then_some(())
    })
    .await;
}

async fn row_28_a_deadline_ends_what_runs(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--lease", "6s"]).await;
    let http = scheduler.http();
    let id = http
        .submit(&job(&json!({"deadline": "+3s"})))
        .await
        .remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(
        testbox.report(&grant, "job_stage=running").await.status,
        200
    );
    told_to_stop(&testbox, &id).await;
    let end = "job_stage=finish&job_health=timeout_running";
    assert_eq!(testbox.report(&grant, end).await.status, 200);
    let job = ends(&http, &id, "timeout_running").await;
    assert!(
        job["reason"]
            .as_str()
            .is_some_and(|why| why.contains("deadline")),
        "{job}"
    );
}

async fn a_failure_is_tried_again_after_its_pause(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let retry = json!({"retry": {"max": 1, "on": ["fail"], "backoff": {"first": "4s"}}});
    let id = http.submit(&job(&retry)).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    for attempt in [1, 2] {
        let grant = eventually("an attempt", async || {
            testbox.ask(5).await.into_iter().next()
        })
        .await;
        assert_eq!(
            (grant.job_id.as_str(), grant.attempt),
            (id.as_str(), attempt)
        );
        assert_eq!(
            testbox.report(&grant, "job_stage=running").await.status,
            200
        );
        let end = "job_stage=finish&job_health=fail&exit_code=3";
        assert_eq!(testbox.report(&grant, end).await.status, 200);
        testbox.drop_job(&id);
        if attempt == 1 {
            assert_eq!(http.field(&id, "job_stage").await, "submit");
            assert!(testbox.ask(0).await.is_empty(), "its pause is on");
        }
    }
    let job = http.job(&id).await;
    assert_eq!(
        (&job["job_health"], &job["failure"]),
        (&json!("fail"), &json!("fail")),
        "{job}"
    );
    assert_eq!(job["attempts"][0]["job_health"], "fail", "{job}");
}

async fn what_retry_does_not_name_is_not_tried_again(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let retry = json!({"retry": {"max": 3, "on": ["timeout"]}});
    let id = http.submit(&job(&retry)).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(
        testbox.report(&grant, "job_stage=running").await.status,
        200
    );
    let end = "job_stage=finish&job_health=oom";
    assert_eq!(testbox.report(&grant, end).await.status, 200);
    let job = http.job(&id).await;
    assert_eq!(
        (&job["job_stage"], &job["failure"]),
        (&json!("finish"), &json!("oom")),
        "{job}"
    );
}

async fn times_that_make_no_sense_are_refused(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for (more, field) in [
        (json!({"start_at": "someday"}), "start_at"),
        (json!({"deadline": "2001-01-01"}), "deadline"),
        (json!({"start_at": "+2h", "deadline": "+1h"}), "deadline"),
        (json!({"queue_timeout": 0}), "queue_timeout"),
        (json!({"silence_timeout": "-1"}), "silence_timeout"),
        (
            json!({"stage_timeouts": {"running": "1h"}}),
            "stage_timeouts",
        ),
        (
            json!({"retry": {"backoff": {"first": "soon"}}}),
            "retry.backoff.first",
        ),
    ] {
        let reply = http.post("/scheduler/v1/jobs/submit", &job(&more)).await;
        let refusal = reply.refused(400);
        assert!(refusal.message.starts_with(field), "{more}: {refusal:?}");
        assert!(!refusal.hint.is_empty(), "{refusal:?}");
    }
}
