//! Fair shares: bodies that are sent by half, and answers that nobody reads, stop nobody else and cost no lease.

use std::{fs, path::Path};

use fairlead_attack::{
    Unread,
    memory::{now_bytes, peak_bytes},
    silent::Line,
};
use fairlead_tests::{Guarded, Http, Scheduler, Store, Testbox, content::Input, eventually, jobs};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;

/// Memory limit of answers that strangers do not read, bytes.
const UNREAD_BYTES: u64 = 32 << 20;
/// Memory limit of reports with wrong tokens, bytes.
const REPORTS_BYTES: u64 = 16 << 20;
/// Size of the results file that such reports name, bytes.
const RESULTS_BYTES: usize = 24 << 20;
const REPORTS: usize = 16;
/// Number of half-sent bodies of an account. The next constant is their length, bytes.
const HALF_SENT: usize = 10;
const BODY_BYTES: usize = 16 << 20;
const LOGINS: usize = 64;
const PREVIEWS: usize = 20;
/// Memory limit of previews, bytes.
const PREVIEWS_BYTES: u64 = 8 << 20;
/// Number of uploads that a job starts. The next constant is the number that it holds.
const UPLOADS: usize = 300;
const UPLOADS_HELD: usize = 256;
const STREAMS: usize = 200;

fn address(scheduler: &Scheduler) -> String {
    scheduler.url().trim_start_matches("http://").to_owned()
}

fn head(path: &str, more: &str, length: usize) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: {length}\r\n\r\n")
        .into_bytes()
}

fn bearer(http: &Http) -> String {
    format!(
        "Authorization: Bearer {}\r\n",
        http.token().unwrap_or_default()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_bodies_of_others_refuse_nobody() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let (mallory, alice) = (lab.user("mallory").await, lab.user("alice").await);
    let address = address(&lab.scheduler);
    let submit = "/scheduler/v1/jobs/submit";
    let (mut held, mut logins) = (Vec::new(), Vec::new());
    for _ in 0..HALF_SENT {
        let mut line = Line::open(&address, &head(submit, &bearer(&mallory), BODY_BYTES)).await;
        line.say(&vec![b' '; BODY_BYTES - 1]).await;
        held.push(line);
    }
    let login = head(
        "/scheduler/v1/login",
        "Origin: http://127.0.0.1\r\n",
        1 << 20,
    );
    for _ in 0..LOGINS {
        logins.push(Line::open(&address, &login).await);
    }
    // A login that is too long is refused before its body comes.
    eventually("each login is refused", async || {
        logins.retain(|line| {
            let heard = line.heard().unwrap_or_default();
            let is_refused = heard.starts_with(b"HTTP/1.1 413");
            assert!(heard.is_empty() || is_refused, "{heard:?}");
            !is_refused
        });
        logins.is_empty().then_some(())
    })
    .await;
    // Mallory has half of the memory, and no more.
    eventually("one of mallory's bodies is refused", async || {
        let heard = held.iter().filter_map(Line::heard);
        let mut refused = heard.filter(|heard| heard.starts_with(b"HTTP/1.1 429"));
        refused.next().map(|_| ())
    })
    .await;
    let large = jobs::with(jobs::dc("alice"), &json!({"script": "#".repeat(50_000)}));
    alice.submit(&jobs::times(40, &large)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_cost_no_memory_and_no_lease() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let (mallory, alice) = (lab.user("mallory").await, lab.user("alice").await);
    let boxes = lab.testbox("boxes", &["*"]).await;
    let address = address(&lab.scheduler);
    lab.nobody().get("/openapi.json").await;
    let idle = now_bytes(lab.scheduler.id());
    let mut strangers: Vec<_> = (0..3).map(|_| Unread::open(&address)).collect();
    for stranger in &mut strangers {
        for _ in 0..STREAMS {
            stranger.get("/openapi.json", None);
        }
    }
    eventually("strangers are answered", async || {
        let answered: usize = strangers.iter().map(Unread::answered).sum();
        (answered == 3 * STREAMS).then_some(())
    })
    .await;
    let more = now_bytes(lab.scheduler.id()).saturating_sub(idle);
    assert!(more < UNREAD_BYTES, "unread answers cost {} MB", more >> 20);
    let good: usize = strangers.iter().map(Unread::good).sum();
    assert!((1..=64).contains(&good), "{good} streams of strangers");
    drop(strangers);

    alice.submit(&jobs::dc("alice")).await;
    let mut testbox = Testbox::dc(&boxes, "box-1", 2 << 10);
    testbox.take().await;
    let path = chunk_of(&mallory).await;
    let mut reads = Unread::open(&address);
    for _ in 0..STREAMS {
        reads.get(&path, mallory.token());
    }
    eventually("mallory's reads are answered or refused", async || {
        let beat = testbox.try_heartbeat().await.expect("an answer");
        assert_eq!(beat.status, 200, "a heartbeat: {}", beat.text);
        (reads.answered() == STREAMS).then_some(())
    })
    .await;
    assert!((1..STREAMS).contains(&reads.good()), "{}", reads.good());
    testbox.ask(0).await;
    assert_eq!(mallory.get(&path).await.status, 429);
}

/// Puts a chunk of 2 MiB of the account. Returns its path.
async fn chunk_of(http: &Http) -> String {
    let input = Input::of(&"0".repeat(2 << 20));
    input.put(http, "").await;
    format!(
        "/scheduler/v1/content/chunks/{}?id={}",
        input.chunk, input.id
    )
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_keep_no_names_of_jobs_that_are_not_there() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let mallory = lab.user("mallory").await;
    let before = bytes_below(lab.scheduler.folder());
    let name = "x".repeat(90);
    let names: Vec<String> = (0..9_900).map(|n| format!("{name}{n:06}")).collect();
    let asked = json!({"action": "cancel", "jobs": names});
    for _ in 0..PREVIEWS {
        let made = mallory.post("/scheduler/v1/previews", &asked).await;
        assert_eq!(made.status, 200, "{}", made.text);
    }
    let more = bytes_below(lab.scheduler.folder()).saturating_sub(before);
    assert!(more < PREVIEWS_BYTES, "previews keep {} MB", more >> 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_holds_so_many_uploads_and_no_more() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let alice = lab.user("alice").await;
    let boxes = lab.testbox("boxes", &["*"]).await;
    alice.submit(&jobs::dc("alice")).await;
    let grant = Testbox::dc(&boxes, "box-1", 2 << 10).take().await;
    let mut lines = Vec::new();
    for n in 0..UPLOADS {
        let path = format!(
            "{}/{n}?job_id={}&job_token={}",
            grant.result_root, grant.job_id, grant.job_token
        );
        lines.push(Line::open(&address(&lab.scheduler), &head(&path, "", 4_096)).await);
    }
    eventually("those over the limit are refused", async || {
        lines.retain(|line| {
            let heard = line.heard().unwrap_or_default();
            assert!(heard.is_empty() || heard.starts_with(b"HTTP/1.1 429"));
            heard.is_empty()
        });
        (lines.len() <= UPLOADS_HELD).then_some(())
    })
    .await;
    assert_eq!(lines.len(), UPLOADS_HELD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_with_a_wrong_token_reads_no_results() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let alice = lab.user("alice").await;
    let boxes = lab.testbox("boxes", &["*"]).await;
    let id = alice.submit(&jobs::dc("alice")).await.remove(0);
    let grant = Testbox::dc(&boxes, "box-1", 2 << 10).take().await;
    let case = r#"{"name":"a","outcome":"failed"},"#;
    let cases = case.repeat(RESULTS_BYTES / case.len());
    let counts = r#"{"passed":0,"failed":1,"skipped":0,"error":0}"#;
    let last = r#"{"name":"z","outcome":"failed"}"#;
    let results = format!(r#"{{"counts":{counts},"cases":[{cases}{last}]}}"#);
    let path = format!(
        "{}/results.json?job_id={id}&job_token={}",
        grant.result_root, grant.job_token
    );
    let nobody = lab.nobody();
    let sent = nobody
        .send(Method::PUT, &path, "", results.into_bytes())
        .await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    let before = peak_bytes(lab.scheduler.id());
    let path = format!(
        "/scheduler/v1/jobs/{id}/update?job_token=WRONG&has_cases=1&job_data_readiness=uploaded"
    );
    let mut reports = JoinSet::new();
    for _ in 0..REPORTS {
        let (nobody, path) = (nobody.clone(), path.clone());
        reports.spawn(async move { nobody.send(Method::POST, &path, "", Vec::new()).await });
    }
    for reply in reports.join_all().await {
        reply.refused(403);
    }
    let more = peak_bytes(lab.scheduler.id()).saturating_sub(before);
    assert!(more < REPORTS_BYTES, "reports cost {} MB", more >> 20);
}
