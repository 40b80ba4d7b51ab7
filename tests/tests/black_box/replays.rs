//! Tests of replays from the command: what a lab ran, traces, and arrivals, each with its plot.

use std::{collections::BTreeMap, fs, path::Path};

use fairlead_tests::{
    Ran, Scheduler, Store, Testbox, command::fairlead, eventually, jobs, on_both_stores, settings,
};
use serde_json::{Value, json};
use tempfile::TempDir;

on_both_stores!(what_a_lab_ran_is_replayed, a_lab_without_jobs_is_told_so);

/// Address on which nobody listens.
const NOWHERE: &str = "http://127.0.0.1:9";

fn folder() -> TempDir {
    TempDir::with_prefix("fairlead-replay-").expect("a temporary folder")
}

fn run(folder: &Path, server: &str, words: &[&str]) -> Ran {
    fairlead(folder, &[("FAIRLEAD_SERVER", server)], words)
}

fn parsed(ran: &Ran) -> Value {
    serde_json::from_str(ran.expect_code(0)).expect("JSON")
}

/// Returns the figures of an account in one of the replays.
fn account<'v>(replays: &'v Value, policy: &str, name: &str) -> &'v Value {
    let replays = replays.as_array().expect("a list");
    let replay = replays.iter().find(|replay| replay["policy"] == policy);
    let accounts = replay.expect("the policy")["accounts"].as_array();
    let mut accounts = accounts.expect("a list").iter();
    let account = accounts.find(|account| account["name"] == name);
    account.expect("the account")
}

fn number(of: &Value) -> f64 {
    of.as_f64().expect("a number")
}

async fn what_a_lab_ran_is_replayed(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let (http, url, here) = (scheduler.http(), scheduler.url(), folder());
    let mut all = vec![jobs::hw("user1"); 4];
    all.extend(vec![jobs::hw("user2"); 4]);
    http.submit(&json!(all)).await;
    Testbox::hw(&http, "machine").run_all(2).await;
    let history = ["replay", "history", "--since", "1h", "--json"];
    let listed = eventually("the ends are listed", async || {
        let ran = run(here.path(), &url, &["jobs", "--json", "--stage", "finish"]);
        (parsed(&ran)["total"] == 8).then_some(ran)
    })
    .await;
    let mut waited: BTreeMap<String, f64> = BTreeMap::new();
    for job in parsed(&listed)["jobs"].as_array().expect("a list") {
        let wait_ms = number(&job["dispatch_ms"]) - number(&job["ready_ms"]);
        let name = job["my_account"].as_str().expect("a name").to_owned();
        *waited.entry(name).or_default() += wait_ms / 4_000.0;
    }
    let replays = parsed(&run(here.path(), &url, &history));
    for (name, mean_s) in &waited {
        let was = account(&replays, "as it was", name);
        assert_eq!(was["jobs"], 4, "{replays}");
        let told = number(&was["mean_s"]);
        assert!((told - mean_s).abs() < 1e-6, "{name} {mean_s} {replays}");
        assert_eq!(account(&replays, "policy of now", name)["jobs"], 4);
    }

    // A higher class goes first, on the hosts of the lab and on an equal host without the lab.
    let first = ["--queue", "user2:priority=9"];
    let of_lab = run(here.path(), &url, &[&history[..], &first].concat());
    let file = here.path().join("jobs.json");
    fs::write(&file, listed.expect_code(0)).expect("a file");
    let file = ["replay", "history", "jobs.json", "--hosts", "1", "--json"];
    let plot = ["--plot", "history.svg"];
    let of_file = run(here.path(), NOWHERE, &[&file[..], &first, &plot].concat());
    for ran in [of_lab, of_file] {
        let replays = parsed(&ran);
        let of = |policy, name, figure: &str| number(&account(&replays, policy, name)[figure]);
        let (first, behind) = ("user2", "user1");
        assert!(
            of("changed", first, "mean_s") < of("changed", behind, "mean_s"),
            "{replays}"
        );
        // The last job no longer waits for all others, however far apart jobs came and however long one ran.
        assert!(
            of("changed", first, "max_s") < of("policy of now", first, "max_s"),
            "{replays}"
        );
    }
    let svg = fs::read_to_string(here.path().join("history.svg")).expect("a plot");
    for word in ["changed: waits by account", "hosts in use", ">user2<"] {
        assert!(svg.contains(word), "{word}: {svg}");
    }
    let table = run(here.path(), &url, &["replay", "history", "--since", "1h"]);
    let table = table.expect_code(0);
    assert!(
        table.contains("account user1") && table.contains("policy of now"),
        "{table}"
    );
    let unknown = ["--queue", "nobody:weight=3"];
    let refused = run(here.path(), &url, &[&history[..], &unknown].concat());
    refused.expect_code(2);
    assert!(
        refused.err.contains("neither the lab nor a job"),
        "{}",
        refused.err
    );
}

async fn a_lab_without_jobs_is_told_so(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let ran = run(folder().path(), &scheduler.url(), &["replay", "history"]);
    ran.expect_code(2);
    assert!(
        ran.err.contains("no host had one of the 0 jobs"),
        "{}",
        ran.err
    );
}

#[test]
fn a_trace_is_drawn_by_account() {
    let here = folder();
    let line = |n: u32| {
        let (submit, run, user) = (n * 20, 60 + n % 7, n % 9);
        format!("{n} {submit} 0 {run} 2 0 0 2 100 0 1 {user} 0 0 0 0 0 0\n")
    };
    let trace: String = (1..=300).map(line).collect();
    fs::write(here.path().join("trace.swf"), trace).expect("a trace");
    let words = "replay swf trace.swf --units 8 --accounts one,users --plot trace.svg";
    let words: Vec<&str> = words.split(' ').collect();
    run(here.path(), NOWHERE, &words).expect_code(0);
    let svg = fs::read_to_string(here.path().join("trace.svg")).expect("a plot");
    for word in [
        "Replay of trace.swf",
        "accounts one, estimates requested: waits by account",
        "accounts users, estimates requested: processors in use, by account",
        ">user ",
        ">all others<",
    ] {
        assert!(svg.contains(word), "{word}");
    }
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let nowhere = [&words[..words.len() - 1], &["no/such/folder.svg"]].concat();
    let refused = run(here.path(), NOWHERE, &nowhere);
    assert_ne!(refused.code, 0);
    assert!(
        refused.err.contains("cannot write the plot"),
        "{}",
        refused.err
    );
}

/// Returns the titles of a chart's panels, without their numbers.
fn panels(svg: &str) -> Vec<String> {
    let titles = svg.split("<text y=\"-10\"").skip(1).filter_map(|rest| {
        let begin = rest.find('>')? + 1;
        rest.get(begin..rest.find('<')?)
    });
    let words = titles.map(|title| title.replace(|c: char| c.is_ascii_digit() || c == ',', ""));
    words.collect()
}

/// The command is the one in the report.
#[test]
fn the_plot_of_the_documents_is_still_made() {
    let here = folder();
    let line = |n: u32| format!("{},g{},unit,{}\n", n * 30, n % 2, 40 + n);
    let lines: String = (0..60).map(line).collect();
    let arrivals = format!("submit_s,group,suite,run_s\n{lines}");
    fs::write(here.path().join("day.csv"), arrivals).expect("arrivals");
    let report = settings::project().join("docs/reports/replay.md");
    let report = fs::read_to_string(report).expect("the report");
    let is_command = |line: &&str| line.contains("fairlead replay scaling --arrivals day.csv");
    let command = report.lines().find(is_command).expect("the command");
    let words = command.trim().trim_start_matches("fairlead ");
    let words: Vec<&str> = words.split_whitespace().collect();
    run(here.path(), NOWHERE, &words).expect_code(0);
    let made = fs::read_to_string(here.path().join("replay-day.svg")).expect("a plot");
    let shown = settings::project().join("docs/reports/replay-day.svg");
    let shown = fs::read_to_string(shown).expect("the plot of the documents");
    assert_eq!(panels(&made), panels(&shown));
    assert_eq!(panels(&made).len(), 5, "{made}");
    for word in ["launches", "busy", "idle", "95 %: "] {
        assert!(made.contains(word) && shown.contains(word), "{word}");
    }
    assert!(shown.len() < 60_000, "{} bytes", shown.len());
}
