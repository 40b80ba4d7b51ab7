//! Errors of stores, by what the caller can do about them.

use crate::Version;

/// A whole request failed. Nothing is known of any item of a write: treat each as [`ItemError::Unknown`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// No node answered in time, or the store is shutting down. Retryable; reads only.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// The last cause, with the node's URL.
        reason: String,
    },
    /// The store answered that the request is wrong, or in a form this version does not know. Not retryable.
    #[error("the store refused the request: {reason}")]
    Refused {
        /// The store's own words.
        reason: String,
    },
    /// The store is not one we can work with (too old, wrong mapping, locked by another process).
    #[error("{reason}\n  hint: {hint}")]
    Unusable {
        /// What was found and what is needed.
        reason: String,
        /// What to do.
        hint: String,
    },
}

/// One item of a batched write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// The document is at another version than expected, or (create) exists already. *May be our own
    /// write* that the store retried inside: read back and compare the claim token.
    #[error("the stored document has another version than expected")]
    Conflict {
        /// Its present version, where the store says it.
        current: Option<Version>,
    },
    /// There is no such document.
    #[error("no such document")]
    Missing,
    /// The store refused this document for what it holds. Not retryable.
    #[error("the store refused the document: {reason}")]
    Refused {
        /// The store's own words.
        reason: String,
    },
    /// Certainly not written: overload (429), or no node could be reached at all. Retryable.
    #[error("the store did not accept the write: {reason}")]
    NotTaken {
        /// Why.
        reason: String,
    },
    /// Sent, but no answer: it may be in, it may still come in. Only an acknowledged write decides.
    #[error("the outcome of the write is unknown: {reason}")]
    Unknown {
        /// Why.
        reason: String,
    },
}

impl ItemError {
    /// The same after another try of the write that may be in: that this one was not taken does not say that
    /// none was.
    #[must_use]
    pub fn after_unknown(self) -> Self {
        match self {
            Self::NotTaken { reason } => Self::Unknown { reason },
            other => other,
        }
    }
}
