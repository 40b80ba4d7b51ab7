//! Rolling upgrades under load.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use fairlead_tests::{Agent, Replicas, settings};

use crate::load::{Load, all_end_well};

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_fails_no_request_of_clients_that_retry() {
    let replicas = Replicas::up(3, &[]).await;
    let urls = replicas.urls();
    let _agent = Agent::start(
        &urls.join(","),
        "host-1",
        &["--kind", "dc", "--memory", "8g"],
    );
    let load = Load::start(&urls, "alice");
    let said = replicas.say(&["upgrade"]).await;
    said.expect_code(0);
    assert_eq!(
        said.err.matches("is up with fairlead").count(),
        3,
        "{}",
        said.err
    );
    assert!(!said.err.contains("killed"), "{}", said.err);
    let outcome = load.stop().await;
    assert_eq!(outcome.failed, Vec::<String>::new());
    assert_eq!(outcome.unknown, Vec::<String>::new());
    assert!(
        outcome.answered > 30 && !outcome.ids.is_empty(),
        "{outcome:?}"
    );
    assert_eq!(replicas.status().await.1, 0);
    all_end_well(&urls, &outcome.ids).await;
}

/// Writes a program that prints a version, and ends when it should serve.
fn broken_program(folder: &Path) -> String {
    let path = folder.join("broken");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo broken 1 && exit 0\necho out of order >&2\nexit 7\n";
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    path.to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_come_up_replaces_nothing() {
    let replicas = Replicas::up(2, &[]).await;
    let broken = broken_program(replicas.folder());
    let ran = replicas.say(&["upgrade", "--binary", &broken]).await;
    ran.expect_code(5);
    let old = settings::binary("fairlead").to_string_lossy().into_owned();
    for words in ["out of order", "upgrade ends here", &old] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert_eq!(replicas.status().await, (vec!["up".to_owned(); 2], 0));
    replicas.done(&["pause", "1"]).await;
    let refused = replicas.say(&["upgrade"]).await;
    refused.expect_code(2);
    assert!(
        refused.err.contains("replica 1 is paused"),
        "{}",
        refused.err
    );
}
