//! Failures of requests.

use fairlead_api::{ClientError, ErrorCode};

/// A request that was refused, or got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(super) status: Option<u16>,
    pub(super) code: Option<ErrorCode>,
    /// True if a retry would bring the same answer.
    pub(super) is_final: bool,
    text: String,
}

impl Failure {
    /// Returns a refusal by a scheduler.
    pub fn refused(status: u16, code: Option<ErrorCode>, text: impl Into<String>) -> Self {
        let is_final = (400..500).contains(&status) && !matches!(status, 408 | 425 | 429);
        Self {
            status: Some(status),
            code,
            is_final,
            text: text.into(),
        }
    }

    /// Returns the failure of a request without an answer.
    pub fn lost(text: impl Into<String>) -> Self {
        Self {
            status: None,
            code: None,
            is_final: false,
            text: text.into(),
        }
    }

    /// Returns true if a retry would bring the same answer.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Returns the failure as retryable, because its cause is gone.
    #[must_use]
    pub fn mended(self) -> Self {
        Self {
            is_final: false,
            ..self
        }
    }

    /// Returns the code of the refusal.
    pub fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// Returns the reason, for people.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Refused { status, body } => {
                Self::refused(*status, Some(body.code), error.to_string())
            }
            _ => Self {
                is_final: matches!(error, ClientError::BadUrl { .. } | ClientError::File { .. }),
                ..Self::lost(error.to_string())
            },
        }
    }
}
