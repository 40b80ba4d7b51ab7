//! Open requests of hosts, which wait for an answer of the engine, by offer and by host.

use std::sync::Arc;

use dashmap::{DashMap, mapref::one::Ref};
use fairlead_dispatch::{Offer, OfferKey};
use fairlead_job::JobId;
use fairlead_store::{JobState, Version};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// Jobs that were claimed for one request.
#[derive(Debug, Clone, Default)]
pub struct Claimed(Arc<Mutex<Vec<KnownClaim>>>);

impl Claimed {
    fn lock(&self) -> MutexGuard<'_, Vec<KnownClaim>> {
        self.0.lock()
    }

    pub fn note(&self, claim: KnownClaim) {
        self.lock().push(claim);
    }

    pub fn take(&self) -> Vec<KnownClaim> {
        std::mem::take(&mut *self.lock())
    }
}

/// A request that waits for the engine's answer.
#[derive(Debug)]
pub struct Waiter {
    pub offerer: Requester,
    pub offer: Offer,
    /// Notified if the host should be answered before there is work.
    pub hurry: Arc<Notify>,
    /// Jobs that were claimed for it.
    pub claimed: Claimed,
    pub answer: oneshot::Sender<Vec<JobId>>,
}

/// All waiting requests.
#[derive(Debug, Default)]
pub struct Waiters {
    by_offer: DashMap<OfferKey, Waiter>,
    by_host: DashMap<String, Vec<OfferKey>>,
    /// Open requests by host, from arrival to answer. The latest one stays.
    unanswered: DashMap<String, Vec<OpenRequest>>,
}

/// A request that has no answer yet.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    session: String,
    request: u64,
    /// Notified if it is to be answered now.
    pub hurry: Arc<Notify>,
    /// Cancelled after its answer.
    pub over: CancellationToken,
}

impl Waiters {
    /// Returns the number of waiting requests.
    pub fn count(&self) -> usize {
        self.by_offer.len()
    }

    pub fn get(&self, offer: OfferKey) -> Option<Ref<'_, OfferKey, Waiter>> {
        self.by_offer.get(&offer)
    }

    pub fn insert(&self, waiter: Waiter) {
        let (key, host) = (waiter.offer.key, waiter.offerer.host.clone());
        self.by_offer.insert(key, waiter);
        self.by_host.entry(host).or_default().push(key);
    }

    pub fn remove(&self, offer: OfferKey) -> Option<Waiter> {
        let (key, waiter) = self.by_offer.remove(&offer)?;
        let host = &waiter.offerer.host;
        self.by_host.remove_if_mut(host, |_, offers| {
            offers.retain(|offer| *offer != key);
            offers.is_empty()
        });
        Some(waiter)
    }

    /// Adds a request. Also returns the session's earlier requests that it replaces, which are to be answered first.
    pub fn open(&self, asker: &Requester) -> (OpenRequest, Vec<OpenRequest>) {
        let open = OpenRequest {
            session: asker.session.clone(),
            request: asker.request,
            hurry: Arc::new(Notify::new()),
            over: CancellationToken::new(),
        };
        let mut older = Vec::new();
        self.unanswered
            .entry(asker.host.clone())
            .and_modify(|all| {
                all.retain(|one| !one.over.is_cancelled());
                older.clone_from(all);
            })
            .or_default()
            .push(open.clone());
        older.retain(|older| older.session == open.session && older.request < open.request);
        (open, older)
    }

    /// Has this host's selected requests answered now, with or without work.
    pub fn hurry_host(&self, host: &str, which: impl Fn(&Requester) -> bool) {
        let offers = self.by_host.get(host).map(|offers| offers.clone());
        for offer in offers.unwrap_or_default() {
            if let Some(waiter) = self.get(offer).filter(|waiter| which(&waiter.offerer)) {
                waiter.hurry.notify_one();
            }
        }
    }

    /// Has the selected requests of all hosts answered now, in the order of their offers.
    pub fn hurry(&self, which: impl Fn(&Waiter) -> bool) {
        let these = self.by_offer.iter();
        let these = these.filter(|waiter| which(waiter));
        let mut hurries: Vec<_> = these
            .map(|waiter| (*waiter.key(), Arc::clone(&waiter.hurry)))
            .collect();
        hurries.sort_unstable_by_key(|(offer, _)| *offer);
        for (_, hurry) in hurries {
            hurry.notify_one();
        }
    }
}

/// Host that asks, as a claim records it.
#[derive(Debug, Clone)]
pub struct Requester {
    pub host: String,
    pub group: String,
    pub memory_mb: u32,
    /// Number of CPUs. `None`: not reported.
    pub cpus: Option<u32>,
    /// Class of the machine, as jobs keep it. Empty: not reported.
    pub class: String,
    pub session: String,
    pub request: u64,
    /// Turn of the host that the request has.
    pub turn: Version,
}

/// A claim as it was known: the job, its token, and the number of its confirmations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownClaim {
    pub id: JobId,
    pub token: String,
    seq: u32,
}

impl KnownClaim {
    pub fn of(state: &JobState) -> Self {
        Self {
            id: state.job_id,
            token: state.claim_token.clone(),
            seq: state.claim_seq,
        }
    }
}
