//! Testboxes: registration, requests for work, heartbeats, leases, cordons, reservations, health checks, network boot.

pub(crate) mod boot_script;
pub(crate) mod cordons;
pub(crate) mod fence;
pub(crate) mod forget;
mod grants;
pub(crate) mod health_checks;
pub(crate) mod heartbeats;
mod host_file;
pub(crate) mod initrd;
pub(crate) mod instances;
mod job_script;
pub(crate) mod lease_docs;
pub(crate) mod network_boot;
pub(crate) mod registration;
pub(crate) mod reservations;
pub(crate) mod reset;
mod retire;
pub(crate) mod work_requests;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use fairlead_dispatch::OfferKey;

use crate::{
    ctx::{Ctx, Lab},
    dispatching::DispatchFlow,
    jobs::JobFlow,
    peers::PeerFlow,
    people::PeopleFlow,
    placement::PlacementFlow,
    submission::SubmissionFlow,
};
use fairlead_known::instances::Instances;
use fairlead_known::{
    host_turns::HostTurns, leases::Renewals, lost_hosts::LostHosts,
    unknown_machines::UnknownMachines,
};

/// Registration, requests for work, heartbeats and leases of hosts.
#[derive(Debug)]
pub(crate) struct HostFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) placement: Arc<PlacementFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    pub(crate) dispatching: Arc<DispatchFlow>,
    pub(crate) instances: Instances,
    pub(crate) host_turns: HostTurns,
    pub(crate) renewals: Renewals,
    /// Hosts that this replica found lost.
    pub(crate) lost: LostHosts,
    /// Machines that asked what to boot and are not registered.
    pub(crate) unknown: UnknownMachines,
    /// Key of the next offer.
    pub(crate) offers: AtomicU64,
}

impl HostFlow {
    /// A new offer's key.
    pub(crate) fn next_offer(&self) -> OfferKey {
        OfferKey(self.offers.fetch_add(1, Ordering::Relaxed))
    }
}
