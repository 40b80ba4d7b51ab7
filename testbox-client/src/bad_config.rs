//! The error of an invalid configuration.

/// The agent cannot be started like this. Never retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadConfig(pub(crate) String);
