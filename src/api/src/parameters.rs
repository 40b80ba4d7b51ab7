//! Which parameters the routes read from their queries.

/// What a route reads from its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// These, and [`COMMON`]; any other one is refused.
    Known(&'static [&'static str]),
    /// Whatever comes: scripts of testboxes that cannot be changed send more than anybody reads.
    Any,
}

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
    "signature",
    "parts",
    "shards_of",
    "since_ms",
    "until_ms",
    "order",
    "after",
    "limit",
]);
pub(crate) const SUBMIT: Parameters = Parameters::Known(&["strict", "idempotency_key"]);
pub(crate) const UPLOAD: Parameters = Parameters::Known(&["job_id", "job_token", "attempt"]);
/// Whose timer is meant.
pub(crate) const ONE_TIMER: Parameters = Parameters::Known(&["account"]);
