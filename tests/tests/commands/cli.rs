//! The `fairlead` command as a user types it: dry runs, refusals, exit codes, a whole run.

use std::{collections::BTreeSet, fs, path::Path};

use fairlead_tests::{command::fairlead, settings};
use serde_json::{Map, Value};
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::with_prefix("fairlead-cli-").expect("a temporary folder")
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("a job file");
}

/// Returns expanded jobs as sets of `key: value`, without the fields that are not compared.
fn comparable(jobs: &Value) -> BTreeSet<String> {
    let left_out = ["job_origin", "testbox", "arch", "tbox_group"];
    let sorted = |job: &Value| {
        let map: Map<String, Value> = job.as_object().cloned().expect("a job is an object");
        let mut pairs: Vec<_> = map
            .into_iter()
            .filter(|(key, _)| !left_out.contains(&key.as_str()))
            .map(|(key, value)| format!("{key}={}", in_order(&value)))
            .collect();
        pairs.sort();
        pairs.join("\n")
    };
    jobs.as_array()
        .expect("an array of jobs")
        .iter()
        .map(sorted)
        .collect()
}

fn in_order(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map
                .iter()
                .map(|(k, v)| format!("{k:?}:{}", in_order(v)))
                .collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(in_order).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// Runs only if the corpus exists. The project's own job files have separate tests.
#[test]
fn real_job_files_expand_as_their_own_tool_expands_them() {
    let Some(corpus) = settings::corpus() else {
        return;
    };
    let here = folder();
    let include = corpus.join("include");
    let mut checked = 0;
    for entry in fs::read_dir(corpus.join("golden")).expect("the golden folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        let text = fs::read_to_string(path.with_extension("json")).expect("its golden result");
        let golden: Value = serde_json::from_str(&text).expect("golden JSON");
        let words = [
            "submit",
            "--dry-run",
            "--json",
            "-I",
            &include.to_string_lossy(),
            &path.to_string_lossy(),
        ];
        let ran = fairlead(here.path(), &[], &words);
        let jobs: Value =
            serde_json::from_str(ran.expect_code(0)).expect("JSON on standard output");
        let (ours, theirs) = (comparable(&jobs), comparable(&golden["jobs"]));
        let differs = ours.symmetric_difference(&theirs).next();
        assert_eq!(differs, None, "{}", path.display());
        assert_eq!(
            jobs.as_array().map(Vec::len),
            golden["jobs"].as_array().map(Vec::len)
        );
        checked += 1;
    }
    assert!(checked > 0, "the corpus is empty");
}

#[test]
fn a_bad_job_file_ends_with_2_and_says_where() {
    let here = folder();
    write(here.path(), "a.yaml", "suite: a\n<<: b.yaml\n");
    write(here.path(), "b.yaml", "<<: a.yaml\nsuite: b\n");
    write(
        here.path(),
        "double.yaml",
        "suite: a\nruntime: 3s\nsuite: b\n",
    );
    write(here.path(), "erb.yaml", "suite: a\nx: <%= `id` %>\n");
    write(
        here.path(),
        "memory.yaml",
        "suite: a\nscript: 'true'\nneed_memory: lots\n",
    );
    write(here.path(), "missing.yaml", "suite: a\n<<: nowhere.yaml\n");
    write(here.path(), "zip.yaml", "suite: a\na|b: [1|2, 3]\n");
    write(
        here.path(),
        "deep.yaml",
        &format!("suite: a\nx: {}{}\n", "[".repeat(5000), "]".repeat(5000)),
    );
    fs::write(here.path().join("bytes.yaml"), b"suite: \xff\n").expect("a file");
    fs::create_dir(here.path().join("dir.yaml")).expect("a folder");
    for (file, named) in [
        ("a.yaml", "b.yaml"),
        ("double.yaml", "3"),
        ("erb.yaml", "2"),
        ("missing.yaml", "nowhere.yaml"),
        ("zip.yaml", "2"),
        ("deep.yaml", "deep.yaml"),
        ("bytes.yaml", "bytes.yaml"),
        ("dir.yaml", "dir.yaml"),
        ("not-there.yaml", "not-there.yaml"),
    ] {
        let ran = fairlead(here.path(), &[], &["submit", "--dry-run", "--json", file]);
        ran.expect_code(2);
        assert!(
            ran.err.contains(file) && ran.err.contains(named),
            "{file}: {}",
            ran.err
        );
        assert_eq!(ran.out, "", "{file}: nothing on standard output");
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
}

#[test]
fn overrides_and_defaults_apply_around_the_file() {
    let here = folder();
    write(
        here.path(),
        "a.yaml",
        "suite: a\nscript: 'true'\nnr: [1, 2]\np:\n  mode: x\n",
    );
    let dry = |words: &[&str]| -> Value {
        let words = [&["submit", "--dry-run", "--json"], words].concat();
        let ran = fairlead(here.path(), &[], &words);
        serde_json::from_str(ran.expect_code(0)).expect("JSON")
    };
    assert_eq!(dry(&["a.yaml"]).as_array().map(Vec::len), Some(2));
    let one = dry(&["note=before", "nr=5", "a.yaml", "nr=9", "p.mode=y"]);
    assert_eq!(one.as_array().map(Vec::len), Some(1), "{one}");
    assert_eq!(
        (&one[0]["nr"], &one[0]["p"]["mode"]),
        (&9.into(), &"y".into()),
        "{one}"
    );
    assert_eq!(one[0]["note"], "before", "{one}");
    assert_eq!(
        dry(&["-n", "3", "a.yaml", "nr=1"]).as_array().map(Vec::len),
        Some(3)
    );
}

#[test]
fn the_command_says_what_is_wrong_with_it() {
    let here = folder();
    fairlead(here.path(), &[], &["no-such-command"]).expect_code(2);
    fairlead(here.path(), &[], &["jobs", "--no-such-flag"]).expect_code(2);
    let nobody = [("FAIRLEAD_SERVER", "http://127.0.0.1:9")];
    let ran = fairlead(here.path(), &nobody, &["jobs"]);
    ran.expect_code(4);
    assert!(ran.err.contains("127.0.0.1:9"), "{}", ran.err);
    fairlead(here.path(), &[], &["--help"]).expect_code(0);
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            fairlead(here.path(), &[], &["completions", shell])
                .expect_code(0)
                .contains("fairlead")
        );
    }
    let open = ["serve", "--listen", "0.0.0.0:0", "--data", "data"];
    let ran = fairlead(here.path(), &[], &open);
    assert_ne!(
        ran.code, 0,
        "open on every address without --open or --auth"
    );
    assert!(
        ran.err.contains("--open") && ran.err.contains("--auth"),
        "{}",
        ran.err
    );
}

#[test]
fn run_ends_with_0_only_if_every_job_succeeded() {
    let here = folder();
    write(
        here.path(),
        "good.yaml",
        "suite: t\nn: [1, 2, 3]\nscript: |\n  echo got $n > $RESULT_ROOT/out\n",
    );
    let ran = fairlead(here.path(), &[], &["run", "good.yaml"]);
    ran.expect_code(0);
    assert!(ran.out.contains("3 succeeded"), "{}", ran.out);
    write(
        here.path(),
        "bad.yaml",
        "suite: t\nn: [0, 1]\nscript: |\n  echo boom $n\n  exit $n\n",
    );
    let ran = fairlead(here.path(), &[], &["run", "bad.yaml"]);
    ran.expect_code(1);
    // The failure shows the reason, the last output, and the command that repeats it.
    for part in [
        "1 failed, 1 succeeded",
        "fail (1) on",
        "  | boom 1",
        "again: fairlead run bad.yaml n=1",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert!(!ran.out.contains("boom 0"), "{}", ran.out);
}
