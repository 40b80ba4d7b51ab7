//! Errors of stores, by what the caller can do about them.

use crate::Version;

/// Failure of a whole request. The result of each item of a write is unknown: treat it as [`ItemError::Unknown`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No node answered in time, or the store is shutting down. Retryable; reads only.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// The last cause, with the node's URL.
        reason: String,
    },
    /// The store answered that the request is wrong or of an unknown form. Not retryable.
    #[error("the store refused the request: {reason}")]
    Refused {
        /// Message of the store.
        reason: String,
    },
    /// The store cannot be used (too old, wrong mapping, locked by another process).
    #[error("{reason}\n  hint: {hint}")]
    Unusable {
        /// Found and needed state.
        reason: String,
        /// Advice.
        hint: String,
    },
}

/// One item of a batched write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// The document is at another version than expected, or (create) exists already. The write that the store
    /// repeated internally *may be the cause*: read back and compare the claim token.
    #[error("the stored document has another version than expected")]
    Conflict {
        /// Its present version, if the store reports it.
        current: Option<Version>,
    },
    /// There is no such document.
    #[error("no such document")]
    Missing,
    /// The store refused the content of this document. Not retryable.
    #[error("the store refused the document: {reason}")]
    Refused {
        /// Message of the store.
        reason: String,
    },
    /// Certainly not written: overload (429), or no node could be reached at all. Retryable.
    #[error("the store did not accept the write: {reason}")]
    NotTaken {
        /// Reason.
        reason: String,
    },
    /// Sent, but no answer: it may be written now or later. Only an acknowledged write decides.
    #[error("the outcome of the write is unknown: {reason}")]
    Unknown {
        /// Reason.
        reason: String,
    },
}

impl ItemError {
    /// Returns the error after another try of a write that may have been written. If this try was not taken, an
    /// earlier one may have been.
    #[must_use]
    pub fn after_unknown(self) -> Self {
        match self {
            Self::NotTaken { reason } => Self::Unknown { reason },
            other => other,
        }
    }
}
