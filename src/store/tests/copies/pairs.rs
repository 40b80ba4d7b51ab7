//! A file and a log that were copied one after the other, and those that a crash leaves.

use std::{fs, path::Path};

use fairlead_store::EmbeddedStore;

use super::{copies, has, restore};
use crate::{
    conformance::{id, state, submit_all},
    raw, refusal,
};

const FILES: [&str; 2] = ["fairlead.db", "fairlead.db-wal"];

/// Writes the log back, and begins it anew, as SQLite does by itself when it is long.
fn begin_anew(dir: &Path) {
    let conn = raw(dir);
    // Not the last one that closes.
    let busy: bool = conn
        .query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))
        .unwrap();
    assert!(!busy);
}

fn take(from: &Path, name: &str, to: &Path) {
    fs::copy(from.join(name), to.join(name)).unwrap();
}

#[tokio::test]
async fn a_log_that_does_not_continue_its_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path();
    let store = EmbeddedStore::open(from).unwrap();
    submit_all(&store, (1..=3).map(state).collect()).await;
    // The file first; then the log begins anew, and is copied.
    let early = tempfile::tempdir().unwrap();
    take(from, FILES[0], early.path());
    begin_anew(from);
    submit_all(&store, (4..=6).map(state).collect()).await;
    take(from, FILES[1], early.path());
    // The log first; then more of it is written back, and the file is copied.
    let late = tempfile::tempdir().unwrap();
    take(from, FILES[1], late.path());
    submit_all(&store, (7..=9).map(state).collect()).await;
    let conn = raw(from);
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        .unwrap();
    take(from, FILES[0], late.path());
    for (part, said) in [(&early, "begins behind"), (&late, "newer than the log")] {
        for _ in 0..2 {
            let (reason, hint) = refusal(part.path());
            assert!(
                reason.contains(said) && reason.contains("different moments"),
                "{reason}"
            );
            assert!(hint.contains("fairlead backup"), "{hint}");
        }
        let path = part.path().join(FILES[0]);
        let other = tempfile::tempdir().unwrap();
        assert!(restore(&path, other.path(), false).is_err());
    }
    // Whoever accepts the loss gets what there is, and should check it.
    restore(&early.path().join(FILES[0]), early.path(), true).unwrap();
    assert!(has(early.path(), 6).await);
}

#[tokio::test]
async fn what_a_crash_leaves_is_opened_at_every_moment() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path();
    let store = EmbeddedStore::open(from).unwrap();
    let opened = async |n: u64| {
        // Nothing is written meanwhile: both files are of one moment.
        let killed = copies(from, &FILES);
        for _ in 0..2 {
            let store = EmbeddedStore::open(killed.path()).unwrap();
            let ids: Vec<_> = (1..=n).map(id).collect();
            let read = fairlead_store::JobStore::get(&store, &ids).await.unwrap();
            assert!(read.iter().all(Option::is_some), "{n}");
        }
    };
    opened(0).await;
    let conn = raw(from);
    for (round, how) in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "PASSIVE"]
        .iter()
        .enumerate()
    {
        let first = 10 * u64::try_from(round).unwrap() + 1;
        for n in first..first + 10 {
            submit_all(&store, vec![state(n)]).await;
            opened(n).await;
            if n == first + 5 {
                conn.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()))
                    .unwrap();
                opened(n).await;
            }
        }
    }
    drop(store);
    drop(conn);
    let closed = copies(from, &FILES[..1]);
    assert!(has(closed.path(), 50).await);
}
