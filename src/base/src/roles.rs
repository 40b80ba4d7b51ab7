//! Roles of accounts, as in their documents.

use crate::errors::{PeopleError, excerpt};

/// The role of an account that says none.
pub const DEFAULT_ROLE: &str = "user";

/// What an account is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything.
    Admin,
    /// Its own jobs.
    User,
    /// Asks for work and reports on it.
    Testbox,
    /// Nothing: a newer version's role, which this one does not know.
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

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Testbox => "testbox",
            Self::Unknown => "unknown",
        }
    }

    /// A role that an account may be given.
    pub fn check(text: &str) -> Result<&str, PeopleError> {
        if Self::of(text) != Self::Unknown {
            return Ok(text);
        }
        Err(PeopleError::UnknownRole(excerpt(text)))
    }
}
