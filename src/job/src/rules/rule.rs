//! One rule, and what it does to a job.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::expression::Expression;
use crate::{FIELDS, Field, JobFields, SiteDefaults, Spec, Use, check_name, fields, nearest};

/// Most rules of a lab.
pub const RULES_MAX: usize = 100;

/// Fields that may get new values after their author wrote them.
fn editable() -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(|field| field.is(Use::Edited))
}

/// Gives fields new values; a field's other names would win over it or say something else.
pub fn set_fields(spec: &mut Spec, set: &Spec) {
    for field in editable() {
        let Some(value) = set.get(field.name) else {
            continue;
        };
        for name in field.names().skip(1) {
            spec.shift_remove(name);
        }
        spec.insert(field.name.to_owned(), value.clone());
    }
}

/// A field that a rule changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// The value of its author; null: it was not said.
    #[serde(default)]
    pub submitted: Value,
    /// The rule's.
    #[serde(default)]
    pub now: Value,
}

/// Effect of a rule on a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ruled {
    /// The name of the rule.
    pub rule: String,
    /// Changes by field; empty: the job had these values.
    #[serde(default)]
    pub changes: BTreeMap<String, Edited>,
}

/// Why a rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// Problem: the part of the rule, the place and the value.
    pub message: String,
    /// Advice.
    pub hint: String,
}

fn refuse<T>(message: String, hint: impl Into<String>) -> Result<T, RuleError> {
    let hint = hint.into();
    Err(RuleError { message, hint })
}

/// A rule: what jobs it is for, and what they get.
#[derive(Debug, Clone)]
pub struct Rule {
    name: String,
    condition: Expression,
    then: Spec,
}

impl Rule {
    /// Reads and checks a rule.
    pub fn read(name: &str, condition: &str, then: &Spec) -> Result<Self, RuleError> {
        check_name("name", name).or_else(|error| refuse(error.to_string(), error.hint))?;
        let parsed: Result<Expression, _> = condition.parse();
        let condition =
            parsed.or_else(|error| refuse(format!("rule '{name}': if: {error}"), error.hint))?;
        let known: Vec<&str> = fields(Use::Edited).collect();
        if then.is_empty() {
            let hint = format!("name one of {}", known.join(", "));
            return refuse(format!("rule '{name}': then: it sets nothing"), hint);
        }
        if let Some(field) = then.keys().find(|field| !known.contains(&field.as_str())) {
            let shown: String = field
                .chars()
                .take(60)
                .flat_map(char::escape_debug)
                .collect();
            let hint = nearest(field, known.iter().copied()).map_or_else(
                || format!("a rule sets {}", known.join(", ")),
                |near| format!("did you mean '{near}'?"),
            );
            let message = format!("rule '{name}': then: unknown field '{shown}'");
            return refuse(message, hint);
        }
        let mut job = Spec::from_iter([("suite".to_owned(), json!("rule"))]);
        job.insert("script".to_owned(), json!("true"));
        set_fields(&mut job, then);
        JobFields::parse(&job, &SiteDefaults::default())
            .or_else(|error| refuse(format!("rule '{name}': then: {error}"), error.hint))?;
        Ok(Self {
            name: name.to_owned(),
            then: then.clone(),
            condition,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes the job of an account, if it meets the condition.
    pub fn apply(&self, spec: &mut Spec, fields: &JobFields, account: &str) -> Option<Ruled> {
        if !self.condition.holds(spec, fields, account) {
            return None;
        }
        let mut changes = BTreeMap::new();
        for field in editable() {
            let Some(new) = self.then.get(field.name) else {
                continue;
            };
            let submitted = field.names().find_map(|name| spec.get(name)).cloned();
            let submitted = submitted.unwrap_or_default();
            if submitted != *new {
                let now = new.clone();
                changes.insert(field.name.to_owned(), Edited { submitted, now });
            }
        }
        set_fields(spec, &self.then);
        Some(Ruled {
            rule: self.name.clone(),
            changes,
        })
    }
}

/// Reads all rules of a lab, in their order; each has a name of its own.
pub fn check_rules<'r>(
    rules: impl ExactSizeIterator<Item = (&'r str, &'r str, &'r Spec)>,
) -> Result<Vec<Rule>, RuleError> {
    let given = rules.len();
    if given > RULES_MAX {
        return refuse(
            format!("{given} rules; the limit is {RULES_MAX}"),
            "join conditions with or",
        );
    }
    let mut names = BTreeSet::new();
    let mut read = Vec::with_capacity(given);
    for (name, condition, then) in rules {
        if !names.insert(name) {
            return refuse(
                format!("rule '{name}' is there twice"),
                "give each rule a name of its own",
            );
        }
        read.push(Rule::read(name, condition, then)?);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> Spec {
        match value {
            Value::Object(spec) => spec,
            _ => Spec::new(),
        }
    }

    #[test]
    fn a_rule_sets_fields_under_all_their_names_and_says_what_it_changed() {
        let then = spec(json!({"queue": "nightly", "need_memory": "2g", "priority": 1}));
        let rule = Rule::read("nightly", "suite ~ 'lkp.*'", &then).unwrap();
        let mut job =
            spec(json!({"suite": "lkp-a", "script": "true", "memory": "1g", "priority": 1}));
        let fields = JobFields::parse(&job, &SiteDefaults::default()).unwrap();
        let ruled = rule.apply(&mut job, &fields, "ci").unwrap();
        assert_eq!(
            json!(ruled),
            json!({"rule": "nightly", "changes": {
                "queue": {"submitted": null, "now": "nightly"}, "need_memory": {"submitted": "1g", "now": "2g"},
            }})
        );
        assert!(job.get("memory").is_none() && job["need_memory"] == "2g");
        let mut other = spec(json!({"suite": "x", "script": "true"}));
        let before = other.clone();
        let fields = JobFields::parse(&other, &SiteDefaults::default()).unwrap();
        assert_eq!(rule.apply(&mut other, &fields, "ci"), None);
        assert_eq!(other, before);
    }

    #[test]
    fn a_wrong_rule_is_refused_with_its_name_and_place() {
        for (name, condition, then, said) in [
            (
                "a",
                "suite = 'x'",
                json!({"queue": "q"}),
                "rule 'a': if: column 7",
            ),
            (
                "a",
                "suite == 'x'",
                json!({}),
                "rule 'a': then: it sets nothing",
            ),
            (
                "a",
                "suite == 'x'",
                json!({"quue": "q"}),
                "then: unknown field 'quue'",
            ),
            (
                "a",
                "suite == 'x'",
                json!({"my_account": "q"}),
                "then: unknown field 'my_account'",
            ),
            (
                "a",
                "suite == 'x'",
                json!({"priority": 1000}),
                "rule 'a': then: priority",
            ),
            ("a b", "suite == 'x'", json!({"queue": "q"}), "a b"),
        ] {
            let refused = Rule::read(name, condition, &spec(then)).unwrap_err();
            assert!(refused.message.contains(said), "{refused}");
            assert!(!refused.hint.is_empty(), "{refused}");
        }
        let then = spec(json!({"queue": "q"}));
        let twice = [("a", "suite == 'x'", &then), ("a", "suite == 'y'", &then)];
        assert!(
            check_rules(twice.into_iter())
                .unwrap_err()
                .message
                .contains("'a' is there twice")
        );
        let names: Vec<String> = (0..=RULES_MAX).map(|n| format!("r{n}")).collect();
        let many: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), "suite == 'y'", &then))
            .collect();
        assert!(
            check_rules(many.into_iter())
                .unwrap_err()
                .message
                .contains("the limit is 100")
        );
    }
}
