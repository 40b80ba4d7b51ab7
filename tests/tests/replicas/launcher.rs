//! `fairlead-cluster` as an operator types it.

use std::{fs::File, net::TcpListener, process::Command};

use fairlead_tests::{Replicas, scheduler::free_port, settings};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_killed_paused_and_brought_back() {
    let replicas = Replicas::up(3, &[]).await;
    let all_up = (vec!["up".to_owned(); 3], 0);
    assert_eq!(replicas.status().await, all_up);
    replicas.done(&["kill", "2"]).await;
    replicas.done(&["pause", "3"]).await;
    let some = ["up", "down", "paused"].map(str::to_owned).to_vec();
    assert_eq!(replicas.status().await, (some, 3));
    let refused = replicas.say(&["kill", "2"]).await;
    refused.expect_code(2);
    assert!(
        refused.err.contains("restart 2") && refused.err.contains("hint:"),
        "{}",
        refused.err
    );
    replicas.done(&["kill", "1"]).await;
    assert_eq!(replicas.status().await.1, 4);
    replicas.done(&["resume", "3"]).await;
    let urls = replicas.done(&["up"]).await;
    assert_eq!(urls.trim(), replicas.urls().join(","));
    assert_eq!(replicas.status().await, all_up);
    replicas.done(&["down"]).await;
    assert_eq!(replicas.status().await, (vec!["down".to_owned(); 3], 4));
    replicas.done(&["restart", "1"]).await;
    assert_eq!(
        replicas.http(1).get("/scheduler/v1/health").await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_not_run_another_way_at_the_same_place() {
    let replicas = Replicas::up(1, &[]).await;
    for words in [
        &["up", "--port", "1"][..],
        &["up", "--index-prefix", "other"],
        &["up", "--", "--lease", "5s"],
        &["kill", "2"],
        &["upgrade", "--binary", "/dev/null"],
    ] {
        let ran = replicas.say(words).await;
        ran.expect_code(2);
        assert!(ran.err.contains("hint:"), "{}: {}", ran.asked, ran.err);
    }
    assert_eq!(replicas.status().await.1, 0);
}

#[test]
fn what_cannot_be_done_is_said_in_words() {
    let folder = TempDir::with_prefix("fairlead-none-").expect("a temporary folder");
    let program = settings::binary("fairlead-cluster");
    let refused = |code: i32, said: &str, words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).current_dir(folder.path());
        let output = command.output().expect("the program");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {err}");
        assert!(
            err.contains("hint:") && err.contains(said),
            "{words:?}: {err}"
        );
    };
    refused(2, "nothing was started", &["status"]);
    refused(2, "nothing was started", &["down"]);
    refused(2, "--elasticsearch", &["up"]);
    let with_password = ["up", "--elasticsearch", "http://ann:hidden@127.0.0.1:1"];
    refused(2, "--elasticsearch-user", &with_password);
    let port = free_port();
    let taken = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let port = port.to_string();
    let up = [
        "up",
        "--elasticsearch",
        "http://127.0.0.1:1",
        "--replicas",
        "1",
        "--port",
        &port,
    ];
    refused(5, "is taken", &up);
    drop(taken);
    refused(5, "cannot be reached", &up);
    let lock = File::open(folder.path().join("fairlead-cluster/lock")).expect("the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
    refused(2, "another command", &up);
}
