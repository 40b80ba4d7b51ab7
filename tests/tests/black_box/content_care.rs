//! Tests of `fairlead content gc` and `fairlead content check`: what goes, what stays, and what is told.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use fairlead_tests::{clock::now_ms, jobs};
use serde_json::json;

use crate::content_puts::{Bench, entries, noise, number};

/// Exit code if a problem was found.
const TO_MEND: i32 = 6;
/// Age beyond the grace period and all pins.
const OLD: Duration = Duration::from_hours(30 * 24);

impl Bench {
    /// Puts a file with these bytes. Returns the id.
    fn put(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).expect("a file");
        let put = self.json(&["put", name]);
        put["id"].as_str().expect("an id").to_owned()
    }

    /// Returns the stored chunk with these bytes.
    fn chunk_of(&self, bytes: &[u8]) -> PathBuf {
        let mut chunks = self.stored("chunks").into_iter();
        let found = chunks.find(|path| fs::read(path).is_ok_and(|stored| stored == bytes));
        found.expect("the chunk")
    }
}

/// Sets the time of all files below a folder far back.
fn age(folder: &Path) {
    let then = u64::try_from(now_ms()).expect("a time");
    let then = UNIX_EPOCH + Duration::from_millis(then) - OLD;
    for path in entries(folder) {
        if path.is_dir() {
            age(&path);
        } else {
            let file = File::options().write(true).open(&path).expect("a file");
            file.set_modified(then).expect("a time of a file");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_takes_what_no_job_names_and_tells_it_before() {
    let bench = Bench::start().await;
    let named = bench.put("named", &noise(30, 3_000_000));
    let rest = bench.put("rest", &noise(31, 3_000_000));
    let kept = bench.put("kept", b"somebody keeps it");
    bench
        .run(&["content", "keep", &kept, "--until", "+60d"])
        .expect_code(0);
    let job = jobs::with(jobs::dc("alice"), &json!({ "inputs": named }));
    bench.scheduler.http().submit(&job).await;
    let (manifests, chunks) = (bench.stored("manifests"), bench.stored("chunks"));

    // All content is young.
    let young = bench.json(&["content", "gc"]);
    assert_eq!(number(&young, "manifests"), 3, "{young}");
    assert_eq!(number(&young, "manifests_removed"), 0, "{young}");
    assert_eq!(number(&young, "chunks_removed"), 0, "{young}");

    age(&bench.content());
    let told = bench.json(&["content", "gc", "--dry-run"]);
    assert_eq!(number(&told, "manifests_removed"), 1, "{told}");
    let shown = bench.run(&["content", "gc", "--dry-run"]);
    assert!(
        shown.expect_code(0).contains("would go: 1 of 3 ids"),
        "{shown:?}"
    );
    assert_eq!(bench.stored("manifests").len(), manifests.len());
    assert_eq!(bench.stored("chunks").len(), chunks.len());
    bench.run(&["content", "stat", &rest]).expect_code(0);

    let done = bench.json(&["content", "gc"]);
    assert_eq!(number(&done, "manifests_removed"), 1, "{done}");
    // A dry run does not count chunks of a manifest that it leaves, so the real run reports the number of removed ones.
    let gone = number(&done, "chunks_removed");
    let left = bench.stored("chunks").len();
    assert_eq!(usize::try_from(gone).expect("few"), chunks.len() - left);
    assert!(number(&done, "bytes_removed") >= 3_000_000, "{done}");
    for words in [
        &["content", "stat", &rest][..],
        &["get", &rest, "rest-back"],
    ] {
        bench.run(words).expect_code(3);
    }
    for (id, name) in [(&named, "named"), (&kept, "kept")] {
        let back = format!("{name}-back");
        bench.run(&["get", id, &back]).expect_code(0);
        let back = fs::read(bench.path(&back).join(name)).expect("a file");
        assert!(
            back == fs::read(bench.path(name)).expect("a file"),
            "{name}"
        );
    }
    let again = bench.json(&["put", "rest"]);
    assert_eq!(again["id"], rest);
    assert_eq!(again["sent_chunks"], again["chunks"], "{again}");
    bench.run(&["get", &rest, "rest-back"]).expect_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_tells_what_is_damaged_or_missing_and_a_put_heals_it() {
    let bench = Bench::start().await;
    let (flipped, missing) = (noise(32, 100_000), noise(33, 100_000));
    let id = bench.put("flipped", &flipped);
    let other = bench.put("missing", &missing);
    let sound = bench.json(&["content", "check"]);
    assert_eq!(number(&sound, "problems_total"), 0, "{sound}");
    assert_eq!(number(&sound, "chunks"), 2, "{sound}");

    let damaged = bench.chunk_of(&flipped);
    let mut wrong = flipped.clone();
    wrong[77_777] ^= 0x40;
    fs::write(&damaged, &wrong).expect("a chunk");
    let gone = bench.chunk_of(&missing);
    fs::remove_file(&gone).expect("a chunk");

    let ran = bench.run(&["content", "check", "--json"]);
    let found: serde_json::Value =
        serde_json::from_str(ran.expect_code(TO_MEND)).expect("an answer");
    let problems = found["problems"].as_array().expect("problems");
    let told = |words: &[&str]| {
        let mut problems = problems.iter().filter_map(serde_json::Value::as_str);
        problems.any(|problem| words.iter().all(|word| problem.contains(word)))
    };
    let name = damaged.file_name().and_then(|name| name.to_str());
    assert!(told(&[name.expect("a name"), "damaged"]), "{found}");
    for id in [&id, &other] {
        assert!(told(&[id, "a chunk of it is missing"]), "{found}");
    }
    assert_eq!(number(&found, "problems_total"), 3, "{found}");
    // The damaged bytes are kept for an investigation, but are not served.
    assert!(!damaged.exists());
    let aside = bench.content().join("damaged");
    let is_aside = |path: &PathBuf| path.file_name() == damaged.file_name();
    let mut folders = vec![aside];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if is_aside(&path) {
                found.push(path);
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(fs::read(&found[0]).expect("a file") == wrong);
    for id in [&id, &other] {
        bench.run(&["get", id, "back"]).expect_code(3);
    }
    let shown = bench.run(&["content", "check"]);
    assert!(shown.expect_code(TO_MEND).contains(&other), "{shown:?}");

    for name in ["flipped", "missing"] {
        let again = bench.json(&["put", name]);
        assert_eq!(number(&again, "sent_chunks"), 1, "{again}");
    }
    bench.run(&["content", "check"]).expect_code(0);
    for (id, name, bytes) in [(&id, "flipped", &flipped), (&other, "missing", &missing)] {
        let back = format!("{name}-back");
        bench.run(&["get", id, &back]).expect_code(0);
        let back = fs::read(bench.path(&back).join(name)).expect("a file");
        assert!(back == *bytes, "{name}");
    }
}
