//! Kernel crashes in what a job prints: which of them end the job, and which are only put on record.

use serde_json::Value;

use crate::{
    FieldError, Health, Spec,
    fields::read::{Charset, LIST_ITEMS_MAX, NAME_BYTES_MAX, known_keys, names, present, refuse},
    units::shown,
};

const FIELD: &str = "crash";
const EXAMPLE: &str = "{end: [panic, oops], note: [warning]}";

/// The kinds of crashes that a job's testbox watches for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crashes {
    /// Kinds that end the job, which then has this health.
    pub end: Vec<Health>,
    /// Kinds that are only put on record.
    pub note: Vec<Health>,
}

impl Crashes {
    /// Reads `crash` of a job; `None`: the job does not say.
    ///
    /// # Errors
    /// No map of the two lists, or a word that is no kind of crash.
    pub fn of(spec: &Spec) -> Result<Option<Self>, FieldError> {
        let map = match present(spec, FIELD) {
            None => return Ok(None),
            Some(Value::Object(map)) => map,
            Some(other) => {
                let problem = format!("{} where a map was expected", shown(other));
                return refuse(FIELD, problem, &format!("write {EXAMPLE}"));
            }
        };
        known_keys(FIELD, map, &["end", "note"], EXAMPLE)?;
        Ok(Some(Self {
            end: kinds(map, "end")?,
            note: kinds(map, "note")?,
        }))
    }
}

fn kinds(map: &Spec, key: &str) -> Result<Vec<Health>, FieldError> {
    let field = format!("{FIELD}.{key}");
    let said = present(map, key);
    let words = names(&field, said, Charset::Text, NAME_BYTES_MAX, LIST_ITEMS_MAX)?;
    let kind = |word: String| {
        let known = Health::CRASHES
            .into_iter()
            .find(|kind| kind.as_str() == word);
        known.map_or_else(
            || {
                let problem = format!("{} is no kind of crash", shown(&Value::from(word.as_str())));
                let known = Health::CRASHES.map(Health::as_str).join(", ");
                refuse(&field, problem, &format!("one of {known}"))
            },
            Ok,
        )
    };
    words.into_iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Value) -> Result<Option<Crashes>, FieldError> {
        Crashes::of(&Spec::from_iter([(FIELD.to_owned(), value)]))
    }

    #[test]
    fn a_job_says_which_crashes_end_it_and_which_are_noted() {
        assert_eq!(Crashes::of(&Spec::new()), Ok(None));
        let both = of(json!({"end": ["panic", "oops"], "note": "warning, oom"}));
        let wanted = Crashes {
            end: vec![Health::Panic, Health::Oops],
            note: vec![Health::Warning, Health::Oom],
        };
        assert_eq!(both, Ok(Some(wanted)));
        // To say that nothing ends it is not the same as to say nothing.
        assert_eq!(of(json!({"end": []})), Ok(Some(Crashes::default())));
    }

    #[test]
    fn what_is_no_kind_of_crash_is_refused_with_a_hint() {
        let error = of(json!({"end": ["panick"]})).unwrap_err();
        assert_eq!(error.field, "crash.end");
        assert!(error.problem.contains("panick"), "{error}");
        assert!(
            error.hint.starts_with("one of panic, oops,"),
            "{}",
            error.hint
        );
        for (bad, field) in [
            (json!("panic"), "crash"),
            (json!({"ends": ["panic"]}), "crash"),
            (json!({"note": [true]}), "crash.note"),
            (json!({"note": ["success"]}), "crash.note"),
        ] {
            assert_eq!(of(bad.clone()).unwrap_err().field, field, "{bad}");
        }
    }
}
