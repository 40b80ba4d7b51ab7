//! Submit rules, as last read or written.

use std::sync::Arc;

use fairlead_api::{SubmitRule, SubmitRules};
use fairlead_job::{Rule, RuleError, check_rules};
use fairlead_store::{DocKind, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use fairlead_base::storage::small_doc::{DocError, SmallDoc, SmallDocs};

/// The id of the one document.
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

/// The rules that submits meet.
#[derive(Debug, Default)]
pub struct Rules(Mutex<Known>);

impl Rules {
    /// All of them, in their order.
    pub fn all(&self) -> Arc<[Rule]> {
        Arc::clone(&self.0.lock().rules)
    }

    /// This document was read or written. An older one than the known changes nothing.
    pub fn are(&self, version: Version, doc: &RulesDoc) {
        let mut known = self.0.lock();
        if known.version >= Some(version) {
            return;
        }
        known.version = Some(version);
        match checked(&doc.rules) {
            Ok(rules) => known.rules = rules.into(),
            // A newer version may write what this one does not know. What was known acts until this replica is upgraded.
            Err(error) => {
                tracing::error!(%error, "the stored submit rules cannot be read; those of before act");
            }
        }
    }

    /// Reads them anew, in real time.
    pub async fn reload(&self, docs: &SmallDocs) -> Result<(), DocError> {
        if let Some(read) = docs.read::<RulesDoc>(RULES_DOC).await? {
            self.are(read.version, &read.doc);
        }
        Ok(())
    }
}
