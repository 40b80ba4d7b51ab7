//! Which parameters the routes read from their queries.

/// What a route reads from its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// These, and [`COMMON`]; any other one is refused.
    Known(&'static [&'static str]),
    /// Whatever comes: scripts of testboxes that cannot be changed send more than anybody reads.
    Any,
}

/// Fields by which jobs are counted instead of listed.
pub const COUNTED_BY: [&str; 8] = [
    "stage",
    "health",
    "suite",
    "account",
    "queue",
    "host",
    "tbox_group",
    "submit_id",
];

/// Every route takes these: who asks, where no header can say it.
pub const COMMON: &[&str] = &["token", "my_account"];

pub(crate) const NONE: Parameters = Parameters::Known(&[]);
pub(crate) const LIST: Parameters = Parameters::Known(&[
    "stage",
    "job_stage",
    "health",
    "job_health",
    "account",
    "queue",
    "host",
    "host_machine",
    "suite",
    "submit_id",
    "sequence",
    "group_id",
    "tbox_group",
    "kv",
    "with_kv",
    "signature",
    "parts",
    "shards_of",
    "since_ms",
    "until_ms",
    "group_by",
    "order",
    "after",
    "limit",
]);
/// A page of a list.
pub(crate) const SERIES: Parameters = Parameters::Known(&["by", "name", "since_ms", "until_ms"]);
pub(crate) const AUDIT: Parameters = Parameters::Known(&[
    "who",
    "what",
    "incidents",
    "subject",
    "since_ms",
    "until_ms",
    "limit",
    "after",
]);
pub(crate) const PAGE: Parameters = Parameters::Known(&["limit", "after"]);
pub(crate) const SUBMIT: Parameters = Parameters::Known(&["strict", "dry_run", "idempotency_key"]);
pub(crate) const UPLOAD: Parameters = Parameters::Known(&["job_id", "job_token", "attempt"]);
/// Who asks about content: an account, or a job by its token.
pub(crate) const CONTENT: Parameters = Parameters::Known(&["job_id", "job_token", "attempt"]);
/// Whose input or output is meant.
pub(crate) const ONE_CONTENT: Parameters = Parameters::Known(&["account"]);
/// Whose timer is meant.
pub(crate) const ONE_TIMER: Parameters = Parameters::Known(&["account"]);
