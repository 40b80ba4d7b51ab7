//! Tests of notices: people are told in their chat of ends, failures, and successes after failures.

use fairlead_tests::{
    Guarded, Http, Receiver, Scheduler, Store, Testbox, eventually, fairlead, jobs, on_both_stores,
};
use serde_json::{Value, json};

on_both_stores!(
    a_failure_is_told_and_the_next_success,
    an_account_says_it_for_its_jobs,
    another_replica_tells_the_same,
    of_a_job_with_shards_only_the_whole_is_told,
    nobody_is_told_whom_the_operator_does_not_allow,
    an_address_is_shown_to_nobody,
);

/// Reports of an end.
const FAILED: &str = "job_stage=finish&job_health=fail&exit_code=1&job_data_readiness=uploaded";
const PASSED: &str = "job_stage=finish&job_health=success&exit_code=0&job_data_readiness=complete";

async fn start(store: Store) -> Scheduler {
    Scheduler::start_with(store, &["--webhooks-to", "127.0.0.1:*"]).await
}

/// Returns a job of alice with more fields.
fn job(more: &Value) -> Value {
    jobs::with(jobs::dc("alice"), more)
}

/// Runs the one waiting job to its end.
async fn run(testbox: &mut Testbox, end: &str) {
    let grant = testbox.take().await;
    let running = testbox.report(&grant, "job_stage=running").await;
    assert_eq!(running.status, 200, "{}", running.text);
    let ended = testbox.report(&grant, end).await;
    assert_eq!(ended.status, 200, "{}", ended.text);
    testbox.drop_job(&grant.job_id);
}

/// Returns a webhook that is over.
async fn over(http: &Http, id: &str) -> Value {
    eventually("it is sent or skipped", async || {
        let list = http.get("/scheduler/v1/webhooks").await.json();
        let mut all = list.as_array().cloned().unwrap_or_default().into_iter();
        let found = all.find(|webhook| webhook["webhook_id"] == id)?;
        ["sent", "skipped"]
            .contains(&found["standing"].as_str()?)
            .then_some(found)
    })
    .await
}

fn texts(receiver: &Receiver) -> Vec<String> {
    let sent = receiver.sent().into_iter();
    let texts = sent.map(|sent| sent.json()["text"].as_str().unwrap_or_default().to_owned());
    texts.collect()
}

async fn a_failure_is_told_and_the_next_success(store: Store) {
    let scheduler = start(store).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[]).await;
    let on = json!({"url": receiver.url, "on": ["failed", "passed_again"]});
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let mut standings = Vec::new();
    for end in [PASSED, FAILED, PASSED, PASSED] {
        let id = http.submit(&job(&json!({ "notify": on }))).await.remove(0);
        let waits = http.get("/scheduler/v1/webhooks").await.json();
        for webhook in waits.as_array().into_iter().flatten() {
            assert_eq!(webhook["field"], "notify", "{webhook}");
            assert_eq!(webhook["on"], json!(["failed", "passed_again"]));
        }
        // A job with another parameter is another job.
        let other = job(&json!({"notify": "none", "mode": "other"}));
        run(&mut testbox, end).await;
        http.submit(&other).await;
        run(&mut testbox, PASSED).await;
        let webhook = over(&http, &format!("{id}.notify.ended")).await;
        standings.push(format!("{} {}", webhook["standing"], webhook["event"]).replace('"', ""));
    }
    assert_eq!(
        standings,
        [
            "skipped ended",
            "sent failed",
            "sent passed_again",
            "skipped ended"
        ]
    );
    let texts = texts(&receiver);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("failed with fail"), "{texts:?}");
    assert!(texts[1].contains("passed again"), "{texts:?}");
    assert!(texts[1].contains("/r/"), "{texts:?}");
}

async fn an_account_says_it_for_its_jobs(store: Store) {
    let scheduler = start(store).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[]).await;
    let url = scheduler.url();
    let variables = [
        ("FAIRLEAD_SERVER", url.as_str()),
        ("FAIRLEAD_ACCOUNT", "alice"),
    ];
    let command = |words: &[&str]| fairlead(scheduler.folder(), &variables, words);
    let set = command(&["account", "notify", &receiver.url, "--on", "failed,ended"]);
    assert!(set.expect_code(0).contains("ended, failed"), "{set:?}");
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let id = http.submit(&job(&json!({}))).await.remove(0);
    run(&mut testbox, FAILED).await;
    let told = over(&http, &format!("{id}.notify.ended")).await;
    assert_eq!(told["event"], "failed", "{told}");
    // A job's own `notify`, even `none`, overrides the account's.
    let own = Receiver::start(&[]).await;
    let id = http
        .submit(&job(&json!({"notify": own.url})))
        .await
        .remove(0);
    run(&mut testbox, PASSED).await;
    over(&http, &format!("{id}.notify.ended")).await;
    let silent = http
        .submit(&job(&json!({"notify": "none"})))
        .await
        .remove(0);
    run(&mut testbox, FAILED).await;
    let bobs = http.submit(&jobs::dc("bob")).await.remove(0);
    run(&mut testbox, FAILED).await;
    assert_eq!((texts(&receiver).len(), texts(&own).len()), (1, 1));
    let list = http.get("/scheduler/v1/webhooks").await.text;
    assert!(!list.contains(&silent) && !list.contains(&bobs), "{list}");
    // This job still waits when the account removes its receiver.
    let id = http.submit(&job(&json!({}))).await.remove(0);
    command(&["account", "notify", "none"]).expect_code(0);
    command(&["account", "notify"]).expect_code(3);
    run(&mut testbox, FAILED).await;
    let skipped = over(&http, &format!("{id}.notify.ended")).await;
    assert_eq!(skipped["standing"], "skipped", "{skipped}");
    let again = format!("/scheduler/v1/webhooks/{id}.notify.ended/redeliver");
    let refused = http.post(&again, &json!({})).await.refused(409);
    assert!(refused.message.contains("was skipped"), "{refused:?}");
    assert_eq!(texts(&receiver).len(), 1);
}

async fn another_replica_tells_the_same(store: Store) {
    let mut scheduler = start(store).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[500]).await;
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let notify = json!({"url": receiver.url, "on": "failed", "kind": "fairlead"});
    let told = job(&json!({"notify": notify, "secrets": {"notify": key}}));
    let id = http.submit(&told).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    run(&mut testbox, FAILED).await;
    eventually("it is tried once", async || {
        (receiver.sent().len() == 1).then_some(())
    })
    .await;
    scheduler.kill();
    scheduler.restart().await;
    eventually("the next one tries it again", async || {
        (receiver.sent().len() == 2).then_some(())
    })
    .await;
    for sent in receiver.sent() {
        assert_eq!(sent.header("webhook-id"), format!("{id}.notify.ended"));
        assert_eq!(sent.json()["type"], "job.failed");
    }
}

async fn of_a_job_with_shards_only_the_whole_is_told(store: Store) {
    let scheduler = start(store).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[]).await;
    let set = json!({"url": receiver.url, "on": ["failed", "failing"]});
    let path = "/scheduler/v1/accounts/alice/notify";
    assert_eq!(http.post(path, &set).await.status, 200);
    let id = http.submit(&job(&json!({"shards": 2}))).await.remove(0);
    // The host takes one shard at a time.
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    run(&mut testbox, FAILED).await;
    eventually("the first failure is told", async || {
        (receiver.sent().len() == 1).then_some(())
    })
    .await;
    run(&mut testbox, FAILED).await;
    over(&http, &format!("{id}.notify.ended")).await;
    let texts = texts(&receiver);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("begins to fail"), "{texts:?}");
    assert!(texts[1].contains("failed with fail"), "{texts:?}");
    let list = http.get("/scheduler/v1/webhooks").await.json();
    let all = list.as_array().cloned().unwrap_or_default();
    assert!(all.iter().all(|it| it["job_id"] == json!(id)), "{list}");
}

async fn nobody_is_told_whom_the_operator_does_not_allow(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[]).await;
    let notify = json!({"notify": {"on": "failed"}, "secrets": {"notify": receiver.url}});
    let refused = http.submit_items(&job(&notify)).await.remove(0);
    assert_eq!(refused.code, "forbidden", "{refused:?}");
    assert!(refused.hint.contains("--webhooks-to"), "{refused:?}");
    let path = "/scheduler/v1/accounts/alice/notify";
    let set = http.post(path, &json!({"url": receiver.url})).await;
    assert_eq!(set.refused(403).code.as_str(), "forbidden");
    let wrong = job(&json!({"notify": {"url": receiver.url, "on": "never"}}));
    let wrong = http.submit_items(&wrong).await.remove(0);
    assert!(wrong.message.contains("'never'"), "{wrong:?}");
    assert!(wrong.hint.contains("passed_again"), "{wrong:?}");
    assert!(receiver.sent().is_empty());
}

async fn an_address_is_shown_to_nobody(store: Store) {
    let lab = Guarded::start(store, &["--webhooks-to", "127.0.0.1:*"]).await;
    let (alice, bob) = (lab.user("alice").await, lab.user("bob").await);
    let receiver = Receiver::start(&[]).await;
    let path = "/scheduler/v1/accounts/alice/notify";
    let set = json!({"url": receiver.url, "on": ["passed_again"], "secret": "hush"});
    assert_eq!(alice.post(path, &set).await.status, 200);
    for stranger in [&bob, &lab.nobody()] {
        let status = stranger.post(path, &set).await.status;
        assert!([401, 403].contains(&status), "{status}");
    }
    let notify = json!({"notify": {"on": "ended"}, "secrets": {"notify": receiver.url}});
    let id = alice.submit(&job(&notify)).await.remove(0);
    let boxes = lab.testbox("boxes", &["*"]).await;
    let mut testbox = Testbox::dc(&boxes, "host-1", 8 << 10);
    let grant = testbox.take().await;
    assert_eq!(grant.job.get("notify"), None);
    let secrets = grant.job.get("secrets").cloned().unwrap_or_default();
    assert_eq!(secrets, json!({}));
    testbox.finish(&grant).await;
    over(&alice, &format!("{id}.notify.ended")).await;
    assert_eq!(texts(&receiver).len(), 1);
    let job = format!("/scheduler/v1/jobs/{id}");
    for (who, path) in [
        (&alice, path),
        (&alice, "/scheduler/v1/whoami"),
        (&alice, "/scheduler/v1/webhooks"),
        (&alice, &job),
        (&lab.admin, "/scheduler/v1/accounts"),
        (&lab.admin, "/scheduler/v1/audit"),
    ] {
        let shown = who.get(path).await;
        assert_eq!(shown.status, 200, "{}", shown.text);
        let hides = !shown.text.contains("/hook") && !shown.text.contains("hush");
        assert!(hides, "{path}: {}", shown.text);
    }
    let log = lab.scheduler.log();
    assert!(!log.contains("/hook") && !log.contains("hush"), "{log}");
}
