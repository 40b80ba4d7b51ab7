//! Part of a job's state: whether its result may be that of another job.

use fairlead_job::JobId;
use serde::{Deserialize, Serialize};

use crate::left_out::is_zero;

/// Relation of a job that may reuse an earlier result to other jobs.
///
/// All fields that differ from their default are always stored, because a patch replaces the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reusing {
    /// Reuse key, 64 hexadecimal digits: jobs with equal keys run the same test. Empty: it is not known yet, or `why`
    /// tells why there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Maximum age of a result, seconds; 0: no result is accepted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub within_s: u64,
    /// Job that ran the same test when this one was submitted. This one waits or waited for its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<JobId>,
    /// Job whose result could have been reused. This one runs anyway, and both results are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_of: Option<JobId>,
    /// The image that the job names; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Digest of the image in which it ran, as its host reported; empty: no image, or not reported.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image_digest: String,
    /// Reason why it runs itself, as text, at most 300 bytes; empty: it does not, or that is not decided yet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Reusing {
    /// Longest `why`, bytes.
    pub const WHY_BYTES_MAX: usize = 300;
}
