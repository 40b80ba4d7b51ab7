//! Tests of `fairlead check` and `fairlead prune`: what an operator does to a store and its files.

use std::{fs, path::Path};

use fairlead_tests::{
    Agent, Ran, Scheduler, Store, Testbox, eventually, fairlead, jobs, on_both_stores,
};
use serde_json::{Value, json};

on_both_stores!(
    a_lab_that_is_well_has_nothing_wrong,
    files_are_compared_with_jobs_and_old_ones_go,
);

fn run(scheduler: &Scheduler, words: &[&str]) -> Ran {
    let store = scheduler.store_arguments();
    let mut all = words.to_vec();
    all.extend(store.iter().map(String::as_str));
    fairlead(scheduler.folder(), &[], &all)
}

fn value(ran: &Ran, code: i32) -> Value {
    serde_json::from_str(ran.expect_code(code)).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn kind<'a>(checked: &'a Value, name: &str) -> &'a Value {
    let kinds = checked["kinds"].as_array().expect("kinds");
    let found = kinds.iter().find(|kind| kind["kind"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {checked}"))
}

async fn a_lab_that_is_well_has_nothing_wrong(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut testbox = Testbox::dc(&http, "server-1", 8 << 10);
    http.submit(&jobs::times(3, &jobs::dc("alice"))).await;
    let sharded = jobs::with(jobs::dc("alice"), &json!({"shards": 3}));
    http.submit(&sharded).await;
    let grants = testbox.take_all().await;
    testbox.finish(&grants[0]).await;
    // Searches see the parent, its shards and the others.
    eventually("all jobs are found", async || {
        let checked = value(&run(&scheduler, &["check", "--json"]), 0);
        (checked["jobs"] == 7).then_some(())
    })
    .await;
    scheduler.kill();
    let ran = run(&scheduler, &["check"]);
    let lines = ran.expect_code(0);
    for kind in ["state_without_body", "shard_missing", "host_unknown"] {
        assert!(lines.contains(&format!("ok       {kind}: 0 ")), "{lines}");
    }
    assert!(lines.contains("7 jobs read, 0 kinds are wrong"), "{lines}");
}

async fn files_are_compared_with_jobs_and_old_ones_go(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let job = jobs::with(
        jobs::dc("alice"),
        &json!({"script": "echo hello; echo x > $RESULT_ROOT/x"}),
    );
    let ended = http.submit(&job).await.remove(0);
    let agent = Agent::start(
        &scheduler.url(),
        "server-1",
        &["--kind", "dc", "--memory", "2g"],
    );
    eventually("the job ends with its results", async || {
        (http.field(&ended, "job_data_readiness").await == "uploaded").then_some(())
    })
    .await;
    drop(agent);
    let waits = jobs::with(jobs::dc("alice"), &json!({"target_machines": ["nowhere"]}));
    let waiting = http.submit(&waits).await.remove(0);
    let root = http.field(&waiting, "result_root").await;
    let data = scheduler.data();
    let early = data.join(root.trim_start_matches('/'));
    fs::create_dir_all(&early).expect("a folder");
    let old = data.join("result/s/2024-01-01/dc/2401010000000000001");
    fs::create_dir_all(&old).expect("a folder");
    fs::write(old.join("x"), "12345").expect("a file");
    let files = data.to_str().expect("letters").to_owned();
    let check = |scheduler: &Scheduler, code| {
        let words = ["check", "--json", "--files", &files];
        value(&run(scheduler, &words), code)
    };
    let counts = |checked: &Value| {
        [
            "files_without_job",
            "files_of_attempt_to_come",
            "ended_without_files",
        ]
        .map(|name| kind(checked, name)["count"].as_u64())
    };
    eventually("both jobs are found", async || {
        (check(&scheduler, 6)["jobs"] == 2).then_some(())
    })
    .await;
    let checked = check(&scheduler, 6);
    assert_eq!(counts(&checked), [Some(1), Some(1), Some(0)], "{checked}");
    let page = include_str!("../../../docs/operator-reference.md");
    for kind in checked["kinds"].as_array().expect("kinds") {
        let name = kind["kind"].as_str().expect("a name");
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in the reference"
        );
    }
    let example = &kind(&checked, "files_of_attempt_to_come")["examples"][0];
    assert_eq!(example.as_str().map(Path::new), Some(early.as_path()));

    // A dry run counts what the real one removes.
    let prune = ["prune", "--keep-days", "30", "--json"];
    let would = value(&run(&scheduler, &[&prune[..], &["--dry-run"]].concat()), 0);
    assert_eq!(
        (&would["jobs"], &would["bytes"]),
        (&json!(1), &json!(5)),
        "{would}"
    );
    run(&scheduler, &prune).expect_code(2);
    assert!(old.exists());
    let did = value(&run(&scheduler, &[&prune[..], &["--yes"]].concat()), 0);
    assert_eq!(
        (&did["jobs"], &did["bytes"]),
        (&json!(1), &json!(5)),
        "{did}"
    );
    assert!(!old.exists() && !old.parent().is_some_and(Path::exists));

    // Files of later attempts are set aside while no scheduler runs.
    let aside = ["check", "--set-aside", "--json", "--files", &files];
    let refused = run(&scheduler, &aside);
    refused.expect_code(5);
    scheduler.stop().await;
    let checked = value(&run(&scheduler, &aside), 0);
    assert_eq!(checked["set_aside"], 1);
    assert_eq!(counts(&checked), [Some(0), Some(0), Some(0)], "{checked}");
    // Lost files are reported.
    fs::remove_dir_all(data.join("result")).expect("results");
    fs::remove_dir_all(data.join("logs")).expect("logs");
    assert_eq!(counts(&check(&scheduler, 0)), [Some(0), Some(0), Some(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_checked_as_a_file_and_damage_is_told() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let job = jobs::with(jobs::dc("alice"), &json!({"note": "x".repeat(5_000)}));
    scheduler.http().submit(&jobs::times(50, &job)).await;
    run(&scheduler, &["backup", "copy.db"]).expect_code(0);
    let check = |code| {
        let ran = fairlead(scheduler.folder(), &[], &["check", "copy.db", "--json"]);
        value(&ran, code)
    };
    let checked = check(0);
    assert_eq!(
        (&checked["jobs"], &checked["wrong"]),
        (&json!(50), &json!(0)),
        "{checked}"
    );
    let file = scheduler.folder().join("copy.db");
    let mut bytes = fs::read(&file).expect("the copy");
    let at = bytes.len() / 2;
    bytes[at..at + 20_000].fill(7);
    fs::write(&file, bytes).expect("the copy");
    let checked = check(6);
    assert!(
        kind(&checked, "damage")["count"].as_u64() > Some(0),
        "{checked}"
    );
    let missing = fairlead(scheduler.folder(), &[], &["check", "nowhere.db"]);
    missing.expect_code(5);
}
