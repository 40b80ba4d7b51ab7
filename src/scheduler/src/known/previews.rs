//! Previews of actions, as they are stored.

use fairlead_api::{
    BulkAction, PreviewFailure, PreviewItem, PreviewRequest, PreviewShare, PreviewState,
};
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use crate::storage::small_doc::SmallDoc;

/// A preview, and how far it is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PreviewDoc {
    /// When a replica looks at it again, UTC epoch ms; 0: never.
    pub(crate) at_ms: u64,
    /// Whose rights count. Empty: the operator of an open lab.
    pub(crate) by: String,
    pub(crate) asked: PreviewRequest,
    pub(crate) made_ms: u64,
    pub(crate) sentence: String,
    /// What it touches, in the order in which it does.
    pub(crate) ids: Vec<String>,
    /// The first of them, for people.
    pub(crate) items: Vec<PreviewItem>,
    pub(crate) left_out: Vec<PreviewFailure>,
    pub(crate) left_out_more: u64,
    pub(crate) shares: Vec<PreviewShare>,
    pub(crate) state: PreviewState,
    /// Who does it: the run of a replica, and a word of its own for each begin.
    pub(crate) runner: String,
    /// How many of `ids` were tried.
    pub(crate) tried: u64,
    pub(crate) failed: Vec<PreviewFailure>,
}

impl SmallDoc for PreviewDoc {
    const KIND: DocKind = DocKind::Preview;
}

impl PreviewDoc {
    /// What is to be done.
    pub(crate) fn action(&self) -> BulkAction {
        self.asked.action
    }
}
