//! The task that owns the engine: gives it events, and carries out its decisions.
//!
//! It never waits for IO. Claims, pulls and finds run in their own tasks and report back as events.

use std::sync::Arc;

use fairlead_dispatch::{Decision, Engine, EngineConfig, Event, Millis};
use fairlead_job::JobId;
use tokio_util::sync::CancellationToken;

use crate::dispatching::{
    DispatchFlow,
    claims::Claim,
    store_reads::{FindAsked, PageRequest},
};
use fairlead_base::mailbox::Message;
use fairlead_lifecycle::engine_facts::store_version;

/// Longest time without a tick, ms.
const TICK_MS: u64 = 1_000;
/// Messages that are worked off before what was decided is carried out: who waits for an answer does not wait for a flood
/// of news.
const MESSAGES_MAX: usize = 64;
/// Claims that are written together, at most.
const CLAIMS_MAX: usize = 100;

/// Runs until `stop`; what has arrived by then is still worked off.
pub(crate) async fn run(flow: Arc<DispatchFlow>, stop: CancellationToken) {
    let config = EngineConfig {
        cache_jobs_max: flow.ctx.config.cache_jobs_max,
        ..EngineConfig::default()
    };
    let mut engine = Engine::new(config, flow.people.policy());
    let mut decisions = Vec::new();
    let mut wake = Millis(flow.ctx.clock.now().0.saturating_add(TICK_MS));
    loop {
        tokio::select! {
            biased;
            () = flow.ctx.engine.arrived() => {}
            () = flow.ctx.clock.sleep_until(wake) => {
                wake = Millis(flow.ctx.clock.now().0.saturating_add(TICK_MS));
                engine.on(flow.ctx.clock.now(), Event::Tick, &mut decisions);
            }
            () = stop.cancelled() => return,
        }
        let mut messages = flow.ctx.engine.take();
        loop {
            let rest = messages.split_off(messages.len().min(MESSAGES_MAX));
            let part = messages.len();
            for message in messages {
                match message {
                    Message::Event(event) => {
                        engine.on(flow.ctx.clock.now(), *event, &mut decisions);
                    }
                    Message::Question(question) => question(&engine, flow.ctx.clock.now()),
                }
            }
            flow.ctx.engine.worked_off(part);
            let mut together = DecisionBatch::default();
            for decision in decisions.drain(..) {
                if let Some(earlier) = carry_out(&flow, decision, &mut together) {
                    wake = wake.min(earlier);
                }
            }
            together.carry_out(&flow);
            if rest.is_empty() {
                break;
            }
            messages = rest;
        }
    }
}

/// What was decided in one turn and goes to the store together.
#[derive(Default)]
struct DecisionBatch {
    claims: Vec<Claim>,
    pulls: Vec<PageRequest>,
}

impl DecisionBatch {
    fn carry_out(mut self, flow: &Arc<DispatchFlow>) {
        if !self.pulls.is_empty() {
            flow.ctx.tasks.spawn(Arc::clone(flow).pull(self.pulls));
        }
        while !self.claims.is_empty() {
            let rest = self.claims.split_off(self.claims.len().min(CLAIMS_MAX));
            flow.ctx.tasks.spawn(Arc::clone(flow).claim(self.claims));
            self.claims = rest;
        }
    }
}

/// Carries out one decision, but for those that go together; returns when the engine wants to be woken, if it
/// says so.
fn carry_out(
    flow: &Arc<DispatchFlow>,
    decision: Decision,
    together: &mut DecisionBatch,
) -> Option<Millis> {
    match decision {
        Decision::Claim {
            job,
            version,
            offer,
        } => together.claims.push(Claim {
            job: JobId::new(job.0),
            expect: store_version(version),
            offer,
        }),
        Decision::Answer { offer, jobs } => {
            let jobs: Vec<JobId> = jobs.into_iter().map(|job| JobId::new(job.0)).collect();
            flow.answer_waiter(offer, jobs);
        }
        Decision::Pull {
            dimension,
            limit,
            after,
        } => together.pulls.push(PageRequest {
            dimension,
            limit,
            after,
        }),
        Decision::Find {
            offer,
            limit,
            accounts,
            pairs_max,
            after,
        } => {
            let asked = FindAsked {
                limit,
                accounts,
                pairs_max,
                after,
            };
            flow.ctx.tasks.spawn(Arc::clone(flow).find(offer, asked));
        }
        Decision::WakeAt(then) => return Some(then),
    }
    None
}
