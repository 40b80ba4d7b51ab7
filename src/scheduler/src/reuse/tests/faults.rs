//! Tests of the notes of reuse over a store that fails: nothing that is lost makes a wrong result be taken.

use fairlead_fault_store::{Fault, FaultStore, On, Step};

use super::*;
use crate::{
    Clock, Config,
    testing::{embedded, flows_over},
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
async fn faulty() -> (tempfile::TempDir, Arc<FaultStore>, Arc<Flows>) {
    let data = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultStore::new(embedded(&data), []));
    let config = Config::embedded(data.path().to_owned());
    let flows = flows_over(Arc::clone(&store) as _, config, Clock::system());
    host(&flows, "h1", "6.1");
    audit(&flows, 0).await;
    (data, store, flows)
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
async fn shows_an_end(flows: &Flows, store: &FaultStore, id: JobId) {
    let stored = flows.jobs.stored_job(id).await.unwrap();
    let end_ms = flows.ctx.clock.wall_ms();
    let mut vanishing = stored.clone();
    vanishing.state = ended(&stored.state, Stage::Finish, Health::Success, end_ms, "");
    vanishing.state.data_readiness = DataReadiness::Complete;
    vanishing.version.seq_no += 1;
    store.show(Some(vanishing));
}

/// Notes all ends, and says whether the first try did.
async fn noted(flows: &Arc<Flows>, store: &FaultStore, fault: Fault) -> bool {
    meets(store, fault);
    let first = flows.reuse.write_results().await;
    assert_eq!(store.left(), [], "{fault:?}");
    flows.reuse.write_results().await.unwrap();
    first.is_ok()
}

#[tokio::test]
async fn a_failure_is_noted_whatever_becomes_of_the_write() {
    let (_data, store, flows) = faulty().await;
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let job = json!({ "n": n });
        let failed = accepted(&flows, &job).await;
        fail(&flows, failed).await;
        let is_at_once = noted(&flows, &store, fault).await;
        let is_refused = matches!(fault, Fault::Unavailable | Fault::Refused);
        assert_eq!(is_at_once, !is_refused, "{fault:?}");
        let good = accepted(&flows, &job).await;
        run(&flows, good).await;
        assert!(has(&taken(&flows, &job).await, "flaky"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_success_is_noted_once_whatever_becomes_of_the_write() {
    let (_data, store, flows) = faulty().await;
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let job = json!({ "n": n });
        let id = accepted(&flows, &job).await;
        run(&flows, id).await;
        noted(&flows, &store, fault).await;
        let key = read(&flows, id).await.reuse.unwrap().key;
        let doc = entry_id(&key, Some("ann"));
        let entry = flows
            .ctx
            .docs
            .read::<Entry>(&doc)
            .await
            .unwrap()
            .unwrap()
            .doc;
        let jobs: Vec<JobId> = entry.results.iter().map(|one| one.job).collect();
        assert_eq!((jobs, entry.bad.as_str()), (vec![id], ""), "{fault:?}");
        assert_eq!(taken(&flows, &job).await, Ok(id), "{fault:?}");
    }
}

#[tokio::test]
async fn a_job_never_waits_for_itself_and_runs_whatever_becomes_of_its_note() {
    let (_data, store, flows) = faulty().await;
    for (n, fault) in FAULTS.into_iter().enumerate() {
        let job = json!({ "n": n });
        meets(&store, fault);
        let first = submit(&flows, &job).await;
        assert_eq!(store.left(), [], "{fault:?}");
        let id = id_of(&first);
        assert_eq!(first.joined, "", "{fault:?}");
        assert!(read(&flows, id).await.ready, "{fault:?}");
        // Without a note the next one runs too: that costs a run, and nothing else.
        let second = submit(&flows, &job).await;
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
    let (_data, store, flows) = faulty().await;
    let first = accepted(&flows, &json!({})).await;
    let second = id_of(&submit(&flows, &json!({})).await);
    shows_an_end(&flows, &store, first).await;
    flows.waiting.sweep_dependants().await;
    store.show(None);
    let state = read(&flows, second).await;
    assert_eq!((state.stage, state.reused_from), (Stage::Submit, None));
    run(&flows, first).await;
    let seq = read(&flows, first).await.claim_seq;
    flows.waiting.sweep_dependants().await;
    assert_eq!(read(&flows, second).await.reused_from, Some(first));
    assert_eq!(read(&flows, first).await.claim_seq, seq);
}

#[tokio::test]
async fn two_replicas_that_note_a_success_and_a_failure_at_once_lose_neither() {
    let (_data, flows) = lab().await;
    let beside = flows_beside(&flows);
    host(&beside, "h1", "6.1");
    let job = json!({});
    let good = accepted(&flows, &job).await;
    // Nobody knows that it runs: the second one runs, too.
    let key = read(&flows, good).await.reuse.unwrap().key;
    let forgets = async |_| Ok::<_, fairlead_base::errors::Refusal>(Entry::default());
    let doc = entry_id(&key, Some("ann"));
    flows.ctx.docs.change(&doc, forgets).await.unwrap();
    let failed = accepted(&beside, &job).await;
    run(&flows, good).await;
    fail(&beside, failed).await;
    let (here, there) = tokio::join!(flows.reuse.write_results(), beside.reuse.write_results());
    assert!(here.is_ok() && there.is_ok());
    assert!(has(&taken(&flows, &job).await, "flaky"));
}
