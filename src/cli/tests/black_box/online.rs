//! Tests of the commands with their own scheduler.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::{
    lab::{Lab, Ran},
    scheduler::{Agent, Serving, signal, until},
};
use serde_json::json;

const SLEEPY: &str = "suite: s\nn: [1, 2]\nscript: |\n  echo said $n\n";

/// Returns the ids that a submit printed.
fn ids(ran: &Ran) -> Vec<String> {
    let ids: Vec<String> = ran
        .out
        .lines()
        .filter_map(|l| l.split("got job id=").nth(1))
        .map(str::to_owned)
        .collect();
    assert!(!ids.is_empty(), "{ran:#?}");
    ids
}

#[test]
fn a_job_from_submit_to_its_log() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write("a.yaml", SLEEPY);
    let ran = server.run(&lab, &["submit", "a.yaml"]).exits(0);
    let first = ran.out.lines().next().unwrap();
    let submit_id = first.strip_prefix("submit_id=").unwrap().to_owned();
    let ids = ids(&ran);
    assert_eq!(ids.len(), 2);
    assert!(
        ran.out
            .contains(&format!("submit a.yaml, got job id={}\n", ids[0]))
    );

    let list = server
        .run(&lab, &["jobs", "--json", "--submit-id", &submit_id])
        .exits(0)
        .json();
    assert_eq!(list["total"], 2);
    assert_eq!(list["jobs"][0]["my_account"], "tester");
    let table = server
        .run(&lab, &["jobs", "--stage", "submit"])
        .exits(0)
        .out;
    assert!(ids.iter().all(|id| table.contains(id)), "{table}");
    let said = server.run(&lab, &["explain", &ids[0]]).exits(0).out;
    assert!(
        said.starts_with(&format!("job {} (submit): ", ids[0])),
        "{said}"
    );

    let _agent = Agent::start(&server.url, None, &lab.path().join("box"));
    let log = server.run(&lab, &["log", "-f", &ids[0]]).exits(0);
    assert_eq!(log.out, "said 1\n");
    let job = until("it ends", || {
        let job = server
            .run(&lab, &["job", "--json", &ids[0]])
            .exits(0)
            .json();
        (job["job_stage"] == "finish").then_some(job)
    });
    assert_eq!(
        (&job["job_health"], &job["n"]),
        (&json!("success"), &json!(1))
    );
    let shown = server.run(&lab, &["job", &ids[0]]).exits(0).out;
    assert!(
        shown.contains("health        success") && shown.contains("running  "),
        "{shown}"
    );
    let hosts = server.run(&lab, &["hosts"]).exits(0).out;
    assert!(hosts.contains("box-1"), "{hosts}");
    assert_eq!(
        server
            .run(&lab, &["hosts", "box-1", "--json"])
            .exits(0)
            .json()["arch"],
        std::env::consts::ARCH
    );
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn following_says_at_the_end_whether_all_succeeded() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    let _agent = Agent::start(&server.url, None, &lab.path().join("box"));
    lab.write("a.yaml", SLEEPY);
    let ran = server.run(&lab, &["submit", "-m", "a.yaml"]).exits(0);
    assert!(ran.out.contains("2 succeeded, "), "{}", ran.out);
    lab.write("b.yaml", "suite: s\nscript: exit 4\n");
    let ran = server
        .run(&lab, &["submit", "-m", "a.yaml", "b.yaml"])
        .exits(1);
    assert!(
        ran.out.contains("fail (4)") && ran.out.contains("1 failed, 2 succeeded"),
        "{}",
        ran.out
    );
    let json = server
        .run(&lab, &["submit", "-m", "--json", "a.yaml"])
        .exits(0)
        .json();
    assert_eq!(json["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["jobs"][0]["file"], "a.yaml");
}

#[test]
fn following_survives_a_killed_scheduler() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    lab.write("a.yaml", "suite: s\nscript: |\n  echo first\n  until [ -e $gate ]; do sleep 0.05; done\n  echo last\n");
    let gate = format!("gate={}/gate", lab.path().display());
    let url = server.url.clone();
    let _agent = Agent::start(&url, None, &lab.path().join("box"));
    let follow = |args: &[&str]| {
        let mut command = lab.fairlead(&[args, &["--server", &url]].concat());
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let monitor = follow(&["submit", "-m", "a.yaml", &gate]);
    let id = until("it runs", || {
        let list = server
            .run(&lab, &["jobs", "--json", "--stage", "running"])
            .exits(0)
            .json();
        list["jobs"][0]["job_id"].as_str().map(str::to_owned)
    });
    let mut log = follow(&["log", "-f", &id]);
    let mut lines = BufReader::new(log.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("first"));
    drop(server);
    let _server = Serving::start_at(&address, &lab, &[]);
    lab.write("gate", "");
    assert_eq!(lines.next().as_deref(), Some("last"));
    assert_eq!(lines.next(), None);
    assert!(log.wait().unwrap().success());
    let ran = Ran::of(monitor.wait_with_output().unwrap()).exits(0);
    assert!(ran.out.contains("1 succeeded, "), "{ran:#?}");
}

#[test]
fn ctrl_c_stops_following_and_not_the_jobs() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write("a.yaml", SLEEPY);
    let mut monitor = lab.fairlead(&["submit", "-m", "a.yaml", "--server", &server.url]);
    let monitor = monitor
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let waiting = || {
        server
            .run(&lab, &["jobs", "--json", "--stage", "submit"])
            .exits(0)
            .json()["total"]
            == 2
    };
    until("the jobs wait", || waiting().then_some(()));
    signal(monitor.id(), "INT");
    let ran = Ran::of(monitor.wait_with_output().unwrap()).exits(130);
    let left = "stopped following: 0 of 2 jobs had ended; 2 wait, and go on";
    assert!(ran.err.contains(left), "{ran:#?}");
    assert!(!ran.out.contains("did not"), "{ran:#?}");
    let again = "follow them again: fairlead wait --submit-id ";
    assert!(ran.err.contains(again), "{ran:#?}");
    assert!(waiting());
}

#[test]
fn refused_jobs_are_told_and_the_others_are_in() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write(
        "a.yaml",
        "suite: s\nscript: 'true'\nneed_memory: [1g, lots, more, 2g]\n",
    );
    let ran = server.run(&lab, &["submit", "a.yaml"]).exits(3);
    assert_eq!(ids(&ran).len(), 2);
    assert!(
        ran.err.contains("submit a.yaml: refused: need_memory"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    let json = server
        .run(&lab, &["submit", "--json", "a.yaml"])
        .exits(3)
        .json();
    assert_eq!(json["jobs"][1]["job_id"], "0");
}

#[test]
fn many_jobs_go_in_several_requests() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write("a.yaml", "suite: s\nscript: 'true'\n");
    let ran = server
        .run(&lab, &["submit", "-n", "2500", "a.yaml"])
        .exits(0);
    assert_eq!(ids(&ran).len(), 2500);
    let all = server
        .run(&lab, &["jobs", "--json", "--limit", "5000"])
        .exits(0)
        .json();
    assert_eq!(all["jobs"].as_array().map(Vec::len), Some(2500));
    let some = server.run(&lab, &["jobs", "--limit", "3"]).exits(0);
    assert_eq!(some.out.lines().count(), 4);
    assert!(some.err.contains("3 of 2500 jobs"), "{}", some.err);
}

#[test]
fn jobs_are_cancelled_one_by_one_with_a_report_each() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write("a.yaml", SLEEPY);
    let ids = ids(&server.run(&lab, &["submit", "a.yaml"]).exits(0));
    let ran = server.run(&lab, &["cancel", &ids[0], "77"]).exits(3);
    assert!(
        ran.out.contains(&format!("job {}: cancelled", ids[0])),
        "{ran:#?}"
    );
    assert!(ran.err.contains("77"), "{ran:#?}");
    server.run(&lab, &["cancel", &ids[1]]).exits(0);
    server.run(&lab, &["terminate", &ids[1]]).exits(3);
    let ran = server.run(&lab, &["submit", "a.yaml"]).exits(0);
    let submit_id = ran
        .out
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("submit_id="));
    let submit_id = submit_id.expect("the first line names it").to_owned();
    let ran = server
        .run(&lab, &["cancel", "--yes", "--submit-id", &submit_id])
        .exits(0);
    assert_eq!(ran.out.lines().count(), ids.len(), "{ran:#?}");
    server
        .run(&lab, &["cancel", &ids[0], "--of", "bob"])
        .exits(2);
    server.run(&lab, &["cancel"]).exits(2);
    for args in [
        &["job", "77"][..],
        &["log", "77"],
        &["explain", "77"],
        &["hosts", "nobody"],
        &["jobs", "--stage", "odd"],
    ] {
        let ran = server.run(&lab, args).exits(3);
        assert!(
            ran.err.starts_with("error: ") && ran.err.contains("\nhint: "),
            "{args:?}: {ran:#?}"
        );
    }
}

#[test]
fn queues_change_live() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    let queue = |args: &[&str]| {
        let all = server
            .run(&lab, &[args, &["--json"]].concat())
            .exits(0)
            .json();
        all.as_array()
            .unwrap()
            .iter()
            .find(|queue| queue["name"] == "alice")
            .cloned()
    };
    let set = queue(&["queues", "set", "alice", "--weight", "7", "--priority", "4"]).unwrap();
    assert_eq!(
        (&set["weight"], &set["priority"], &set["paused"]),
        (&7.into(), &4.into(), &false.into())
    );
    assert_eq!(set["users"], "own");
    let shared = queue(&["queues", "set", "alice", "--users", "bob, carol"]).unwrap();
    assert_eq!(shared["users"], serde_json::json!(["bob", "carol"]));
    let set = queue(&["queues", "set", "alice", "--pause"]).unwrap();
    assert_eq!(set["users"], shared["users"], "they stay");
    assert_eq!((&set["weight"], &set["paused"]), (&7.into(), &true.into()));
    assert!(queue(&["queues", "delete", "alice"]).is_none_or(|queue| queue["set"] == false));
    let text = server.run(&lab, &["queues", "set", "nightly", "--users", "all"]);
    assert!(text.exits(0).out.contains("users"));
    server.run(&lab, &["queues", "set", "alice"]).exits(2);
    server
        .run(&lab, &["queues", "set", "alice", "--weight", "0"])
        .exits(2);
    server
        .run(&lab, &["queues", "set", "alice", "--pause", "--resume"])
        .exits(2);
}

#[test]
fn with_tokens_each_account_does_what_it_may() {
    let lab = Lab::new();
    let token = |ran: &Ran| ran.out.lines().last().unwrap().to_owned();
    // The first admin, in the store itself.
    let admin = token(
        &lab.run(&[
            "account", "add", "root", "--role", "admin", "--data", "data",
        ])
        .exits(0),
    );
    let server = Serving::start(&lab, &["--auth"]);
    let held = lab.run(&["account", "add", "x", "--data", "data"]).exits(5);
    assert!(held.err.contains("hint: "), "{}", held.err);

    lab.write("a.yaml", SLEEPY);
    let nobody = server.run(&lab, &["submit", "a.yaml"]).exits(3);
    assert!(nobody.err.contains("unauthorized"), "{}", nobody.err);
    let file = lab.write("admin-token", &format!("{admin}\n"));
    let as_admin = ["--token-file", file.to_str().unwrap()];
    let carol = token(
        &server
            .run(
                &lab,
                &[&["account", "add", "carol"][..], &as_admin].concat(),
            )
            .exits(0),
    );
    let as_carol = ["--token", &carol, "--account", "carol"];
    let ran = server
        .run(&lab, &[&["submit", "a.yaml"][..], &as_carol].concat())
        .exits(0);
    let id = &ids(&ran)[0];
    server
        .run(
            &lab,
            &[
                &["submit", "a.yaml"][..],
                &["--token", &carol, "--account", "bob"],
            ]
            .concat(),
        )
        .exits(3);
    server
        .run(&lab, &[&["account", "list"][..], &as_carol].concat())
        .exits(3);
    server.run(&lab, &["cancel", id]).exits(3);
    server
        .run(&lab, &[&["cancel", id][..], &as_carol].concat())
        .exits(0);
    let list = server
        .run(&lab, &[&["account", "list"][..], &as_admin].concat())
        .exits(0)
        .out;
    assert!(list.contains("carol") && !list.contains(&carol), "{list}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn serving_openly_to_others_must_be_said() {
    let lab = Lab::new();
    let ran = lab
        .run(&["serve", "--listen", "0.0.0.0:0", "--data", "data"])
        .exits(2);
    assert!(
        ran.err.contains("--auth") && ran.err.contains("--open"),
        "{}",
        ran.err
    );
    assert!(!lab.path().join("data").exists());
    lab.run(&["serve", "--auth", "--open"]).exits(2);
    lab.run(&["serve", "--listen", "nonsense"]).exits(2);
    lab.run(&["serve", "--lease", "soon"]).exits(2);
    // A port that is taken, and a folder that is no folder.
    let server = Serving::start(&lab, &[]);
    let address = server.url.strip_prefix("http://").unwrap();
    let ran = lab
        .run(&["serve", "--listen", address, "--data", "other"])
        .exits(5);
    assert!(
        ran.err.contains("cannot listen") && ran.err.contains("hint: "),
        "{}",
        ran.err
    );
    let ran = lab
        .run(&["serve", "--listen", "127.0.0.1:0", "--data", "data"])
        .exits(5);
    assert!(ran.err.contains("hint: "), "{}", ran.err);
    lab.write("file", "");
    lab.run(&["serve", "--listen", "127.0.0.1:0", "--data", "file"])
        .exits(5);
}

#[test]
fn a_timer_from_submit_to_its_end() {
    let lab = Lab::new();
    let server = Serving::start(&lab, &[]);
    lab.write("a.yaml", "suite: s\nscript: echo a\ncron: '0 2 * * *'\n");
    let ran = server.run(&lab, &["timers", "submit", "a.yaml"]).exits(0);
    assert!(
        ran.out.starts_with("timer a: 0 2 * * * (UTC), next run 2")
            && ran.out.contains("T02:00:00"),
        "{}",
        ran.out
    );
    assert!(ran.err.contains("no host is known"), "{}", ran.err);
    let refused = server.run(&lab, &["submit", "a.yaml"]).exits(3);
    assert!(
        refused.err.contains("fairlead timers submit"),
        "{}",
        refused.err
    );
    let twice = server.run(&lab, &["timers", "submit", "a.yaml"]).exits(3);
    assert!(
        twice.err.contains("a timer of this name exists"),
        "{}",
        twice.err
    );
    lab.write("b.yaml", SLEEPY);
    let two = server
        .run(&lab, &["timers", "submit", "b.yaml", "--every", "1h"])
        .exits(2);
    assert!(two.err.contains("a timer runs one"), "{}", two.err);

    let timers = |args: &[&str]| {
        let args = [&["timers"], args].concat();
        server.run(&lab, &args).exits(0).out
    };
    timers(&["submit", "b.yaml", "n=1", "--every", "2h", "--name", "b"]);
    timers(&["pause", "a"]);
    let list = timers(&[]);
    assert!(
        list.contains("paused") && list.contains("every 2h"),
        "{list}"
    );
    timers(&["resume", "a", "b"]);
    timers(&[
        "update",
        "a",
        "--timezone",
        "Asia/Shanghai",
        "--overlap",
        "queue",
    ]);
    timers(&["update", "b", "--file", "a.yaml"]);
    let shown = server
        .run(&lab, &["timers", "show", "b", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&shown["cron"], &shown["every"]),
        (&json!("0 2 * * *"), &json!(null))
    );
    assert_eq!(shown["job"]["script"], "echo a");
    let shown = timers(&["show", "a"]);
    assert!(
        shown.contains("Asia/Shanghai") && shown.contains("overlap   queue"),
        "{shown}"
    );
    timers(&["delete", "a", "b"]);
    let gone = server.run(&lab, &["timers", "show", "a"]).exits(3);
    assert!(gone.err.contains("no timer 'a'"), "{}", gone.err);
}
