//! Failures of requests.

use fairlead_api::{ClientError, ErrorCode};

/// A request that was refused, or got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(super) status: Option<u16>,
    pub(super) code: Option<ErrorCode>,
    /// Asking again would bring the same answer.
    pub(super) is_final: bool,
    text: String,
}

impl Failure {
    /// A scheduler answered no.
    pub fn refused(status: u16, code: Option<ErrorCode>, text: impl Into<String>) -> Self {
        let is_final = (400..500).contains(&status) && !matches!(status, 408 | 425 | 429);
        Self {
            status: Some(status),
            code,
            is_final,
            text: text.into(),
        }
    }

    /// No answer came.
    pub fn lost(text: impl Into<String>) -> Self {
        Self {
            status: None,
            code: None,
            is_final: false,
            text: text.into(),
        }
    }

    /// Whether asking again would bring the same answer.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Its cause is gone: the next try may do better.
    #[must_use]
    pub fn mended(self) -> Self {
        Self {
            is_final: false,
            ..self
        }
    }

    /// The refusal's code.
    pub fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// Why, for people.
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
