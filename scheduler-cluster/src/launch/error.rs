//! Errors of the launcher.

use std::{fmt::Display, path::Path};

/// Why a command of the launcher failed. Never retryable as it stands: the hint says what to change.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot be done as asked; nothing was changed.
    #[error("{message}\nhint: {hint}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Something of this machine: a process, a port, a folder.
    #[error("{message}\nhint: {hint}")]
    Local {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
}

/// The request is impossible. Nothing was done.
const USAGE: u8 = 2;
/// A problem of this machine: a folder, a port, a program.
const LOCAL: u8 = 5;

/// Exit code of a command that failed: 2 for an impossible request, 5 for everything else.
pub fn failure_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref() {
        Some(LaunchError::Usage { .. }) => USAGE,
        _ => LOCAL,
    }
}

impl LaunchError {
    /// A request that cannot be carried out, and what to change.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn local(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Local {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// The process that ends what a start began cannot be used.
    pub(super) fn reaper(cause: impl Display) -> Self {
        Self::local(
            format!("cannot watch over what is started: {cause}"),
            "see whether `sh` is there, and --dir has no line break",
        )
    }

    /// A file or folder that cannot be used.
    pub(super) fn file(path: &Path, cause: impl Display) -> Self {
        Self::local(
            format!("cannot use '{}': {cause}", path.display()),
            "choose another --dir, or make it writable",
        )
    }
}
