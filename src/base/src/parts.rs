//! Parts of a replica that its embedder provides, besides the configuration: store, clock, peers.

use std::sync::Arc;

use fairlead_content::ContentStore;
use fairlead_store::JobStore;

use crate::{Clock, peer_link::PeerLink, providers::Providers};

/// Length of the word for a run, characters: enough that no two live runs have the same.
const RUN_CHARS: usize = 8;

/// Parts of a replica, besides its configuration.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Store of the lab.
    pub store: Arc<dyn JobStore>,
    /// Its clocks.
    pub clock: Clock,
    /// Link to other replicas.
    pub peers: Arc<dyn PeerLink>,
    /// Inputs and outputs.
    pub content: ContentStore,
    /// Providers, which make and end the machines of pools.
    pub providers: Arc<dyn Providers>,
    /// Word that distinguishes this run of the replica from all others of its name.
    pub run: String,
}

impl Parts {
    /// Returns the parts of a new run with a random word.
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
