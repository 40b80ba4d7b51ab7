//! Tests of the notes of reuse over a store that fails: nothing that is lost makes a wrong result be taken.

use fairlead_fault_store::{Fault, FaultStore, On, Step};

use super::*;
use crate::{
    Clock, Config,
    testing::{core_over, embedded},
};

/// What may become of a write.
const FAULTS: [Fault; 6] = [
    Fault::Conflict,
    Fault::CommitWithoutAnswer,
    Fault::CommitAsConflict,
    Fault::LostWithoutAnswer,
    Fault::Unavailable,
    Fault::Refused,
];

/// A lab whose store fails as planned.
async fn faulty() -> (tempfile::TempDir, Arc<FaultStore>, Arc<Core>) {
    let data = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultStore::new(embedded(&data), []));
    let config = Config::embedded(data.path().to_owned());
    let core = core_over(Arc::clone(&store) as _, config, Clock::system());
    host(&core, "h1", "6.1");
    audit(&core, 0).await;
    (data, store, core)
}

/// The next write of a small document meets this fault.
fn meets(store: &FaultStore, fault: Fault) {
    store.then(Step {
        on: On::PutDocs,
        fault,
        times: 1,
    });
}

/// Reads show from now on that this job ended well, although the store never acknowledged that.
async fn shows_an_end(core: &Core, store: &FaultStore, id: JobId) {
    let stored = core.stored_job(id).await.unwrap();
    let end_ms = core.clock.wall_ms();
    let mut vanishing = stored.clone();
    vanishing.state = ended(&stored.state, Stage::Finish, Health::Success, end_ms, "");
    vanishing.state.data_readiness = DataReadiness::Complete;
    vanishing.version.seq_no += 1;
    store.show(Some(vanishing));
}

/// Notes all ends, and says whether the first try did.
async fn noted(core: &Arc<Core>, store: &FaultStore, fault: Fault) -> bool {
    meets(store, fault);
    let first = core.write_results().await;
    assert_eq!(store.left(), [], "{fault:?}");
    core.write_results().await.unwrap();
    first.is_ok()
}

#[tokio::test]
async fn a_failure_is_noted_whatever_becomes_of_the_write() {
    let (_data, store, core) = faulty().await;
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let job = json!({ "n": n });
        let failed = accepted(&core, &job).await;
        fail(&core, failed).await;
        let is_at_once = noted(&core, &store, fault).await;
        let is_refused = matches!(fault, Fault::Unavailable | Fault::Refused);
        assert_eq!(is_at_once, !is_refused, "{fault:?}");
        let good = accepted(&core, &job).await;
        run(&core, good).await;
        assert!(has(&taken(&core, &job).await, "flaky"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_success_is_noted_once_whatever_becomes_of_the_write() {
    let (_data, store, core) = faulty().await;
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let job = json!({ "n": n });
        let id = accepted(&core, &job).await;
        run(&core, id).await;
        noted(&core, &store, fault).await;
        let key = read(&core, id).await.reuse.unwrap().key;
        let doc = entry_id(&key, Some("ann"));
        let entry = core.docs.read::<Entry>(&doc).await.unwrap().unwrap().doc;
        let jobs: Vec<JobId> = entry.results.iter().map(|one| one.job).collect();
        assert_eq!((jobs, entry.bad.as_str()), (vec![id], ""), "{fault:?}");
        assert_eq!(taken(&core, &job).await, Ok(id), "{fault:?}");
    }
}

#[tokio::test]
async fn a_job_never_waits_for_itself_and_runs_whatever_becomes_of_its_note() {
    let (_data, store, core) = faulty().await;
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let job = json!({ "n": n });
        meets(&store, fault);
        let first = submit(&core, &job).await;
        assert_eq!(store.left(), [], "{fault:?}");
        let id = id_of(&first);
        assert_eq!(first.joined, "", "{fault:?}");
        assert!(read(&core, id).await.ready, "{fault:?}");
        // Without a note the next one runs too: that costs a run, and nothing else.
        let second = submit(&core, &job).await;
        let is_noted = matches!(
            fault,
            Fault::Conflict | Fault::CommitWithoutAnswer | Fault::CommitAsConflict
        );
        let joined = if is_noted {
            first.job_id
        } else {
            String::new()
        };
        assert_eq!(second.joined, joined, "{fault:?}");
    }
}

#[tokio::test]
async fn an_end_that_vanishes_is_nobodys_result() {
    let (_data, store, core) = faulty().await;
    let first = accepted(&core, &json!({})).await;
    let second = id_of(&submit(&core, &json!({})).await);
    shows_an_end(&core, &store, first).await;
    core.sweep_dependants().await;
    store.show(None);
    let state = read(&core, second).await;
    assert_eq!((state.stage, state.reused_from), (Stage::Submit, None));
    run(&core, first).await;
    let seq = read(&core, first).await.claim_seq;
    core.sweep_dependants().await;
    assert_eq!(read(&core, second).await.reused_from, Some(first));
    assert_eq!(read(&core, first).await.claim_seq, seq);
}

#[tokio::test]
async fn two_replicas_that_note_a_success_and_a_failure_at_once_lose_neither() {
    let (_data, core) = lab().await;
    let beside = core_beside(&core);
    host(&beside, "h1", "6.1");
    let job = json!({});
    let good = accepted(&core, &job).await;
    // Nobody knows that it runs: the second one runs, too.
    let key = read(&core, good).await.reuse.unwrap().key;
    let forgets = async |_| Ok::<_, fairlead_base::errors::Refusal>(Entry::default());
    let doc = entry_id(&key, Some("ann"));
    core.docs.change(&doc, forgets).await.unwrap();
    let failed = accepted(&beside, &job).await;
    run(&core, good).await;
    fail(&beside, failed).await;
    let (here, there) = tokio::join!(core.write_results(), beside.write_results());
    assert!(here.is_ok() && there.is_ok());
    assert!(has(&taken(&core, &job).await, "flaky"));
}
