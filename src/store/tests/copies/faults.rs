//! Checks of files that were changed behind the back of the store.

use fairlead_job::Stage;
use fairlead_store::{EmbeddedStore, Findings, JobStore, NewJob, ShardPlace, Sharding, check_jobs};

use crate::{
    conformance::{id, job, state_with, submit_all},
    raw,
};

async fn checked(dir: &std::path::Path, now_ms: u64) -> Vec<(&'static str, u64, Vec<String>)> {
    let store = EmbeddedStore::open_to_read(dir).unwrap();
    let mut found = store.check_tables(Findings::new(2)).await.unwrap();
    check_jobs(&store, now_ms, &mut found, |_, _| {})
        .await
        .unwrap();
    let kinds = found.kinds().iter().filter(|one| one.count > 0);
    kinds
        .map(|one| (one.kind, one.count, one.examples.clone()))
        .collect()
}

#[tokio::test]
async fn each_fault_is_counted_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let now_ms = id(1).born_s() * 1_000 + 3_600_000;
    let parent = state_with(10, |s| {
        s.ready = false;
        s.shards = Some(Box::new(Sharding {
            count: 2,
            made: true,
            ..Sharding::default()
        }));
    });
    let shard = |n: u64, of: u64, place: u16| {
        state_with(n, |s| {
            s.shard = Some(ShardPlace {
                of: id(of),
                n: place,
                total: 2,
            });
        })
    };
    let host = state_with(20, |s| {
        s.stage = Stage::Running;
        s.host = "gone".into();
    });
    let mut all: Vec<_> = (1..=6).map(|n| state_with(n, |_| {})).collect();
    all.extend([parent, shard(11, 10, 1), shard(15, 14, 1), host]);
    submit_all(&store, all).await;
    // While it is open, too.
    let found = checked(dir.path(), now_ms).await;
    let text = |n: u64| id(n).to_string();
    let of_jobs = [
        ("shard_missing", 1, vec![text(12)]),
        ("shard_without_parent", 1, vec![text(15)]),
        ("host_unknown", 1, vec![format!("{} on gone", text(20))]),
    ];
    assert_eq!(found, of_jobs);
    drop(store);
    raw(dir.path())
        .execute_batch(&format!(
            "DELETE FROM bodies WHERE job_id = {};
             DELETE FROM states WHERE job_id = {};
             UPDATE jobs SET stage = 'finish' WHERE job_id = {};
             DELETE FROM jobs WHERE job_id = {};
             DELETE FROM wait_keys WHERE job_id = {};
             UPDATE states SET state = 'x' WHERE job_id = {};
             UPDATE states SET seq = 1000000 WHERE job_id = {};",
            id(1),
            id(2),
            id(3),
            id(4),
            id(5),
            id(6),
            id(20),
        ))
        .unwrap();
    let mut found = checked(dir.path(), now_ms).await;
    let unreadable = found.iter_mut().find(|one| one.0 == "unreadable").unwrap();
    let why = std::mem::take(&mut unreadable.2);
    assert!(why.len() == 1 && why[0].starts_with(&text(6)), "{why:?}");
    let in_tables = [
        (
            "body_without_state",
            1,
            vec![format!("{} in bodies", text(2))],
        ),
        (
            "row_without_state",
            2,
            vec![
                format!("{} in jobs", text(2)),
                format!("{} in wait_keys", text(2)),
            ],
        ),
        ("state_without_row", 1, vec![text(4)]),
        (
            "row_differs",
            2,
            vec![
                format!("{} in stage", text(3)),
                format!("{} in host keys", text(5)),
            ],
        ),
        ("version_beyond_counter", 1, vec![text(20)]),
        ("unreadable", 1, vec![]),
        ("state_without_body", 1, vec![text(1)]),
    ];
    let expected: Vec<_> = in_tables.into_iter().chain(of_jobs).collect();
    assert_eq!(found, expected);
    // From before their time: all of them are ahead of the clock.
    let early = checked(dir.path(), 1).await;
    assert!(early.iter().any(|(kind, ..)| *kind == "id_ahead_of_clock"));
}

#[tokio::test]
async fn who_only_reads_writes_nothing_and_needs_a_store_of_this_version() {
    let dir = tempfile::tempdir().unwrap();
    assert!(EmbeddedStore::open_to_read(dir.path()).is_err());
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let reader = EmbeddedStore::open_to_read(dir.path()).unwrap();
    let new: NewJob = job(state_with(1, |_| {}));
    assert!(reader.submit(vec![new.clone()]).await[0].is_err());
    assert!(store.submit(vec![new]).await[0].is_ok());
    assert_eq!(reader.counts().await.unwrap().total, 1);
    drop((reader, store));
    raw(dir.path())
        .pragma_update(None, "user_version", 0)
        .unwrap();
    let refused = EmbeddedStore::open_to_read(dir.path()).unwrap_err();
    assert!(refused.to_string().contains("format 14"), "{refused}");
}
