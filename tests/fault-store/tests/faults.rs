//! Tests of the faulty store: each fault has its effect on store and caller, as often as planned.

#![expect(clippy::unwrap_used, reason = "tests panic")]

#[path = "../../../src/store/tests/conformance/mod.rs"]
mod conformance;

use std::sync::Arc;

use conformance::{claim, id, job, read_one, state, submit_all};
use fairlead_fault_store::{Fault, FaultStore, On, Step};
use fairlead_job::Stage;
use fairlead_store::{EmbeddedStore, ItemError, JobStore, Patch, Search, StoreError};

/// Checks that without a fault it passes everything that the inner store passes.
async fn with_store(case: impl AsyncFnOnce(&dyn JobStore)) {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    case(&FaultStore::new(Arc::new(store), [])).await;
}

conformance!(with_store);

fn step(on: On, fault: Fault, times: u32) -> Step {
    Step { on, fault, times }
}

#[tokio::test]
async fn writes_meet_the_faults_of_the_plan() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let faulty = FaultStore::new(
        store,
        [
            step(On::Patch, Fault::Conflict, 2),
            step(On::Patch, Fault::LostWithoutAnswer, 1),
            step(On::Patch, Fault::Unavailable, 1),
            step(On::Write, Fault::CommitWithoutAnswer, 1),
        ],
    );
    // The first write of any kind meets the fault for writes; the claims wait for theirs.
    let lost = faulty.submit(vec![job(state(1))]).await.remove(0);
    assert!(matches!(lost, Err(ItemError::Unknown { .. })));
    let version = submit_all(&faulty, vec![state(1)]).await[0];
    let patch = Patch {
        id: id(1),
        expect: version,
        set: claim(&state(1), "t"),
    };
    let mut outcomes = vec![];
    for _ in 0..5 {
        outcomes.push(faulty.patch(vec![patch.clone()]).await.remove(0));
        let stage = read_one(&faulty, id(1)).await.state.stage;
        assert_eq!(stage == Stage::Dispatch, outcomes.len() == 5);
    }
    assert!(matches!(outcomes[0], Err(ItemError::Conflict { .. })));
    assert!(matches!(outcomes[1], Err(ItemError::Conflict { .. })));
    assert!(matches!(outcomes[2], Err(ItemError::Unknown { .. })));
    assert!(matches!(outcomes[3], Err(ItemError::NotTaken { .. })));
    assert!(outcomes[4].is_ok());
    assert!(faulty.left().is_empty());
}

#[tokio::test]
async fn a_claim_may_be_in_although_the_answer_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let faulty = FaultStore::new(store, []);
    let version = submit_all(&faulty, vec![state(1)]).await[0];
    faulty.then(step(On::Patch, Fault::CommitAsConflict, 1));
    let patch = Patch {
        id: id(1),
        expect: version,
        set: claim(&state(1), "mine"),
    };
    let result = faulty.patch(vec![patch]).await.remove(0);
    assert!(matches!(result, Err(ItemError::Conflict { .. })));
    assert_eq!(read_one(&faulty, id(1)).await.state.claim_token, "mine");
}

#[tokio::test]
async fn searches_are_stale_or_fail() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let faulty = FaultStore::new(store, []);
    submit_all(&faulty, vec![state(1)]).await;
    let search = Search {
        limit: 10,
        ..Search::default()
    };
    assert_eq!(faulty.search(&search).await.unwrap().total, 1);
    assert_eq!(faulty.counts().await.unwrap().total, 1);
    submit_all(&faulty, vec![state(2)]).await;
    faulty.then(step(On::Search, Fault::Stale, 2));
    assert_eq!(faulty.search(&search).await.unwrap().total, 1);
    assert_eq!(faulty.counts().await.unwrap().total, 1);
    assert_eq!(faulty.counts().await.unwrap().total, 2);
    faulty.then(step(On::Any, Fault::Unavailable, 1));
    let error = faulty.counts().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
    faulty.then(step(On::Get, Fault::Unavailable, 1));
    assert!(faulty.get(&[id(1)]).await.is_err());
    assert!(faulty.get(&[id(1)]).await.is_ok());
}
