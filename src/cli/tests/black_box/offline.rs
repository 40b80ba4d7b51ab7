//! Tests of `fairlead` without a scheduler: expansion, errors, settings, completions.

use std::{
    io::{Read, Write},
    process::Stdio,
};

use crate::lab::{Lab, Ran};
use serde_json::json;

const MATRIX: &str = "\
suite: sleepy
runtime: [1, 2]
sleepy:
  mode: [a, b]
script: |
  sleep $runtime
";

#[test]
fn a_dry_run_prints_just_the_jobs_keys_as_one_array() {
    let lab = Lab::new();
    lab.write("a.yaml", MATRIX);
    lab.write("b.yaml", "suite: b\ntags: [x]\n");
    let ran = lab
        .run(&["submit", "--dry-run", "--json", "a.yaml", "b.yaml"])
        .exits(0);
    let jobs = ran.json();
    assert_eq!(jobs.as_array().map(Vec::len), Some(5));
    assert_eq!(
        jobs[0],
        json!({"suite": "sleepy", "runtime": 1, "sleepy": {"mode": "a"}, "script": "sleep $runtime\n"})
    );
    assert_eq!(jobs[4], json!({"suite": "b", "tags": ["x"]}));
    assert_eq!(ran.err, "");
}

#[test]
fn a_dry_run_says_what_would_be_refused() {
    let lab = Lab::new();
    lab.write("units.yaml", "suite: a\nneed_memory: [lots, 8g]\n");
    let dry = ["submit", "--dry-run", "--json"];
    let ran = lab.run(&[&dry[..], &["units.yaml"]].concat()).exits(2);
    assert_eq!(ran.json().as_array().map(Vec::len), Some(2));
    assert!(
        ran.err.contains("job 1 of 2") && ran.err.contains("'lots'"),
        "{}",
        ran.err
    );
    lab.write("a.yaml", "suite: a\nname: a\nneeds: b\n");
    lab.write("b.yaml", "suite: b\nname: b\nwait_on: {7: 8}\n");
    let ran = lab
        .run(&[&dry[..], &["a.yaml", "b.yaml"]].concat())
        .exits(2);
    for told in [
        "a.yaml: job 1 of 1 would be refused: needs: one of b was refused (bad_field)",
        "b.yaml: job 1 of 1 would be refused: wait_on: 8 for job 7",
    ] {
        assert!(ran.err.contains(told), "{}", ran.err);
    }
    lab.write("part.yaml", "nr_threads: 8\n");
    let ran = lab.run(&[&dry[..], &["part.yaml"]].concat()).exits(0);
    assert!(ran.err.contains("suite"), "{}", ran.err);
}

#[test]
fn order_decides_between_defaults_and_overrides() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: a\nn: 1\n");
    lab.write("more.yaml", "n: 7\nm: 8\n");
    let dry = ["submit", "--dry-run", "--json"];
    let job = |args: &[&str]| lab.run(&[&dry, args].concat()).exits(0).json()[0].clone();
    assert_eq!(
        job(&["n=2", "m.x=3", "a.yaml"]),
        json!({"suite": "a", "n": 1, "m": {"x": 3}})
    );
    assert_eq!(job(&["a.yaml", "n=2"]), json!({"suite": "a", "n": 2}));
    assert_eq!(
        job(&["-i", "more.yaml", "a.yaml"]),
        json!({"suite": "a", "n": 1, "m": 8})
    );
    assert_eq!(
        job(&["a.yaml", "-i", "more.yaml"]),
        json!({"suite": "a", "n": 7, "m": 8})
    );
    assert_eq!(
        job(&["-s", "n: 5", "a.yaml"]),
        json!({"suite": "a", "n": 5})
    );
    assert_eq!(
        job(&["a.yaml", "n=2", "n=3"]),
        json!({"suite": "a", "n": 3})
    );
}

#[test]
fn repeats_come_after_equal_jobs_were_made_one() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: a\nn: [1, 1]\n");
    let ran = lab
        .run(&["submit", "--dry-run", "--json", "-n", "3", "a.yaml"])
        .exits(0);
    assert_eq!(ran.json().as_array().map(Vec::len), Some(3));
}

#[test]
fn includes_are_searched_in_the_named_folders() {
    let lab = Lab::new();
    lab.write("inc/base.yaml", "suite: base\nn: 1\n");
    lab.write("a.yaml", "<<: base.yaml\nn: 2\n");
    let ran = lab
        .run(&["submit", "--dry-run", "--json", "-I", "inc", "a.yaml"])
        .exits(0);
    assert_eq!(ran.json(), json!([{"suite": "base", "n": 2}]));
    lab.write(
        ".config/fairlead/config.yaml",
        &format!("include_dirs: {}/inc\n", lab.path().display()),
    );
    lab.run(&["submit", "--dry-run", "--json", "a.yaml"])
        .exits(0);
}

#[test]
fn a_job_file_may_come_from_stdin() {
    let lab = Lab::new();
    let mut child = lab
        .fairlead(&["submit", "--dry-run", "--json", "-", "n=2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"suite: a\n")
        .unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(ran.json(), json!([{"suite": "a", "n": 2}]));
}

#[test]
fn a_bad_file_is_told_with_its_place_and_nothing_is_printed() {
    let lab = Lab::new();
    lab.write("good.yaml", "suite: a\n");
    for (text, place) in [
        ("suite: a\nn: [1\n", "bad.yaml:2:"),
        ("suite: a\nn: 1\nn: 2\n", "bad.yaml:3:"),
        ("suite: a\nn: <%= 1 %>\n", "bad.yaml:2:"),
        ("suite: a\n<<: gone.yaml\n", "bad.yaml:2:"),
        ("suite: a\na|b: [1|2|3]\n", "bad.yaml:2:"),
        ("", "bad.yaml: "),
    ] {
        lab.write("bad.yaml", text);
        let ran = lab
            .run(&["submit", "--dry-run", "--json", "good.yaml", "bad.yaml"])
            .exits(2);
        let error: serde_json::Value = serde_json::from_str(&ran.err).expect("an object");
        let message = error["message"].as_str().expect("a text");
        assert!(
            message.contains(place) && !message.contains("hint: "),
            "{text:?}: {error}"
        );
        assert_eq!(ran.out, "", "{text:?}");
    }
    lab.run(&["submit", "--dry-run", "gone.yaml"]).exits(2);
    lab.run(&["submit", "--dry-run", "n=1"]).exits(2);
    lab.run(&["submit", "--dry-run", "good.yaml", "=1"])
        .exits(2);
    lab.run(&["submit", "--dry-run", "good.yaml", "-s", "[1, 2"])
        .exits(2);
    lab.run(&["submit", "--dry-run", "good.yaml", "-n", "0"])
        .exits(2);
    lab.run(&["submit", "--dry-run", "."]).exits(2);
}

#[test]
fn written_jobs_can_be_read_again() {
    let lab = Lab::new();
    lab.write("a.yaml", MATRIX);
    lab.write("sub/a.yaml", "suite: other\n");
    let ran = lab
        .run(&["submit", "-o", "out/deep", "a.yaml", "sub/a.yaml"])
        .exits(0);
    assert_eq!(ran.out.lines().count(), 5);
    let mut paths: Vec<String> = ran
        .out
        .lines()
        .map(|line| line.split(" => ").nth(1).unwrap().to_owned())
        .collect();
    let again: Vec<&str> = ["submit", "--dry-run", "--json"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .collect();
    let first = lab
        .run(&["submit", "--dry-run", "--json", "a.yaml", "sub/a.yaml"])
        .exits(0)
        .json();
    assert_eq!(lab.run(&again).exits(0).json(), first);
    paths.dedup();
    assert_eq!(paths.len(), 5);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: a\nscript: echo\n");
    let mut child = lab
        .fairlead(&["submit", "--dry-run", "--json", "-n", "20000", "a.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(ran.err, "");
}

#[test]
fn no_scheduler_is_exit_4_with_a_hint() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: a\nscript: echo\n");
    // A port that was free a moment ago, and that nobody else is given while the listener lives.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = format!("http://{address}");
    for args in [&["jobs"][..], &["submit", "a.yaml"], &["explain", "1"]] {
        let ran = lab.run(&[&["--server", &server], args].concat()).exits(4);
        assert!(
            ran.err.contains("no scheduler answers") && ran.err.contains("hint: "),
            "{}",
            ran.err
        );
    }
    let ran = lab.run(&["jobs", "--server", "not a url"]).exits(2);
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
}

#[test]
fn config_show_says_where_each_value_came_from_and_hides_the_token() {
    let lab = Lab::new();
    lab.write(
        ".config/fairlead/config.yaml",
        "server: http://a:1\ntoken: s3cret\n",
    );
    let ran = lab.run(&["config", "show", "--account", "me"]).exits(0);
    assert!(ran.out.contains("config.yaml:1"), "{}", ran.out);
    assert!(ran.out.contains("flag --account"), "{}", ran.out);
    assert!(!ran.out.contains("s3cret"), "{}", ran.out);
    let shown = lab.run(&["config", "show", "--json"]).exits(0).json();
    assert_eq!(
        shown["account"],
        json!({"value": "tester", "from": "environment USER"})
    );
    lab.write(".config/fairlead/config.yaml", "sever: http://a:1\n");
    let ran = lab.run(&["config", "show"]).exits(2);
    assert!(
        ran.err
            .contains("config.yaml:1: unknown key 'sever'\nhint: did you mean 'server'?"),
        "{}",
        ran.err
    );
}

#[test]
fn every_shell_has_completions_and_every_command_help() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = lab.run(&["completions", shell]).exits(0);
        assert!(ran.out.contains("FAIRLEAD_COMPLETE"), "{shell}");
    }
    let help = lab.run(&["--help"]).exits(0).out;
    assert!(help.contains("Exit codes:"));
    let commands = help
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| !l.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()) {
        lab.run(&[command, "--help"]).exits(0);
    }
    assert_eq!(
        lab.run(&["version"]).exits(0).out,
        format!("fairlead {}\n", env!("CARGO_PKG_VERSION"))
    );
    lab.run(&["nonsense"]).exits(2);
    lab.run(&[]).exits(2);
}
