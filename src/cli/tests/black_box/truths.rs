//! Tests that the commands tell the truth about attempts, accounts and misspelt keys.

use crate::{
    lab::Lab,
    scheduler::{Agent, Serving},
};

#[test]
fn following_a_log_goes_on_with_the_next_attempt() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    let _agent = Agent::start(&server.url, None, &lab.path().join("box"));
    let script =
        "  echo began\n  [ -e $mark ] && { echo better; exit 0; }\n  touch $mark\n  exit 3\n";
    lab.write(
        "a.yaml",
        &format!("suite: s\nretry: {{max: 1, on: [fail]}}\nscript: |\n{script}"),
    );
    let mark = format!("mark={}/mark", lab.path().display());
    let ran = server.run(&lab, &["submit", "a.yaml", &mark]).exits(0);
    let id = ran.out.lines().find_map(|l| l.split("job id=").nth(1));
    let id = id.unwrap().to_owned();
    let log = server.run(&lab, &["log", "-f", &id]).exits(0);
    assert_eq!(log.out, "began\nbegan\nbetter\n", "{log:#?}");
    assert!(log.err.contains("attempt 2"), "{log:#?}");
    let first = server
        .run(&lab, &["log", "-f", "--attempt", "1", &id])
        .exits(0);
    assert_eq!(first.out, "began\n");
    let said = server.run(&lab, &["explain", &id]).exits(0).out;
    assert!(said.contains("with success\n"), "{said}");
    // All commands that wait, follow or run it report the retry.
    let late = format!("passed at a later try: {id} at try 2");
    let waited = server.run(&lab, &["wait", &id]).exits(0);
    assert!(waited.out.contains(&late), "{waited:#?}");
    for (n, words) in [&["submit", "-m"][..], &["run"]].into_iter().enumerate() {
        let mark = format!("mark={}/mark-{n}", lab.path().display());
        let words = [words, &["a.yaml", &mark]].concat();
        let ran = server.run(&lab, &words).exits(0);
        assert!(ran.out.contains("passed at a later try: "), "{ran:#?}");
        assert!(ran.out.contains(" at try 2"), "{ran:#?}");
    }
}

#[test]
fn the_account_follows_from_the_token() {
    let lab = Lab::new();
    let add = |args: &[&str]| {
        let ran = lab.run(&[&["account", "add"], args].concat()).exits(0);
        ran.out.lines().last().unwrap().to_owned()
    };
    let root = add(&["boss", "--role", "admin", "--data", "data"]);
    let server = Serving::start(&lab, &["--auth"]);
    let made = server.run(&lab, &["account", "add", "carol", "--token", &root]);
    let carol = made.exits(0).out.lines().last().unwrap().to_owned();
    lab.write("a.yaml", "suite: s\nscript: 'true'\n");
    // $USER is another one.
    let ran = server.run(&lab, &["submit", "a.yaml", "--token", &carol]);
    ran.exits(0);
    let mine = server.run(&lab, &["jobs", "--mine", "--json", "--token", &carol]);
    let mine = mine.exits(0).json();
    assert_eq!(
        (&mine["total"], &mine["jobs"][0]["my_account"]),
        (&1.into(), &"carol".into())
    );
    let timer = [
        "timers", "submit", "a.yaml", "--every", "1h", "--token", &carol,
    ];
    server.run(&lab, &timer).exits(0);
    let timers = server
        .run(&lab, &["timers", "--token", &carol])
        .exits(0)
        .out;
    assert!(timers.contains("carol"), "{timers}");
    // Another account name is refused, as before.
    let wrong = ["submit", "a.yaml", "--account", "tester", "--token", &carol];
    server.run(&lab, &wrong).exits(3);
}

#[test]
fn a_token_in_an_open_lab_changes_nothing() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write("a.yaml", "suite: s\nscript: 'true'\n");
    server
        .run(&lab, &["submit", "a.yaml", "--token", "old"])
        .exits(0);
    let list = server.run(&lab, &["jobs", "--json"]).exits(0).json();
    assert_eq!(list["jobs"][0]["my_account"], "tester");
}

#[test]
fn a_misspelt_key_is_told_with_its_line_and_refused_if_strict() {
    let lab = Lab::new();
    lab.write("a.yaml", "suite: s\nneed_memroy: 1g\nscript: 'true'\n");
    let told = "a.yaml:2: need_memroy is no field of a job; did you mean need_memory?";
    let dry = lab
        .run(&["submit", "--dry-run", "--json", "a.yaml"])
        .exits(0);
    assert_eq!(dry.err, format!("warning: {told}\n"));
    let strict = ["submit", "--dry-run", "--strict", "a.yaml"];
    let refused = lab.run(&strict).exits(2);
    assert!(
        refused.err.contains(told) && refused.out.is_empty(),
        "{refused:#?}"
    );
    let local = lab.run(&["run", "a.yaml"]).exits(0);
    assert!(local.err.contains(told), "{local:#?}");

    let server = Serving::start(&lab, &[]);
    let ran = server.run(&lab, &["submit", "--json", "a.yaml"]).exits(0);
    assert_eq!(ran.err, format!("warning: {told}\n"));
    let item = &ran.json()["jobs"][0];
    assert_eq!(item["message"], "");
    let said = "need_memroy is no field of a job; did you mean need_memory?";
    assert_eq!(item["warnings"], serde_json::json!([said]));
}

/// Returns the check of this name in a doctor's report.
fn check<'r>(report: &'r serde_json::Value, name: &str) -> &'r serde_json::Value {
    let mut checks = report["checks"].as_array().into_iter().flatten();
    let found = checks.find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

#[test]
fn the_doctor_says_what_is_to_be_mended_and_what_it_could_not_look_at() {
    let lab = Lab::new();
    let nobody = lab
        .run(&["doctor", "--server", "127.0.0.1:1", "--json"])
        .exits(6);
    let report = nobody.json();
    assert_eq!(check(&report, "scheduler")["verdict"], "problem");
    for name in ["clocks", "file modes", "sealing key", "duplicate agents"] {
        assert_eq!(check(&report, name)["verdict"], "not_made", "{report:#}");
    }
    let server = Serving::start(&lab, &[]);
    let look = || {
        let ran = server.run(&lab, &["doctor", "--data", "data", "--json"]);
        let report = ran.json();
        let code = if report["problems"] == 0 { 0 } else { 6 };
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        report
    };
    let chmod = |path: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(lab.path().join(path), mode).unwrap();
    };
    chmod("data", 0o755);
    chmod("data/fairlead.db", 0o644);
    let report = look();
    for name in ["clocks", "open queues", "duplicate agents"] {
        assert_eq!(check(&report, name)["verdict"], "ok", "{report:#}");
    }
    let modes = check(&report, "file modes");
    let told = modes["found"].as_str().unwrap();
    assert!(
        modes["verdict"] == "problem" && told.contains("fairlead.db"),
        "{modes}"
    );
    assert!(
        modes["do"].as_str().unwrap().starts_with("run: chmod 700"),
        "{modes}"
    );
    // It is read beside the running scheduler.
    assert_eq!(check(&report, "sealing key")["verdict"], "ok");
    chmod("data", 0o700);
    assert_eq!(check(&look(), "file modes")["verdict"], "ok");
    let text = server.run(&lab, &["doctor"]).out;
    assert!(text.contains("ok        clocks: "), "{text}");
    assert_eq!(server.stop(), Some(0));
    let report = lab.run(&["doctor", "--data", "data", "--json"]).json();
    assert_eq!(check(&report, "sealing key")["verdict"], "ok", "{report:#}");
}
