//! Tests of `fairlead put` and `fairlead get`: whole processes that are killed, and a store whose bytes change.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fairlead_tests::{Ran, Scheduler, Store, eventually, fairlead, on_terminal, reaper, settings};
use serde_json::Value;
use tempfile::TempDir;

/// A lab, and a person's folder.
pub(crate) struct Bench {
    pub(crate) scheduler: Scheduler,
    folder: TempDir,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        Self {
            scheduler: Scheduler::start(Store::Embedded).await,
            folder: TempDir::with_prefix("fairlead-put-").expect("a folder"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        let url = self.scheduler.url();
        fairlead(self.folder.path(), &[("FAIRLEAD_SERVER", &url)], words)
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let ran = self.run(&[words, &["--json"]].concat());
        serde_json::from_str(ran.expect_code(0)).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Starts a command that runs beside the test.
    fn spawn(&self, words: &[&str]) -> Killed {
        let child = Command::new(settings::binary("fairlead"))
            .args(words)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("FAIRLEAD_SERVER", self.scheduler.url())
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Killed(child.expect("the command"))
    }

    pub(crate) fn content(&self) -> PathBuf {
        self.scheduler.data().join("content")
    }

    /// Returns the complete objects of a kind. A file that is being written has another name.
    pub(crate) fn stored(&self, kind: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in entries(&self.content().join(kind)) {
            let is_whole = |path: &PathBuf| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.len() == 64)
            };
            found.extend(entries(&folder).into_iter().filter(is_whole));
        }
        found
    }
}

/// A process that ends with the test.
struct Killed(Child);

impl Killed {
    /// Kills it (`kill -9`). Returns true if it was still at work.
    fn kill(&mut self) -> bool {
        let was_at_work = self.0.try_wait().expect("a child").is_none();
        let _ = self.0.kill();
        let _ = self.0.wait();
        was_at_work
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Returns bytes without a pattern, equal for equal seeds.
pub(crate) fn noise(seed: u64, many: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(many + 8);
    while out.len() < many {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    out.truncate(many);
    out
}

/// Returns the entry at each path: mode and bytes of files, targets of links, and empty folders.
fn tree(root: &Path) -> BTreeMap<String, (String, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let inside = entries(&folder);
        let name = |path: &Path| {
            let below = path.strip_prefix(root).expect("below the root");
            below.to_str().expect("a name").to_owned()
        };
        if inside.is_empty() {
            found.insert(name(&folder), ("folder".to_owned(), Vec::new()));
        }
        for path in inside {
            let about = fs::symlink_metadata(&path).expect("it is there");
            if about.is_dir() {
                folders.push(path);
            } else if about.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                let target = target.into_os_string().into_encoded_bytes();
                found.insert(name(&path), ("link".to_owned(), target));
            } else {
                let mode = format!("{:o}", about.permissions().mode() & 0o777);
                found.insert(name(&path), (mode, fs::read(&path).expect("a file")));
            }
        }
    }
    found
}

pub(crate) fn number(value: &Value, name: &str) -> u64 {
    let number = value[name].as_u64();
    number.unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// Creates a folder with all kinds of entries that a put accepts.
fn write_all_kinds(root: &Path) {
    fs::create_dir_all(root.join("deep/er")).expect("a folder");
    fs::create_dir(root.join("empty")).expect("a folder");
    fs::write(root.join("deep/er/ä b"), "letters").expect("a file");
    fs::write(root.join("nothing"), "").expect("a file");
    fs::write(root.join("large"), noise(1, 5_000_000)).expect("a file");
    fs::write(root.join("run.sh"), "#!/bin/sh\n").expect("a file");
    for (name, mode) in [
        ("run.sh", 0o755),
        ("large", 0o644),
        ("nothing", 0o644),
        ("deep/er/ä b", 0o644),
    ] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(root.join(name), mode).expect("a mode");
    }
    symlink("../large", root.join("deep/link")).expect("a link");
    symlink("/no/where", root.join("away")).expect("a link");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_comes_back_as_it_was_and_is_sent_once() {
    let bench = Bench::start().await;
    write_all_kinds(&bench.path("from"));
    let put = bench.json(&["put", "from", "--name", "build 7"]);
    assert_eq!(number(&put, "files"), 7, "{put}");
    assert_eq!(number(&put, "sent_chunks"), number(&put, "chunks"));
    let id = put["id"].as_str().expect("an id");

    // The folder is named after the id, or by the person.
    let got = bench.json(&["get", id]);
    assert_eq!(got["dir"], id[..12]);
    assert_eq!(number(&got, "bytes"), number(&put, "bytes"));
    bench.run(&["get", id, "to/here"]).expect_code(0);
    let from = tree(&bench.path("from"));
    assert!(from == tree(&bench.path(&id[..12])));
    assert!(from == tree(&bench.path("to/here")));
    let again = bench.run(&["get", id, "to/here"]);
    again.expect_code(2);
    assert!(again.err.contains("no empty folder"), "{}", again.err);

    // The only output is the id, and nothing is sent twice.
    let ran = bench.run(&["put", "to/here"]);
    assert_eq!(ran.expect_code(0), format!("{id}\n"));
    assert!(ran.err.contains("sent 0 of "), "{}", ran.err);

    // A terminal shows a bar during the put, and the id stays.
    let url = bench.scheduler.url();
    let variables = [("FAIRLEAD_SERVER", url.as_str())];
    let folder = bench.folder.path();
    let shown = on_terminal(folder, &variables, &["put", "from"], 120, "");
    assert!(shown.expect_code(0).contains(id), "{shown:?}");
    assert!(shown.out.contains("sent 0 of "), "{shown:?}");

    let listed = bench.json(&["content", "ls"]);
    assert_eq!(listed[0]["id"], id, "{listed}");
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let shown = bench.json(&["content", "stat", id]);
    assert_eq!(number(&shown, "bytes"), number(&put, "bytes"));
    let table = bench.run(&["content", "ls"]);
    assert!(table.expect_code(0).contains(id), "{table:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_moves_few_chunks() {
    let bench = Bench::start().await;
    let mut bytes = noise(2, 20_000_000);
    fs::write(bench.path("image"), &bytes).expect("a file");
    let first = bench.json(&["put", "image"]);
    assert!(number(&first, "chunks") > 20, "{first}");
    bytes[11_111_111] ^= 1;
    fs::write(bench.path("image"), &bytes).expect("a file");
    let second = bench.json(&["put", "image"]);
    assert_ne!(first["id"], second["id"]);
    assert!(
        (1..=3).contains(&number(&second, "sent_chunks")),
        "{second}"
    );
    let id = second["id"].as_str().expect("an id");
    bench.run(&["get", id, "back"]).expect_code(0);
    assert!(fs::read(bench.path("back/image")).expect("a file") == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_is_killed_sends_no_chunk_again() {
    let bench = Bench::start().await;
    let mut were_killed = 0;
    for (seed, after, parallel) in [
        (10, 0, "1"),
        (11, 1, "1"),
        (12, 9, "1"),
        (13, 0, "8"),
        (14, 3, "8"),
        (15, 17, "8"),
        (16, 30, "8"),
    ] {
        let name = format!("image-{seed}");
        fs::write(bench.path(&name), noise(seed, 30_000_000)).expect("a file");
        let others = bench.stored("chunks").len();
        let mut putting = bench.spawn(&["put", &name, "--parallel", parallel]);
        eventually("some chunks are there", async || {
            (bench.stored("chunks").len() >= others + after).then_some(())
        })
        .await;
        were_killed += usize::from(putting.kill());
        let there = bench.stored("chunks").len() - others;
        let resumed = bench.json(&["put", &name]);
        let chunks = number(&resumed, "chunks");
        let there = u64::try_from(there).expect("few");
        let sent = number(&resumed, "sent_chunks");
        assert!(sent <= chunks - there, "{there} were there: {resumed}");
        let id = resumed["id"].as_str().expect("an id");
        let back = format!("back-{seed}");
        bench.run(&["get", id, &back]).expect_code(0);
        let same =
            fs::read(bench.path(&back).join(&name)).expect("a file") == noise(seed, 30_000_000);
        assert!(same, "{name}");
        fs::remove_dir_all(bench.path(&back)).expect("a folder");
    }
    assert!(were_killed >= 3, "only {were_killed} were killed at work");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_in_the_store_is_never_delivered() {
    let bench = Bench::start().await;
    let bytes = noise(3, 100_000);
    fs::create_dir_all(bench.path("from/deep")).expect("a folder");
    fs::write(bench.path("from/deep/victim"), &bytes).expect("a file");
    fs::write(bench.path("from/other"), "other").expect("a file");
    let put = bench.json(&["put", "from"]);
    let id = put["id"].as_str().expect("an id");
    let stored = bench.stored("chunks").into_iter();
    let mut found = stored.filter(|path| fs::read(path).is_ok_and(|stored| stored == bytes));
    let chunk = found.next().expect("the chunk of the file");
    let mut flipped = bytes.clone();
    flipped[50_000] ^= 0x10;
    fs::write(&chunk, &flipped).expect("a chunk");
    for words in [&["get", id, "into"][..], &["get", id, "into", "--json"]] {
        let ran = bench.run(words);
        ran.expect_code(3);
        assert!(
            ran.err.contains("'deep/victim' cannot be had"),
            "{}",
            ran.err
        );
        assert!(!bench.path("into").exists());
    }
    // The reader moved it aside, so the next put sends the right one.
    assert!(!chunk.exists());
    assert_eq!(bench.json(&["put", "from"])["id"], id);
    bench.run(&["get", id, "into"]).expect_code(0);
    assert!(tree(&bench.path("into")) == tree(&bench.path("from")));
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_nobody_knows_are_refused() {
    let bench = Bench::start().await;
    let unknown = "ab".repeat(32);
    for (words, code) in [
        (["get", unknown.as_str(), "into"], 3),
        (["get", "26010100000000000001", "into"], 3),
        (["get", "build 7", "into"], 2),
        (["content", "stat", unknown.as_str()], 3),
        (["put", "nowhere", "--parallel=1"], 5),
        (["put", ".", "--parallel=0"], 2),
    ] {
        let ran = bench.run(&words);
        ran.expect_code(code);
        assert!(!bench.path("into").exists(), "{words:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_goes_on_when_its_scheduler_is_back() {
    let mut bench = Bench::start().await;
    fs::write(bench.path("image"), noise(20, 30_000_000)).expect("a file");
    let mut putting = bench.spawn(&["put", "image", "--parallel", "2"]);
    eventually("some chunks are there", async || {
        (bench.stored("chunks").len() >= 5).then_some(())
    })
    .await;
    bench.scheduler.kill();
    let before = bench.stored("chunks").len();
    assert_eq!(bench.stored("manifests"), Vec::<PathBuf>::new());
    bench.scheduler.restart().await;
    let ended = eventually("the put ends", async || {
        putting.0.try_wait().expect("a child")
    });
    assert!(ended.await.success());
    assert_eq!(bench.stored("manifests").len(), 1);
    assert!(bench.stored("chunks").len() > before);
    let again = bench.json(&["put", "image"]);
    assert_eq!(number(&again, "sent_chunks"), 0, "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_waits_while_the_store_takes_nothing() {
    let bench = Bench::start().await;
    fs::write(bench.path("image"), noise(21, 3_000_000)).expect("a file");
    // Nothing can be written below this folder, as on a full disk.
    fs::create_dir_all(bench.content()).expect("a folder");
    let chunks = bench.content().join("chunks");
    fs::write(&chunks, "").expect("a file in the way");
    let mut putting = bench.spawn(&["put", "image"]);
    eventually("the scheduler says that it cannot", async || {
        bench
            .scheduler
            .log()
            .contains("content store does not answer")
            .then_some(())
    })
    .await;
    assert!(putting.0.try_wait().expect("a child").is_none());
    fs::remove_file(&chunks).expect("the file in the way");
    let ended = eventually("the put ends", async || {
        putting.0.try_wait().expect("a child")
    });
    assert!(ended.await.success());
    assert_eq!(bench.stored("manifests").len(), 1);
}
