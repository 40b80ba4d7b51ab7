//! Roles of accounts, as in their documents.

use crate::errors::{PeopleError, excerpt};

/// Role of an account without one.
pub const DEFAULT_ROLE: &str = "user";

/// Role of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May do everything.
    Admin,
    /// May handle its own jobs.
    User,
    /// May ask for work and report on it.
    Testbox,
    /// May do nothing: a role of a newer version, which this version does not know.
    Unknown,
}

impl Role {
    pub fn of(text: &str) -> Self {
        match text {
            "admin" => Self::Admin,
            "user" => Self::User,
            "testbox" => Self::Testbox,
            _ => Self::Unknown,
        }
    }

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Testbox => "testbox",
            Self::Unknown => "unknown",
        }
    }

    /// Checks a role that an account may be given.
    pub fn check(text: &str) -> Result<&str, PeopleError> {
        if Self::of(text) != Self::Unknown {
            return Ok(text);
        }
        Err(PeopleError::UnknownRole(excerpt(text)))
    }
}
