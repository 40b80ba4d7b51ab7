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

/// A preview, and how far it is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreviewDoc {
    /// When a replica looks at it again, UTC epoch ms; 0: never.
    pub at_ms: u64,
    /// Whose rights count. Empty: the operator of an open lab.
    pub by: String,
    /// Without `set`, which is sealed.
    pub asked: PreviewRequest,
    /// The new values of fields of jobs, sealed: there may be secrets among them. Empty: there are none.
    pub set_sealed: String,
    pub made_ms: u64,
    pub sentence: String,
    /// What it touches, in the order in which it does.
    pub ids: Vec<String>,
    /// The first of them, for people.
    pub items: Vec<PreviewItem>,
    pub left_out: Vec<PreviewFailure>,
    pub left_out_more: u64,
    pub shares: Vec<PreviewShare>,
    pub state: PreviewState,
    /// Who does it: the run of a replica, and a word of its own for each begin.
    pub runner: String,
    /// How many of `ids` were tried.
    pub tried: u64,
    pub failed: Vec<PreviewFailure>,
}

impl SmallDoc for PreviewDoc {
    const KIND: DocKind = DocKind::Preview;
    // 2: new values are sealed. A version before that would run the jobs without them.
    const FORMAT: u32 = 2;
}

impl PreviewDoc {
    /// What is to be done.
    pub fn action(&self) -> BulkAction {
        self.asked.action
    }

    /// The same with the new values sealed.
    pub fn sealed(mut self, sealer: &Sealer) -> Result<Self, NoKey> {
        let set = std::mem::take(&mut self.asked.set);
        if !set.is_empty() {
            let text = serde_json::Value::Object(set).to_string();
            let sealed = sealer.seal_text(&Self::purpose(&self.by), &text);
            self.set_sealed = sealed.ok_or(NoKey)?;
        }
        Ok(self)
    }

    /// The new values of fields of jobs. `NoKey`: they were sealed with a key that this lab does not have.
    pub fn set(&self, sealer: &Sealer) -> Result<Spec, NoKey> {
        if self.set_sealed.is_empty() {
            // A version that did not seal them made it.
            return Ok(self.asked.set.clone());
        }
        let text = sealer.open_text(&Self::purpose(&self.by), &self.set_sealed);
        let set = text.and_then(|text| serde_json::from_str(&text).ok());
        set.ok_or(NoKey)
    }

    /// What the values of an account's preview are sealed for.
    pub fn purpose(by: &str) -> String {
        format!("preview/{by}")
    }
}
