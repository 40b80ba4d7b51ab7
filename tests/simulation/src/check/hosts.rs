//! Requests of hosts, as the hosts know them.

use std::collections::BTreeMap;

use fairlead_api::ConsumeRequest;
use fairlead_job::Stage;
use fairlead_store::JobState;

use super::{Check, Run, broken};
use crate::world::Violation;

/// What a request offered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offered {
    pub(super) memory_mb: u32,
    /// None: it did not say.
    pub(super) cpus: Option<u32>,
    pub(super) jobs: u32,
}

impl Offered {
    /// Whether it is more memory or more CPUs than another has.
    pub(super) fn is_more_than(&self, other: &Self) -> bool {
        let more_cpus = self.cpus.zip(other.cpus).is_some_and(|(a, b)| a > b);
        self.memory_mb > other.memory_mb || more_cpus
    }
}

/// One host's own view.
#[derive(Debug, Default)]
pub(super) struct HostSide {
    /// The session that lives; empty: none does.
    pub(super) session: String,
    /// What each request of the session offered.
    offers: BTreeMap<u64, Offered>,
    /// The request that waits for an answer, and when it was sent.
    pub(super) asks: Option<(ConsumeRequest, u64)>,
    /// The session's last one, answered or not: a copy of it may still be on its way.
    pub(super) asked: Option<ConsumeRequest>,
}

impl HostSide {
    pub(super) fn offered(&self, session: &str, request: u64) -> Option<Offered> {
        let offers = (self.session == session).then_some(&self.offers)?;
        offers.get(&request).copied()
    }
}

/// Whether who asks so may have a job that is its by the store: it names it, or had not read the answer that
/// brings it. Else it has lost it.
pub(super) fn may_have(request: &ConsumeRequest, state: &JobState) -> bool {
    let mut named = request.running.iter();
    state.request > request.read_up_to() || named.any(|held| held.claim_token == state.claim_token)
}

impl Check {
    /// What the jobs take that the request of a claim has brought with it, and the others of them.
    pub(super) fn of_one_request(&self, after: &JobState) -> (Offered, Vec<String>) {
        let id = after.job_id;
        let same_request = self
            .history
            .jobs
            .values()
            .filter(|track| track.asked() == Some((&after.session, after.request)))
            // What was not handed out yet may be put back: the request came twice. So may what another replica
            // claimed or took over, that it came to as well: this one may have a claim on its way.
            .filter(|track| track.handed_by == after.replica)
            .map(|track| &track.state)
            .filter(|state| {
                state.job_id != id
                    && state.stage.is_held()
                    && state.stage != Stage::Dispatch
                    && state.host == after.host
            });
        let mut got = Offered {
            memory_mb: after.memory_mb,
            cpus: Some(after.cpus),
            jobs: 1,
        };
        let mut others = Vec::new();
        for other in same_request {
            got.jobs += 1;
            got.memory_mb += other.memory_mb;
            got.cpus = got.cpus.map(|cpus| cpus + other.cpus);
            others.push(format!("{} by {}", other.job_id, other.replica));
        }
        (got, others)
    }

    /// A machine is ended: nothing may run on it.
    pub(crate) fn runs_nothing(&self, host: usize, name: &str) -> Result<(), Violation> {
        let runs = self.runs.iter().find(|(_, runs)| {
            let mut runs = runs.iter();
            runs.any(|run| run.host == host && !run.ended)
        });
        match runs {
            Some((id, _)) => broken("I17", format!("{name} is ended, and runs job {id}")),
            None => Ok(()),
        }
    }

    pub(crate) fn session_begins(&mut self, host: usize, session: &str) {
        if let Some(side) = self.hosts.get_mut(host) {
            *side = HostSide {
                session: session.to_owned(),
                ..HostSide::default()
            };
        }
    }

    pub(crate) fn session_ends(&mut self, host: usize) {
        if let Some(side) = self.hosts.get_mut(host) {
            *side = HostSide::default();
        }
        let its = |run: &&mut Run| run.host == host && !run.ended;
        for run in self.runs.values_mut().flatten().filter(its) {
            run.orphaned = true;
        }
    }

    /// A host sends a request for work.
    pub(crate) fn host_asks(&mut self, host: usize, request: &ConsumeRequest, now_ms: u64) {
        if let Some(side) = self.hosts.get_mut(host) {
            let offer = Offered {
                memory_mb: request.free_memory_mb,
                cpus: request.free_cpus,
                jobs: request.jobs_max,
            };
            side.offers.insert(request.request, offer);
            side.asks = Some((request.clone(), now_ms));
            side.asked = Some(request.clone());
        }
    }

    /// Whether no host waits for the answer to a request that is older than this.
    pub(crate) fn all_asked_since(&self, since_ms: u64) -> bool {
        let mut asks = self.hosts.iter().filter_map(|side| side.asks.as_ref());
        asks.all(|(_, sent_ms)| *sent_ms >= since_ms)
    }

    /// Its request was answered, or nobody will answer it.
    pub(crate) fn host_answered(&mut self, host: usize) {
        if let Some(side) = self.hosts.get_mut(host) {
            side.asks = None;
        }
    }
}
