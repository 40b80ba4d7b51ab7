//! Submit rules, as last read or written.

use std::sync::Arc;

use fairlead_api::{SubmitRule, SubmitRules};
use fairlead_job::{Rule, RuleError, check_rules};
use fairlead_store::{DocKind, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::{DocError, SmallDoc, SmallDocs};

/// Id of the rules document.
pub const RULES_DOC: &str = "submit_rules";

/// All rules: their document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesDoc {
    pub rules: Vec<SubmitRule>,
}

impl SmallDoc for RulesDoc {
    const KIND: DocKind = DocKind::Setting;
}

impl From<RulesDoc> for SubmitRules {
    fn from(doc: RulesDoc) -> Self {
        Self { rules: doc.rules }
    }
}

/// Checks all rules together.
pub fn checked(rules: &[SubmitRule]) -> Result<Vec<Rule>, RuleError> {
    check_rules(
        rules
            .iter()
            .map(|rule| (rule.name.as_str(), rule.condition.as_str(), &rule.then)),
    )
}

#[derive(Debug, Default)]
struct Known {
    version: Option<Version>,
    rules: Arc<[Rule]>,
}

/// Rules that apply to submits.
#[derive(Debug, Default)]
pub struct Rules(Mutex<Known>);

impl Rules {
    /// Returns all rules, in order.
    pub fn all(&self) -> Arc<[Rule]> {
        Arc::clone(&self.0.lock().rules)
    }

    /// Adopts a document that was read or written, unless a newer one is known.
    pub fn are(&self, version: Version, doc: &RulesDoc) {
        let mut known = self.0.lock();
        if known.version >= Some(version) {
            return;
        }
        known.version = Some(version);
        match checked(&doc.rules) {
            Ok(rules) => known.rules = rules.into(),
            // A newer version may write rules that this one cannot read. The old rules apply until this replica is
            // upgraded.
            Err(error) => {
                tracing::error!(%error, "the stored submit rules cannot be read; those of before act");
            }
        }
    }

    /// Reads the rules from the store, in real time.
    pub async fn reload(&self, docs: &SmallDocs) -> Result<(), DocError> {
        if let Some(read) = docs.read::<RulesDoc>(RULES_DOC).await? {
            self.are(read.version, &read.doc);
        }
        Ok(())
    }
}
