//! Tests of admins' actions on hosts, and of failing hosts.

use fairlead_tests::{Http, Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use reqwest::Method;
use serde_json::{Value, json};

on_both_stores!(
    a_drained_host_ends_what_it_has_and_gets_nothing_more,
    a_host_that_waits_is_closed_at_once_and_opened_again,
    a_reserved_host_gets_the_jobs_of_its_accounts_alone,
    a_host_that_nobody_knows_is_neither_closed_nor_reserved,
    a_host_that_is_gone_is_forgotten_and_one_with_jobs_is_not,
    a_host_that_fails_again_and_again_is_put_aside,
    a_suspect_host_that_passes_a_health_check_gets_jobs_again,
);

async fn a_host_that_is_gone_is_forgotten_and_one_with_jobs_is_not(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let forget = async |host: &str| {
        let path = format!("/scheduler/v1/hosts/{host}");
        http.send(Method::DELETE, &path, "", Vec::new()).await
    };
    let old = json!({"arch": "x86_64", "memory": "4g", "mac": "ec-f4-bb-00-00-07"});
    let made = http.post("/scheduler/v1/hosts/old-1", &old).await;
    assert_eq!(made.status, 200, "{}", made.text);
    post(&http, "old-1", "cordon", &json!({"reason": "scrapped"})).await;
    http.submit(&json!([jobs::dc("alice")])).await;
    let mut testbox = Testbox::dc(&http, "busy-1", 8 << 10);
    let grant = testbox.take().await;
    let refused = forget("busy-1").await.refused(409);
    assert!(refused.message.contains("is not gone"), "{refused:?}");
    assert_eq!(forget("old-1").await.status, 200);
    forget("old-1").await.refused(404);
    // The host stays closed under its name. Its address is free.
    assert_eq!(state(&http, "old-1").await["closed"]["reason"], "scrapped");
    let made = http.post("/scheduler/v1/hosts/new-1", &old).await;
    assert_eq!(made.status, 200, "{}", made.text);
    testbox.finish(&grant).await;
    scheduler.kill();
    scheduler.restart().await;
    let http = scheduler.http();
    assert_eq!(state(&http, "old-1").await["state"], "cordoned");
    post(&http, "old-1", "uncordon", &json!({})).await;
    let hosts = http.get("/scheduler/v1/hosts").await;
    assert!(
        hosts.text.contains("new-1") && !hosts.text.contains("old-1"),
        "{}",
        hosts.text
    );
    let again = http
        .post("/scheduler/v1/hosts/old-1", &json!({"arch": "x86_64"}))
        .await;
    assert_eq!(again.json()["closed"], Value::Null, "{}", again.text);
}

async fn state(http: &Http, host: &str) -> Value {
    http.get(&format!("/scheduler/v1/hosts/{host}"))
        .await
        .json()
}

async fn post(http: &Http, host: &str, what: &str, body: &Value) -> Value {
    let reply = http
        .post(&format!("/scheduler/v1/hosts/{host}/{what}"), body)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

async fn a_drained_host_ends_what_it_has_and_gets_nothing_more(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let ids = http.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let grant = testbox.take().await;
    let why = json!({"reason": "new disk", "drain": true});
    assert_eq!(
        post(&http, "host-1", "cordon", &why).await["state"],
        "draining"
    );
    scheduler.kill();
    scheduler.restart().await;
    testbox.finish(&grant).await;
    assert!(testbox.ask(1).await.is_empty(), "closed, over a restart");
    let view = state(&http, "host-1").await;
    assert_eq!(
        (&view["state"], &view["closed"]["reason"]),
        (&json!("drained"), &json!("new disk")),
        "{view}"
    );
    let told = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[1]))
        .await
        .text;
    assert!(
        told.contains("it is drained by") && told.contains("new disk"),
        "{told}"
    );
    // Another host takes the job that this one does not get.
    let mut other = Testbox::dc(&http, "host-2", 1 << 10);
    assert_eq!(other.run_all(5).await, [ids[1].clone()]);
}

async fn a_host_that_waits_is_closed_at_once_and_opened_again(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let closing = async {
        eventually("the testbox waits", async || {
            let host = http.get("/scheduler/v1/hosts/host-1").await;
            (host.status == 200 && host.json()["state"] == "waiting").then_some(())
        })
        .await;
        post(&http, "host-1", "cordon", &json!({})).await
    };
    let (none, view) = tokio::join!(testbox.ask(60), closing);
    assert!(none.is_empty(), "answered long before its time");
    assert_eq!(view["state"], "cordoned");
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let opening = async {
        eventually("it waits though it is closed", async || {
            let told = http.get("/metrics").await.text;
            told.contains("fairlead_waiters 1").then_some(())
        })
        .await;
        post(&http, "host-1", "uncordon", &json!({})).await
    };
    let (grants, _) = tokio::join!(testbox.ask(60), opening);
    assert_eq!(grants[0].job_id, id, "the moment it is opened");
    http.post("/scheduler/v1/hosts/host-1/uncordon", &json!({}))
        .await
        .refused(404);
}

async fn a_host_that_nobody_knows_is_neither_closed_nor_reserved(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let keep = json!({"accounts": ["alice"], "until": "+2h"});
    for (what, body) in [("cordon", &json!({})), ("reserve", &keep)] {
        http.post(&format!("/scheduler/v1/hosts/host-1/{what}"), body)
            .await
            .refused(404);
    }
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let id = http.submit(&jobs::dc("bob")).await.remove(0);
    assert_eq!(testbox.ask(60).await[0].job_id, id, "nothing was written");
}

async fn a_reserved_host_gets_the_jobs_of_its_accounts_alone(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    let keep = json!({"accounts": ["alice"], "until": "+2h", "reason": "a demo"});
    let reserving = async {
        eventually("the testbox waits", async || {
            let host = http.get("/scheduler/v1/hosts/host-1").await;
            (host.status == 200 && host.json()["state"] == "waiting").then_some(())
        })
        .await;
        post(&http, "host-1", "reserve", &keep).await
    };
    let (none, view) = tokio::join!(testbox.ask(60), reserving);
    assert!(none.is_empty(), "it is to ask anew, long before its time");
    assert_eq!(view["reserved"]["accounts"], json!(["alice"]), "{view}");
    scheduler.kill();
    scheduler.restart().await;
    // Bob's job is older, but alice's goes first; it is in bob's queue.
    let reply = http
        .post("/scheduler/v1/jobs/submit", &jobs::dc("bob"))
        .await;
    assert!(
        reply.text.contains("it is reserved for jobs of alice"),
        "{}",
        reply.text
    );
    let bobs = reply.json()[0]["job_id"].as_str().map(str::to_owned);
    let bobs = bobs.expect("an id");
    let shared = jobs::with(jobs::dc("alice"), &json!({"queue": "shared"}));
    let alices = http.submit(&shared).await.remove(0);
    assert_eq!(testbox.run_all(2).await, [alices]);
    let told = http
        .get(&format!("/scheduler/v1/jobs/{bobs}/explain"))
        .await
        .text;
    assert!(
        told.contains("it is reserved for jobs of alice until") && told.contains("a demo"),
        "{told}"
    );
    let giving_back = async {
        eventually("it waits for alice's jobs", async || {
            (state(&http, "host-1").await["state"] == "waiting").then_some(())
        })
        .await;
        post(&http, "host-1", "unreserve", &json!({})).await
    };
    let (none, view) = tokio::join!(testbox.ask(60), giving_back);
    assert!(none.is_empty() && view["reserved"].is_null(), "{view}");
    assert_eq!(testbox.run_all(5).await, [bobs]);
    let reset = post(&http, "host-1", "reset", &json!({})).await;
    assert_eq!(reset, json!({"hostname": "host-1", "repaired": []}));
    for (body, word) in [
        (json!({"accounts": [], "until": "+2h"}), "accounts"),
        (json!({"accounts": ["alice"], "until": "soon"}), "soon"),
        (
            json!({"accounts": ["alice"], "until": "2020-01-01"}),
            "2020",
        ),
    ] {
        let path = "/scheduler/v1/hosts/host-1/reserve";
        let refused = http.post(path, &body).await;
        assert!(refused.text.contains(word), "{}", refused.text);
        refused.refused(400);
    }
}

fn once(account: &str) -> Value {
    jobs::with(jobs::dc(account), &json!({"retry": 0}))
}

/// Makes a host fail jobs of two accounts until it is suspect.
async fn becomes_suspect(http: &Http, testbox: &mut Testbox) {
    for account in ["alice", "bob", "alice"] {
        http.submit(&once(account)).await;
        let grant = testbox.take().await;
        let end = "job_stage=finish&job_health=load_disk_fail";
        assert_eq!(testbox.report(&grant, end).await.status, 200);
        testbox.drop_job(&grant.job_id);
    }
    eventually("it is suspect", async || {
        (state(http, "host-1").await["state"] == "suspect").then_some(())
    })
    .await;
}

async fn a_host_that_fails_again_and_again_is_put_aside(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 1 << 10);
    becomes_suspect(&http, &mut testbox).await;
    let id = http.submit(&once("alice")).await.remove(0);
    assert!(testbox.ask(1).await.is_empty());
    post(&http, "host-1", "uncordon", &json!({})).await;
    assert_eq!(testbox.run_all(5).await, [id]);
}

async fn a_suspect_host_that_passes_a_health_check_gets_jobs_again(store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("selftest.yaml");
    std::fs::write(&file, "suite: selftest\ntestbox: vm-2p1g\nscript: 'true'\n").expect("a file");
    let with_check = ["--health-check", file.to_str().expect("a plain name")];
    let mut scheduler = Scheduler::start_with(store, &with_check).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    becomes_suspect(&http, &mut testbox).await;
    let id = http.submit(&once("alice")).await.remove(0);
    let check = eventually("a health check was made", async || {
        let view = state(&http, "host-1").await;
        view["closed"]["check_job"].as_str().map(str::to_owned)
    })
    .await;
    let path = format!("/scheduler/v1/jobs/{id}/explain");
    let told = http.get(&path).await.text;
    let words = format!("number 1 is job {check}");
    assert!(told.contains(&words), "{told}");
    scheduler.kill();
    scheduler.restart().await;
    // Alice's job is older, but only the check goes there.
    let grants = testbox.take_all().await;
    let given: Vec<&str> = grants.iter().map(|grant| grant.job_id.as_str()).collect();
    assert_eq!(given, [check.as_str()]);
    assert_eq!(grants[0].job["suite"], "selftest");
    testbox.finish(&grants[0]).await;
    eventually("it is given back", async || {
        let view = state(&http, "host-1").await;
        view["closed"].is_null().then_some(())
    })
    .await;
    assert_eq!(testbox.run_all(5).await, [id]);
    let listed = http
        .get("/scheduler/v1/jobs?account=health-check")
        .await
        .text;
    assert_eq!(listed.matches("\"selftest\"").count(), 1, "{listed}");
}
