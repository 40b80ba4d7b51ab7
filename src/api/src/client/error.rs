//! Errors of a client's requests, by what the caller can do about them.

use std::{error::Error as _, path::PathBuf, time::Duration};

use crate::{ErrorBody, ErrorCode};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A replica answered no. Final, except that codes `unavailable` and `too_many` (which were tried
    /// again for `retry_for` already) may pass with time.
    #[error("{} (hint: {})", body.message, body.hint)]
    Refused {
        /// HTTP status.
        status: u16,
        /// What and why.
        body: ErrorBody,
    },
    /// No replica could be reached; nothing was done, or the request may be repeated without harm.
    #[error("no scheduler answers at {}: {cause} (hint: {hint})", tried.join(", "))]
    Unreachable {
        /// All base URLs that were tried.
        tried: Vec<String>,
        /// What was wrong with the last.
        cause: String,
        /// What to do about it.
        hint: String,
    },
    /// The request was sent and no answer came: it was done or not. It was not repeated, since that
    /// could do it twice. Look first, then repeat.
    #[error(
        "{url} gave no answer: {cause} (hint: the request may have been done or not; look at the state before you repeat it)"
    )]
    OutcomeUnknown {
        /// The base URL that it was sent to.
        url: String,
        /// What was wrong.
        cause: String,
    },
    /// What answers is no scheduler, or one that is too new or too old.
    #[error("{url} answered {status} with something else than expected: {problem}")]
    BadAnswer {
        /// The base URL.
        url: String,
        /// HTTP status.
        status: u16,
        /// What is wrong with the body.
        problem: String,
    },
    /// A base URL, token or name cannot be used in a request. The caller's mistake.
    #[error("'{value}' cannot be used: {problem}")]
    BadUrl {
        /// What was given; `(hidden)` for a token.
        value: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A local file to upload cannot be read.
    #[error("cannot read '{}': {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl ClientError {
    /// The refusal's code; `None` for all other errors.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { body, .. } => Some(body.code),
            _ => None,
        }
    }

    /// The refusal's HTTP status; `None` for all other errors.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the same request may succeed later without anybody changing it.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, body } => {
                matches!(status, 429 | 500..) && body.code != ErrorCode::DataFull
            }
            // Not expected: a proxy's own page, while its scheduler is away.
            Self::Unreachable { .. } | Self::OutcomeUnknown { .. } | Self::BadAnswer { .. } => true,
            Self::BadUrl { .. } | Self::File { .. } => false,
        }
    }
}

/// One try that gave no whole answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection was never made: certainly not done.
    NotSent(String),
    /// Sent, in part or whole: done or not.
    Sent(String),
    /// Pointless to try again anywhere.
    Stop(ClientError),
}

impl Failure {
    pub(super) fn of(error: &reqwest::Error, limit: Duration) -> Self {
        if error.is_connect() {
            let cause = if error.is_timeout() {
                "no connection in time".to_owned()
            } else {
                innermost(error)
            };
            Self::NotSent(cause)
        } else if error.is_timeout() {
            Self::Sent(format!("no answer within {} ms", limit.as_millis()))
        } else {
            Self::Sent(innermost(error))
        }
    }
}

/// The cause at the end of the chain: reqwest's own text only says that sending failed.
fn innermost(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = error.to_string();
        source = error.source();
    }
    text.to_lowercase()
}
