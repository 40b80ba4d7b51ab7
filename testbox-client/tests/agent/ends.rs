//! Tests of jobs' ends: their own, by limits, by orders; and that no process remains.

use serde_json::json;

use crate::{
    fake::{Fake, poll},
    testbox::{DC, Gate, Testbox, config, folder, gated, is_alive, job, results, script},
};

/// Runs one job to its end and returns health, exit code and reason.
async fn check(text: &str, timeout_s: u64) -> (String, String, String) {
    let mut grant = script("7", text);
    grant.timeout_s = timeout_s;
    run(grant).await
}

async fn run(grant: fairlead_api::Grant) -> (String, String, String) {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(grant);
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let end = fake.end("7").await;
    testbox.stopped().await.unwrap();
    let field = |name: &str| end.get(name).cloned().unwrap_or_default();
    (field("job_health"), field("exit_code"), field("reason"))
}

#[tokio::test]
async fn health_and_exit_code_tell_how_it_ended() {
    for (text, health, code, reason) in [
        ("exit 0", "success", "0", ""),
        ("exit 3", "fail", "3", "exit code 3"),
        ("#!/bin/bash\nkill -KILL $$", "fail", "137", "SIGKILL"),
        ("kill -SEGV $$", "fail", "139", "SIGSEGV"),
        ("#!/nowhere/sh\n", "abort_invalid", "", "/nowhere/sh"),
    ] {
        let end = check(text, 60).await;
        assert_eq!((end.0.as_str(), end.1.as_str()), (health, code), "{text}");
        assert!(end.2.contains(reason), "{text}: {}", end.2);
    }
}

#[tokio::test]
async fn its_end_says_what_it_used() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "gate");
    let text = format!("{}; head -c 40m /dev/zero | tail > /dev/null", gate.wait());
    fake.grant(script("7", &text));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("7", "running").await;
    gate.open();
    let end = fake.end("7").await;
    // If no control group can be made, the use is unknown.
    let may_count = rustix::process::geteuid().is_root();
    let peak = end
        .get("peak_memory_mb")
        .map(|mb| mb.parse::<u32>().unwrap());
    assert!(!may_count || peak.is_some_and(|mb| mb >= 40), "{end:?}");
    assert!(!may_count || end.contains_key("cpu_ms"), "{end:?}");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn its_own_limit_ends_it_with_soft_timeout() {
    let end = check("sleep 1000", 1).await;
    assert_eq!((end.0.as_str(), end.1.as_str()), ("soft_timeout", "143"));
    assert!(end.2.contains("limit of 1 s"), "{}", end.2);
}

#[tokio::test]
async fn one_that_says_nothing_for_too_long_is_stopped_and_one_that_talks_is_not() {
    let silent_for = |text: &str, limit: &str| {
        let mut grant = script("7", text);
        grant.job.insert("silence_timeout".to_owned(), json!(limit));
        grant
    };
    let end = run(silent_for("echo here; sleep 1000", "1s")).await;
    assert_eq!((end.0.as_str(), end.1.as_str()), ("soft_timeout", "143"));
    assert!(end.2.contains("printed nothing for 1 s"), "{}", end.2);
    let talks = "for n in 1 2 3 4 5 6; do echo $n; sleep 0.4; done";
    assert_eq!(run(silent_for(talks, "2s")).await.0, "success");
}

/// Shell command that prints the last message of a stopping kernel.
const PANIC: &str =
    "echo '[ 3.1] Kernel panic - not syncing: Attempted to kill init! exitcode=0x09'";

#[tokio::test]
async fn a_crash_ends_it_with_its_name_if_the_job_says_so() {
    let with = |crash: serde_json::Value, text: &str| {
        let mut grant = script("7", text);
        grant.job.insert("crash".to_owned(), crash);
        grant
    };
    let title = "kernel panic: Attempted to kill init!";
    let ends = json!({"end": ["panic"]});
    for (crash, then, health, signature) in [
        (&ends, "exec sleep 1000", "panic", title),
        // It is over before anybody could stop it, or goes on without a word.
        (&ends, "exit 0", "panic", title),
        (&ends, "exec sleep 1000 > /dev/null 2>&1", "panic", title),
        (&json!({"note": ["panic"]}), "exit 0", "success", title),
        (&json!({"end": ["oops"]}), "exit 0", "success", ""),
        (&json!(null), "exit 0", "success", ""),
    ] {
        let (fake, folder) = (Fake::start(), folder());
        fake.grant(with(crash.clone(), &format!("{PANIC}; {then}")));
        let testbox = Testbox::start(config(&fake, &folder, DC));
        let end = fake.end("7").await;
        testbox.stopped().await.unwrap();
        let field = |name: &str| end.get(name).map_or("", String::as_str);
        let told = (field("job_health"), field("crash_signature"));
        assert_eq!(told, (health, signature), "{crash} {then}");
        assert_eq!(field("job_data_readiness"), "uploaded");
        let says_why = field("reason").contains(title);
        assert_eq!(says_why, health == "panic", "{end:?}");
    }
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed_after_its_grace() {
    let end = check("trap '' TERM; while :; do sleep 0.05; done", 1).await;
    assert_eq!((end.0.as_str(), end.1.as_str()), ("soft_timeout", "137"));
}

#[tokio::test]
async fn nothing_is_left_running_however_it_hides() {
    let (fake, folder) = (Fake::start(), folder());
    let text = "
        sleep 1000 & echo $! > $RESULT_ROOT/child
        setsid sh -c 'echo $$ > $RESULT_ROOT/escaped; sleep 1000' &
        (setsid nohup sh -c 'trap \"\" TERM HUP; echo $$ > $RESULT_ROOT/deaf; while :; do sleep 1; done' &)
        while [ ! -s $RESULT_ROOT/deaf ] || [ ! -s $RESULT_ROOT/escaped ]; do sleep 0.02; done";
    fake.grant(script("7", text));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "success");
    for name in ["child", "escaped", "deaf"] {
        let pid = fake.with(|state| state.files[&format!("s/7/{name}")].clone());
        let pid = String::from_utf8(pid).unwrap();
        assert!(!is_alive(pid.trim()), "{name} lives");
    }
    testbox.stopped().await.unwrap();
}

fn order(health: &str) -> fairlead_api::StopOrder {
    fairlead_api::StopOrder {
        job_id: "7".to_owned(),
        attempt: 1,
        health: health.to_owned(),
        reason: "somebody said so".to_owned(),
        grace_s: 0,
    }
}

#[tokio::test]
async fn an_order_stops_it_with_the_health_that_it_names() {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script("7", "echo here; sleep 1000"));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    fake.stage("7", "running").await;
    fake.with(|state| state.stops.push(order("terminate")));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "terminate");
    assert_eq!(end["reason"], "somebody said so");
    assert_eq!(end["job_data_readiness"], "uploaded");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn one_that_is_no_longer_ours_is_stopped_and_not_reported() {
    for by_refusal in [false, true] {
        let (fake, folder) = (Fake::start(), folder());
        let pid = results(&folder, "7").join("pid");
        if by_refusal {
            fake.with(|state| state.refuse.insert("7".to_owned(), 409));
        }
        // The refusal of its first report comes before it starts, or stops it: it may not go on.
        fake.grant(script("7", "echo $$ > $RESULT_ROOT/pid; sleep 1000"));
        let mut testbox = Testbox::start(config(&fake, &folder, DC));
        let mut its = None;
        if !by_refusal {
            fake.stage("7", "running").await;
            let read = || {
                let text = std::fs::read_to_string(&pid).ok();
                text.filter(|text| text.ends_with('\n'))
            };
            its = Some(poll("its pid", read).await);
            fake.with(|state| state.stops.push(order("")));
        }
        testbox
            .event(|event| match event {
                fairlead_testbox::AgentEvent::Dropped { job_id, .. } => Some(job_id),
                _ => None,
            })
            .await;
        if let Some(pid) = its {
            assert!(!is_alive(pid.trim()));
        }
        assert!(fake.with(|state| state.end("7")).is_none());
        assert!(!folder.path().join("7-1").exists(), "nothing of it stays");
        // Its memory is free again.
        fake.grant(script("8", "exit 0"));
        fake.end("8").await;
        testbox.stopped().await.unwrap();
    }
}

#[tokio::test]
async fn a_newer_attempt_waits_for_the_end_of_the_older() {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script("7", "echo $$ > $RESULT_ROOT/pid; sleep 1000"));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let pid = results(&folder, "7").join("pid");
    let read = || {
        std::fs::read_to_string(&pid)
            .ok()
            .filter(|pid| !pid.is_empty())
    };
    let older = poll("its pid", read).await;
    let older = older.trim();
    let text = format!("if [ -d /proc/{older} ]; then exit 9; fi");
    fake.grant(fairlead_api::Grant {
        attempt: 2,
        ..script("7", &text)
    });
    let end = fake.end("7").await;
    assert_eq!(
        (end["attempt"].as_str(), end["exit_code"].as_str()),
        ("2", "0")
    );
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_stopping_agent_leaves_nothing_and_says_so() {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script(
        "7",
        "trap '' TERM; echo $$ > $RESULT_ROOT/pid; while :; do sleep 0.05; done",
    ));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let pid = results(&folder, "7").join("pid");
    poll("its pid", || {
        std::fs::metadata(&pid).ok().filter(|m| m.len() > 0)
    })
    .await;
    testbox.stopped().await.unwrap();
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "abort_provider");
    let pid = fake.with(|state| state.files["s/7/pid"].clone());
    assert!(!is_alive(String::from_utf8(pid).unwrap().trim()));
}

#[tokio::test]
async fn program_sections_run_through_the_runner_or_not_at_all() {
    for (runner, health, ran) in [
        (Some("cat"), "success", true),
        (Some("exit 4;"), "fail", true),
        (None, "abort_invalid", false),
    ] {
        let (fake, folder) = (Fake::start(), folder());
        fake.grant(job(
            "7",
            json!({"suite": "s", "hackbench": {"nr_threads": 8}}),
        ));
        let mut config = config(&fake, &folder, DC);
        config.runner = runner.map(str::to_owned);
        let testbox = Testbox::start(config);
        let end = fake.end("7").await;
        assert_eq!(end["job_health"], health, "{runner:?}");
        let readiness = if ran { "uploaded" } else { "norun" };
        assert_eq!(end["job_data_readiness"], readiness, "{runner:?}");
        if runner == Some("cat") {
            assert!(
                fake.with(|state| state.log("7"))
                    .contains("\"nr_threads\": 8")
            );
        }
        testbox.stopped().await.unwrap();
    }
}

#[tokio::test]
async fn a_kill_needs_no_grace() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "never");
    fake.grant(gated("7", &gate));
    let mut config = config(&fake, &folder, DC);
    config.grace = std::time::Duration::from_hours(1);
    let kill_now = config.kill_now.clone();
    let testbox = Testbox::start(config);
    fake.stage("7", "running").await;
    testbox.stop.cancel();
    kill_now.cancel();
    testbox.ended().await.unwrap();
}

#[tokio::test]
async fn a_job_that_was_given_more_time_may_use_it() {
    let (fake, folder) = (Fake::start(), folder());
    let gate = Gate::new(&folder, "gate");
    let mut grant = gated("7", &gate);
    grant.timeout_s = 1;
    fake.grant(grant);
    let config = config(&fake, &folder, DC);
    // One heartbeat when it begins; the next is that of the job at its limit.
    fake.with(|state| state.heartbeat_ms = 60_000);
    let renewal = fairlead_api::Renewal {
        job_id: "7".to_owned(),
        attempt: 1,
        left_s: 1000,
    };
    let testbox = Testbox::start(config);
    fake.with(|state| state.renewals.push(renewal));
    fake.until("it was asked", |state| {
        (state.beats.len() >= 2).then_some(())
    })
    .await;
    gate.open();
    assert_eq!(fake.end("7").await["job_health"], "success");
    testbox.stopped().await.unwrap();
}

#[tokio::test]
async fn a_job_that_spoils_its_own_folder_still_ends() {
    for text in [
        "rm -rf $RESULT_ROOT",
        "rm -rf $RESULT_ROOT; ln -s /etc $RESULT_ROOT",
        "rm $RESULT_ROOT/output; mkfifo $RESULT_ROOT/output",
        "cd /; rm -rf $HOME",
    ] {
        let (fake, folder) = (Fake::start(), folder());
        fake.grant(script("7", text));
        let testbox = Testbox::start(config(&fake, &folder, DC));
        let end = fake.end("7").await;
        assert_eq!(end["job_health"], "success", "{text}: {end:?}");
        let strange = |state: &mut crate::fake::State| {
            state
                .files
                .keys()
                .any(|name| !name.starts_with("s/7/output"))
        };
        assert!(!fake.with(strange), "{text}");
        testbox.stopped().await.unwrap();
    }
}

#[tokio::test]
async fn a_machine_that_cannot_begin_a_job_says_so_and_rests() {
    let (fake, folder) = (Fake::start(), folder());
    // A file stands at the path of its folder, and cannot be replaced by a folder.
    std::fs::write(folder.path().join("7-1"), "").unwrap();
    fake.grant(script("7", "exit 0"));
    let testbox = Testbox::start(config(&fake, &folder, DC));
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "abort_provider");
    assert_eq!(end["job_data_readiness"], "norun");
    fake.grant(script("8", "exit 0"));
    assert_eq!(fake.end("8").await["job_health"], "success");
    testbox.stopped().await.unwrap();
}
