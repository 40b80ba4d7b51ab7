//! Peers of a cluster's node, as it is told of them.

use serde::{Deserialize, Serialize};

use crate::StageWord;

/// What a testbox hears that waits for the other nodes of its cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeersAnswer {
    /// All are there: it begins. Else it asks again.
    pub open: bool,
    /// All nodes, the asker among them, in the order of the submit.
    pub peers: Vec<Peer>,
}

/// One node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peer {
    /// Its job.
    pub job_id: String,
    /// How far that is.
    pub job_stage: StageWord,
    /// What it does, words with blanks between.
    pub node_roles: String,
    /// Its host; empty: it has none yet.
    pub host: String,
    /// The address of its testbox; empty: not said yet.
    pub address: String,
}
