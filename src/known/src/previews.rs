//! Previews of actions, as they are stored.

use fairlead_api::{
    BulkAction, PreviewFailure, PreviewItem, PreviewRequest, PreviewShare, PreviewState,
};
use fairlead_job::Spec;
use fairlead_store::DocKind;
use serde::{Deserialize, Serialize};

use fairlead_base::{
    sealing::{NoKey, Sealer},
    storage::small_doc::SmallDoc,
};

/// A preview, and the progress of its execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreviewDoc {
    /// Time of the next check by a replica, UTC epoch ms. 0: never.
    pub at_ms: u64,
    /// Account whose rights count. Empty: the operator of an open lab.
    pub by: String,
    /// The request without `set`, which is sealed.
    pub asked: PreviewRequest,
    /// New values of job fields, sealed because they may contain secrets. Empty: none.
    pub set_sealed: String,
    pub made_ms: u64,
    pub sentence: String,
    /// Affected jobs, in the order of execution.
    pub ids: Vec<String>,
    /// First affected jobs, for people.
    pub items: Vec<PreviewItem>,
    pub left_out: Vec<PreviewFailure>,
    pub left_out_more: u64,
    pub shares: Vec<PreviewShare>,
    pub state: PreviewState,
    /// Executor: the run of a replica, and a unique word for each start.
    pub runner: String,
    /// Number of `ids` that were tried.
    pub tried: u64,
    pub failed: Vec<PreviewFailure>,
}

impl SmallDoc for PreviewDoc {
    const KIND: DocKind = DocKind::Preview;
    // Format 2: new values are sealed. An older version would run the jobs without them.
    const FORMAT: u32 = 2;
}

impl PreviewDoc {
    /// Returns the action.
    pub fn action(&self) -> BulkAction {
        self.asked.action
    }

    /// Returns the preview with its new values sealed.
    pub fn sealed(mut self, sealer: &Sealer) -> Result<Self, NoKey> {
        let set = std::mem::take(&mut self.asked.set);
        if !set.is_empty() {
            let text = serde_json::Value::Object(set).to_string();
            let sealed = sealer.seal_text(&Self::purpose(&self.by), &text);
            self.set_sealed = sealed.ok_or(NoKey)?;
        }
        Ok(self)
    }

    /// Returns the new values of job fields. `NoKey`: they were sealed with a key that this lab does not have.
    pub fn set(&self, sealer: &Sealer) -> Result<Spec, NoKey> {
        if self.set_sealed.is_empty() {
            // A version that did not seal values made this preview.
            return Ok(self.asked.set.clone());
        }
        let text = sealer.open_text(&Self::purpose(&self.by), &self.set_sealed);
        let set = text.and_then(|text| serde_json::from_str(&text).ok());
        set.ok_or(NoKey)
    }

    /// Returns the purpose with which the values of an account's preview are sealed.
    pub fn purpose(by: &str) -> String {
        format!("preview/{by}")
    }
}
