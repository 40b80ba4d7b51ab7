//! Tests of the program: signals, exit codes, and a restart after a kill -9.

use std::{os::unix::fs::PermissionsExt, process::Stdio};

use fairlead_api::Grant;
use fairlead_reaper::Reaper;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    fake::{Fake, poll},
    testbox::{folder, is_alive, job_folders, results, script},
};

pub(crate) fn start(fake: &Fake, folder: &TempDir, more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead-testbox"));
    spawn(&mut command, fake, folder, more)
}

fn spawn(command: &mut Command, fake: &Fake, folder: &TempDir, more: &[&str]) -> Child {
    let reaper = Reaper::of_process();
    // An agent hides its environment.
    command
        .arg0(format!("fairlead-testbox {}", reaper.mark()))
        .envs([reaper.variable()])
        .args(["--server", &fake.url(), "--host", "box"])
        .args(["--kind", "vm,dc", "--memory", "1g", "--executor", "process"])
        .arg("--work-dir")
        .arg(folder.path())
        .args(more)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Starts a job that prints its pid, and waits for it.
async fn running(fake: &Fake, folder: &TempDir, text: &str) -> String {
    fake.grant(script("7", &format!("echo $$ > $RESULT_ROOT/pid; {text}")));
    fake.stage("7", "running").await;
    let file = results(folder, "7").join("pid");
    let pid = poll("its pid", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|pid| pid.ends_with('\n'))
    });
    pid.await.trim().to_owned()
}

#[tokio::test]
async fn a_signal_stops_it_in_order() {
    for which in [Signal::TERM, Signal::INT] {
        let (fake, folder) = (Fake::start(), folder());
        let mut child = start(&fake, &folder, &[]);
        let pid = running(&fake, &folder, "sleep 1000").await;
        signal(&child, which);
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
        assert!(!is_alive(&pid));
        assert_eq!(fake.end("7").await["job_health"], "abort_provider");
    }
}

/// Regression: with a disk limit of 8 KB a file, like a full disk, the job ended `success`, `uploaded`, and empty.
#[tokio::test]
async fn an_output_that_cannot_be_kept_makes_the_results_incomplete() {
    let (fake, folder) = (Fake::start(), folder());
    let mut command = Command::new("/bin/sh");
    let limited = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
    command.args(["-c", limited, env!("CARGO_BIN_EXE_fairlead-testbox")]);
    let mut child = spawn(&mut command, &fake, &folder, &[]);
    // The pipe takes it: only the agent writes a file.
    fake.grant(script("7", "head -c 100000 /dev/zero | tr '\\0' x; exit 0"));
    let end = fake.end("7").await;
    assert_eq!(end["job_data_readiness"], "incomplete", "{end:?}");
    assert!(
        end["reason"].contains("output could not be kept"),
        "{end:?}"
    );
    assert_eq!(end["exit_code"], "0", "{end:?}");
    // The output up to the limit is kept.
    assert!(fake.with(|state| state.log("7").starts_with("xxx")));
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

/// Returns true if a zombie waits for this process to reap it.
fn has_zombies(agent: u32) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    lines.any(|line| {
        let fields = line.rsplit(") ").next().unwrap_or_default();
        fields.starts_with(&format!("Z {agent} "))
    })
}

#[tokio::test]
async fn orphans_of_a_job_are_killed_and_reaped() {
    let (fake, folder) = (Fake::start(), folder());
    let mut child = start(&fake, &folder, &["--keep"]);
    let text = "(setsid sh -c 'echo $$ > $RESULT_ROOT/orphan; exec sleep 1000' &)
        while [ ! -s $RESULT_ROOT/orphan ]; do sleep 0.02; done";
    fake.grant(script("7", text));
    assert_eq!(fake.end("7").await["job_health"], "success");
    let orphan = std::fs::read_to_string(results(&folder, "7").join("orphan")).unwrap();
    let agent = child.id().unwrap();
    let is_gone = || (!is_alive(orphan.trim()) && !has_zombies(agent)).then_some(());
    poll("it is gone", is_gone).await;
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_kills_at_once() {
    let (fake, folder) = (Fake::start(), folder());
    let mut child = start(&fake, &folder, &["--grace", "3600"]);
    let pid = running(
        &fake,
        &folder,
        "trap 'echo deaf' TERM; while :; do sleep 0.05; done",
    )
    .await;
    signal(&child, Signal::TERM);
    let deaf = |state: &crate::fake::State| state.log("7").contains("deaf").then_some(());
    fake.until("it heard the first", deaf).await;
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn what_a_killed_agent_leaves_is_stopped_and_reported_by_the_next() {
    let (fake, folder) = (Fake::start(), folder());
    let mut child = start(&fake, &folder, &[]);
    let pid = running(&fake, &folder, "exec sleep 1000").await;
    child.kill().await.unwrap();
    assert!(is_alive(&pid));
    let mut child = start(&fake, &folder, &[]);
    let end = fake.end("7").await;
    assert!(!is_alive(&pid), "it would run beside its next attempt");
    assert_eq!(end["job_health"], "abort_provider");
    assert_eq!(end["reason"], "agent restarted");
    assert_eq!(end["job_data_readiness"], "uploaded");
    assert!(fake.with(|state| state.files.contains_key("s/7/pid")));
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert_eq!(job_folders(&folder), [""; 0]);
}

#[tokio::test]
async fn what_cannot_work_ends_with_1_and_what_makes_no_sense_with_2() {
    let (fake, folder) = (Fake::start(), folder());
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let in_file = file.join("sub").display().to_string();
    for (more, code) in [
        (vec!["--server", "ftp://x"], 1),
        (vec!["--token-file", "/nowhere/at/all"], 1),
        (vec!["--work-dir", &in_file], 1),
        (vec!["--memory", "much"], 2),
        (vec!["--no-such"], 2),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead-testbox"));
        let more = more.iter().copied();
        let defaults = [
            ["--server", &fake.url()],
            ["--work-dir", &folder.path().display().to_string()],
        ];
        for pair in defaults
            .iter()
            .filter(|pair| !more.clone().any(|m| m == pair[0]))
        {
            command.args(pair);
        }
        command.args(more).stderr(Stdio::null());
        assert_eq!(
            command.status().await.unwrap().code(),
            Some(code),
            "{command:?}"
        );
    }
}

#[tokio::test]
async fn scan_names_the_crash_of_each_file_and_complains_of_those_that_are_missing() {
    let folder = folder();
    let write =
        |name: &str, console: &str| std::fs::write(folder.path().join(name), console).unwrap();
    write("clean.log", "Linux version 6.1.0\nlogin:\n");
    write(
        "panic.log",
        "boot\n[    4.2] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0b\n",
    );
    write(
        "again.log",
        "[  512.8] Kernel panic - not syncing: Attempted to kill init! exitcode=0x09\n",
    );
    let scanned = Command::new(env!("CARGO_BIN_EXE_fairlead-testbox"))
        .args([
            "scan",
            "--json",
            "clean.log",
            "missing.log",
            "panic.log",
            "again.log",
        ])
        .current_dir(folder.path())
        .output()
        .await
        .unwrap();
    assert_eq!(scanned.status.code(), Some(5));
    let errors = String::from_utf8(scanned.stderr).unwrap();
    assert!(
        errors.starts_with("error: missing.log: ") && errors.contains("(not_found)\nhint: "),
        "{errors}"
    );
    let lines = String::from_utf8(scanned.stdout).unwrap();
    let found: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |file: &str, line: u64| {
        json!({
            "file": file, "crash": true, "family": "panic", "class": "DoS",
            "signature": "kernel panic: Attempted to kill init!", "line": line,
        })
    };
    let clean = json!({
        "file": "clean.log", "crash": false, "family": null, "class": null, "signature": null, "line": null,
    });
    assert_eq!(found, [clean, of("panic.log", 2), of("again.log", 1)]);
}

#[tokio::test]
async fn a_job_inherits_neither_open_files_nor_ignored_signals() {
    for user in ["none", "auto"] {
        let (fake, folder) = (Fake::start(), folder());
        let secret = folder.path().join("of-the-parent");
        std::fs::write(&secret, "the parent's word\n").unwrap();
        // The shell is the parent; it becomes the agent.
        let text = "trap '' HUP INT QUIT USR1 TTOU; exec 9< \"$0\"; exec \"$@\"";
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(text).arg(&secret);
        command.arg(env!("CARGO_BIN_EXE_fairlead-testbox"));
        let mut child = spawn(&mut command, &fake, &folder, &["--job-user", user]);
        let look = "grep SigIgn /proc/self/status; cat <&9 2>/dev/null; ls /proc/$$/fd; true";
        fake.grant(script("7", look));
        let end = fake.end("7").await;
        assert_eq!(end["job_health"], "success", "{end:?}");
        let log = fake.with(|state| state.log("7"));
        let said: Vec<&str> = log.split_whitespace().collect();
        // The C library has signals 32 and 33 for itself.
        let ignored = u64::from_str_radix(said[1], 16).unwrap() & !(3 << 31);
        assert_eq!((said[0], ignored), ("SigIgn:", 0), "{user}: {log}");
        assert!(!log.contains("the parent's word"), "{user}: {log}");
        assert!(!said.contains(&"9"), "{user}: {log}");
        signal(&child, Signal::TERM);
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}

/// Returns a script that leaves a process of another session and without an environment. The process runs `then` when
/// the job's script is over.
fn leaving(folder: &TempDir, then: &str) -> String {
    let up = folder.path().join("up").display().to_string();
    let left = format!("echo > {up}; while kill -0 $0 2>/dev/null; do :; done; {then}");
    format!(
        "rm -f {up}; setsid env -i /bin/sh -c '{left}' $$ >/dev/null 2>&1 </dev/null &
        while [ ! -e {up} ]; do sleep 0.02; done"
    )
}

#[tokio::test]
async fn no_left_over_process_stops_its_killer() {
    let (fake, work, shared) = (Fake::start(), folder(), folder());
    std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let more = ["--job-user", "auto", "--jobs-max", "1"];
    let mut child = start(&fake, &work, &more);
    // The hit process is random.
    for id in 1..=10 {
        let stopper = leaving(&shared, "while :; do kill -s STOP -- -1; done");
        fake.grant(script(&id.to_string(), &stopper));
        let end = fake.end(&id.to_string()).await;
        assert_eq!(end["job_health"], "success", "{end:?}");
    }
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn no_process_outlives_its_job_whoever_it_runs_as() {
    for user in ["none", "auto"] {
        let (fake, work, shared) = (Fake::start(), folder(), folder());
        std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let mut child = start(&fake, &work, &["--job-user", user]);
        // Nobody else sleeps so long.
        let long = format!("4713.{}", std::process::id());
        fake.grant(script(
            "7",
            &leaving(&shared, &format!("exec sleep {long}")),
        ));
        let end = fake.end("7").await;
        assert_eq!(end["job_health"], "success", "{end:?}");
        let line = format!("sleep\0{long}\0");
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
        assert!(!lines.any(|found| found == line.as_bytes()), "{user}");
        signal(&child, Signal::TERM);
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}

#[tokio::test]
async fn a_low_limit_of_open_files_is_raised_or_obeyed() {
    // The soft limit alone, and both.
    for (limit, jobs) in [("ulimit -Sn 256", 64), ("ulimit -n 256", 12)] {
        let (fake, folder) = (Fake::start(), folder());
        let mut command = Command::new("/bin/sh");
        let text = format!("{limit}; exec \"$@\"");
        command.args(["-c", &text, "sh", env!("CARGO_BIN_EXE_fairlead-testbox")]);
        let mut child = spawn(&mut command, &fake, &folder, &["--jobs-max", "64"]);
        fake.grant(script("7", "ulimit -Sn"));
        let end = fake.end("7").await;
        assert_eq!(end["job_health"], "success", "{end:?}");
        assert_eq!(fake.with(|state| state.log("7")), "256\n");
        let asked = fake.with(|state| state.asked[0].jobs_max);
        assert_eq!(asked, jobs, "{limit}");
        signal(&child, Signal::TERM);
        assert_eq!(child.wait().await.unwrap().code(), Some(0));
    }
}

#[tokio::test]
async fn a_job_has_no_more_memory_and_processes_than_it_may() {
    let (fake, folder) = (Fake::start(), folder());
    let mut child = start(&fake, &folder, &["--job-user", "auto"]);
    // The job asks for 100 MB and one CPU.
    fake.grant(script(
        "7",
        "head -c 300m /dev/zero | tail > /dev/null; exit $?",
    ));
    let many = "n=0; while [ $n -lt 2100 ]; do sleep 1000 & n=$((n + 1)); done; echo no limit";
    let end = fake.end("7").await;
    assert_eq!(end["job_health"], "oom", "{end:?}");
    fake.grant(Grant {
        memory_mb: 900,
        ..script("8", many)
    });
    let end = fake.end("8").await;
    assert_eq!(end["job_health"], "fail", "{end:?}");
    let log = fake.with(|state| state.log("8"));
    assert!(!log.contains("no limit"), "{log}");
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}
