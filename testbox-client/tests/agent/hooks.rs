//! Tests of the site's scripts around each job, and of jobs that leave nothing.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::Path};

use tempfile::TempDir;

use crate::{
    AgentConfig,
    fake::{Fake, poll},
    testbox::{DC, Testbox, config, folder, is_alive, script},
};

fn write(hooks: &Path, name: &str, text: &str) {
    let path = hooks.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs one job to its end.
async fn end_of(text: &str, change: impl FnOnce(&mut AgentConfig)) -> BTreeMap<String, String> {
    let (fake, folder) = (Fake::start(), folder());
    fake.grant(script("7", text));
    let mut config = config(&fake, &folder, DC);
    change(&mut config);
    let testbox = Testbox::start(config);
    let end = fake.end("7").await;
    testbox.stopped().await.unwrap();
    end
}

fn field<'a>(end: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    end.get(name).map_or("", String::as_str)
}

#[tokio::test]
async fn scripts_run_before_and_after_the_job_in_their_order() {
    let hooks = folder();
    let say = r#"echo "$HOOK $0 $KIND $GROUP $JOB_ID $SUITE $HEALTH $EXIT_CODE" >> said"#;
    for name in [
        "prolog",
        "kind/dc/prolog",
        "kind/vm/prolog",
        "group/lab/prolog",
        "epilog",
    ] {
        write(hooks.path(), name, say);
    }
    let here = hooks.path().to_owned();
    let end = end_of("exit 3", |config| {
        config.hooks = Some(here);
        config.group = "lab".to_owned();
    })
    .await;
    assert_eq!(
        (field(&end, "job_health"), field(&end, "avoid_host")),
        ("fail", "")
    );
    let said = fs::read_to_string(hooks.path().join("said")).unwrap();
    let said = said.replace(&format!("{}/", hooks.path().display()), "");
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "prolog prolog dc lab 7 s",
            "prolog kind/dc/prolog dc lab 7 s",
            "prolog group/lab/prolog dc lab 7 s",
            "epilog epilog dc lab 7 s fail 3",
        ]
    );
}

#[tokio::test]
async fn a_prolog_that_fails_keeps_the_job_off_the_host() {
    let hooks = folder();
    write(hooks.path(), "prolog", "echo no disk is left >&2; exit 1");
    let here = hooks.path().to_owned();
    let ran = hooks.path().join("ran");
    let text = format!("touch {}", ran.display());
    let end = end_of(&text, |config| config.hooks = Some(here)).await;
    assert_eq!(
        (field(&end, "job_health"), field(&end, "avoid_host")),
        ("abort_provider", "1")
    );
    let reason = field(&end, "reason");
    assert!(reason.contains("script prolog failed"), "{reason}");
    assert!(reason.contains("no disk is left"), "{reason}");
    assert!(!ran.exists());
}

#[tokio::test]
async fn an_epilog_that_fails_makes_the_end_the_machine_s() {
    let hooks = folder();
    write(hooks.path(), "kind/dc/epilog", "exit 1");
    let here = hooks.path().to_owned();
    let end = end_of("exit 3", |config| config.hooks = Some(here)).await;
    assert_eq!(
        (field(&end, "job_health"), field(&end, "avoid_host")),
        ("abort_provider", "1")
    );
    let reason = field(&end, "reason");
    assert!(reason.contains("kind/dc/epilog failed"), "{reason}");
    assert!(reason.contains("the job itself: exit code 3"), "{reason}");
}

#[tokio::test]
async fn a_script_that_takes_too_long_is_killed_with_what_it_started() {
    let hooks = folder();
    write(hooks.path(), "epilog", "sleep 1000 & echo $! > pid; wait");
    let here = hooks.path().to_owned();
    let end = end_of("true", |config| {
        config.hooks = Some(here);
        config.hook_limit = std::time::Duration::from_secs(1);
    })
    .await;
    assert_eq!(field(&end, "job_health"), "abort_provider");
    let reason = field(&end, "reason");
    assert!(reason.contains("within 1 s"), "{reason}");
    let pid = fs::read_to_string(hooks.path().join("pid")).unwrap();
    poll("the end of its process", || {
        (!is_alive(pid.trim())).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failure_without_output_and_result_is_the_machine_s_where_the_site_says_so() {
    let health = async |text: &str, is_fault: bool| {
        let end = end_of(text, |config| config.silent_is_fault = is_fault).await;
        field(&end, "job_health").to_owned()
    };
    assert_eq!(health("exit 1", true).await, "abort_provider");
    assert_eq!(health("exit 1", false).await, "fail");
    assert_eq!(health("echo said; exit 1", true).await, "fail");
    assert_eq!(health("touch $RESULT_ROOT/x; exit 1", true).await, "fail");
    assert_eq!(health("exit 0", true).await, "success");
}

#[tokio::test]
async fn a_script_that_cannot_be_run_is_named() {
    let hooks: TempDir = folder();
    fs::write(hooks.path().join("prolog"), "not executable").unwrap();
    let here = hooks.path().to_owned();
    let end = end_of("true", |config| config.hooks = Some(here)).await;
    let reason = field(&end, "reason");
    assert!(reason.contains("cannot be started"), "{reason}");
}
