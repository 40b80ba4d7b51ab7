//! An attacker with a testbox token: it works for the hosts of its account, and for no job.

use std::io::Read;

use fairlead_api::Grant;
use fairlead_attack::post::{post, post_with_job_token};
use fairlead_tests::{Guarded, Http, Store, Testbox, jobs};
use reqwest::Method;
use serde_json::{Value, json};

/// Returns a job that this testbox of rack1 got.
async fn granted(lab: &Guarded, boxes: &Http) -> (Testbox, Grant) {
    let alice = lab.user("alice").await;
    let secret = json!({"secrets": {"password": "hush"}});
    alice.submit(&jobs::with(jobs::dc("alice"), &secret)).await;
    let mut own = Testbox::dc(boxes, "rack1-7", 8 << 10);
    let grant = own.take().await;
    assert_eq!(grant.job["secrets"]["password"], "hush");
    (own, grant)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_testbox_token_is_good_for_its_own_hosts_only() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["rack1-*", "a6?"]).await;
    let victim = json!({"mac_addr": ["52:54:00:00:00:07"]});
    let path = "/scheduler/v1/hosts/rack2-7";
    assert_eq!(lab.admin.post(path, &victim).await.status, 200);

    let alice = lab.user("alice").await;
    alice.submit(&jobs::dc("alice")).await;
    for stranger in ["rack2-7", "rack1", "a666", "invented"] {
        let mut testbox = Testbox::dc(&boxes, stranger, 8 << 10);
        testbox.next_request(0);
        testbox.send().await.refused(403);
        let beat = testbox.try_heartbeat().await;
        beat.unwrap_or_else(|error| panic!("{error}")).refused(403);
        let path = format!("/scheduler/v1/hosts/{stranger}");
        boxes
            .post(&path, &json!({"memory": "4g"}))
            .await
            .refused(403);
        let path = format!("/scheduler/v1/jobs/dispatch?hostname={stranger}&wait=0");
        boxes.get(&path).await.refused(403);
    }
    let boot = "/boot.ipxe/mac/52-54-00-00-00-07?wait=0";
    boxes.get(boot).await.refused(403);
    // It does not accept the name of a booting machine either.
    let own = "/scheduler/v1/hosts/rack1-7";
    boxes.post(own, &victim).await.refused(403);

    assert_eq!(boxes.post(own, &json!({"memory": "4g"})).await.status, 200);
    let named = Testbox::dc(&boxes, "a66", 8 << 10).take_all().await;
    assert_eq!(named.len(), 1, "its own hosts get their jobs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_testbox_account_alone_reports_nothing_of_a_job() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["rack1-*"]).await;
    let every = lab.testbox("every", &["*"]).await;
    let (_own, grant) = granted(&lab, &boxes).await;
    let id = &grant.job_id;
    let end = format!("/scheduler/v1/jobs/{id}/update?job_stage=finish&job_health=success");
    let alias = format!("/~lkp/cgi-bin/set-job-stage?job_id={id}&job_stage=finish");
    let log = format!("/scheduler/v1/jobs/{id}/log?offset=0");
    let file = format!("{}/forged?job_id={id}", grant.result_root);
    for client in [&every, &boxes] {
        for path in [&end, &alias, &log, &file] {
            post(client, path).await.refused(401);
        }
        client.get(&alias).await.refused(401);
    }
    assert_eq!(lab.admin.field(id, "job_stage").await, "dispatch");

    // The job's own token is accepted, by header and by query.
    let nobody = lab.nobody();
    let running = format!("/scheduler/v1/jobs/{id}/update?job_stage=running");
    let by_header = post_with_job_token(nobody.base(), &running, &grant.job_token);
    assert_eq!(by_header.await.unwrap().0, 200);
    let token = &grant.job_token;
    let by_query =
        format!("/~lkp/cgi-bin/set-job-stage?job_id={id}&job_token={token}&job_stage=post_run");
    assert_eq!(nobody.get(&by_query).await.status, 200);
    assert_eq!(lab.admin.field(id, "job_stage").await, "post_run");
    // An admin is accepted, too.
    assert_eq!(post(&lab.admin, &end).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initrd_says_how_its_job_reports() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["a66"]).await;
    let alice = lab.user("alice").await;
    let id = alice.submit(&jobs::hw("alice")).await.remove(0);
    let path = "/scheduler/v1/jobs/dispatch?hostname=a66&boot_type=native&wait=10";
    let boot = boxes.get(path).await.json();
    let url = boot["initrds"][0].as_str().unwrap_or_default();
    let (_, path) = url.split_once("/srv/").unwrap_or_default();
    let base = lab.scheduler.url();
    let packed = reqwest::get(format!("{base}/srv/{path}")).await.unwrap();
    let packed = packed.bytes().await.unwrap();
    let mut cpio = Vec::new();
    flate2::read::GzDecoder::new(packed.as_ref())
        .read_to_end(&mut cpio)
        .unwrap();
    let text = String::from_utf8_lossy(&cpio);
    let token = boot["job_token"].as_str().unwrap_or_default();
    let port = base.rsplit(':').next().unwrap_or_default();
    for said in [
        format!("\"job_id\": \"{id}\""),
        format!("\"job_token\": \"{token}\""),
        "\"attempt\": 1".to_owned(),
        format!("\"result_root\": {}", boot["result_root"]),
        format!("\"sched_port\": \"{port}\""),
        format!("job_token='{token}'"),
        format!("schedulers='{base}"),
    ] {
        assert!(text.contains(&said), "{said} is not in {text}");
    }
}

/// Regression: the script had the account's token, which is valid for all of its hosts.
#[tokio::test(flavor = "multi_thread")]
async fn the_token_in_a_boot_script_is_good_for_the_boot_of_its_machine_alone() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["rack1-*"]).await;
    let token = boxes.token().unwrap_or_default().to_owned();
    let nobody = lab.nobody();
    let ask = |query: &str, token: &str| {
        let path = format!("/scheduler/v1/jobs/dispatch?wait=0&{query}&token={token}");
        let nobody = nobody.clone();
        async move { nobody.get(&path).await }
    };
    let mac = "mac=52-54-00-00-00-0b";
    for own in ["hostname=rack1-1", mac] {
        let script = ask(own, &token).await;
        assert_eq!(script.status, 200, "{}", script.text);
        assert!(!script.text.contains(&token), "{}", script.text);
        let given = script.text.split_once("&token=").map(|(_, rest)| rest);
        let given = given.and_then(|rest| rest.split_whitespace().next());
        let given = given.unwrap_or_default();
        assert_eq!(ask(own, given).await.status, 200, "{own}");
        for others in [
            "hostname=rack1-2",
            "mac=52-54-00-00-00-0c",
            "mac=52-54-00-00-00-0b&hostname=rack1-2",
        ] {
            ask(others, given).await.refused(401);
        }
        nobody
            .with_token(given)
            .get("/scheduler/v1/whoami")
            .await
            .refused(401);
    }
    // It is not lost either when somebody registers the machine.
    let script = ask(mac, &token).await.text;
    let given = script.split_once("&token=").map(|(_, rest)| rest);
    let given = given.and_then(|rest| rest.split_whitespace().next());
    let known = json!({"mac_addr": ["52:54:00:00:00:0b"]});
    let host = "/scheduler/v1/hosts/rack1-3";
    assert_eq!(lab.admin.post(host, &known).await.status, 200);
    assert_eq!(ask(mac, given.unwrap_or_default()).await.status, 200);
}

/// The jobs name a machine and a group with the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_testbox_takes_no_jobs_of_another_machine_by_the_name_of_its_group() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["rack1-*"]).await;
    lab.testbox("other", &["target-7"]).await;
    let mut evil = Testbox::dc(&boxes, "rack1-1", 8 << 10);
    evil.offer.group = "target-7".to_owned();
    evil.next_request(0);
    evil.send().await.refused(403);
    let named = json!({"groups": ["rack-of-*"]});
    let path = "/scheduler/v1/accounts/boxes";
    assert_eq!(lab.admin.post(path, &named).await.status, 200);
    for (group, status) in [("rack-of-ann", 200), ("rack-1", 403), ("rack1-1", 200)] {
        let mut testbox = Testbox::dc(&boxes, "rack1-1", 8 << 10);
        group.clone_into(&mut testbox.offer.group);
        testbox.next_request(0);
        assert_eq!(testbox.send().await.status, status, "{group}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_names_no_hosts_keeps_all_and_a_warning_says_so() {
    let mut lab = Guarded::start(Store::Embedded, &[]).await;
    let old = lab.account("old-boxes", &json!({"role": "testbox"})).await;
    let mut testbox = Testbox::dc(&old, "anywhere", 8 << 10);
    testbox.next_request(0);
    assert_eq!(testbox.send().await.status, 200);
    let accounts = lab.admin.get("/scheduler/v1/accounts").await.json();
    let accounts = accounts.as_array().cloned().unwrap_or_default();
    let account = accounts
        .iter()
        .find(|account| account["my_account"] == "old-boxes");
    let account = account.cloned().unwrap_or_default();
    assert_eq!(account["hosts"], json!(["*"]));
    let hint = account["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("--hosts"), "{account}");
    lab.scheduler.stop().await;
    lab.scheduler.restart().await;
    let log = lab.scheduler.log();
    assert!(
        log.contains("names no hosts") && log.contains("old-boxes"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_learn_which_jobs_exist() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["rack1-*"]).await;
    let (_own, grant) = granted(&lab, &boxes).await;
    let nobody = lab.nobody();
    let unknown = "2611210236110799999";
    for token in ["x".to_owned(), "0".repeat(64)] {
        for path in [
            "POST /scheduler/v1/jobs/ID/update?attempt=1&job_stage=running",
            "POST /scheduler/v1/jobs/ID/wait_peer?attempt=1",
            "POST /scheduler/v1/jobs/ID/log?attempt=1&offset=0",
            "POST /result/x/ID/f?job_id=ID",
            "GET /srv/scheduler/pending-jobs/ID/job.cgz?my_account=x",
            "GET /~lkp/cgi-bin/set-job-stage?job_id=ID&job_stage=running",
        ] {
            let mut answers = Vec::new();
            for id in [grant.job_id.as_str(), unknown] {
                let (method, path) = path.split_once(' ').unwrap_or_default();
                let path = format!("{}&job_token={token}", path.replace("ID", id));
                let method: Method = method.parse().unwrap();
                let reply = nobody.send(method, &path, "", Vec::new()).await;
                let text = reply.text.replace(id, "ID");
                answers.push((reply.status, text));
            }
            assert_eq!(answers[0], answers[1], "{path}");
            assert_eq!(answers[0].0, 403, "{path}: {answers:?}");
        }
        let path = format!("/scheduler/v1/jobs/{}/wait_peer", grant.job_id);
        let reply = nobody.post(&path, &Value::Null).await;
        reply.refused(401);
    }
}
