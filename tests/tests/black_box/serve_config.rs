//! Tests of `fairlead serve --config FILE`: what wins, what is refused, the documented keys, and a replica that runs with it.

use std::{fmt::Write as _, fs};

use fairlead_tests::{Ran, Scheduler, Store, fairlead, jobs, on_both_stores, settings};
use serde_json::{Value, json};
use tempfile::TempDir;

on_both_stores!(a_replica_runs_with_its_file);

async fn a_replica_runs_with_its_file(store: Store) {
    let folder = TempDir::with_prefix("fairlead-serve-").expect("a folder");
    let path = folder.path().join("serve.toml");
    fs::write(&path, "vip-for-all = true\ndefault-memory = '48m'\n").expect("a file");
    let scheduler = Scheduler::start_with(store, &["--config", &path.to_string_lossy()]).await;
    let http = scheduler.http();
    let mut job = jobs::with(jobs::dc("alice"), &json!({"queue": "vip"}));
    job.as_object_mut().expect("a job").remove("need_memory");
    let id = http.submit(&job).await.remove(0);
    let job = http.job(&id).await;
    assert_eq!(
        (&job["queue"], &job["memory_mb"]),
        (&json!("vip"), &json!(48))
    );
}

fn check(text: &str, variables: &[(&str, &str)], words: &[&str]) -> Ran {
    let folder = TempDir::with_prefix("fairlead-serve-").expect("a folder");
    fs::write(folder.path().join("serve.toml"), text).expect("a file");
    let line = [&["serve", "--config", "serve.toml", "--check"], words].concat();
    fairlead(folder.path(), variables, &line)
}

#[test]
fn the_origin_of_every_setting_is_shown_and_nothing_starts() {
    let text = "listen = '10.0.0.1:3000'\nlease = '2m'\nkeep-months = 3\n";
    let variables = [("FAIRLEAD_SERVE_LEASE", "3m")];
    let ran = check(text, &variables, &["--auth", "--json"]);
    let shown: Value = serde_json::from_str(ran.expect_code(0)).expect("JSON");
    for (name, value, from) in [
        ("auth", "true", "flag --auth"),
        ("lease", "3m", "environment FAIRLEAD_SERVE_LEASE"),
        ("listen", "10.0.0.1:3000", "file serve.toml:1"),
        ("keep-months", "3", "file serve.toml:3"),
        ("suspect-after", "3", "default"),
    ] {
        assert_eq!(shown[name], json!({"value": value, "from": from}), "{name}");
    }
    let table = check(text, &[], &["--open"]);
    assert!(
        table.expect_code(0).contains("file serve.toml:2"),
        "{}",
        table.out
    );
    // Problems that only the combination of all settings shows are checked, too.
    let open = check(text, &[], &[]);
    open.expect_code(2);
    assert!(open.err.contains("--auth"), "{}", open.err);
}

#[test]
fn wrong_keys_and_values_are_refused_with_their_place() {
    for (text, said, hint) in [
        (
            "\nlissten = 'x'\n",
            "serve.toml:2: unknown key 'lissten'",
            "did you mean 'listen'?",
        ),
        (
            "keep-months = 5000\n",
            "file serve.toml:1: invalid value '5000'",
            "hint: keep-months: ",
        ),
        (
            "auth = 'yes'\n",
            "file serve.toml:1: auth: 'yes' is not valid",
            "true or false",
        ),
        (
            "listen = \n",
            "serve.toml: TOML parse error at line 1",
            "fairlead config serve",
        ),
    ] {
        let ran = check(text, &[], &[]);
        ran.expect_code(2);
        assert!(
            ran.err.contains(said) && ran.err.contains(hint),
            "{}",
            ran.err
        );
    }
    let json = check("lissten = 1\n", &[], &["--json"]);
    let told: Value = serde_json::from_str(json.err.trim()).expect("an error as JSON");
    assert!(told.to_string().contains("lissten"), "{told}");
}

/// Variable with which the list of keys is written instead of compared.
const WRITE: &str = "FAIRLEAD_WRITE_DOCS";
/// First lines of that list, in the operator's reference. It ends with an empty line.
const HEAD: &str = "| key | value | default | meaning |\n|---|---|---|---|\n";

#[test]
fn every_key_is_documented() {
    let folder = TempDir::with_prefix("fairlead-serve-").expect("a folder");
    let ran = fairlead(folder.path(), &[], &["config", "serve", "--json"]);
    let keys: Vec<Value> = serde_json::from_str(ran.expect_code(0)).expect("JSON");
    let mut rows = String::new();
    for key in &keys {
        let text = |name: &str| key[name].as_str().unwrap_or_default().replace('|', "\\|");
        let list = if key["is_list"] == true {
            ", or a list"
        } else {
            ""
        };
        let default = match text("default") {
            words if words.is_empty() || words.contains(' ') => words,
            value => format!("`{value}`"),
        };
        let meaning = text("meaning").replace('<', "&lt;");
        writeln!(
            rows,
            "| `{}` | {}{list} | {default} | {meaning} |",
            text("key"),
            text("value")
        )
        .expect("a row");
    }
    let path = settings::project().join("docs/operator-reference.md");
    let document = fs::read_to_string(&path).expect("the operator's reference");
    let (before, after) = document.split_once(HEAD).expect("the head of the list");
    let (list, after) = after.split_once("\n\n").expect("the end of the list");
    if format!("{list}\n") == rows {
        return;
    }
    assert!(
        std::env::var_os(WRITE).is_some(),
        "docs/operator-reference.md: the keys of `fairlead serve` differ; {WRITE}=1 writes them"
    );
    fs::write(&path, format!("{before}{HEAD}{rows}\n{after}"))
        .expect("the reference can be written");
}

#[test]
fn the_example_of_the_deploy_folder_is_valid() {
    let path = settings::project().join("scheduler-cluster/deploy/serve.toml");
    let folder = TempDir::with_prefix("fairlead-serve-").expect("a folder");
    let path = path.to_string_lossy();
    let words = [
        "serve",
        "--config",
        path.as_ref(),
        "--listen",
        "0.0.0.0:3000",
        "--check",
    ];
    let ran = fairlead(folder.path(), &[], &words);
    assert!(ran.expect_code(0).contains("serve.toml:5"), "{}", ran.out);
}
