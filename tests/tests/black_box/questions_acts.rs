//! Tests of those questions of docs/questions.md that ask for an act: a command and a request do the same. Besides, the
//! log of a job and the health of the store.

use fairlead_tests::{Person, Store, Testbox, eventually, jobs, on_both_stores};
use reqwest::Method;
use serde_json::{Value, json};

use crate::questions::{said, same};

on_both_stores!(
    a_log_is_the_same_by_command_and_api,
    a_command_and_a_request_run_a_job_again,
    a_command_and_a_request_cancel_jobs,
    a_command_and_a_request_pause_the_lab,
    the_store_is_as_well_by_command_as_by_api,
);

/// Fields in which two runs of the same job differ.
const OWN: [&str; 9] = [
    "job_id",
    "id",
    "submit_id",
    "submit_time",
    "submit_ms",
    "ready_ms",
    "job_order",
    "result_root",
    "rerun_of",
];

async fn a_log_is_the_same_by_command_and_api(store: Store) {
    let lab = Person::new(store).await;
    let http = &lab.http;
    let mut host = Testbox::dc(http, "box", 4 << 10);
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let grant = host.take().await;
    host.report(&grant, "job_stage=running").await;
    let mut written = String::new();
    let by_api = format!("/scheduler/v1/jobs/{id}/log");
    for line in ["first\n", "second\n"] {
        let at = format!(
            "{by_api}?offset={}&attempt=1&job_token={}",
            written.len(),
            grant.job_token
        );
        let sent = http
            .send(Method::POST, &at, "text/plain", line.as_bytes().to_vec())
            .await;
        assert_eq!(sent.status, 200, "{}", sent.text);
        written.push_str(line);
        assert_eq!(http.get(&by_api).await.text, written);
        assert_eq!(lab.run(&["log", &id]).expect_code(0), written);
    }
    host.finish_running(&grant).await;
    // The stream of a job that has ended ends, too.
    let followed = http.get(&format!("{by_api}?follow=true")).await;
    assert_eq!(followed.text, written);
    assert_eq!(lab.run(&["log", "--follow", &id]).expect_code(0), written);
}

async fn a_command_and_a_request_run_a_job_again(store: Store) {
    let lab = Person::new(store).await;
    let http = &lab.http;
    let job = jobs::with(jobs::dc("alice"), &json!({"nr_threads": 2, "priority": 3}));
    let id = http.submit(&job).await.remove(0);
    lab.run(&["cancel", &id]).expect_code(0);
    let by_command = said(&lab, &["rerun", &id])["jobs"][0].clone();
    let path = format!("/scheduler/v1/jobs/{id}/rerun?my_account=alice");
    let by_api = http.post(&path, &json!({})).await.json()[0].clone();
    let mut made = Vec::new();
    for answer in [by_command, by_api] {
        let new = answer["job_id"].as_str().expect("an id");
        let Value::Object(mut job) = http.job(new).await else {
            panic!("no job: {answer}");
        };
        assert_eq!(job["rerun_of"], id, "{answer}");
        job.retain(|field, _| !OWN.contains(&field.as_str()));
        made.push(job);
    }
    assert_eq!(made[0], made[1]);
    assert_eq!(made[0]["nr_threads"], 2, "{made:?}");
}

async fn a_command_and_a_request_cancel_jobs(store: Store) {
    let lab = Person::new(store).await;
    let (one, by_command) = lab.submit().await;
    let (other, by_api) = lab.submit().await;
    let (third, kept) = lab.submit().await;
    let told = said(&lab, &["cancel", "--submit-id", &one, "--yes"]);
    let asked = json!({"filter": {"submit_id": other}});
    let reply = lab
        .http
        .post("/scheduler/v1/jobs/cancel?my_account=alice", &asked);
    let reply = reply.await.json();
    let rows = |report: &Value, ids: &[String]| -> Vec<(usize, Value)> {
        let rows = report["results"].as_array().or(report.as_array());
        let rows = rows.unwrap_or_else(|| panic!("no list: {report}"));
        let row = |row: &Value| {
            let at = ids.iter().position(|id| row["job_id"] == id.as_str());
            (at.unwrap_or_else(|| panic!("{row}")), row["code"].clone())
        };
        let mut rows: Vec<_> = rows.iter().map(row).collect();
        rows.sort_by_key(|(at, _)| *at);
        rows
    };
    assert_eq!(rows(&told, &by_command), rows(&reply, &by_api));
    for (submit, ids, stage) in [
        (one, by_command, "cancel"),
        (other, by_api, "cancel"),
        (third, kept, "submit"),
    ] {
        let words = ["jobs", "--submit-id", &submit, "--stage", stage];
        let path = format!("jobs?submit_id={submit}&stage={stage}");
        let found = same(&lab, &words, &path, |said| said["total"] == 4).await;
        for id in ids {
            assert!(found.to_string().contains(&id), "{id}: {found}");
        }
    }
}

async fn a_command_and_a_request_pause_the_lab(store: Store) {
    let lab = Person::new(store).await;
    let http = &lab.http;
    // A snapshot is taken each second.
    let is_paused = async |reason: Value| {
        eventually("the command and the API say the same", async || {
            let by_api = http.get("/scheduler/v1/overview").await.json();
            let by_api = by_api["tables"]["lab"]["lab"]["paused"].clone();
            let by_command = said(&lab, &["lab"])["lab"]["paused"].clone();
            (by_api == by_command && by_api["reason"] == reason).then_some(())
        })
        .await;
    };
    let act = async |asked: Value| {
        let path = "/scheduler/v1/previews?my_account=alice";
        let shown = http.post(path, &asked).await.json();
        let id = shown["preview_id"].as_str().expect("a preview");
        let path = format!("/scheduler/v1/previews/{id}/run?my_account=alice");
        assert_eq!(http.post(&path, &json!({})).await.status, 200);
    };
    let mut host = Testbox::dc(http, "box", 4 << 10);
    http.submit(&jobs::dc("alice")).await;
    lab.run(&["lab", "pause", "--reason", "new racks"])
        .expect_code(0);
    is_paused(json!("new racks")).await;
    assert!(host.ask(2).await.is_empty(), "the command pauses the lab");
    act(json!({"action": "resume_lab"})).await;
    is_paused(Value::Null).await;
    assert_eq!(host.ask(30).await.len(), 1);
    http.submit(&jobs::dc("alice")).await;
    act(json!({"action": "pause_lab", "reason": "new fans"})).await;
    is_paused(json!("new fans")).await;
    assert!(host.ask(2).await.is_empty(), "the request pauses the lab");
    lab.run(&["lab", "resume"]).expect_code(0);
    is_paused(Value::Null).await;
    assert_eq!(host.ask(30).await.len(), 1);
}

async fn the_store_is_as_well_by_command_as_by_api(store: Store) {
    let lab = Person::new(store).await;
    let as_json = [("accept", "application/json")];
    let health = lab.http.get_with("/scheduler/v1/health", &as_json).await;
    let health = health.bytes().await.expect("a whole answer");
    let health: Value = serde_json::from_slice(&health).expect("JSON");
    let by_command = said(&lab, &["lab"])["lab"]["store"].clone();
    assert_eq!(by_command["name"], health["store"], "{health}");
    assert_eq!(
        (&by_command["well"], &health["well"]),
        (&json!(true), &json!(true))
    );
    for side in ["reads", "writes"] {
        assert_eq!(by_command[side], health[side], "{health}");
    }
    let text = lab.run(&["lab"]).out;
    let name = by_command["name"].as_str().expect("a name");
    assert!(text.contains(&format!("store     {name}, well")), "{text}");
}
