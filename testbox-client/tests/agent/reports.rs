//! Tests of a job's reports: stages, output, results, and their order.

use std::time::Duration;

use crate::{
    fake::Fake,
    testbox::{DC, Testbox, config, folder, job, results, script},
};
use fairlead_testbox::AgentEvent;
use serde_json::json;

#[tokio::test]
async fn a_job_is_run_told_of_and_brought_home() {
    let (fake, folder) = (Fake::start(), folder());
    let text = "echo out; echo err >&2; cat; mkdir $RESULT_ROOT/a; pwd > $RESULT_ROOT/a/pwd
        ln -s /etc/passwd $RESULT_ROOT/link
        echo $JOB_ID $ATTEMPT $SUITE $TESTBOX $HOST $mode ${USER-none} > \"$RESULT_ROOT/a b\"";
    fake.grant(job(
        "7",
        json!({"suite": "s", "testbox": "dc-1g", "hackbench": {"mode": "process"}, "script": text}),
    ));
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "success");
    assert_eq!(end["exit_code"], "0");
    assert_eq!(end["job_data_readiness"], "uploaded");
    assert_eq!(end["attempt"], "1");
    let here = folder.path().canonicalize().unwrap().join("7-1");
    fake.with(|state| {
        assert_eq!(
            state.stages("7"),
            ["boot", "setup", "running", "post_run", "finish"]
        );
        assert_eq!(state.log("7"), "out\nerr\n");
        let files: Vec<_> = state.files.keys().map(String::as_str).collect();
        assert_eq!(files, ["s/7/a%20b", "s/7/a/pwd", "s/7/output"]);
        assert_eq!(state.files["s/7/output"], b"out\nerr\n");
        assert_eq!(state.files["s/7/a%20b"], b"7 1 s dc-1g box process none\n");
        let pwd = String::from_utf8(state.files["s/7/a/pwd"].clone()).unwrap();
        assert_eq!(pwd.trim(), here.to_str().unwrap());
    });
    testbox
        .event(|event| matches!(event, AgentEvent::Delivered { .. }).then_some(()))
        .await;
    assert!(!here.exists(), "a delivered job's folder is removed");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn output_arrives_while_it_runs() {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script("7", "echo early; sleep 1000"));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let early = |state: &crate::fake::State| (state.log("7") == "early\n").then_some(());
    fake.until("its output", early).await;
    assert!(fake.with(|state| state.end("7")).is_none());
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn lost_output_is_sent_again() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = crate::testbox::Gate::new(&folder, "gate");
    let mut grant = crate::testbox::gated("7", &gate);
    let text = grant.job["script"].as_str().unwrap().to_owned();
    grant.job["script"] = format!("echo early; {text}").into();
    fake.grant(grant);
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let early = |state: &crate::fake::State| (state.log("7") == "early\n").then_some(());
    fake.until("its output", early).await;
    fake.with(|state| state.logs.clear());
    gate.open();
    fake.end("7").await;
    assert_eq!(fake.with(|state| state.log("7")), "early\nthrough\n");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn endless_output_is_cut_and_results_are_bounded() {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script(
        "7",
        "i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done; for f in 1 2 3; do echo > $RESULT_ROOT/f$f; done",
    ));
    let mut config = config(&fake, &folder, DC);
    config.log_bytes_max = 1000;
    config.result_files_max = 2;
    config.keep = true;
    let testbox = Testbox::start(config);
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "success");
    assert_eq!(end["job_data_readiness"], "incomplete");
    assert!(end["reason"].contains("more than 2 files"), "{end:?}");
    fake.with(|state| {
        let log = state.log("7");
        assert!(
            log.len() < 1200 && log.contains("limit of 1000 bytes"),
            "{log}"
        );
        assert_eq!(state.files.len(), 2);
    });
    testbox.stopped().await.unwrap();
    assert!(results(&folder, "7").join("f3").exists(), "kept as asked");
}

#[tokio::test]
async fn heartbeats_name_it_until_its_end_is_in() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = crate::testbox::Gate::new(&folder, "gate");
    fake.grant(crate::testbox::gated("7", &gate));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let beat = fake
        .until("a heartbeat", |state| state.beats.last().cloned())
        .await;
    assert_eq!(beat.running.len(), 1);
    assert_eq!(beat.running[0].job_id, "7");
    assert_eq!(beat.running[0].claim_token, "claim");
    assert_eq!(beat.free_memory_mb, 900);
    assert_eq!(
        beat.session,
        fake.with(|state| state.asked[0].session.clone())
    );
    gate.open();
    fake.end("7").await;
    testbox.stopped().await.unwrap();
}

/// Regression: with a full data folder of the lab, the job stayed in `post_run`, and kept its slot.
#[tokio::test]
async fn a_lab_without_room_keeps_no_job_from_its_end() {
    let (fake, folder) = (Fake::start(), folder());
    let mut config = config(&fake, &folder, DC);
    config.store_wait = Duration::from_millis(10);
    let testbox = Testbox::start(config);
    let text = "head -c 200 /dev/zero > $RESULT_ROOT/big; echo small > $RESULT_ROOT/small; \
        head -c 200 /dev/zero | tr '\\0' x";
    for (job, status) in [("7", 507), ("8", 500)] {
        fake.with(|state| state.no_room = Some((status, 100)));
        fake.grant(script(job, text));
        let end = fake.end(job).await;
        assert_eq!(end["job_health"], "success", "{end:?}");
        assert_eq!(end["job_data_readiness"], "incomplete");
        for lost in ["'big': there is no room", "its output: there is no room"] {
            assert!(end["reason"].contains(lost), "{end:?}");
        }
        fake.with(|state| {
            assert_eq!(state.log(job), "");
            let kept = state.files.keys().filter(|path| path.contains(job));
            let kept: Vec<_> = kept.map(String::as_str).collect();
            assert_eq!(kept, [format!("s/{job}/small")]);
        });
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn room_that_comes_in_time_is_waited_for() {
    let (fake, folder) = (Fake::start(), folder());
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.with(|state| state.no_room = Some((507, 0)));
    fake.grant(script("7", "echo here > $RESULT_ROOT/file"));
    fake.stage("7", "post_run").await;
    fake.with(|state| state.no_room = None);
    let end = fake.end("7").await;
    assert_eq!(end["job_data_readiness"], "uploaded", "{end:?}");
    testbox.stopped().await.unwrap();
}
