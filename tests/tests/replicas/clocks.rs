//! A replica whose clock is wrong beside others: it does nothing, says so, stops, and does not start.

use std::{fs, path::PathBuf};

use fairlead_tests::{Lab, eventually, jobs};
use serde_json::json;

/// Returns the library that fakes the time of one process.
fn faketime() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").expect("/usr/lib");
    let places = folders.filter_map(|folder| {
        let place = folder.ok()?.path().join("faketime/libfaketime.so.1");
        place.exists().then_some(place)
    });
    places.last().expect(
        "no libfaketime to test with\n  hint: apt-get install faketime (scripts/test does it where it may)",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_a_bad_clock_ends_nothing_and_stops_itself() {
    let lab = Lab::new();
    let good = lab.schedulers(2, &[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let clock = folder.path().join("clock");
    let goes = |by: &str| fs::write(&clock, by).expect("a file");
    // A second is tolerated, and shows that clocks are compared.
    goes("+1");
    let variables = [
        ("LD_PRELOAD", faketime()),
        ("FAKETIME_TIMESTAMP_FILE", clock.clone()),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ];
    let variables =
        variables.map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned()));
    let mut bad = lab.scheduler_within(&variables).await;
    let mut waits = jobs::dc("alice");
    waits["queue_timeout"] = json!("30m");
    let mut late = jobs::dc("alice");
    late["start_at"] = json!("+40m");
    let http = good[0].http();
    let jobs = http.submit(&json!([waits, late])).await;
    // The replicas know each other's clocks before one of them jumps.
    let told = "fairlead_clock_offset_seconds";
    eventually("the replica compares clocks", async || {
        let metrics = bad.http().get("/metrics").await.text;
        let line = metrics.lines().find(|line| line.starts_with(told))?;
        (!line.ends_with(" 0.0")).then_some(())
    })
    .await;
    goes("+1h");
    let health = "/scheduler/v1/health";
    eventually("it says that its clock is wrong", async || {
        let reply = bad.http().get(health).await;
        let says = reply.text.contains("3600 s ahead of the others'")
            || reply.text.contains("3599 s ahead of the others'");
        (reply.status == 503 && says).then_some(())
    })
    .await;
    let refused = bad.http().get("/scheduler/v1/jobs").await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(
        refused.text.contains("ask another replica"),
        "{}",
        refused.text
    );
    assert_eq!(bad.ends().await.code(), Some(5), "{}", bad.log());
    assert!(bad.log().contains("for a minute"), "{}", bad.log());
    // The replica does not start with this clock.
    bad.launch();
    assert_eq!(bad.ends().await.code(), Some(5), "{}", bad.log());
    assert!(
        bad.log().contains("apart; expected at most 5 s"),
        "{}",
        bad.log()
    );
    for id in &jobs {
        assert_eq!(http.field(id, "job_stage").await, "submit");
        assert_eq!(http.get(health).await.status, 200);
    }
    goes("+0");
    bad.restart().await;
}
