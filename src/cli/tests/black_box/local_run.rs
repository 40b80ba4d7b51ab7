//! `fairlead run`: the whole lab in one process.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
};

use crate::{
    lab::{Lab, Ran},
    scheduler::{runs, signal, until},
};

#[test]
fn a_run_ends_with_0_and_says_where_the_results_are() {
    let lab = Lab::new();
    lab.write(
        "a.yaml",
        "suite: tiny\nsame: x\nn: [1, 2, 3]\nscript: |\n  echo said $n\n  echo $n > $RESULT_ROOT/out\n",
    );
    let ran = lab.run(&["run", "a.yaml"]).exits(0);
    assert!(ran.out.starts_with("3 succeeded, "), "{}", ran.out);
    assert!(ran.out.contains("\nresults: "), "{}", ran.out);
    assert!(ran.err.contains("results in "), "{}", ran.err);
    let jobs = lab.run(&["run", "--json", "a.yaml"]).exits(0).json();
    for n in 1..=3 {
        let mut jobs = jobs["jobs"].as_array().expect("jobs").iter();
        let number = n.to_string();
        let job = jobs.find(|job| job["params"]["n"] == number);
        let job = job.expect("the job");
        assert!(
            job["success"] == true && job["params"].get("same").is_none(),
            "{job}"
        );
        let folder = Path::new(job["result"].as_str().expect("a folder"));
        assert_eq!(
            fs::read_to_string(folder.join("out")).unwrap(),
            format!("{n}\n")
        );
        assert!(
            fs::read_to_string(folder.join("output"))
                .unwrap()
                .contains(&format!("said {n}"))
        );
    }
}

#[test]
fn outputs_of_a_job_are_inputs_of_the_next() {
    let lab = Lab::new();
    lab.write(
        "a.yaml",
        "suite: t\nname: build\noutputs: tool\nscript: echo built > outputs/tool\n---\n\
         name: use\nneeds: build\ninputs: {from: build}\noutputs: null\nscript: cp $FAIRLEAD_INPUTS/tool $RESULT_ROOT/seen\n",
    );
    let jobs = lab.run(&["run", "--json", "a.yaml"]).exits(0).json();
    let folders = jobs["jobs"].as_array().expect("jobs").iter();
    let folders = folders.filter_map(|job| job["result"].as_str());
    let mut seen =
        folders.filter_map(|folder| fs::read_to_string(Path::new(folder).join("seen")).ok());
    assert_eq!(
        (seen.next().as_deref(), seen.next()),
        (Some("built\n"), None)
    );
}

#[test]
fn one_bad_job_makes_it_1_and_programs_get_json() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: t\nn: [0, 3]\nscript: exit $n\n");
    let ran = lab
        .run(&["run", "--json", "--data", "d", "-j", "1", "a.yaml"])
        .exits(1);
    let json = ran.json();
    assert_eq!(
        (&json["succeeded"], &json["failed"]),
        (&1.into(), &1.into())
    );
    let bad = json["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|job| job["success"] == false)
        .unwrap();
    assert_eq!(
        (&bad["job_health"], &bad["exit_code"], &bad["params"]["n"]),
        (&"fail".into(), &3.into(), &"3".into())
    );
    assert!(
        Path::new(bad["result"].as_str().unwrap()).starts_with(lab.path().canonicalize().unwrap())
    );
}

#[test]
fn a_job_runs_here_whatever_testbox_it_asks_for() {
    let lab = Lab::new();
    lab.write(
        "a.yaml",
        "suite: t\ntestbox: lab--a66\narch: riscv64\ntags: [ssd]\nscript: 'true'\n",
    );
    lab.run(&["run", "a.yaml"]).exits(0);
    let ran = lab.run(&["run", "--as-is", "a.yaml"]).exits(2);
    assert!(
        ran.err
            .contains("a.yaml: the job cannot run on this machine"),
        "{}",
        ran.err
    );
}

#[test]
fn what_cannot_run_is_told_before_anything_starts() {
    let lab = Lab::new();
    for (text, says) in [
        ("suite: t\nscript: 'true'\nneed_memory: 90000g\n", "memory"),
        (
            "suite: t\nscript: 'true'\nneed_memory: lots\n",
            "need_memory",
        ),
        ("suite: t\nhackbench:\n  mode: x\n", "no script"),
        ("suite: t\nscript: 'true'\nruntime: soon\n", "runtime"),
        ("n: 1\n", "suite"),
    ] {
        lab.write("a.yaml", text);
        let ran = lab.run(&["run", "a.yaml"]).exits(2);
        assert!(
            ran.err.contains(says) && ran.err.contains("hint: "),
            "{text}: {}",
            ran.err
        );
        assert!(!lab.path().join("fairlead-run").exists());
    }
}

#[test]
fn jobs_without_a_script_go_to_the_runner() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: t\nsleepy:\n  mode: x\n");
    lab.run(&["run", "--runner", "grep -q sleepy", "a.yaml"])
        .exits(0);
    lab.run(&["run", "--runner", "grep -q absent", "a.yaml"])
        .exits(1);
}

/// Starts a run of long jobs, and waits until one runs.
fn started(lab: &Lab, mark: &str) -> Child {
    let script = format!("  sleep {mark} &\n  sleep {mark}\n");
    let text = format!("suite: t\nn: [1, 2, 3, 4, 5, 6]\nscript: |\n{script}");
    let (child, _) = begun(lab, &text, "2");
    until("its process runs", || {
        runs(&format!("sleep {mark}")).then_some(())
    });
    child
}

/// Starts a run with this number of concurrent jobs, and waits until one runs. Passes on the later output.
fn begun(lab: &Lab, text: &str, jobs_max: &str) -> (Child, Receiver<String>) {
    lab.write("a.yaml", text);
    let mut child = lab
        .fairlead(&["run", "-j", jobs_max, "--data", "d", "a.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("fairlead starts");
    let mut err = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let told = until("a job runs", || {
        err.next()
            .filter(|line| line.as_ref().is_ok_and(|l| l.contains("running on")))
    });
    assert!(told.is_ok());
    // Later output needs a reader.
    let (tell, told) = channel();
    std::thread::spawn(move || {
        err.map_while(Result::ok)
            .for_each(|line| drop(tell.send(line)));
    });
    (child, told)
}

#[test]
fn ctrl_c_stops_in_order_and_leaves_nothing() {
    let lab = Lab::new();
    let child = started(&lab, "98761");
    signal(child.id(), "INT");
    let ran = Ran::of(child.wait_with_output().unwrap()).exits(130);
    assert!(!runs("sleep 98761"));
    assert!(ran.out.contains("2 failed, 4 cancelled"), "{}", ran.out);
    // The folder is free again, and nothing of it waits or runs.
    lab.write("b.yaml", "suite: t\nscript: 'true'\n");
    lab.run(&["run", "--data", "d", "b.yaml"]).exits(0);
    assert!(!runs("sleep 98761"));
}

#[test]
fn on_shutdown_says_what_ctrl_c_does_to_a_job() {
    let lab = Lab::new();
    let (begun_file, go) = (lab.path().join("begun"), lab.path().join("go"));
    let text = format!(
        "suite: t\non_shutdown: continue\nscript: |\n  touch {}\n  until test -e {}; do sleep 0.1; done\n\
         ---\nsuite: t\non_shutdown: block\nscript: 'true'\n\
         ---\nsuite: t\non_shutdown: continue\nscript: 'true'\n\
         ---\nsuite: t\non_shutdown: skip\nscript: 'true'\n",
        begun_file.display(),
        go.display()
    );
    let (child, told) = begun(&lab, &text, "1");
    until("its process runs", || begun_file.exists().then_some(()));
    signal(child.id(), "INT");
    assert!(told.iter().any(|line| line.contains("stopping")));
    lab.write("go", "");
    let ran = Ran::of(child.wait_with_output().unwrap()).exits(130);
    assert!(ran.out.contains("2 cancelled, 2 succeeded"), "{}", ran.out);
}

#[test]
fn a_second_ctrl_c_kills_at_once() {
    let lab = Lab::new();
    let child = started(&lab, "98762");
    signal(child.id(), "INT");
    signal(child.id(), "TERM");
    let code = child.wait_with_output().unwrap().status.code();
    assert_eq!(code, Some(130));
    assert!(!runs("sleep 98762"));
}
