//! Bodies that cost far more memory than their bytes. Strangers get next to none of it, and accounts cannot take what
//! testboxes need.

use std::time::Duration;

use fairlead_attack::{
    memory::{now_bytes, peak_bytes, wide_array, wide_jobs, yaml_bomb},
    silent::Line,
};
use fairlead_tests::{Guarded, Http, Scheduler, Store, Testbox, eventually, jobs};
use reqwest::Method;
use serde_json::json;
use tokio::{task::JoinSet, time::timeout};

const SUBMIT: &str = "/scheduler/v1/jobs/submit";
const BOMBS: usize = 8;
const UNFINISHED: usize = 200;
const ARRAYS: usize = 4;
/// Memory limit of a request without a token, bytes.
const STRANGER_BYTES: u64 = 1 << 20;
/// Memory limit of a storm, bytes.
const STORM_BYTES: u64 = 600 << 20;
/// Number of bytes of an unfinished body that are sent.
const SENT: usize = 2 << 20;
/// Time for which a client tries to send it.
const SENDING: Duration = Duration::from_secs(5);
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

/// Starts a scheduler with tokens. Returns also the clients of a user and of a testbox.
async fn guarded(more: &[&str]) -> (Scheduler, Http, Http) {
    let guarded = Guarded::start(Store::Embedded, more).await;
    let user = guarded.user("alice").await;
    let testbox = guarded.testbox("box", &["*"]).await;
    (guarded.scheduler, user, testbox)
}

fn send(to: &mut JoinSet<u16>, http: &Http, kind: &'static str, body: Vec<u8>) {
    let http = http.clone();
    to.spawn(async move {
        let reply = http.try_send(Method::POST, SUBMIT, kind, body).await;
        // 0: the request was refused before all was sent, and the connection was closed.
        reply.map_or(0, |reply| reply.status)
    });
}

/// Starts bodies of 16 MiB, and sends as long as the server reads.
async fn unfinished(url: String, token: Option<String>) -> Vec<Line> {
    let address = url.trim_start_matches("http://").to_owned();
    let token = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let head = format!(
        "POST {SUBMIT} HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}Content-Length: {}\r\n\r\n[",
        16 << 20
    );
    let mut opening = JoinSet::new();
    for _ in 0..UNFINISHED {
        let (address, head) = (address.clone(), head.clone());
        opening.spawn(async move {
            let mut line = Line::open(&address, head.as_bytes()).await;
            let _ = timeout(SENDING, line.say(&b"0,".repeat(SENT / 2))).await;
            line
        });
    }
    opening.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_token_costs_less_than_a_megabyte() {
    let (scheduler, _, _) = guarded(&[]).await;
    let nobody = scheduler.http();
    let idle = now_bytes(scheduler.id());
    let mut sent = JoinSet::new();
    for _ in 0..BOMBS {
        send(&mut sent, &nobody, YAML, yaml_bomb(10_000));
    }
    for _ in 0..ARRAYS {
        send(&mut sent, &nobody, JSON, wide_array());
    }
    let _lines = unfinished(scheduler.url(), None).await;
    let statuses = sent.join_all().await;
    let requests = u64::try_from(BOMBS + ARRAYS + UNFINISHED).unwrap_or(u64::MAX);
    let more = peak_bytes(scheduler.id()) - idle;
    assert!(
        more < requests * STRANGER_BYTES,
        "{requests} requests without a token cost {} MB",
        more >> 20
    );
    let refused = |status: &u16| [0, 401, 429].contains(status);
    assert!(statuses.iter().all(refused), "{statuses:?}");
}

/// Checks that a host's heartbeats are always answered, and that it keeps its job.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_bodies_stays_within_the_budget_and_costs_no_lease() {
    let (scheduler, user, boxes) = guarded(&["--lease", "5s"]).await;
    let id = user.submit(&jobs::dc("alice")).await.remove(0);
    let mut testbox = Testbox::dc(&boxes, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(grant.job_id, id);
    let idle = now_bytes(scheduler.id());
    let mut sent = JoinSet::new();
    for n in 0..BOMBS {
        // Some requests are too much by themselves, the others together.
        send(
            &mut sent,
            &user,
            YAML,
            yaml_bomb(if n % 2 == 0 { 10_000 } else { 1_000 }),
        );
    }
    for _ in 0..ARRAYS {
        send(&mut sent, &user, JSON, wide_array());
        send(&mut sent, &user, JSON, wide_jobs());
    }
    let mut storm = JoinSet::new();
    let (url, token) = (scheduler.url(), user.token().map(str::to_owned));
    storm.spawn(async move {
        let _lines = unfinished(url, token).await;
        sent.join_all().await
    });
    let statuses = eventually("the storm is over", async || {
        let beat = testbox.try_heartbeat().await.expect("an answer");
        assert_eq!(beat.status, 200, "a heartbeat: {}", beat.text);
        storm
            .try_join_next()
            .map(|ended| ended.expect("its statuses"))
    })
    .await;
    let more = peak_bytes(scheduler.id()) - idle;
    assert!(more < STORM_BYTES, "the storm cost {} MB", more >> 20);
    let refused = statuses
        .iter()
        .filter(|status| [413, 429, 503].contains(*status))
        .count();
    assert!(refused >= BOMBS / 2, "{statuses:?}");
    assert!(!statuses.contains(&500), "{statuses:?}");
    let job = user.job(&id).await;
    assert_eq!(
        (&job["attempt"], &job["host_machine"]),
        (&json!(1), &json!("host-1")),
        "{job}"
    );
    testbox.finish(&grant).await;
    assert_eq!(user.field(&id, "job_health").await, "success");
    // Charged memory is given back.
    user.submit(&jobs::times(2_000, &jobs::dc("alice"))).await;
}

/// compass-ci's clients send their account in the body.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_json_body_may_hold_the_token() {
    let (scheduler, user, _) = guarded(&[]).await;
    let nobody = scheduler.http();
    let signed = json!({"my_account": "alice", "my_token": user.token()});
    let job = jobs::with(jobs::dc("alice"), &signed);
    let ids = nobody.submit(&json!([job.clone(), job.clone()])).await;
    let path = format!("/scheduler/v1/jobs/{}/cancel", ids[0]);
    assert_eq!(nobody.post(&path, &signed).await.status, 200);
    let waits = jobs::with(
        signed.clone(),
        &json!({"wait_on": {(&*ids[0]): {"job_stage": "cancel"}}}),
    );
    assert_eq!(
        nobody.post("/scheduler/v1/jobs/wait", &waits).await.status,
        200
    );
    let wrong = jobs::with(jobs::dc("alice"), &json!({"my_token": "wrong"}));
    nobody.post(SUBMIT, &wrong).await.refused(401);
    let large = jobs::with(job.clone(), &json!({"x": "y".repeat(600 << 10)}));
    let refused = nobody.post(SUBMIT, &large).await.refused(401);
    assert!(refused.message.contains("524288"), "{refused:?}");
    let yaml = format!("suite: x\nmy_token: {}\n", user.token().unwrap_or_default());
    let reply = nobody
        .send(Method::POST, SUBMIT, YAML, yaml.into_bytes())
        .await;
    reply.refused(401);
}

/// A client that used the connection again would lose its next request.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_body_that_was_not_read_ends_the_connection() {
    let (scheduler, user, _) = guarded(&[]).await;
    let head = |length: usize| {
        let token = user.token().unwrap_or_default();
        format!(
            "POST {SUBMIT} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let address = scheduler.url().trim_start_matches("http://").to_owned();
    for (length, body, status, is_last) in [(1 << 30, "[", 413, true), (2, "[]", 400, false)] {
        let line = Line::open(&address, format!("{}{body}", head(length)).as_bytes()).await;
        let mut heard = Vec::new();
        let answer = eventually("an answer", async || {
            heard.extend(line.heard().unwrap_or_default());
            let answer = String::from_utf8_lossy(&heard).into_owned();
            answer.contains("\r\n\r\n").then_some(answer)
        })
        .await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        let says = answer.to_ascii_lowercase().contains("connection: close");
        assert_eq!(says, is_last, "{answer}");
    }
}
