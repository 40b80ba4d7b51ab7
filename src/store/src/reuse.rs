//! Part of a job's state: whether its result may be that of another job.

use fairlead_job::JobId;
use serde::{Deserialize, Serialize};

use crate::left_out::is_zero;

/// What a job that may take an earlier result for its own has to do with others.
///
/// All fields are always stored that are not at their default, because a patch replaces the whole of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reusing {
    /// The key of what it runs, 64 hexadecimal digits: jobs with equal keys run the same thing. Empty: it is not known yet,
    /// or `why` says that it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// How old a result may be, seconds; 0: no result will do.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub within_s: u64,
    /// The job that ran the same thing when this one was submitted, and for whose result it waits or waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JobId>,
    /// The job whose result it could have had: it runs all the same, and both results are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_of: Option<JobId>,
    /// The image that the job names; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What the image held that it ran in, as its host said; empty: it had none, or the host did not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image_digest: String,
    /// Why it runs itself, in words for people, at most 300 bytes; empty: it does not, or nobody looked yet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Reusing {
    /// Longest `why`, bytes.
    pub const WHY_BYTES_MAX: usize = 300;
}
