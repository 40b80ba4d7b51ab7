//! Applies the submit rules to a job before it is built: the first rule that it meets changes it. So rights, queues and
//! limits are checked on the outcome, and a rule gives an account nothing that it could not ask for itself.

use std::sync::Arc;

use fairlead_api::{EditView, RuleApplied};
use fairlead_job::{JobFields, Ruled, SUBMIT_RULE, Spec};
use fairlead_store::NewJob;
use serde_json::{Value, json};

use crate::submission::SubmissionFlow;
use fairlead_known::accounts::Who;

impl SubmissionFlow {
    /// Changes a job as the rules say. A job that cannot be read stays as it is: it is refused for that.
    pub(crate) fn apply_rules(&self, spec: &mut Spec, who: &Who) -> Option<Ruled> {
        // Of a job that runs again: it meets the rules anew.
        spec.shift_remove(SUBMIT_RULE);
        let rules = self.people.rules.all();
        if rules.is_empty() {
            return None;
        }
        let fields = JobFields::parse(spec, &self.ctx.config.site).ok()?;
        let account = Some(&fields.account).filter(|account| !account.is_empty());
        let account = account.unwrap_or(&who.name);
        rules
            .iter()
            .find_map(|rule| rule.apply(spec, &fields, account))
    }
}

/// Writes into a job which rule changed it.
pub(crate) fn say_rule(job: &mut NewJob, ruled: &Ruled) {
    let value = json!(ruled);
    Arc::make_mut(&mut job.body).insert(SUBMIT_RULE.to_owned(), value);
}

/// The same for an answer.
pub(crate) fn rule_applied(ruled: &Ruled) -> RuleApplied {
    let change = |edited: &fairlead_job::Edited| EditView {
        submitted: edited.submitted.clone(),
        now: edited.now.clone(),
    };
    let changes = ruled.changes.iter();
    RuleApplied {
        rule: ruled.rule.clone(),
        changes: changes
            .map(|(field, edited)| (field.clone(), change(edited)))
            .collect(),
    }
}

/// What a refusal says of the rule that changed its job.
pub(crate) fn rule_words(ruled: &Ruled) -> Option<String> {
    let change = |(field, edited): (&String, &fairlead_job::Edited)| {
        let shown = |value: &Value| match value {
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        format!(
            "{field} from {} to {}",
            shown(&edited.submitted),
            shown(&edited.now)
        )
    };
    let changes: Vec<String> = ruled.changes.iter().map(change).collect();
    (!changes.is_empty()).then(|| {
        format!(
            "submit rule '{}' changed {}",
            ruled.rule,
            changes.join(", ")
        )
    })
}
