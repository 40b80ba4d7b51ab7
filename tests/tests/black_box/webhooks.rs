//! Tests of webhooks: who asked for it is told when a job ends or begins to fail.

use fairlead_tests::{Receiver, Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    a_receiver_is_told_until_it_takes_it,
    the_first_failure_is_told_before_the_end,
    another_replica_of_the_same_store_goes_on,
    nobody_is_told_whom_the_operator_does_not_allow,
);

/// Key of the example in the Standard Webhooks specification.
const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn told(receiver: &Receiver, more: &Value) -> Value {
    let callback = jobs::with(json!({"url": receiver.url}), more);
    let fields = json!({"callback": callback, "secrets": {"callback": KEY, "other": "kept"}});
    jobs::with(jobs::dc("alice"), &fields)
}

async fn a_receiver_is_told_until_it_takes_it(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--webhooks-to", "127.0.0.1:*"]).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[500]).await;
    let job = told(&receiver, &json!({}));
    let id = http.submit(&json!([job])).await.remove(0);
    let list = async || http.get("/scheduler/v1/webhooks").await.json();
    let waiting = eventually("it is listed", async || {
        let list = list().await;
        (list[0]["standing"] == "waiting").then_some(list)
    });
    assert_eq!(waiting.await[0]["webhook_id"], format!("{id}.ended"));
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let grant = testbox.take().await;
    assert_eq!(
        grant.job["secrets"],
        json!({"other": "kept"}),
        "no job sees the key"
    );
    testbox.finish(&grant).await;
    let sent = eventually("it is sent twice", async || {
        let sent = receiver.sent();
        (sent.len() == 2).then_some(sent)
    })
    .await;
    for sent in &sent {
        assert_eq!(sent.header("webhook-id"), format!("{id}.ended"));
        assert!(sent.header("webhook-signature").starts_with("v1,"));
        let said = sent.json();
        assert_eq!(
            (&said["type"], &said["data"]["job"]["job_id"]),
            (&json!("job.ended"), &json!(id))
        );
        assert_eq!(said["data"]["job"]["job_health"], "success");
    }
    let over = eventually("it is noted", async || {
        let list = list().await;
        (list[0]["standing"] == "sent").then_some(list)
    });
    assert_eq!(over.await[0]["tries"], 2);
    // The webhook is sent once more on request.
    let again = format!("/scheduler/v1/webhooks/{id}.ended/redeliver");
    http.post(&again, &json!({})).await;
    eventually("it is sent again", async || {
        (receiver.sent().len() == 3).then_some(())
    })
    .await;
    assert_eq!(
        receiver.sent()[2].header("webhook-id"),
        format!("{id}.ended")
    );
    let test = json!({"url": receiver.url, "secret": KEY});
    let tested = http.post("/scheduler/v1/webhooks/test", &test).await.json();
    assert_eq!(tested["taken"], true, "{tested}");
}

async fn the_first_failure_is_told_before_the_end(store: Store) {
    let scheduler = Scheduler::start_with(store, &["--webhooks-to", "127.0.0.1:*"]).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[]).await;
    let more = json!({"on": ["failing", "ended"], "kind": "github", "context": "lab"});
    let job = jobs::with(told(&receiver, &more), &json!({"shards": 2}));
    let id = http.submit(&json!([job])).await.remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    let mut grants = Vec::new();
    while grants.len() < 2 {
        grants.extend(testbox.ask(1).await);
    }
    testbox.report(&grants[0], "job_stage=running").await;
    let end = "job_stage=finish&job_health=fail&exit_code=1&job_data_readiness=uploaded";
    testbox.report(&grants[0], end).await;
    testbox.drop_job(&grants[0].job_id);
    let sent = eventually("the failure is told", async || {
        let sent = receiver.sent();
        (!sent.is_empty()).then_some(sent)
    })
    .await;
    assert_eq!(
        sent[0].header("authorization"),
        format!("bearer {KEY}").to_ascii_lowercase()
    );
    let said = sent[0].json();
    assert_eq!(
        (&said["state"], &said["context"]),
        (&json!("failure"), &json!("lab"))
    );
    let page = said["target_url"].as_str().expect("an address");
    assert!(page.ends_with(&format!("/r/{id}")), "{page}");
    testbox.finish(&grants[1]).await;
    eventually("the end is told", async || {
        (receiver.sent().len() == 2).then_some(())
    })
    .await;
    assert_eq!(receiver.sent()[1].json()["state"], "failure");
}

async fn another_replica_of_the_same_store_goes_on(store: Store) {
    let mut scheduler = Scheduler::start_with(store, &["--webhooks-to", "127.0.0.1:*"]).await;
    let http = scheduler.http();
    // No receiver listens yet.
    let receiver = Receiver::start(&[500]).await;
    let azure = json!({"kind": "azure", "job_id": "j", "task_id": "t"});
    let job = told(&receiver, &azure);
    http.submit(&json!([job])).await;
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    testbox.run_all(2).await;
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
    let said = receiver.sent()[1].json();
    let expected =
        json!({"name": "TaskCompleted", "taskId": "t", "jobId": "j", "result": "succeeded"});
    assert_eq!(said, expected);
}

async fn nobody_is_told_whom_the_operator_does_not_allow(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let receiver = Receiver::start(&[]).await;
    let job = told(&receiver, &json!({}));
    let submit = "/scheduler/v1/jobs/submit";
    let refused = http.post(submit, &json!([job])).await;
    let items: Value = serde_json::from_str(&refused.text).expect("a list");
    assert_eq!(items[0]["code"], "forbidden", "{items}");
    let test = json!({"url": receiver.url, "secret": KEY});
    let tested = http.post("/scheduler/v1/webhooks/test", &test).await.json();
    assert_eq!(tested["taken"], false, "{tested}");
    assert!(receiver.sent().is_empty());
}
