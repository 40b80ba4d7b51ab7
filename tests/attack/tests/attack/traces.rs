//! Traces for a stranger on the machine, or in a log: no file of the lab, and no token.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use fairlead_attack::post::post_with_job_token;
use fairlead_tests::{
    Guarded, Scheduler, Store, Testbox, eventually, jobs, reaper, scheduler::free_port, settings,
};
use reqwest::Method;

fn mode(path: &Path) -> u32 {
    let meta = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    meta.permissions().mode() & 0o777
}

/// Collects all files and folders below, with their modes.
fn walk(folder: &Path, found: &mut Vec<(PathBuf, u32)>) {
    found.push((folder.to_owned(), mode(folder)));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push((path.clone(), mode(&path)));
        }
    }
}

/// Runs a job with a log and a result file.
async fn job_with_files(scheduler: &Scheduler) -> PathBuf {
    let http = scheduler.http();
    http.submit(&jobs::dc("alice")).await;
    let grant = Testbox::dc(&http, "host-1", 2 << 10).take().await;
    let (id, token) = (&grant.job_id, &grant.job_token);
    let log = format!("/scheduler/v1/jobs/{id}/log?offset=0&job_token={token}");
    let sent = http.send(Method::POST, &log, "", b"hush\n".to_vec()).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    let file = format!("{}/a/out?job_id={id}&job_token={token}", grant.result_root);
    let sent = http.send(Method::POST, &file, "", b"hush\n".to_vec()).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    let below = grant.result_root.trim_start_matches('/');
    scheduler.data().join(below).join("a/out")
}

#[tokio::test(flavor = "multi_thread")]
async fn other_users_of_the_machine_read_nothing() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    job_with_files(&scheduler).await;
    let mut found = Vec::new();
    walk(&scheduler.data(), &mut found);
    assert!(found.len() > 8, "{found:?}");
    let open: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_that_shares_its_results_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let group = fs::metadata(folder.path()).unwrap().gid().to_string();
    let more = ["--results-mode", "0640", "--results-group", &group];
    let scheduler = Scheduler::start_with(Store::Embedded, &more).await;
    let file = job_with_files(&scheduler).await;
    assert_eq!(mode(&file), 0o640);
    for above in file.ancestors().skip(1).take(6) {
        assert_eq!(mode(above), 0o750, "{}", above.display());
    }
    let data = scheduler.data();
    assert_eq!(
        mode(&data),
        0o711,
        "others get through to the results alone"
    );
    assert_eq!(mode(&data.join("logs")), 0o700);
    assert_eq!(mode(&data.join("fairlead.db")), 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_counts_more_than_an_address() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let boxes = lab.testbox("boxes", &["host-1"]).await;
    let alice = lab.user("alice").await;
    let listed = alice.get("/scheduler/v1/jobs?token=wrong").await;
    assert_eq!(listed.status, 200, "{}", listed.text);
    alice.submit(&jobs::dc("alice")).await;
    let grant = Testbox::dc(&boxes, "host-1", 2 << 10).take().await;
    let path = format!(
        "/scheduler/v1/jobs/{}/update?job_stage=running&job_token=wrong",
        grant.job_id
    );
    let base = lab.scheduler.url();
    let (status, text) = post_with_job_token(&base, &path, &grant.job_token)
        .await
        .unwrap();
    assert_eq!(status, 200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_and_other_odd_targets_are_refused_in_words() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    for target in ["CONNECT example.org:443", "OPTIONS *", "CONNECT *"] {
        let host = http.base().trim_start_matches("http://");
        let head = format!("{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = http.raw(&head).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{target}: {answer:?}");
    }
    assert!(!scheduler.log().contains("panicked"), "{}", scheduler.log());
    assert_eq!(http.get("/").await.status, 200);
}

/// Tests the shipped proxy configuration with the real HAProxy.
#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_proxy_logs_no_token() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let config = settings::project().join("scheduler-cluster/deploy/haproxy.cfg");
    let (port, behind) = (free_port(), scheduler.url());
    let behind = behind.trim_start_matches("http://");
    let mut text = fs::read_to_string(config).unwrap();
    text = text
        .replace("bind :3000", &format!("bind 127.0.0.1:{port}"))
        .replace("maxconn 50000", "maxconn 200");
    for number in 1..=3 {
        text = text.replace(&format!("s{number}:3000"), behind);
    }
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("haproxy.cfg"), folder.path().join("log"));
    fs::write(&path, text).unwrap();
    let mut places = settings::search_path();
    places.push("/usr/sbin".into());
    let mut places = places.into_iter().map(|place| place.join("haproxy"));
    let program = places.find(|place| place.is_file());
    let program = program.expect("no haproxy to test with\n  hint: apt-get install haproxy");
    let mut proxy = Command::new(program)
        .arg("-db")
        .arg("-f")
        .arg(&path)
        .envs([reaper::variable()])
        .stdout(File::create(&log).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let http = fairlead_tests::Http::new(&format!("http://127.0.0.1:{port}"));
    let asked = "/scheduler/v1/jobs/7/update?job_token=s3cret&token=s3cret";
    let seen = eventually("the proxy logs a request", async || {
        let sent = http.try_send(Method::POST, asked, "", Vec::new()).await;
        let text = fs::read_to_string(&log).unwrap_or_default();
        (sent.is_ok() && text.contains("jobs/7/update")).then_some(text)
    })
    .await;
    let _ = proxy.kill();
    let _ = proxy.wait();
    assert!(!seen.contains("s3cret"), "{seen}");
}
