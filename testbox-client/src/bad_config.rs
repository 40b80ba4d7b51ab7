//! The error of an invalid configuration.

/// Configuration with which the agent cannot start. Never retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadConfig(pub(crate) String);
