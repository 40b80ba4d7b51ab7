//! Refusals: the error answers of handlers.

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_job::{Fault, FieldError};
use fairlead_store::{ItemError, StoreError};

use crate::base::sealing::NoKey;

/// So much of a bad value is said back.
const EXCERPT_CHARS: usize = 40;

/// A refused request: the body, and the HTTP status where compass-ci's differs from the code's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is answered.
    pub(crate) body: ErrorBody,
    /// The status.
    pub(crate) status: u16,
}

impl Refusal {
    /// A refusal with the status of its code.
    pub(crate) fn new(
        code: ErrorCode,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            body: ErrorBody::new(code, message, hint),
            status: code.status(),
        }
    }

    /// The same with another status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// There is no such job.
    pub(crate) fn no_job(id: impl std::fmt::Display) -> Self {
        Self::new(
            ErrorCode::NotFound,
            format!("unknown job {id}"),
            "list jobs with GET /scheduler/v1/jobs",
        )
    }

    /// Others changed a job each time before this change was written: nothing was.
    pub(crate) fn contended(id: impl std::fmt::Display) -> Self {
        Self::new(
            ErrorCode::Unavailable,
            format!("too many requests change job {id} at once"),
            "try again in a few seconds",
        )
    }

    /// The replica is stopping.
    pub(crate) fn stopping() -> Self {
        Self::new(
            ErrorCode::Unavailable,
            "this replica is stopping",
            "ask again; another replica or its successor answers",
        )
    }
}

/// What a client sent, short and printable, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(EXCERPT_CHARS).collect();
    start.escape_default().to_string()
}

impl From<ErrorBody> for Refusal {
    fn from(body: ErrorBody) -> Self {
        let status = body.code.status();
        Self { body, status }
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        let code = match error.fault {
            Fault::Value => ErrorCode::BadField,
            Fault::Name => ErrorCode::BadName,
        };
        Self::new(code, error.to_string(), error.hint)
    }
}

impl From<NoKey> for Refusal {
    fn from(_: NoKey) -> Self {
        Self::new(
            ErrorCode::Unavailable,
            "the secrets cannot be opened: they are sealed with a key that this lab does not have",
            "an operator can import the key from a backup: fairlead key import FILE",
        )
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "the store did not answer a read");
        match error {
            StoreError::Unavailable { .. } => Self::new(
                ErrorCode::Unavailable,
                "the store cannot be read now",
                "nothing was changed; try again in a few seconds",
            ),
            StoreError::Refused { .. } | StoreError::Unusable { .. } => Self::new(
                ErrorCode::Internal,
                "the store refused a request of ours",
                "the replica's log has the reason",
            ),
        }
    }
}

impl From<ItemError> for Refusal {
    fn from(error: ItemError) -> Self {
        match error {
            ItemError::Missing => Self::new(
                ErrorCode::NotFound,
                "no such document",
                "it may have been deleted",
            ),
            ItemError::Conflict { .. } => Self::new(
                ErrorCode::Conflict,
                "somebody else changed it at the same time",
                "read it again, then repeat",
            ),
            ItemError::Refused { reason } => Self::new(
                ErrorCode::BadField,
                format!("the store refused the document: {reason}"),
                "change the field that it names",
            ),
            ItemError::NotTaken { reason } => {
                tracing::debug!(reason, "the store did not take a write");
                Self::new(
                    ErrorCode::Unavailable,
                    "the store takes no writes now; nothing was written",
                    "try again in a few seconds",
                )
            }
            ItemError::Unknown { reason } => {
                tracing::debug!(reason, "the store did not say whether a write is in");
                Self::new(
                    ErrorCode::Unknown,
                    "the store did not say whether the write is in",
                    "ask for the state before you repeat it",
                )
            }
        }
    }
}
