//! `reuse`: whether the result of an earlier job that ran the same thing is as good as another run.

use serde_json::Value;

use crate::{
    FieldError, Spec,
    fields::read::{known_keys, present, refuse},
    units::{duration_s, shown},
};

/// The field.
pub const REUSE: &str = "reuse";
/// How old a result may be at most that a job takes for its own, seconds: 366 days.
pub const REUSE_WITHIN_MAX_S: u64 = 366 * 86_400;

const EXAMPLE: &str = "{within: 14d}, 14d for the same, or no";

/// Reuse of earlier results by a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Nothing: the lab's default for its suite holds.
    #[default]
    Unsaid,
    /// It always runs.
    No,
    /// A result that is at most so old is as good, seconds, 1 to [`REUSE_WITHIN_MAX_S`].
    Within(u64),
}

impl Reuse {
    /// Reads `reuse`.
    ///
    /// # Errors
    /// Fails if the value is neither a duration nor `no`. Fails for jobs that cannot reuse results: with secrets, or
    /// of several nodes.
    pub(crate) fn of(spec: &Spec) -> Result<Self, FieldError> {
        let within = match present(spec, REUSE) {
            None => return Ok(Self::Unsaid),
            Some(Value::Bool(false)) => return Ok(Self::No),
            Some(Value::String(text)) if text == "no" => return Ok(Self::No),
            Some(Value::Object(map)) => {
                known_keys(REUSE, map, &["within"], EXAMPLE)?;
                map.get("within").unwrap_or(&Value::Null)
            }
            Some(other) => other,
        };
        let within_s = match reuse_within_s(within) {
            Ok(seconds) => seconds,
            Err(problem) => return refuse(REUSE, problem, &format!("write {EXAMPLE}")),
        };
        match never_reusable(spec) {
            Some(why) => refuse(
                REUSE,
                why.to_owned(),
                "leave out 'reuse', or write reuse: no",
            ),
            None => Ok(Self::Within(within_s)),
        }
    }
}

/// How old a result may be, seconds, 1 to [`REUSE_WITHIN_MAX_S`].
///
/// # Errors
/// Returns a message if the value is not a duration between 1 s and [`REUSE_WITHIN_MAX_S`].
pub fn reuse_within_s(said: &Value) -> Result<u64, String> {
    let seconds = duration_s(said).map_err(|error| error.to_string())?;
    let seconds = seconds.ok_or_else(|| format!("{} names no duration", shown(said)))?;
    if (1..=REUSE_WITHIN_MAX_S).contains(&seconds) {
        return Ok(seconds);
    }
    Err(format!("{} is not 1s to 366d", shown(said)))
}

/// Why the result of such a job is never that of another one; `None`: it may be.
pub fn never_reusable(spec: &Spec) -> Option<&'static str> {
    if present(spec, "secrets").is_some() {
        return Some("the job has secrets, whose values are not compared");
    }
    let is_cluster = ["cluster", "cluster_spec"]
        .iter()
        .any(|key| present(spec, key).is_some());
    is_cluster.then_some("the job is a cluster, whose nodes run together")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Reuse, String> {
        let spec = Spec::from_iter([(REUSE.to_owned(), value)]);
        Reuse::of(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn a_job_says_how_old_a_result_may_be() {
        assert_eq!(
            read(json!({"within": "14d"})),
            Ok(Reuse::Within(14 * 86_400))
        );
        assert_eq!(read(json!("366d")), Ok(Reuse::Within(REUSE_WITHIN_MAX_S)));
        assert_eq!(read(json!(60)), Ok(Reuse::Within(60)));
        assert_eq!(read(json!("no")), Ok(Reuse::No));
        assert_eq!(read(json!(false)), Ok(Reuse::No));
        assert_eq!(read(json!(null)), Ok(Reuse::Unsaid));
        assert_eq!(Reuse::of(&Spec::new()), Ok(Reuse::Unsaid));
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        for (value, word) in [
            (json!(true), "reuse"),
            (json!("367d"), "not 1s to 366d"),
            (json!(0), "not 1s to 366d"),
            (json!({"within": null}), "no duration"),
            (json!({"for": "1d"}), "not a key"),
            (json!("soon"), "reuse"),
        ] {
            let refusal = read(value.clone()).unwrap_err();
            assert!(refusal.contains(word), "{value}: {refusal}");
        }
    }

    #[test]
    fn a_job_with_secrets_and_a_cluster_are_refused() {
        for (field, value, word) in [
            ("secrets", json!({"token": "x"}), "secrets"),
            ("cluster", json!("cs-s1-c1"), "cluster"),
        ] {
            let mut spec = Spec::from_iter([(REUSE.to_owned(), json!("1d"))]);
            spec.insert(field.to_owned(), value);
            let refusal = Reuse::of(&spec).unwrap_err().to_string();
            assert!(refusal.contains(word), "{refusal}");
            spec.insert(REUSE.to_owned(), json!("no"));
            assert_eq!(Reuse::of(&spec), Ok(Reuse::No));
        }
    }
}
