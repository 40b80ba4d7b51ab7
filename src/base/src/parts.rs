//! Parts of a replica that its embedder provides, besides the configuration: store, clock, peers.

use std::sync::Arc;

use fairlead_content::ContentStore;
use fairlead_store::JobStore;

use crate::{Clock, peer_link::PeerLink, providers::Providers};

/// Characters of the word for a run: enough that no two that live have the same.
const RUN_CHARS: usize = 8;

/// What a replica is made of, besides its configuration.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The truth.
    pub store: Arc<dyn JobStore>,
    /// Its clocks.
    pub clock: Clock,
    /// The way to other replicas.
    pub peers: Arc<dyn PeerLink>,
    /// Inputs and outputs.
    pub content: ContentStore,
    /// Who makes and ends the machines of pools.
    pub providers: Arc<dyn Providers>,
    /// Tells this run of the replica from all others of its name.
    pub run: String,
}

impl Parts {
    /// Parts of a run that has never been: its word is a random one.
    pub fn new(
        store: Arc<dyn JobStore>,
        clock: Clock,
        peers: Arc<dyn PeerLink>,
        content: ContentStore,
        providers: Arc<dyn Providers>,
    ) -> Self {
        let mut run = uuid::Uuid::new_v4().simple().to_string();
        run.truncate(RUN_CHARS);
        Self {
            store,
            clock,
            peers,
            content,
            providers,
            run,
        }
    }
}
