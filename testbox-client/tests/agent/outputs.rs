//! Tests of what jobs leave for others.

use std::{fs, sync::atomic::Ordering, time::Duration};

use fairlead_api::Grant;
use fairlead_testbox::{AgentConfig, AgentEvent};

use crate::{
    fake::{Fake, poll},
    testbox::{DC, Testbox, config, folder, script},
};

fn with_outputs(job_id: &str, outputs: &[&str], text: &str) -> Grant {
    Grant {
        outputs: outputs.iter().map(|&path| path.to_owned()).collect(),
        ..script(job_id, text)
    }
}

fn of(path: &str, held: &str) -> (String, String) {
    (path.to_owned(), held.to_owned())
}

#[tokio::test]
async fn outputs_are_put_before_the_end_is_told() {
    let (fake, folder) = (Fake::start(), folder());
    let text = "cd $FAIRLEAD_OUTPUTS; mkdir -p lib/empty; echo one > lib/a; echo two > b
        echo no > other; ln -s lib/a link; echo $FAIRLEAD_INPUTS.";
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.grant(with_outputs("7", &["lib", "b", "link"], text));
    let end = fake.end("7").await;
    let log = fake.with(|state| state.log("7"));
    assert_eq!(end["job_health"], "success", "{end:?} {log}");
    assert_eq!(log, ".\n");
    let files = fake.store().files(&end["outputs"]).await;
    let expected = [
        of("b", "two\n"),
        of("lib/a", "one\n"),
        of("lib/empty", ""),
        of("link", "lib/a"),
    ];
    assert_eq!(files, expected);
    fake.grant(with_outputs("8", &["."], text));
    let end = fake.end("8").await;
    let files = fake.store().files(&end["outputs"]).await;
    assert_eq!(files.len(), 5, "{files:?}");
    // A job that names none has no folder for them.
    fake.grant(script(
        "9",
        "ls -d outputs inputs; echo ${FAIRLEAD_OUTPUTS}.",
    ));
    let end = fake.end("9").await;
    assert!(!end.contains_key("outputs"), "{end:?}");
    assert!(fake.with(|state| state.log("9")).ends_with("\n.\n"));
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_success_without_an_output_is_a_failure_and_a_failure_leaves_what_it_has() {
    let (fake, folder) = (Fake::start(), folder());
    let mut testbox = Testbox::start(config(&fake, &folder, DC));
    for (job, code) in [("7", 0), ("8", 3)] {
        let text = format!("echo a > outputs/a; exit {code}");
        fake.grant(with_outputs(job, &["lib/b", "a"], &text));
        let end = fake.end(job).await;
        assert_eq!(end["job_health"], "fail", "{end:?}");
        assert_eq!(end["exit_code"], code.to_string());
        let reason = if code == 0 {
            "its output 'lib/b' is missing"
        } else {
            "exit code 3"
        };
        assert_eq!(end["reason"], reason);
        assert_eq!(fake.store().files(&end["outputs"]).await, [of("a", "a\n")]);
        let health = |event| match event {
            AgentEvent::Ended { health, .. } => Some(health.as_str()),
            _ => None,
        };
        assert_eq!(testbox.event(health).await, "fail");
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_put_is_told() {
    let (fake, folder) = (Fake::start(), folder());
    let testbox = Testbox::start(AgentConfig {
        result_bytes_max: 100,
        ..config(&fake, &folder, DC)
    });
    for (job, text, reason) in [
        (
            "7",
            "head -c 101 /dev/zero > outputs/a",
            "more than 100 bytes",
        ),
        ("8", "mkfifo outputs/pipe", "its output 'pipe' was left out"),
        ("9", "ln -s /etc outputs/etc", "'etc/passwd'"),
    ] {
        let named = if job == "9" { "etc/passwd" } else { "." };
        fake.grant(with_outputs(job, &[named], text));
        let end = fake.end(job).await;
        assert_eq!(end["job_health"], "fail", "{end:?}");
        assert!(end["reason"].contains(reason), "{end:?}");
    }
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn outputs_without_room_fail_the_job_and_do_not_keep_it() {
    let (fake, folder) = (Fake::start(), folder());
    fake.store().is_full.store(true, Ordering::SeqCst);
    let testbox = Testbox::start(AgentConfig {
        store_wait: Duration::from_millis(10),
        ..config(&fake, &folder, DC)
    });
    fake.grant(with_outputs("7", &["a"], "echo a > outputs/a"));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "fail", "{end:?}");
    assert!(end["reason"].contains("there is no room"), "{end:?}");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_put_that_was_interrupted_is_resumed_by_the_next_agent() {
    let (fake, folder) = (Fake::start(), folder());
    fake.store().may.forget_permits(1_000_000);
    fake.store().may.add_permits(2);
    let text = "for n in 1 2 3 4; do echo $n > outputs/$n; done";
    fake.grant(with_outputs("7", &["."], text));
    let mut first = config(&fake, &folder, DC);
    first.report_on_stop = Duration::from_millis(10);
    let testbox = Testbox::start(first);
    let kept = || {
        let chunks = (1..5).map(|n| fake.store().chunk_file(format!("{n}\n").as_bytes()));
        (chunks.filter(|chunk| chunk.exists()).count() == 2).then_some(())
    };
    poll("two chunks", kept).await;
    testbox.stopped().await.unwrap();
    assert!(fake.with(|state| state.end("7")).is_none());
    let before = fake.store().sent();
    fake.store().may.add_permits(1_000);
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "success", "{end:?}");
    assert_eq!(fake.store().files(&end["outputs"]).await.len(), 4);
    assert!(fake.store().sent() - before <= 2);
    testbox.stopped().await.unwrap();
    assert!(!fs::exists(folder.path().join("7-1")).unwrap());
}
