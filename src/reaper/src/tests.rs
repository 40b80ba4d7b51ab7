//! Real processes: some of them forget who started them.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Starts a shell that starts a background process, prints its id, and ends or goes on.
fn shell(reaper: &Reaper, then: &str) -> (Child, Pid) {
    let (name, value) = reaper.variable();
    let mut shell = Command::new("sh")
        .args([
            "-c",
            &format!("setsid tail -f /dev/null >/dev/null & echo $!; {then}"),
        ])
        .env(name, value)
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(shell.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let pid = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    (shell, pid)
}

/// Returns true if the process has ended. A zombie still has its id.
fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| {
        stat.rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('Z')
    })
}

#[test]
fn all_processes_and_folders_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let reaper = Reaper::start().unwrap();
    reaper.removes(folder.path()).unwrap();
    let (mut waits, of_waits) = shell(&reaper, "wait");
    let (mut ended, orphan) = shell(&reaper, "exit");
    assert!(ended.wait().unwrap().success());
    assert!(!is_gone(of_waits) && !is_gone(orphan));
    drop(reaper);
    assert_eq!(waits.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    assert!(is_gone(of_waits) && is_gone(orphan));
    assert!(!folder.path().exists());
}

#[test]
fn what_hides_its_environment_is_found_by_its_name() {
    let reaper = Reaper::start().unwrap();
    let mut hidden = Command::new("tail")
        .arg0(format!("tail {}", reaper.mark()))
        .args(["-f", "/dev/null"])
        .env_clear()
        .spawn()
        .unwrap();
    drop(reaper);
    assert_eq!(hidden.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
}

#[test]
fn what_is_kept_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let reaper = Reaper::start().unwrap();
    reaper.removes(folder.path()).unwrap();
    let (mut shell, pid) = shell(&reaper, "wait");
    reaper.keep().unwrap();
    assert!(folder.path().exists());
    assert!(!is_gone(pid));
    for pid in [Pid::from_child(&shell), pid] {
        kill_process(pid, Signal::KILL).unwrap();
    }
    shell.wait().unwrap();
}

#[test]
fn one_ends_nothing_of_another() {
    let (one, other) = (Reaper::start().unwrap(), Reaper::start().unwrap());
    let (mut shell, pid) = shell(&other, "wait");
    drop(one);
    assert!(!is_gone(pid));
    drop(other);
    assert!(is_gone(pid));
    shell.wait().unwrap();
}

#[test]
fn a_path_cannot_hold_another_order() {
    let reaper = Reaper::start().unwrap();
    let refused = reaper.removes("folder\nkeep".as_ref()).unwrap_err();
    assert!(refused.to_string().contains("line break"), "{refused}");
}
