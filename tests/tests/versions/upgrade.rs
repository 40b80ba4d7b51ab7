//! Tests of an upgrade from a recorded lab: nothing is lost, an old agent continues, and valid old requests are still
//! accepted.

use fairlead_api::Grant;
use fairlead_tests::{Http, Recorded, Store, clock, jobs, on_both_stores};
use reqwest::Method;
use serde_json::{Value, json};

/// The recorded version.
const OLD: &str = "aeb66a3e";

on_both_stores!(
    what_was_stored_is_all_there,
    an_old_agent_goes_on_with_its_jobs,
    an_old_agent_takes_what_waited,
    what_was_allowed_is_allowed,
);

async fn what_was_stored_is_all_there(store: Store) {
    let old = Recorded::start(OLD, store).await;
    let alice = old.client("alice");
    for (job, stage) in [
        ("ended", "finish"),
        ("running", "running"),
        ("handed_out", "dispatch"),
        ("own", "submit"),
        ("nightly", "submit"),
        ("invented", "submit"),
        ("of_another", "submit"),
        ("later", "submit"),
        ("hw", "submit"),
        ("child", "submit"),
        ("keyed", "submit"),
    ] {
        assert_eq!(alice.field(old.id(job), "job_stage").await, stage, "{job}");
    }
    let ended = old.id("ended");
    assert_eq!(alice.field(ended, "job_health").await, "success");
    let log = alice.get(&format!("/scheduler/v1/jobs/{ended}/log")).await;
    assert_eq!((log.status, log.text.as_str()), (200, "recorded output\n"));
    let root = alice.field(ended, "result_root").await;
    let file = alice.get(&format!("{root}/report.txt")).await;
    assert_eq!(
        (file.status, file.text.as_str()),
        (200, "recorded output\n")
    );

    let admin = old.client("root");
    let queues = admin.get("/scheduler/v1/queues").await.json();
    let queues = queues.as_array().expect("a list of queues");
    let of = |name: &str| queues.iter().find(|queue| queue["name"] == name);
    assert_eq!(of("alice").expect("its queue")["weight"], 30);
    let nightly = of("nightly").expect("its queue");
    assert_eq!(
        (&nightly["weight"], &nightly["priority"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(nightly["users"], "own", "{nightly}");
    let host = admin.get("/scheduler/v1/hosts/host-closed").await.json();
    assert_eq!(host["closed"]["reason"], "a new disk");
    let timer = alice.get("/scheduler/v1/timers/yearly").await.json();
    assert_eq!(timer["cron"], "0 0 1 1 *");
    let accounts = admin.get("/scheduler/v1/accounts").await.json();
    let text = accounts.to_string();
    for name in ["root", "alice", "bob", "carol", "boxes"] {
        assert!(text.contains(name), "{name} is not in {text}");
    }
}

/// Asks like an old agent, byte for byte except for these `fields`.
async fn consume(boxes: &Http, old: &Recorded, host: &str, fields: Value) -> Value {
    let request = jobs::with(old.lab["agent"]["consume"].clone(), &fields);
    let path = format!("/scheduler/v1/testboxes/{host}/consume");
    boxes.post(&path, &request).await.json()
}

fn grants(answer: &Value) -> Vec<Grant> {
    serde_json::from_value(answer["jobs"].clone()).expect("grants")
}

/// Sends reports, output and results in the form of an old agent.
async fn run(boxes: &Http, grant: &Grant) {
    let (id, token) = (&grant.job_id, format!("job_token={}", grant.job_token));
    let update = format!(
        "/scheduler/v1/jobs/{id}/update?attempt={}&{token}",
        grant.attempt
    );
    let end = "job_stage=finish&job_health=success&exit_code=0";
    for (path, body) in [
        (format!("{update}&job_stage=running"), ""),
        (
            format!(
                "/scheduler/v1/jobs/{id}/log?attempt={}&offset=0&{token}",
                grant.attempt
            ),
            "output\n",
        ),
        (
            format!("{}/file.txt?job_id={id}&{token}", grant.result_root),
            "result\n",
        ),
        (format!("{update}&{end}&job_data_readiness=complete"), ""),
    ] {
        let reply = boxes.send(Method::POST, &path, "", body.into());
        let reply = reply.await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
    }
}

async fn an_old_agent_goes_on_with_its_jobs(store: Store) {
    let old = Recorded::start(OLD, store).await;
    let boxes = old.client("boxes");
    let consumed = old.lab["agent"]["consume"].clone();
    let beat = json!({
        "session": consumed["session"],
        "running": consumed["running"],
        "free_memory_mb": consumed["free_memory_mb"],
    });
    let path = "/scheduler/v1/testboxes/host-1/heartbeat";
    let answer = boxes.post(path, &beat).await.json();
    assert_eq!(answer["stop"], json!([]), "{answer}");
    let answer = consume(&boxes, &old, "host-1", json!({})).await;
    assert_eq!((&answer["stop"], &answer["jobs"]), (&json!([]), &json!([])));
    let held: Vec<Grant> =
        serde_json::from_value(old.lab["agent"]["held"].clone()).expect("grants");
    for grant in &held {
        run(&boxes, grant).await;
        let alice = old.client("alice");
        assert_eq!(alice.field(&grant.job_id, "job_stage").await, "finish");
        assert_eq!(alice.field(&grant.job_id, "job_health").await, "success");
        assert_eq!(alice.field(&grant.job_id, "attempt").await, "1");
    }
}

async fn an_old_agent_takes_what_waited(store: Store) {
    let old = Recorded::start(OLD, store).await;
    let boxes = old.client("boxes");
    let session = clock::unique();
    let mut ran = Vec::new();
    for request in 1..=4 {
        let fields = json!({
            "session": session, "request": request, "seen": null, "running": [],
            "tags": ["later"], "free_memory_mb": 8192, "wait_s": 5,
        });
        let answer = consume(&boxes, &old, "host-2", fields).await;
        for grant in grants(&answer) {
            if grant.job_id == old.id("own") {
                assert_eq!(grant.job["secrets"]["password"], "recorded-secret");
            }
            run(&boxes, &grant).await;
            ran.push(grant.job_id);
        }
        if ran.len() == 6 {
            break;
        }
    }
    ran.sort_unstable();
    let mut expected: Vec<&str> = ["own", "nightly", "invented", "of_another", "keyed", "child"]
        .map(|job| old.id(job))
        .to_vec();
    expected.sort_unstable();
    assert_eq!(ran, expected);
}

async fn what_was_allowed_is_allowed(store: Store) {
    let old = Recorded::start(OLD, store).await;
    let (alice, bob) = (old.client("alice"), old.client("bob"));
    for (who, account, queue) in [
        (&bob, "bob", "nightly"),
        (&bob, "bob", "an-invented-name"),
        (&bob, "bob", "idle"),
        (&alice, "alice", "alice"),
        (&old.client("carol"), "carol", "vip"),
    ] {
        let job = jobs::with(jobs::dc(account), &json!({"queue": queue}));
        let item = who.submit_items(&job).await.remove(0);
        assert!(
            item.job_id != "0" && item.message.is_empty(),
            "{queue}: {item:?}"
        );
        let is_warned = ["nightly", "an-invented-name"].contains(&queue);
        assert_eq!(item.hint.contains(queue), is_warned, "{item:?}");
        if ["idle", "alice", "vip"].contains(&queue) {
            assert_eq!(who.field(&item.job_id, "queue").await, queue);
        }
    }
    let keyed = jobs::with(
        jobs::dc("alice"),
        &json!({"arch": "x86_64", "tags": ["later"], "idempotency_key": "recorded"}),
    );
    assert_eq!(alice.submit(&keyed).await, [old.id("keyed")]);
}
