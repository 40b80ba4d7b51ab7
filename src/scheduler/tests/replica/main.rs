//! One replica over the embedded store, spoken to over HTTP: the life of a job, sessions, restarts.
#![expect(clippy::unwrap_used, reason = "a test's helpers may fail the test")]

mod lab;
mod replicas;

use std::time::Duration;

use fairlead_api::{ConsumeAnswer, ConsumeRequest, ErrorBody, ErrorCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::lab::{Lab, ask, held, job, read};

#[tokio::test]
async fn a_job_goes_from_submit_to_its_result() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let answer = lab.consume(&ask("s", 1)).await;
    let grant = &answer.jobs[0];
    assert_eq!(
        (grant.job_id.as_str(), grant.job["script"].as_str()),
        (id.as_str(), Some("true"))
    );
    assert_eq!(lab.report(grant, "job_stage=running").await, 200);
    let log = format!("/scheduler/v1/jobs/{id}/log");
    let append = format!("{log}?attempt=1&job_token={}&offset=0", grant.job_token);
    let sent = lab
        .http
        .post(lab.url(&append))
        .body("hello\n")
        .send()
        .await
        .unwrap();
    assert_eq!(read(sent).await, (200, json!({"size": 6})));
    let file = format!(
        "{}/out.txt?job_id={id}&job_token={}",
        grant.result_root, grant.job_token
    );
    assert_eq!(
        lab.http
            .put(lab.url(&file))
            .body("result")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(
        lab.http
            .put(lab.url(&file))
            .body("other")
            .send()
            .await
            .unwrap()
            .status(),
        409
    );
    let outside = format!(
        "/result/other/out.txt?job_id={id}&job_token={}",
        grant.job_token
    );
    assert_eq!(
        lab.http
            .put(lab.url(&outside))
            .body("x")
            .send()
            .await
            .unwrap()
            .status(),
        403
    );
    assert_eq!(
        lab.report(
            grant,
            "job_stage=finish&exit_code=0&job_data_readiness=uploaded"
        )
        .await,
        200
    );
    let (_, seen) = lab.get(&format!("/scheduler/v1/jobs/{id}")).await;
    assert_eq!(
        (&seen["job_health"], &seen["job_data_readiness"]),
        (&json!("success"), &json!("uploaded"))
    );
    let followed = lab
        .http
        .get(lab.url(&format!("{log}?follow=true")))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(followed, "hello\n");
    let fetched = lab
        .http
        .get(lab.url(&format!("{}/out.txt", grant.result_root)))
        .send()
        .await
        .unwrap();
    assert_eq!(fetched.text().await.unwrap(), "result");
}

/// The rest of a body that had ended was read, and the handler panicked: 500.
#[tokio::test]
async fn a_file_that_is_refused_behind_its_last_byte_is_refused_by_its_cause() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let answer = lab.consume(&ask("s", 1)).await;
    let grant = &answer.jobs[0];
    let path = format!(
        "{}/out.txt?job_id={id}&job_token={}",
        grant.result_root, grant.job_token
    );
    let address = lab.server.as_ref().unwrap().url().replace("http://", "");
    let mut connection = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 4_096];
    let read = connection.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 100"));
    // Its name is taken only now.
    let other = lab.http.put(lab.url(&path)).body("other").send().await;
    assert_eq!(other.unwrap().status(), 200);
    connection.write_all(b"late").await.unwrap();
    let read = connection.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 409"));
}

#[tokio::test]
async fn a_waiting_host_gets_a_job_the_moment_it_comes() {
    let lab = Lab::start().await;
    let request = ask("s", 1);
    let (answer, id) = tokio::join!(lab.consume(&request), lab.submit(job()));
    assert_eq!(answer.jobs.len(), 1);
    assert_eq!(answer.jobs[0].job_id, id);
}

#[tokio::test]
async fn a_host_gets_as_many_jobs_as_fit_in_one_answer() {
    let lab = Lab::start().await;
    for _ in 0..10 {
        let mut wanted = job();
        wanted["need_memory"] = json!("2g");
        lab.submit(wanted).await;
    }
    assert_eq!(lab.consume(&ask("s", 1)).await.jobs.len(), 4);
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer_also_after_a_restart() {
    let mut lab = Lab::start().await;
    lab.submit(job()).await;
    let first = lab.consume(&ask("s", 1)).await;
    let second = lab.consume(&ask("s", 1)).await;
    assert_eq!(first.jobs, second.jobs);
    lab.restart().await;
    let third = lab.consume(&ask("s", 1)).await;
    assert_eq!(first.jobs, third.jobs);
}

#[tokio::test]
async fn a_grant_that_was_dropped_goes_back_without_costing_an_attempt() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let first = lab.consume(&ask("s", 1)).await;
    let second = lab.consume(&ask("s", 2)).await;
    assert_eq!(
        (second.jobs[0].job_id.as_str(), second.jobs[0].attempt),
        (id.as_str(), 1)
    );
    assert_ne!(first.jobs[0].claim_token, second.jobs[0].claim_token);
    assert_eq!(lab.report(&first.jobs[0], "job_stage=running").await, 409);
    assert_eq!(lab.report(&second.jobs[0], "job_stage=running").await, 200);
}

#[tokio::test]
async fn a_new_session_of_a_hw_box_gets_an_unstarted_job_again_and_loses_a_started_one() {
    let lab = Lab::start().await;
    let hw = |session: &str| ConsumeRequest {
        kinds: vec!["hw".to_owned()],
        jobs_max: 1,
        wait_s: 0,
        ..ask(session, 1)
    };
    let id = lab
        .submit(json!({"suite": "x", "script": "true", "my_account": "u", "testbox": "box1"}))
        .await;
    assert_eq!(lab.consume(&hw("boot1")).await.jobs.len(), 1);
    let again = lab.consume(&hw("boot2")).await;
    assert_eq!(
        (again.jobs[0].job_id.as_str(), again.jobs[0].attempt),
        (id.as_str(), 1)
    );
    assert_eq!(lab.report(&again.jobs[0], "job_stage=running").await, 200);
    let next = lab
        .consume(&ConsumeRequest {
            wait_s: 20,
            ..hw("boot3")
        })
        .await;
    assert_eq!(
        (next.jobs[0].job_id.as_str(), next.jobs[0].attempt),
        (id.as_str(), 2)
    );
}

#[tokio::test]
async fn a_vm_host_s_new_session_keeps_the_jobs_it_names() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let grant = lab.consume(&ask("s1", 1)).await.jobs.remove(0);
    assert_eq!(lab.report(&grant, "job_stage=running").await, 200);
    let named = ConsumeRequest {
        running: vec![held(&grant)],
        wait_s: 0,
        ..ask("s2", 1)
    };
    assert!(lab.consume(&named).await.jobs.is_empty());
    assert_eq!(lab.stage(&id).await, "running");
    assert_eq!(
        lab.report(&grant, "job_stage=finish&exit_code=0").await,
        200
    );
}

#[tokio::test]
async fn a_silent_host_loses_its_job_to_a_new_attempt_and_is_told_to_stop() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let grant = lab.consume(&ask("s", 1)).await.jobs.remove(0);
    assert_eq!(lab.report(&grant, "job_stage=running").await, 200);
    let other = ConsumeRequest {
        wait_s: 60,
        ..ask("t", 1)
    };
    let (_, answer) = lab
        .post(
            "/scheduler/v1/testboxes/box2/consume",
            &serde_json::to_value(&other).unwrap(),
        )
        .await;
    let answer: ConsumeAnswer = serde_json::from_value(answer).unwrap();
    assert_eq!(
        (answer.jobs[0].job_id.as_str(), answer.jobs[0].attempt),
        (id.as_str(), 2)
    );
    assert_eq!(
        lab.report(&grant, "job_stage=finish&exit_code=0").await,
        409
    );
    let beat = json!({"session": "s", "running": [held(&grant)]});
    let (_, told) = lab
        .post("/scheduler/v1/testboxes/box1/heartbeat", &beat)
        .await;
    assert_eq!(told["stop"][0]["job_id"], json!(id));
}

#[tokio::test]
async fn terminate_reaches_a_waiting_host_at_once() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let grant = lab.consume(&ask("s", 1)).await.jobs.remove(0);
    assert_eq!(lab.report(&grant, "job_stage=running").await, 200);
    let waiting = ConsumeRequest {
        running: vec![held(&grant)],
        wait_s: 60,
        ..ask("s", 2)
    };
    let path = format!("/scheduler/v1/jobs/{id}/terminate");
    let body = json!({"my_account": "user1"});
    let (answer, stopped) = tokio::join!(lab.consume(&waiting), lab.post(&path, &body));
    assert_eq!(stopped.0, 200);
    let told: Vec<_> = answer
        .stop
        .iter()
        .map(|order| (order.job_id.as_str(), order.health.as_str()))
        .collect();
    assert_eq!(told, [(id.as_str(), "terminate")]);
    assert_eq!(
        lab.report(&grant, "job_stage=finish&job_health=terminate")
            .await,
        200
    );
}

#[tokio::test]
async fn waiting_jobs_and_policies_survive_a_restart() {
    let mut lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let parent = lab.submit(job()).await;
    let mut child = job();
    child["wait_on"] = json!({ parent.clone(): {"job_stage": "finish"} });
    let child = lab.submit(child).await;
    assert_eq!(
        lab.post("/scheduler/v1/queues/user1", &json!({"weight": 30}))
            .await
            .0,
        200
    );
    lab.restart().await;
    let (_, queues) = lab.get("/scheduler/v1/queues").await;
    let user1 = queues
        .as_array()
        .unwrap()
        .iter()
        .find(|queue| queue["name"] == "user1")
        .unwrap();
    assert_eq!(
        (&user1["weight"], &user1["waiting"]),
        (&json!(30), &json!(2))
    );
    let grants = lab.consume(&ask("s", 1)).await.jobs;
    let ids: Vec<_> = grants.iter().map(|grant| grant.job_id.clone()).collect();
    assert_eq!(ids, [id, parent]);
    let waiting = ConsumeRequest {
        running: grants.iter().map(held).collect(),
        ..ask("s", 2)
    };
    let (answer, status) = tokio::join!(
        lab.consume(&waiting),
        lab.report(&grants[1], "job_stage=finish&exit_code=0")
    );
    assert_eq!((status, answer.jobs[0].job_id.clone()), (200, child));
}

#[tokio::test]
async fn refusals_have_code_message_and_hint() {
    let lab = Lab::start().await;
    for (path, code) in [
        ("/scheduler/v1/jobs/123", ErrorCode::NotFound),
        ("/scheduler/v1/jobs/dispatch?wait=-1", ErrorCode::BadQuery),
        (
            "/scheduler/v1/jobs/dispatch?wait=601&hostname=x",
            ErrorCode::BadQuery,
        ),
        ("/scheduler/v1/jobs?limit=many", ErrorCode::BadQuery),
        ("/nowhere", ErrorCode::NotFound),
        ("/scheduler/v1/jobs/submit", ErrorCode::MethodNotAllowed),
    ] {
        let (status, answer) = lab.get(path).await;
        let body: ErrorBody = serde_json::from_value(answer).unwrap();
        assert_eq!((body.code, status), (code, code.status()), "{path}");
        assert!(!body.message.is_empty() && !body.hint.is_empty(), "{path}");
    }
    lab.submit(job()).await;
}

#[tokio::test]
async fn old_clients_report_by_old_names() {
    let lab = Lab::start().await;
    let id = lab.submit(job()).await;
    let grant = lab.consume(&ask("s", 1)).await.jobs.remove(0);
    let report = |what: &str| {
        format!(
            "/~lkp/cgi-bin/{what}&job_id={id}&job_token={}",
            grant.job_token
        )
    };
    assert_eq!(
        lab.get(&report("lkp-jobfile-append-var?job_state=running"))
            .await
            .0,
        200
    );
    assert_eq!(lab.stage(&id).await, "running");
    assert_eq!(
        lab.get(&report("set-job-stage?job_stage=post_run")).await.0,
        200
    );
    assert_eq!(
        lab.get(&report("lkp-jobfile-append-var?job_state=finished"))
            .await
            .0,
        200
    );
    assert_eq!(lab.stage(&id).await, "finish");
    for (path, status) in [
        ("/~lkp/cgi-bin/set-job-stage?job_stage=boot", 400),
        ("/~lkp/cgi-bin/lkp-post-run?odd=1", 200),
        ("/~lkp/cgi-bin/lkp-wtmp", 200),
        ("/~lkp/cgi-bin/lkp-odd", 404),
    ] {
        assert_eq!(lab.get(path).await.0, status, "{path}");
    }
}

/// An answer that came faster than the claim's own task went on was taken for one that nobody took.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_grant_that_was_answered_goes_back() {
    const JOBS: usize = 600;
    let lab = Lab::start().await;
    let jobs: Vec<Value> = (0..JOBS).map(|_| job()).collect();
    assert_eq!(
        lab.post("/scheduler/v1/jobs/submit", &json!(jobs)).await.0,
        200
    );
    let host = async |name: &str| {
        let mut done = 0;
        for request in 1.. {
            let ask = ConsumeRequest {
                wait_s: 0,
                ..ask("s", request)
            };
            let path = format!("/scheduler/v1/testboxes/{name}/consume");
            let (_, answer) = lab.post(&path, &serde_json::to_value(&ask).unwrap()).await;
            let answer: ConsumeAnswer = serde_json::from_value(answer).unwrap();
            if answer.jobs.is_empty() {
                break;
            }
            for grant in &answer.jobs {
                assert_eq!(lab.report(grant, "job_stage=finish&exit_code=0").await, 200);
            }
            done += answer.jobs.len();
        }
        done
    };
    let done = tokio::join!(host("a"), host("b"), host("c"), host("d"));
    assert_eq!(done.0 + done.1 + done.2 + done.3, JOBS);
}

#[tokio::test]
async fn a_connection_that_a_client_keeps_stays_open_for_longer_than_the_client_keeps_it() {
    let lab = Lab::start().await;
    let address = lab.server.as_ref().unwrap().url().replace("http://", "");
    let mut connection = TcpStream::connect(&address).await.unwrap();
    let mut answers = Vec::new();
    // reqwest keeps an idle connection for 90 s, nginx for 60 s.
    for idle in [0, 31, 91] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(idle)).await;
        tokio::time::resume();
        let request = format!("GET /scheduler/v1/health HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut answer = [0; 4_096];
        let written = connection.write_all(request.as_bytes()).await;
        let read = connection.read(&mut answer).await.unwrap_or_default();
        let good = written.is_ok() && answer[..read].starts_with(b"HTTP/1.1 200");
        answers.push((idle, good));
    }
    assert_eq!(answers, [0, 31, 91].map(|idle| (idle, true)));
}

/// Clients that send head and body apart, as Python's do, met a broken connection now and then.
#[tokio::test]
async fn a_body_that_nobody_wants_does_not_break_the_connection() {
    let lab = Lab::start().await;
    let address = lab.server.as_ref().unwrap().url().replace("http://", "");
    let mut connection = TcpStream::connect(&address).await.unwrap();
    for _ in 0..2 {
        let head = format!(
            "POST /scheduler/v1/health HTTP/1.1\r\nhost: {address}\r\ncontent-length: 4\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        // Long enough for an answer that does not wait for the body.
        for _ in 0..20_000 {
            tokio::task::yield_now().await;
        }
        connection.write_all(b"null").await.unwrap();
        let mut answer = [0; 4_096];
        let read = connection.read(&mut answer).await.unwrap();
        assert!(answer[..read].starts_with(b"HTTP/1.1 405"));
    }
}
