//! `fairlead-faults` that cannot start, or is stopped: it leaves no process and no folder.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
};

use fairlead_tests::{
    reaper,
    scheduler::{free_port, free_ports},
    settings, until,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Time limit for the nodes of Elasticsearch to start, and for everything to end, seconds.
const LIMIT_S: u64 = 240;
/// A program that is not a scheduler.
const ENDS_AT_ONCE: &str = "#!/bin/sh\necho it gives up\nexit 3\n";

/// A run in a folder that does not exist yet, inside an existing one.
struct Run {
    outer: TempDir,
    port: u16,
}

impl Run {
    fn new() -> Self {
        let outer = reaper::folder("fairlead-starts-");
        // The nodes run as another user.
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            outer,
            port: free_port(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.outer.path().join("cluster")
    }

    /// Returns a command with one replica and one node.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead-faults"));
        command
            .arg("--dir")
            .arg(self.folder())
            .args(["--replicas", "1", "--port", &self.port.to_string()])
            // Nodes talk to each other a hundred ports above.
            .args(["--nodes", "1", "--elasticsearch-port"])
            .arg(free_ports(110).to_string())
            .args(words)
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Checks that it fails with this code and message, and leaves nothing.
    fn fails(&self, words: &[&str], code: i32, said: &str) {
        let Output { status, stderr, .. } = self.command(words).output().unwrap();
        let said_all = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(code), "{words:?}: {said_all}");
        assert!(said_all.contains(said), "{words:?}: {said_all}");
        self.has_left_nothing();
    }

    fn has_left_nothing(&self) {
        let left = processes_of(self.outer.path());
        assert!(left.is_empty(), "processes are left: {left:?}");
        assert!(!self.folder().exists(), "the folder is left");
    }

    /// Starts it, and waits until a node of Elasticsearch starts.
    async fn begun(&self, words: &[&str]) -> Child {
        let mut faults = self.command(words).spawn().unwrap();
        until("a node of Elasticsearch starts", LIMIT_S, async || {
            let ended = faults.try_wait().unwrap();
            assert_eq!(ended, None, "it ended by itself");
            let all = processes_of(self.outer.path());
            let is_node = |line: &String| line.contains("-Dfairlead.node=");
            all.iter().any(is_node).then_some(())
        })
        .await;
        faults
    }
}

/// Returns the command lines that contain this path. The run itself contains it, too.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let numbered = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().ok()?;
        name.parse::<u32>().ok()
    });
    let lines = numbered.filter_map(|id| fs::read(format!("/proc/{id}/cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(folder)).collect()
}

async fn signalled(mut faults: Child, signal: Signal) -> ExitStatus {
    kill_process(Pid::from_child(&faults), signal).unwrap();
    until("it ends", LIMIT_S, async || faults.try_wait().unwrap()).await
}

#[test]
fn a_run_that_is_impossible_leaves_nothing() {
    let run = Run::new();
    run.fails(&["--binary", "/nowhere/fairlead"], 2, "is no program");
    run.fails(&["--kinds", "fire"], 2, "unknown kind");
    run.fails(&["--minutes", "0"], 2, "out of range");
    run.fails(&["--mintues", "1"], 2, "--mintues");
    let taken = TcpListener::bind(("127.0.0.1", run.port)).unwrap();
    let fairlead = settings::binary("fairlead");
    let binary = ["--binary", fairlead.to_str().unwrap()];
    run.fails(&binary, 5, "is taken");
    drop(taken);
}

#[test]
fn a_folder_of_an_earlier_run_stays() {
    let run = Run::new();
    fs::create_dir(run.folder()).unwrap();
    let report = run.folder().join("report.md");
    fs::write(&report, "of before").unwrap();
    let taken = TcpListener::bind(("127.0.0.1", run.port)).unwrap();
    let fairlead = settings::binary("fairlead");
    let words = ["--binary", fairlead.to_str().unwrap()];
    assert_eq!(run.command(&words).output().unwrap().status.code(), Some(5));
    drop(taken);
    assert_eq!(fs::read_to_string(report).unwrap(), "of before");
}

#[test]
fn a_replica_that_does_not_start_leaves_no_node_of_elasticsearch() {
    let run = Run::new();
    let program = run.outer.path().join("gives-up");
    fs::write(&program, ENDS_AT_ONCE).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    run.fails(&["--binary", program.to_str().unwrap()], 5, "it gives up");
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_amid_the_start_leave_nothing() {
    let run = Run::new();
    let fairlead = settings::binary("fairlead");
    let words = ["--binary", fairlead.to_str().unwrap()];
    let in_order = signalled(run.begun(&words).await, Signal::TERM).await;
    assert_eq!(in_order.code(), Some(5));
    run.has_left_nothing();
    signalled(run.begun(&words).await, Signal::KILL).await;
    until("nothing is left", LIMIT_S, async || {
        let is_over = processes_of(run.outer.path()).is_empty() && !run.folder().exists();
        is_over.then_some(())
    })
    .await;
}
