//! The words that people find a job by.

use std::{collections::BTreeSet, iter};

use crate::{
    Spec, Use, is_field,
    params::{flat, parameters},
};

/// Most keywords of a job.
pub const KEYWORDS_MAX: usize = 64;
/// The longest of them, bytes: `key=value`.
pub const KEYWORD_BYTES_MAX: usize = 256;

/// Returns the words `key=value` by which a job is found. They are its suite, its parameters, its system, the job
/// that it runs again, and its labels as `label=TEXT`. At most [`KEYWORDS_MAX`], in the job's order; those over
/// [`KEYWORD_BYTES_MAX`] are left out.
pub fn keywords(spec: &Spec, suite: &str, labels: &[String]) -> Vec<String> {
    let places = flat(spec, |key| is_field(key, Use::Searched));
    let parameters = parameters(spec).into_iter().chain(places);
    let words = parameters.map(|(key, value)| format!("{key}={value}"));
    let labels = labels.iter().map(|label| format!("label={label}"));
    let mut seen = BTreeSet::new();
    iter::once(format!("suite={suite}"))
        .chain(words)
        .chain(labels)
        .filter(|word| word.len() <= KEYWORD_BYTES_MAX && seen.insert(word.clone()))
        .take(KEYWORDS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(value: &Value) -> Spec {
        value.as_object().expect("a map").clone()
    }

    #[test]
    fn a_job_is_found_by_its_parameters_its_system_and_its_labels() {
        let job = spec(&json!({
            "suite": "x", "os": "debian", "nr_threads": 8, "mode": "a, b", "long": "y".repeat(300),
            "prog": {"size": "4k"}, "secrets": {"t": "hush"}, "need_memory": "4g",
        }));
        let labels = ["night".to_owned(), "night".to_owned()];
        let found = keywords(&job, "x", &labels);
        let meant = [
            "suite=x",
            "nr_threads=8",
            "mode=a, b",
            "prog.size=4k",
            "os=debian",
            "label=night",
        ];
        assert_eq!(found, meant);
        let many: Spec = (0..200).map(|n| (format!("k{n}"), json!(n))).collect();
        assert_eq!(keywords(&many, "x", &[]).len(), KEYWORDS_MAX);
    }
}
