//! Submit rules: admins set them, one small document stores them, and every submit meets them.

use fairlead_api::SubmitRules;

use crate::people::PeopleFlow;
use fairlead_base::errors::{PeopleError, Refusal};
use fairlead_known::rules::{RULES_DOC, RulesDoc, checked};

impl PeopleFlow {
    /// The rules as they are stored now.
    pub(crate) async fn submit_rules(&self) -> Result<SubmitRules, Refusal> {
        let read = self.ctx.docs.read::<RulesDoc>(RULES_DOC).await?;
        Ok(read.map(|read| read.doc.into()).unwrap_or_default())
    }

    /// Replaces all rules. They act at once here, and on other replicas within two seconds.
    pub(crate) async fn set_submit_rules(
        &self,
        rules: SubmitRules,
    ) -> Result<SubmitRules, Refusal> {
        checked(&rules.rules).map_err(PeopleError::BadRule)?;
        let doc = RulesDoc { rules: rules.rules };
        let next = async |_| -> Result<RulesDoc, Refusal> { Ok(doc.clone()) };
        let stored = self.ctx.docs.change(RULES_DOC, next).await?;
        self.rules.are(stored.version, &stored.doc);
        Ok(stored.doc.into())
    }
}
