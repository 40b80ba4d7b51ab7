//! One call to Elasticsearch: its kind, its request, and its possible failures.

use bytes::Bytes;
use reqwest::Method;

use crate::{ItemError, StoreError};

/// Effect of a call, which decides if it may be sent again when it may have been done already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changes nothing.
    Read,
    /// Has the same effect however often it is sent.
    Write,
    /// Must not be sent twice.
    WriteOnce,
}

/// One request to any node.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) method: Method,
    /// Path with the query.
    pub(super) path: String,
    pub(super) body: Option<Bytes>,
    /// True if the body is lines of JSON (`_bulk`, `_msearch`).
    pub(super) is_ndjson: bool,
}

impl Call {
    /// Creates a request without a body.
    pub(super) fn new(kind: Kind, method: Method, path: impl Into<String>) -> Self {
        Self {
            kind,
            method,
            path: path.into(),
            body: None,
            is_ndjson: false,
        }
    }

    /// Creates a read.
    pub(super) fn read(method: Method, path: impl Into<String>) -> Self {
        Self::new(Kind::Read, method, path)
    }

    /// Creates a write that may be repeated.
    pub(super) fn write(method: Method, path: impl Into<String>) -> Self {
        Self::new(Kind::Write, method, path)
    }

    /// Adds a JSON body.
    pub(super) fn json(mut self, body: &serde_json::Value) -> Self {
        self.body = Some(Bytes::from(body.to_string()));
        self
    }

    /// Adds lines of JSON as the body.
    pub(super) fn lines(mut self, lines: String) -> Self {
        self.body = Some(Bytes::from(lines));
        self.is_ndjson = true;
        self
    }
}

/// Call without a usable answer.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// Certainly not done: no node could be reached.
    NotSent(String),
    /// Certainly not done: the node is overloaded.
    Busy(String),
    /// Sent, but no whole answer came in time.
    Unknown(String),
    /// Answered with an error.
    Status {
        status: u16,
        kind: String,
        reason: String,
    },
}

impl Failure {
    /// Converts the failure of a call that only reads.
    pub(super) fn of_read(self) -> StoreError {
        match self {
            Self::NotSent(reason) | Self::Busy(reason) | Self::Unknown(reason) => {
                StoreError::Unavailable { reason }
            }
            Self::Status { status, reason, .. } if is_trouble(status) => {
                StoreError::Unavailable { reason }
            }
            Self::Status { reason, .. } => StoreError::Refused { reason },
        }
    }

    /// Converts the failure for each item of a write.
    pub(super) fn of_write(self) -> ItemError {
        match self {
            Self::NotSent(reason) | Self::Busy(reason) => ItemError::NotTaken { reason },
            Self::Unknown(reason) => ItemError::Unknown { reason },
            Self::Status { status, reason, .. } if status >= 500 => ItemError::Unknown { reason },
            Self::Status { status, reason, .. } if is_trouble(status) => {
                ItemError::NotTaken { reason }
            }
            Self::Status { reason, .. } => ItemError::Refused { reason },
        }
    }

    /// Returns the message.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::NotSent(reason)
            | Self::Busy(reason)
            | Self::Unknown(reason)
            | Self::Status { reason, .. } => reason,
        }
    }
}

/// Returns true if the cluster or its operator must fix the error. The request itself is right and may be sent again.
pub(super) fn is_trouble(status: u16) -> bool {
    matches!(status, 401 | 403 | 429 | 500..)
}

/// Answer to a call.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) body: Bytes,
    /// True if an earlier try of the same write may have been written.
    pub(super) after_unknown: bool,
}
