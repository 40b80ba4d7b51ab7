//! Tests of completion through a real bash, which asks a running lab.

use std::process::{Command, Stdio};

use fairlead_tests::{Person, Store, on_both_stores, settings};

on_both_stores!(words_of_the_lab_are_completed_in_bash);

/// Returns the completions that bash offers for the last of these words. Nothing else may be printed.
fn offered(lab: &Person, server: &str, words: &[&str]) -> Vec<String> {
    let script = r#"
source <(fairlead completions bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_clap_complete_fairlead fairlead "${@: -1}" "${@: -2:1}"
printf '%s\n' "${COMPREPLY[@]}"
"#;
    let program = settings::binary("fairlead");
    let programs = program.parent().expect("a folder of programs");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    let paths = std::env::join_paths(paths).expect("a path");
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .args(words)
        .current_dir(lab.folder.path())
        .env("PATH", paths)
        .env("HOME", lab.folder.path())
        .env("XDG_CONFIG_HOME", lab.folder.path().join("config"))
        .env("FAIRLEAD_SERVER", server)
        .env("FAIRLEAD_ACCOUNT", "alice")
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{words:?}: {said}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

async fn words_of_the_lab_are_completed_in_bash(store: Store) {
    let lab = Person::new(store).await;
    let (submit, ids) = lab.submit().await;
    lab.run(&["queues", "set", "nightly", "--users", "all"])
        .expect_code(0);
    let registered = serde_json::json!({"arch": "x86_64", "memory": "4g"});
    lab.http
        .post("/scheduler/v1/hosts/rack1-a", &registered)
        .await;
    lab.run(&["cancel", &ids[3]]).expect_code(0);
    let (url, nowhere) = (lab.scheduler.url(), "http://127.0.0.1:9");
    let waiting: Vec<&str> = ids[..3].iter().rev().map(String::as_str).collect();
    let offers = |words: &[&str]| offered(&lab, &url, words);
    // Searches find new jobs a little later.
    fairlead_tests::eventually("the cancel is listed", async || {
        (offers(&["fairlead", "cancel", "26"]) == waiting).then_some(())
    })
    .await;
    for (words, wanted) in [
        (&["fairlead", "watc"][..], &["watch"][..]),
        (&["fairlead", "jobs", "--stage", "ru"], &["running"]),
        (&["fairlead", "jobs", "--health", "!oo"], &["!oom"]),
        (&["fairlead", "jobs", "--queue", "ni"], &["nightly"]),
        (&["fairlead", "jobs", "--host", "ra"], &["rack1-a"]),
        (&["fairlead", "hosts", "drain", "ra"], &["rack1-a"]),
        (&["fairlead", "jobs", "--of", "al"], &["alice"]),
        (&["fairlead", "jobs", "--suite", "m"], &["matrix"]),
        (&["fairlead", "jobs", "mode="], &["mode=read", "mode=write"]),
        (
            &["fairlead", "jobs", "--submit-id", &submit[..6]],
            &[&submit],
        ),
        (&["fairlead", "wait", &submit[..6]], &[&submit]),
        (&["fairlead", "job", &ids[3][..18]], &[&ids[3]]),
        // Another lab on the line is asked. If it does not exist, there are no completions.
        (
            &["fairlead", "jobs", "--server", nowhere, "--queue", "ni"],
            &[],
        ),
    ] {
        let found = offers(words);
        let wanted: Vec<&str> = wanted.to_vec();
        if wanted.is_empty() {
            assert!(found.is_empty(), "{words:?}: {found:?}");
        }
        for word in wanted {
            assert!(
                found.iter().any(|found| found == word),
                "{words:?}: {found:?}"
            );
        }
    }
    // Without a lab, words that need none are still offered.
    assert!(offered(&lab, nowhere, &["fairlead", "cancel", "26"]).is_empty());
    let stages = offered(&lab, nowhere, &["fairlead", "jobs", "--stage", "ru"]);
    assert_eq!(stages, ["running"]);
    let files = offered(&lab, nowhere, &["fairlead", "submit", "mat"]);
    assert_eq!(files, ["matrix.yaml"]);
}
