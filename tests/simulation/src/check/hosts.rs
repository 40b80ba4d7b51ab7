//! Requests of hosts, as the hosts know them.

use std::collections::BTreeMap;

use fairlead_api::ConsumeRequest;
use fairlead_job::Stage;
use fairlead_store::JobState;

use super::{Check, Run, broken};
use crate::world::Violation;

/// Room that a request offered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offered {
    pub(super) memory_mb: u32,
    /// Number of CPUs. `None`: not reported.
    pub(super) cpus: Option<u32>,
    pub(super) jobs: u32,
}

impl Offered {
    /// Returns true if it has more memory or more CPUs than `other`.
    pub(super) fn is_more_than(&self, other: &Self) -> bool {
        let more_cpus = self.cpus.zip(other.cpus).is_some_and(|(a, b)| a > b);
        self.memory_mb > other.memory_mb || more_cpus
    }
}

/// A host as it sees itself.
#[derive(Debug, Default)]
pub(super) struct HostSide {
    /// Its living session. Empty: none.
    pub(super) session: String,
    /// Room that each request of the session offered.
    offers: BTreeMap<u64, Offered>,
    /// Request that waits for an answer, and its send time, ms.
    pub(super) asks: Option<(ConsumeRequest, u64)>,
    /// Last request of the session, answered or not. A copy of it may still be in transit.
    pub(super) asked: Option<ConsumeRequest>,
}

impl HostSide {
    pub(super) fn offered(&self, session: &str, request: u64) -> Option<Offered> {
        let offers = (self.session == session).then_some(&self.offers)?;
        offers.get(&request).copied()
    }
}

/// Returns true if the sender of this request may have a job that is its own in the store. It names the job, or had not
/// read the answer with it. Otherwise it has lost the job.
pub(super) fn may_have(request: &ConsumeRequest, state: &JobState) -> bool {
    let mut named = request.running.iter();
    state.request > request.read_up_to() || named.any(|held| held.claim_token == state.claim_token)
}

impl Check {
    /// Returns the room taken by the jobs of a claim's request, and the other jobs of that request.
    pub(super) fn of_one_request(&self, after: &JobState) -> (Offered, Vec<String>) {
        let id = after.job_id;
        let same_request = self
            .history
            .jobs
            .values()
            .filter(|track| track.asked() == Some((&after.session, after.request)))
            // Jobs that were not handed out yet may be put back, because the request arrived twice. The same holds for
            // claims of another replica that got the request as well: this one may have a claim in transit.
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

    /// Checks that nothing runs on a machine that is ended.
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

    /// Notes that a host sends a request for work.
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

    /// Returns true if no host waits for the answer to a request older than this.
    pub(crate) fn all_asked_since(&self, since_ms: u64) -> bool {
        let mut asks = self.hosts.iter().filter_map(|side| side.asks.as_ref());
        asks.all(|(_, sent_ms)| *sent_ms >= since_ms)
    }

    /// Notes that the host's request was answered, or never will be.
    pub(crate) fn host_answered(&mut self, host: usize) {
        if let Some(side) = self.hosts.get_mut(host) {
            side.asks = None;
        }
    }
}
