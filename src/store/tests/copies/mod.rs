//! Copies of a store: backups, restores, and copies that are refused.

mod faults;
mod pairs;

use std::path::Path;

use fairlead_store::{EmbeddedStore, JobStore, RestoreOptions, StoreError};

use crate::{
    conformance::{id, state, submit_all},
    raw, refusal,
};

fn restore(copy: &Path, dir: &Path, as_it_is: bool) -> Result<(), StoreError> {
    let options = RestoreOptions {
        as_it_is,
        ..RestoreOptions::default()
    };
    fairlead_store::restore(copy, dir, options).map(|replaced| assert_eq!(replaced, None))
}

/// What lies in this folder now: copies of these files in another one.
fn copies(from: &Path, names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    dir
}

async fn has(dir: &Path, n: u64) -> bool {
    let store = EmbeddedStore::open(dir).unwrap();
    store.get(&[id(n)]).await.unwrap()[0].is_some()
}

#[tokio::test]
async fn a_copy_without_the_log_of_an_open_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    submit_all(&store, vec![state(1)]).await;
    let part = copies(dir.path(), &["fairlead.db"]);
    for _ in 0..2 {
        let (reason, hint) = refusal(part.path());
        assert!(
            reason.contains("fairlead.db-wal") && reason.contains("without its log"),
            "{reason}"
        );
        assert!(hint.contains("fairlead backup"), "{hint}");
        assert!(hint.contains("restore --as-it-is"), "{hint}");
    }
    // Both files are what a kill leaves, too.
    let whole = copies(dir.path(), &["fairlead.db", "fairlead.db-wal"]);
    assert!(has(whole.path(), 1).await);
    drop(store);
    let closed = copies(dir.path(), &["fairlead.db"]);
    assert!(has(closed.path(), 1).await);
    // Whoever accepts the loss gets what there is.
    let path = part.path().join("fairlead.db");
    assert!(restore(&path, part.path(), false).is_err());
    restore(&path, part.path(), true).unwrap();
    assert!(!has(part.path(), 1).await);
}

#[tokio::test]
async fn a_backup_of_an_open_store_is_whole_and_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    submit_all(&store, vec![state(1)]).await;
    let backup = dir.path().join("a backup?#%.db");
    fairlead_store::backup(dir.path(), &backup).unwrap();
    let again = fairlead_store::backup(dir.path(), &backup).unwrap_err();
    assert!(again.to_string().contains("already exists"), "{again}");
    submit_all(&store, vec![state(2)]).await;
    let busy = restore(&backup, dir.path(), false).unwrap_err();
    assert!(busy.to_string().contains("locked by process"), "{busy}");
    drop(store);
    let there = restore(&backup, dir.path(), false).unwrap_err();
    assert!(there.to_string().contains("already has a store"), "{there}");
    let other = tempfile::tempdir().unwrap();
    restore(&backup, other.path(), false).unwrap();
    assert!(has(other.path(), 1).await && !has(other.path(), 2).await);
    // As SQLite's own tool makes one.
    let third = tempfile::tempdir().unwrap();
    let vacuumed = third.path().join("fairlead.db");
    let store = EmbeddedStore::open(dir.path()).unwrap();
    raw(dir.path())
        .execute("VACUUM INTO ?1", [vacuumed.to_str().unwrap()])
        .unwrap();
    assert!(has(third.path(), 2).await);
    drop(store);
    let nothing = tempfile::tempdir().unwrap();
    std::fs::write(nothing.path().join("x"), "no store ".repeat(100)).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let error = restore(&nothing.path().join("x"), empty.path(), true);
    assert!(error.unwrap_err().to_string().contains("as a store"));
    assert!(!empty.path().join("fairlead.db").exists());
}

#[tokio::test]
async fn a_store_that_is_replaced_is_kept_with_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    submit_all(&store, vec![state(1)]).await;
    let backup = dir.path().join("backup.db");
    fairlead_store::backup(dir.path(), &backup).unwrap();
    submit_all(&store, vec![state(2)]).await;
    // As after a kill: the second job is in the log.
    let killed = copies(dir.path(), &["fairlead.db", "fairlead.db-wal"]);
    let options = RestoreOptions {
        replace: true,
        ..RestoreOptions::default()
    };
    let busy = fairlead_store::restore(&backup, dir.path(), options).unwrap_err();
    assert!(busy.to_string().contains("locked by process"), "{busy}");
    for n in 1..=2 {
        let kept = fairlead_store::restore(&backup, killed.path(), options).unwrap();
        let name = format!("fairlead.db.replaced-{n}");
        assert_eq!(kept, Some(killed.path().join(name)));
        assert!(has(killed.path(), 1).await && !has(killed.path(), 2).await);
    }
    let first = tempfile::tempdir().unwrap();
    restore(
        &killed.path().join("fairlead.db.replaced-1"),
        first.path(),
        false,
    )
    .unwrap();
    assert!(has(first.path(), 2).await);
    let left: Vec<_> = std::fs::read_dir(killed.path())
        .unwrap()
        .flatten()
        .collect();
    let parts = left
        .iter()
        .filter(|file| file.file_name().to_string_lossy().contains("part-"));
    assert_eq!(parts.count(), 0, "{left:?}");
}
