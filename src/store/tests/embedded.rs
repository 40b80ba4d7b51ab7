//! Tests of the embedded store: the conformance suite, and failures that only a file has.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests panic and print"
)]

mod conformance;
mod copies;

use std::{path::Path, process::Command};

use conformance::{change, claim, id, job, read_one, state, state_with, submit_all};
use fairlead_job::Stage;
use fairlead_store::{
    DocKind, DocWrite, EmbeddedStore, Expect, ItemError, JobStore, Patch, Pull, PullBy, Search,
    StoreError,
};
use serde_json::json;

async fn with_store(case: impl AsyncFnOnce(&dyn JobStore)) {
    let dir = tempfile::tempdir().unwrap();
    case(&EmbeddedStore::open(dir.path()).unwrap()).await;
}

conformance!(with_store);

fn raw(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("fairlead.db")).unwrap()
}

fn refusal(dir: &Path) -> (String, String) {
    match EmbeddedStore::open(dir) {
        Err(StoreError::Unusable { reason, hint }) => (reason, hint),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    submit_all(&store, (1..=20).map(state).collect()).await;
    change(&store, id(3), |s| s.stage = Stage::Dispatch)
        .await
        .unwrap();
    let doc = DocWrite {
        id: "q".into(),
        expect: Expect::Any,
        body: Some(json!({"w": 1})),
    };
    let deleted = DocWrite {
        body: None,
        ..doc.clone()
    };
    store
        .put_docs(DocKind::Queue, vec![doc.clone()])
        .await
        .remove(0)
        .unwrap();
    let last = store
        .put_docs(DocKind::Queue, vec![deleted])
        .await
        .remove(0)
        .unwrap();
    let (counts, job) = (store.counts().await.unwrap(), read_one(&store, id(3)).await);
    drop(store);
    let log = dir.path().join("fairlead.db-wal");
    assert!(!log.exists(), "a store that was closed is one file");

    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.counts().await.unwrap(), counts);
    assert_eq!(read_one(&store, id(3)).await, job);
    // Versions go on where they were, also behind a delete.
    assert!(
        store
            .put_docs(DocKind::Queue, vec![doc])
            .await
            .remove(0)
            .unwrap()
            > last
    );
}

/// Not a test of its own: the process that the next test kills.
const CHILD_DIR: &str = "FAIRLEAD_TEST_CHILD_DIR";

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    if let Some(dir) = std::env::var_os(CHILD_DIR) {
        return submit_until_killed(Path::new(&dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "what_was_acknowledged_survives_a_kill",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD_DIR, dir.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut acknowledged = 0;
    while acknowledged < 200 {
        let line = lines.next().unwrap().unwrap();
        if let Some(n) = line.strip_prefix("in ") {
            acknowledged = n.parse().unwrap();
        }
    }
    let pid = child.id();
    assert!(refusal(dir.path()).0.contains(&pid.to_string()));
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("in ")?.parse().ok())
        .last()
        .unwrap_or(acknowledged);

    let store = EmbeddedStore::open(dir.path()).unwrap();
    let ids: Vec<_> = (1..=acknowledged).map(id).collect();
    let read = store.get(&ids).await.unwrap();
    let mut read: Vec<_> = read.into_iter().map(Option::unwrap).collect();
    // The group of the last submit may have had the claim of that job behind it.
    read.pop();
    assert!(read.iter().all(|job| job.state.stage == Stage::Dispatch));
    assert_eq!(
        store
            .get_bodies(&ids)
            .await
            .unwrap()
            .iter()
            .flatten()
            .count(),
        ids.len()
    );
    // The derived tables agree with the states.
    let all = Pull {
        by: PullBy::All,
        limit: 10_000,
        after: None,
    };
    let waiting = store.pull(&[all]).await.unwrap().remove(0).jobs;
    assert!(waiting.iter().all(|job| job.state.stage == Stage::Submit));
    let waiting = u64::try_from(waiting.len()).unwrap();
    assert_eq!(store.counts().await.unwrap().total, waiting);
}

/// A submit and the claim of the job before it are requests of one group.
async fn submit_until_killed(dir: &Path) {
    let store = EmbeddedStore::open(dir).unwrap();
    let mut before = None;
    for n in 1.. {
        let claims = before.map(|expect| Patch {
            id: id(n - 1),
            expect,
            set: claim(&state(n - 1), "t"),
        });
        let claims = claims.into_iter().collect();
        let (versions, claimed) = tokio::join!(
            submit_all(&store, vec![state(n)]),
            store.patch_and_get(claims)
        );
        assert!(claimed.iter().all(Result::is_ok));
        before = versions.first().copied();
        println!("in {n}");
    }
}

#[tokio::test]
async fn one_bad_item_of_a_group_does_not_fail_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let version = submit_all(&store, vec![state(1)]).await[0];
    let patch = |n: u64, expect| Patch {
        id: id(n),
        expect,
        set: claim(&state(1), "t"),
    };
    let doc = |expect| DocWrite {
        id: "q".into(),
        expect,
        body: Some(json!({"w": 1})),
    };
    let bad = state_with(2, |s| s.format = 99);
    let other = state_with(1, |s| s.account = "bob".into());
    // The first request goes alone; the others wait meanwhile and share the next transaction.
    let (first, submits, patches, docs) = tokio::join!(
        store.put_docs(DocKind::Queue, vec![doc(Expect::Any)]),
        store.submit([bad, other, state(3)].map(job).into()),
        store.patch_and_get(vec![
            patch(9, version),
            patch(1, version),
            patch(1, version)
        ]),
        store.put_docs(
            DocKind::Host,
            vec![doc(Expect::Version(version)), doc(Expect::Absent)]
        ),
    );
    assert!(first[0].is_ok());
    assert!(
        matches!(submits[0], Err(ItemError::Refused { .. })),
        "{submits:?}"
    );
    assert!(
        matches!(submits[1], Err(ItemError::Conflict { .. })),
        "{submits:?}"
    );
    assert!(submits[2].is_ok(), "{submits:?}");
    assert_eq!(patches[0], Err(ItemError::Missing));
    assert_eq!(patches[1], Ok(read_one(&store, id(1)).await));
    let now = Err(ItemError::Conflict {
        current: Some(patches[1].as_ref().unwrap().version),
    });
    assert_eq!(patches[2], now);
    assert_eq!(docs[0], Err(ItemError::Conflict { current: None }));
    assert!(docs[1].is_ok());
    assert_eq!(store.counts().await.unwrap().total, 1);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.counts().await.unwrap().total, 1);
    assert_eq!(read_one(&store, id(3)).await.state, state(3));
}

#[tokio::test]
async fn a_second_process_is_told_who_has_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let (reason, hint) = refusal(dir.path());
    assert!(
        reason.contains(&format!("process {}", std::process::id())),
        "{reason}"
    );
    assert!(hint.contains("--data"), "{hint}");
    drop(store);
    EmbeddedStore::open(dir.path()).unwrap();
}

#[tokio::test]
async fn files_that_are_not_ours_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    for (version, known, age) in [(15, "up to 14", "newer"), (13, "from 14 on", "older")] {
        raw(dir.path())
            .pragma_update(None, "user_version", version)
            .unwrap();
        let (reason, hint) = refusal(dir.path());
        assert!(reason.contains(&format!("format {version},")), "{reason}");
        assert!(
            reason.contains(known) && hint.contains(age),
            "{reason} {hint}"
        );
    }

    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(refusal(dir.path()).0.contains("another program"));

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("fairlead.db"),
        "not a database at all".repeat(100),
    )
    .unwrap();
    assert!(refusal(dir.path()).0.contains("fairlead.db"));

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(refusal(&file).0.contains("file"));
}

/// Who brings files up wrote none down for jobs of long before.
#[tokio::test]
async fn a_job_without_words_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let word = |n: u64| state_with(n, |s| s.kv = vec![format!("n={n}"), "suite=x".into()]);
    submit_all(&store, (1..=4).map(word).collect()).await;
    drop(store);
    let none = format!("UPDATE jobs SET words = NULL WHERE job_id = {}", id(4));
    raw(dir.path()).execute_batch(&none).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    // A change that writes the whole row keeps them, and keeps that there are none.
    for n in [2, 4] {
        change(&store, id(n), |s| s.priority = 5).await.unwrap();
    }
    let found = async |word: &str| {
        let search = Search {
            keywords: vec![vec![word.to_owned()]],
            limit: 9,
            ..Search::default()
        };
        let page = store.search(&search).await.unwrap();
        let mut numbers = conformance::numbers(&page.jobs);
        numbers.sort_unstable();
        (numbers, page.wordless)
    };
    assert_eq!(found("n=2").await, (vec![2], 1));
    assert_eq!(found("suite=x").await, (vec![1, 2, 3], 1));
}

#[tokio::test]
async fn unknown_fields_stay_and_unknown_formats_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    submit_all(&store, (1..=3).map(state).collect()).await;
    raw(dir.path())
        .execute_batch(&format!(
            "UPDATE states SET state = json_set(state, '$.tomorrow', 7) WHERE job_id = {};
             UPDATE states SET state = json_set(state, '$.format', 3) WHERE job_id = {};",
            id(1),
            id(2)
        ))
        .unwrap();
    change(&store, id(1), |s| s.priority = 5).await.unwrap();
    let kept: i64 = raw(dir.path())
        .query_row(
            &format!(
                "SELECT state ->> '$.tomorrow' FROM states WHERE job_id = {}",
                id(1)
            ),
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(kept, 7);
    let error = store.get(&[id(2)]).await.unwrap_err();
    assert!(error.to_string().contains("format 3"), "{error}");
    let readable = store.get_readable(&[1, 2, 3].map(id)).await.unwrap();
    assert_eq!(conformance::numbers(&readable), [1, 3]);
    let all = Pull {
        by: PullBy::All,
        limit: 9,
        after: None,
    };
    let page = store.pull(&[all]).await.unwrap().remove(0);
    assert_eq!(conformance::numbers(&page.jobs), [1, 3]);
}

#[tokio::test]
async fn a_long_log_is_emptied_when_nothing_is_written() {
    /// It says at once which file it continues.
    const SHORT: u64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let log = dir.path().join("fairlead.db-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    submit_all(&store, (1..=2_000).map(state).collect()).await;
    assert!(length() > 1 << 20, "{}", length());
    for _ in 0..3_000 {
        if length() < SHORT {
            break;
        }
        // A read goes on meanwhile.
        store.get(&[id(1)]).await.unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert!(length() < SHORT, "{}", length());
}
