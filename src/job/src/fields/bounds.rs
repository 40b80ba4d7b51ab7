//! Bounds of a submit that hold whatever its fields say: how long and how deep a job is, and how much its jobs are
//! together.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{FieldError, JobFields, Spec, fields::error::Fault};

/// How deep a job may nest. `serde_json` itself stops at 128.
pub const JOB_DEPTH_MAX: usize = 64;
/// Most groups that the jobs of one submit may join: each that is new takes a thousand ids.
pub const SUBMIT_GROUPS_MAX: usize = 10;

/// Limits of a submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitLimits {
    /// Largest job, bytes of JSON. Default 256 KiB.
    pub job_bytes_max: usize,
    /// Most jobs in one submit, and most shards of them. Default 10,000.
    pub jobs_max: usize,
}

impl Default for SubmitLimits {
    fn default() -> Self {
        Self {
            job_bytes_max: 256 << 10,
            jobs_max: 10_000,
        }
    }
}

/// Checks that a job does not nest too deep.
///
/// # Errors
/// Returns an error if it does.
pub fn check_depth(spec: &Spec) -> Result<(), FieldError> {
    fn over(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|item| over(item, left - 1)),
            Value::Object(fields) => {
                left == 0 || fields.values().any(|field| over(field, left - 1))
            }
            _ => false,
        }
    }
    if spec.values().any(|value| over(value, JOB_DEPTH_MAX)) {
        return Err(FieldError {
            field: "job".to_owned(),
            problem: format!("it nests deeper than {JOB_DEPTH_MAX} levels"),
            hint: "flatten it".to_owned(),
            fault: Fault::Body,
        });
    }
    Ok(())
}

/// Checks that a job is not too long.
///
/// # Errors
/// Returns an error if it is longer than `job_bytes_max`.
pub fn check_bytes(spec: &Spec, limits: &SubmitLimits) -> Result<(), FieldError> {
    let bytes = serde_json::to_vec(spec).map_or(usize::MAX, |text| text.len());
    if bytes > limits.job_bytes_max {
        return Err(too_long(bytes, limits));
    }
    Ok(())
}

/// A job of so many bytes is refused.
pub fn too_long(bytes: usize, limits: &SubmitLimits) -> FieldError {
    FieldError {
        field: "job".to_owned(),
        problem: format!("{bytes} bytes; the limit is {}", limits.job_bytes_max),
        hint: "upload large files instead of putting them into the job".to_owned(),
        fault: Fault::Size,
    }
}

/// Sums over the jobs of a submit. Jobs that are refused do not count.
#[derive(Debug, Clone, Default)]
pub struct Together {
    shards: usize,
    groups: BTreeSet<(String, String)>,
}

impl Together {
    /// Adds a job of so many shards.
    ///
    /// # Errors
    /// The shards are too many now.
    pub fn add_shards(&mut self, shards: u16, limits: &SubmitLimits) -> Result<(), FieldError> {
        self.shards = self.shards.saturating_add(usize::from(shards));
        if self.shards <= limits.jobs_max {
            return Ok(());
        }
        let (all, most) = (self.shards, limits.jobs_max);
        Err(fewer(
            "shards",
            format!("the jobs of one submit have {all}; the limit is {most}"),
        ))
    }

    /// Adds a job that joins a group.
    ///
    /// # Errors
    /// The groups are too many now.
    pub fn add_group(&mut self, account: &str, group: &str) -> Result<(), FieldError> {
        self.groups.insert((account.to_owned(), group.to_owned()));
        if self.groups.len() <= SUBMIT_GROUPS_MAX {
            return Ok(());
        }
        Err(fewer(
            "group",
            format!("the jobs of one submit name more than {SUBMIT_GROUPS_MAX} groups"),
        ))
    }

    /// Adds a job.
    pub(crate) fn add(
        &mut self,
        fields: &JobFields,
        limits: &SubmitLimits,
    ) -> Result<(), FieldError> {
        if let Some(shards) = &fields.shards {
            self.add_shards(shards.total(), limits)?;
        }
        match &fields.group {
            Some(group) => self.add_group(&fields.account, &group.id),
            None => Ok(()),
        }
    }
}

fn fewer(field: &str, problem: String) -> FieldError {
    FieldError {
        field: field.to_owned(),
        problem,
        hint: "submit fewer of these jobs at once".to_owned(),
        fault: Fault::Size,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_neither_too_deep_nor_too_long() {
        let nested = |depth: usize| {
            let value = (0..depth).fold(json!(1), |value, _| json!([value]));
            Spec::from_iter([("x".to_owned(), value)])
        };
        assert!(check_depth(&nested(JOB_DEPTH_MAX)).is_ok());
        let error = check_depth(&nested(JOB_DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(error.fault.code(), "bad_body");
        let limits = SubmitLimits {
            job_bytes_max: 9,
            ..SubmitLimits::default()
        };
        assert!(check_bytes(&nested(1), &limits).is_ok());
        let error = check_bytes(&nested(2), &limits).unwrap_err();
        assert_eq!(error.to_string(), "job: 11 bytes; the limit is 9");
        assert_eq!(error.fault.code(), "too_large");
    }

    #[test]
    fn shards_and_groups_are_counted_over_all_jobs() {
        let limits = SubmitLimits::default();
        let mut together = Together::default();
        for _ in 0..10 {
            assert!(together.add_shards(1_000, &limits).is_ok());
        }
        assert!(together.add_shards(1, &limits).is_err());
        for n in 0..SUBMIT_GROUPS_MAX {
            let group = n.to_string();
            assert!(together.add_group("ann", &group).is_ok());
            assert!(together.add_group("ann", &group).is_ok());
        }
        assert!(together.add_group("bob", "0").is_err());
    }
}
