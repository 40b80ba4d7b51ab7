//! Tests of what only the inside of the store can set: room on the disk, and the limit of the log.

use super::*;
use crate::{codec, embedded::numbers::unsigned};

fn job(n: u64, body_bytes: usize) -> NewJob {
    let text = include_str!("../../../tests/golden/state-1.json");
    let mut state = codec::decode_text(text).unwrap();
    state.job_id = JobId::new(state.job_id.get() + n);
    let mut body = Spec::new();
    body.insert("x".to_owned(), "y".repeat(body_bytes).into());
    let body = body.into();
    NewJob { state, body }
}

/// Opens a store with little room.
fn small(dir: &Path) -> EmbeddedStore {
    let opened = open::open(dir).unwrap();
    opened
        .writer
        .pragma_update(None, "max_page_count", 100)
        .unwrap();
    EmbeddedStore::start(opened).unwrap()
}

#[tokio::test]
async fn a_full_disk_takes_nothing_and_the_store_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    assert!(store.submit(vec![job(1, 10)]).await[0].is_ok());

    let results = store.submit(vec![job(2, 10), job(3, 1 << 20)]).await;
    for result in &results {
        assert!(
            matches!(result, Err(ItemError::NotTaken { .. })),
            "{result:?}"
        );
    }
    let health = store.health();
    assert!(
        health.reads.is_well() && health.writes.problem.contains("full"),
        "{health:?}"
    );
    let ids = [job(2, 0).state.job_id, job(3, 0).state.job_id];
    assert_eq!(store.get(&ids).await.unwrap(), [None, None]);

    assert!(store.submit(vec![job(2, 10)]).await[0].is_ok());
    assert!(store.health().is_well());
}

#[tokio::test]
async fn a_reader_does_not_let_the_log_grow_beyond_its_limit() {
    const LIMIT: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open::open(dir.path()).unwrap();
    opened.log = opened.log.up_to(LIMIT);
    let store = EmbeddedStore::start(opened).unwrap();
    assert!(store.submit(vec![job(1, 10)]).await[0].is_ok());
    let reader = Connection::open(dir.path().join("fairlead.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let jobs = |conn: &Connection| -> u64 {
        conn.query_row("SELECT COUNT(*) FROM states", [], |row| unsigned(row, 0))
            .unwrap()
    };
    assert_eq!(jobs(&reader), 1);
    let mut taken = 1;
    let refused = loop {
        match store.submit(vec![job(taken + 1, 60_000)]).await.remove(0) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&refused, ItemError::NotTaken { reason } if reason.contains("limit of 1 MB") && reason.contains("-wal")),
        "{refused:?}"
    );
    let log = std::fs::metadata(dir.path().join("fairlead.db-wal")).unwrap();
    assert!(
        (LIMIT..LIMIT + 200_000).contains(&log.len()),
        "{}",
        log.len()
    );
    assert!(taken > 5 && !store.health().is_well());
    // The reader still sees what it saw first; when it ends, the lab goes on.
    assert_eq!(jobs(&reader), 1);
    reader.execute_batch("COMMIT").unwrap();
    assert!(store.submit(vec![job(taken + 1, 60_000)]).await[0].is_ok());
    assert_eq!(jobs(&reader), taken + 1);
    assert!(store.health().is_well());
}

/// Numbers of failed commits are used up, and are in no file.
#[tokio::test]
async fn a_crash_after_failed_commits_needs_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    assert!(store.submit(vec![job(1, 10)]).await[0].is_ok());
    let conn = Connection::open(dir.path().join("fairlead.db")).unwrap();
    for n in 2..12 {
        let large = store.submit(vec![job(100 + n, 1 << 20)]).await;
        assert!(large[0].is_err(), "{large:?}");
        conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))
            .unwrap();
        assert!(store.submit(vec![job(n, 10)]).await[0].is_ok());
        let killed = tempfile::tempdir().unwrap();
        for name in ["fairlead.db", "fairlead.db-wal"] {
            std::fs::copy(dir.path().join(name), killed.path().join(name)).unwrap();
        }
        let again = EmbeddedStore::open(killed.path()).unwrap();
        let ids = [job(1, 0).state.job_id, job(n, 0).state.job_id];
        let read = again.get(&ids).await.unwrap();
        assert!(read.iter().all(Option::is_some), "{read:?}");
    }
}

/// Otherwise a job would go to hosts that cannot run it.
#[tokio::test]
async fn a_shape_that_a_failed_group_brought_is_brought_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    let waiting = |n: u64, body_bytes, memory_mb| {
        let mut job = job(n, body_bytes);
        job.state.stage = fairlead_job::Stage::Submit;
        job.state.memory_mb = memory_mb;
        job
    };
    let failed = store
        .submit(vec![waiting(1, 10, 8_000), waiting(2, 1 << 20, 8_000)])
        .await;
    assert!(failed.iter().all(Result::is_err), "{failed:?}");
    let jobs = vec![waiting(3, 10, 1_000), waiting(1, 10, 8_000)];
    let results = store.submit(jobs.clone()).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let state = &jobs[0].state;
    let offer = Find {
        host: "h".to_owned(),
        keys: state.host_keys.clone(),
        arch: state.arch.clone(),
        free_memory_mb: 1_000,
        free_cpus: None,
        tags: state.tags.clone(),
        devices: state.devices.clone(),
        accounts: Vec::new(),
        limit: 9,
        pairs_max: 9,
        after: None,
    };
    let found = store.find(&[offer]).await.unwrap().remove(0).jobs;
    let found: Vec<JobId> = found.iter().map(|job| job.state.job_id).collect();
    assert_eq!(found, [state.job_id]);
}
