//! A value with its origin.

use std::{fmt, path::PathBuf};

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An option of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A file, and the line in it (0: the file as a whole).
    File(PathBuf, u32),
    /// Built in.
    Default,
    /// Nowhere: not set.
    Unset,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::File(path, 0) => write!(f, "file {}", path.display()),
            Self::File(path, line) => write!(f, "file {}:{line}", path.display()),
            Self::Default => f.write_str("default"),
            Self::Unset => f.write_str("not set"),
        }
    }
}

/// A value that remembers its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Setting<T> {
    pub(crate) fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
