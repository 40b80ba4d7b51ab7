//! Test fixtures of this crate: a plain state, and all flows of a replica.

mod stored_documents;

use std::sync::Arc;

use fairlead_content::ContentStore;
use fairlead_dispatch::{Engine, EngineConfig, Millis};
use fairlead_job::{IdMaker, Spec};
use fairlead_store::{EventFind, EventRecord, JobState, JobStore, NewJob, StoredJob};
use tokio_util::sync::CancellationToken;

use crate::{Clock, Config, Parts, flows::Flows, submission::built_jobs::BuiltJobs};
use fairlead_base::{
    errors::Refusal, mailbox::Message, peer_link::HttpPeers, providers::Programs, ring::Ring,
    sealing::Sealer,
};
use fairlead_known::{accounts::Credentials, live_jobs::Sight};

pub(crate) use fairlead_fixtures::{embedded, held, state, waits};

/// What a submit makes of this spec.
pub(crate) fn built(flows: &Flows, spec: Spec, said: &Credentials) -> Result<NewJob, Refusal> {
    let mut built = BuiltJobs::default();
    flows.submission.make_item(&mut built, Ok(spec), said);
    built.jobs.pop().expect("a job for each spec")
}

/// All flows of a replica over an embedded store of its own, without engine and HTTP.
pub(crate) async fn flows() -> (tempfile::TempDir, Arc<Flows>) {
    let data = tempfile::tempdir().expect("a folder for the store");
    let flows = flows_over(
        embedded(&data),
        Config::embedded(data.path().to_owned()),
        Clock::system(),
    );
    (data, flows)
}

/// All flows of a replica over this store.
pub(crate) fn flows_over(store: Arc<dyn JobStore>, config: Config, clock: Clock) -> Arc<Flows> {
    flows_with(store, config, clock, ContentStore::in_memory())
}

/// All flows of a replica over these stores.
pub(crate) fn flows_with(
    store: Arc<dyn JobStore>,
    config: Config,
    clock: Clock,
    content: ContentStore,
) -> Arc<Flows> {
    let sealer = Sealer::with_ring(Ring::of_one([7; 32]), clock.clone());
    let parts = Parts::new(
        store,
        clock,
        Arc::new(HttpPeers::default()),
        content,
        Arc::new(Programs::default()),
    );
    let url = "http://127.0.0.1:1".to_owned();
    let stop = CancellationToken::new();
    Arc::new(Flows::new(config, parts, url, sealer, &stop))
}

/// Gives it an engine that answers questions, and does nothing of what it decides. Its policy is that of now.
pub(crate) fn answer_questions(flows: &Arc<Flows>) {
    let tasks = flows.ctx.tasks.clone();
    let flows = Arc::clone(flows);
    let mut engine = Engine::new(EngineConfig::default(), flows.people.policy());
    tasks.spawn(async move {
        loop {
            flows.ctx.engine.arrived().await;
            for message in flows.ctx.engine.take() {
                let now = flows.ctx.clock.now();
                match message {
                    Message::Event(event) => engine.on(now, *event, &mut Vec::new()),
                    Message::Question(question) => question(&engine, now),
                }
            }
        }
    });
}

/// Another replica's over the same store, by the same clock.
pub(crate) fn flows_beside(flows: &Flows) -> Arc<Flows> {
    let beside = flows_over(
        Arc::clone(&flows.ctx.store),
        flows.ctx.config.clone(),
        flows.ctx.clock.clone(),
    );
    // Ids of its own.
    beside
        .peers
        .number_ids(IdMaker::new(1, flows.ctx.clock.wall_s()));
    beside
}

/// Stores a job in this state and returns it as it is stored.
pub(crate) async fn store_job(flows: &Flows, state: JobState) -> StoredJob {
    let job = NewJob {
        state: state.clone(),
        body: Spec::new().into(),
    };
    let outcome = flows
        .ctx
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
pub(crate) async fn noted(flows: &Flows, many: usize) -> Vec<EventRecord> {
    let find = EventFind {
        until_ms: u64::MAX >> 1,
        limit: 1_000,
        ..EventFind::default()
    };
    let deadline = flows.ctx.clock.now().0 + 10_000;
    loop {
        let events = flows.ctx.store.read_events(&find).await;
        let events = events.expect("the store answers");
        if events.len() >= many {
            return events;
        }
        assert!(flows.ctx.clock.now().0 < deadline, "only {events:?}");
        tokio::task::yield_now().await;
    }
}

/// Waits until `holds` does; fails after 10 s.
pub(crate) async fn until(flows: &Flows, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = flows.ctx.clock.now().0 + 10_000;
    while !holds() {
        assert!(flows.ctx.clock.now().0 < deadline, "never seen: {what}");
        tokio::task::yield_now().await;
    }
}
