//! Tests of jobs whose output has a kernel crash: it ends them, or is only noted, and jobs are found by its title.

use serde_json::json;

use crate::{
    lab::Lab,
    scheduler::{Agent, Serving, until},
};

/// Prints a console, and then hangs as a crashed machine does.
const PANICS: &str = "\
suite: boots
crash: {end: [panic, oops]}
script: |
  echo '[    0.000000] Linux version 6.1.0 (builder@lab)'
  echo '[    3.100000] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(8,1)'
  exec sleep 1000
";

const WARNS: &str = "\
suite: warns
crash: {end: [panic], note: [warning]}
script: |
  echo '[    3.100000] WARNING: CPU: 1 PID: 77 at drivers/frob.c:12 frob_check+0x1/0x2'
  echo '[    3.200000] all is well'
";

#[test]
fn a_crash_ends_a_job_or_is_noted_and_jobs_are_found_by_its_title() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    let _agent = Agent::start(&server.url, None, &lab.path().join("box"));
    for (file, text) in [
        ("panics.yaml", PANICS),
        ("warns.yaml", WARNS),
        ("other.yaml", "suite: other\nscript: echo well\n"),
    ] {
        lab.write(file, text);
        server.run(&lab, &["submit", file]).exits(0);
    }
    until("all end", || {
        let args = ["jobs", "--json", "--stage", "finish"];
        (server.run(&lab, &args).exits(0).json()["total"] == 3).then_some(())
    });
    let found = |signature: &str| {
        let args = ["jobs", "--json", "--signature", signature];
        let list = server.run(&lab, &args).exits(0).json();
        let jobs = list["jobs"].as_array().unwrap().clone();
        jobs.into_iter()
            .map(|job| {
                let fields = ["suite", "job_health", "failure", "crash_signature"];
                fields.map(|name| job[name].as_str().unwrap_or_default().to_owned())
            })
            .collect::<Vec<_>>()
    };
    let title = "kernel panic: VFS: Unable to mount root fs on unknown-block(NUM,NUM)";
    let panics = ["boots", "panic", "panic", title].map(str::to_owned);
    let warns = ["warns", "success", "", "WARNING in frob_check"].map(str::to_owned);
    assert_eq!(found("kernel panic: VFS*"), std::slice::from_ref(&panics));
    assert_eq!(found(title), std::slice::from_ref(&panics));
    assert_eq!(found("WARNING in *"), std::slice::from_ref(&warns));
    assert_eq!(found("*"), [warns, panics]);
    assert_eq!(found("VFS"), Vec::<[String; 4]>::new());

    let list = server.run(&lab, &["jobs", "--json", "--health", "panic"]);
    let list = list.exits(0).json();
    assert_eq!(list["total"], 1);
    let id = list["jobs"][0]["job_id"].as_str().unwrap();
    let shown = server.run(&lab, &["job", id]).exits(0).out;
    assert!(
        shown.contains(&format!("crash         {title}\n")),
        "{shown}"
    );
    assert!(
        shown.contains("its output has a crash at line 2"),
        "{shown}"
    );

    let refused = server
        .run(&lab, &["jobs", "--signature", "KASAN*frob"])
        .exits(3);
    assert!(
        refused.err.contains("'*' before its end"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("hint: "), "{}", refused.err);
}

#[test]
fn a_word_that_is_no_kind_of_crash_is_refused() {
    let lab = Lab::new();
    lab.write("a.yaml", &PANICS.replace("oops", "oopses"));
    let refused = lab.run(&["submit", "--dry-run", "a.yaml"]);
    assert_ne!(refused.code, Some(0));
    for part in ["crash.end", "oopses", "hint: one of panic, oops,"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    lab.write("a.yaml", PANICS);
    let job = lab
        .run(&["submit", "--dry-run", "--json", "a.yaml"])
        .exits(0);
    let jobs = job.json();
    assert!(
        jobs.to_string()
            .contains(&json!({"end": ["panic", "oops"]}).to_string()),
        "{jobs}"
    );
}
