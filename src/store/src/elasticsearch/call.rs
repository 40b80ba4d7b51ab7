//! One call to Elasticsearch: its kind, its request, and its possible failures.

use bytes::Bytes;
use reqwest::Method;

use crate::{ItemError, StoreError};

/// What a call does, and whether it may be sent again when it may be in already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changes nothing.
    Read,
    /// Changes the same, however often it is sent.
    Write,
    /// Must not be sent twice.
    WriteOnce,
}

/// One request to whichever node.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) method: Method,
    /// With the query.
    pub(super) path: String,
    pub(super) body: Option<Bytes>,
    /// Lines of JSON (`_bulk`, `_msearch`).
    pub(super) is_ndjson: bool,
}

impl Call {
    /// A request without a body.
    pub(super) fn new(kind: Kind, method: Method, path: impl Into<String>) -> Self {
        Self {
            kind,
            method,
            path: path.into(),
            body: None,
            is_ndjson: false,
        }
    }

    /// A read.
    pub(super) fn read(method: Method, path: impl Into<String>) -> Self {
        Self::new(Kind::Read, method, path)
    }

    /// A write that may be repeated.
    pub(super) fn write(method: Method, path: impl Into<String>) -> Self {
        Self::new(Kind::Write, method, path)
    }

    /// With a JSON body.
    pub(super) fn json(mut self, body: &serde_json::Value) -> Self {
        self.body = Some(Bytes::from(body.to_string()));
        self
    }

    /// With lines of JSON.
    pub(super) fn lines(mut self, lines: String) -> Self {
        self.body = Some(Bytes::from(lines));
        self.is_ndjson = true;
        self
    }
}

/// A call that got no answer of use.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// Certainly not taken: nobody could be reached.
    NotSent(String),
    /// Certainly not taken: whoever was asked is overloaded.
    Busy(String),
    /// Sent, and no whole answer in time.
    Unknown(String),
    /// Answered with an error.
    Status {
        status: u16,
        kind: String,
        reason: String,
    },
}

impl Failure {
    /// For a call that only reads.
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

    /// For each item of a write.
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

    /// The words alone.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::NotSent(reason)
            | Self::Busy(reason)
            | Self::Unknown(reason)
            | Self::Status { reason, .. } => reason,
        }
    }
}

/// The error is the cluster's or its operator's to mend, and not the request's: it may be made again.
pub(super) fn is_trouble(status: u16) -> bool {
    matches!(status, 401 | 403 | 429 | 500..)
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) body: Bytes,
    /// An earlier try of the same write may be in.
    pub(super) after_unknown: bool,
}
