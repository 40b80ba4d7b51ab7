//! Test fixtures of this crate: a plain state, and a replica's shared state.

mod stored_documents;

use std::sync::Arc;

use fairlead_content::ContentStore;
use fairlead_dispatch::{Engine, EngineConfig, Millis};
use fairlead_job::{IdMaker, Spec};
use fairlead_store::{EventFind, EventRecord, JobState, JobStore, NewJob, StoredJob};
use tokio_util::sync::CancellationToken;

use crate::{Clock, Config, Parts, core::Core, submission::built_jobs::BuiltJobs};
use fairlead_base::{
    errors::Refusal, mailbox::Message, peer_link::HttpPeers, providers::Programs, ring::Ring,
    sealing::Sealer,
};
use fairlead_known::{accounts::Credentials, live_jobs::Sight};

pub(crate) use fairlead_fixtures::{embedded, held, state, waits};

/// What a submit makes of this spec.
pub(crate) fn built(core: &Core, spec: Spec, said: &Credentials) -> Result<NewJob, Refusal> {
    let mut built = BuiltJobs::default();
    core.make_item(&mut built, Ok(spec), said);
    built.jobs.pop().expect("a job for each spec")
}

/// A replica's shared state over an embedded store of its own, without engine and HTTP.
pub(crate) async fn core() -> (tempfile::TempDir, Arc<Core>) {
    let data = tempfile::tempdir().expect("a folder for the store");
    let core = core_over(
        embedded(&data),
        Config::embedded(data.path().to_owned()),
        Clock::system(),
    );
    (data, core)
}

/// A replica's shared state over this store.
pub(crate) fn core_over(store: Arc<dyn JobStore>, config: Config, clock: Clock) -> Arc<Core> {
    let sealer = Sealer::with_ring(Ring::of_one([7; 32]), clock.clone());
    let content = ContentStore::in_memory();
    let parts = Parts::new(
        store,
        clock,
        Arc::new(HttpPeers::default()),
        content,
        Arc::new(Programs::default()),
    );
    let url = "http://127.0.0.1:1".to_owned();
    let stop = CancellationToken::new();
    Arc::new(Core::new(config, parts, url, sealer, &stop))
}

/// Gives it an engine that answers questions, and does nothing of what it decides. Its policy is that of now.
pub(crate) fn answer_questions(core: &Arc<Core>) {
    let tasks = core.tasks.clone();
    let core = Arc::clone(core);
    let mut engine = Engine::new(EngineConfig::default(), core.policy());
    tasks.spawn(async move {
        loop {
            core.engine.arrived().await;
            for message in core.engine.take() {
                let now = core.clock.now();
                match message {
                    Message::Event(event) => engine.on(now, *event, &mut Vec::new()),
                    Message::Question(question) => question(&engine, now),
                }
            }
        }
    });
}

/// Another replica's over the same store, by the same clock.
pub(crate) fn core_beside(core: &Core) -> Arc<Core> {
    let beside = core_over(
        Arc::clone(&core.store),
        core.config.clone(),
        core.clock.clone(),
    );
    // Ids of its own.
    beside.number_ids(IdMaker::new(1, core.clock.wall_s()));
    beside
}

/// Stores a job in this state and returns it as it is stored.
pub(crate) async fn store_job(core: &Core, state: JobState) -> StoredJob {
    let job = NewJob {
        state: state.clone(),
        body: Spec::new().into(),
    };
    let outcome = core
        .store
        .submit(vec![job])
        .await
        .pop()
        .expect("an outcome for each job");
    StoredJob {
        state,
        version: outcome.expect("a new job is taken").version,
    }
}

/// A sight at this time, with clocks that agree.
pub(crate) fn sight_at(now: Millis) -> Sight {
    Sight {
        now,
        stage_since: now,
        ahead_ms: 0,
    }
}

/// The audit log once it has so many entries, the newest first; fails after 10 s.
pub(crate) async fn noted(core: &Core, many: usize) -> Vec<EventRecord> {
    let find = EventFind {
        until_ms: u64::MAX >> 1,
        limit: 1_000,
        ..EventFind::default()
    };
    let deadline = core.clock.now().0 + 10_000;
    loop {
        let events = core.store.read_events(&find).await;
        let events = events.expect("the store answers");
        if events.len() >= many {
            return events;
        }
        assert!(core.clock.now().0 < deadline, "only {events:?}");
        tokio::task::yield_now().await;
    }
}

/// Waits until `holds` does; fails after 10 s.
pub(crate) async fn until(core: &Core, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = core.clock.now().0 + 10_000;
    while !holds() {
        assert!(core.clock.now().0 < deadline, "never seen: {what}");
        tokio::task::yield_now().await;
    }
}
