//! Why files cannot be moved, by what people can do about it.

use std::{io, path::PathBuf};

use fairlead_api::ClientError;

use crate::{ContentError, Digest, ManifestError};

/// Object in a folder that cannot be put, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path below the folder. Bytes that are not UTF-8 are shown with replacements.
    pub path: String,
    /// Problem: a fragment such as `it is a socket`.
    pub problem: String,
}

/// Reason why files cannot be transferred.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The lab refuses or does not answer.
    #[error(transparent)]
    Lab(#[from] ClientError),
    /// The store refuses.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The id does not exist, or the caller may not read it.
    #[error("there is no content '{0}'")]
    Unknown(Digest),
    /// The object store behind an address refuses or does not answer.
    #[error("the object store at {host}: {problem}")]
    Address {
        /// Its host, without the signed address.
        host: String,
        /// Message of the object store.
        problem: String,
        /// True if a later try may succeed.
        may_pass: bool,
    },
    /// The folder has objects that cannot be put. Nothing was put.
    #[error("{}", listed(.problems, *.more))]
    Unfit {
        /// First [`Problem`]s in the order of paths.
        problems: Vec<Problem>,
        /// Number of further problems.
        more: usize,
    },
    /// A file was written to while it was put. Nothing refers to the sent parts.
    #[error("'{path}' changed while it was put (hint: put it again when nobody writes to it)")]
    Changed {
        /// Path below the folder.
        path: String,
    },
    /// Larger than the caller allows.
    #[error("the files have more than {max} bytes")]
    TooLarge {
        /// Allowed size, bytes.
        max: u64,
    },
    /// This machine cannot read or write a file.
    #[error("'{}': {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The target folder is not empty.
    #[error("'{}' is there already, and is no empty folder", .0.display())]
    NotEmpty(PathBuf),
    /// A file cannot be restored as it was put. Nothing of it is left at its place.
    #[error("'{path}' cannot be had: {source}")]
    FileOf {
        /// Path below the folder.
        path: String,
        /// Missing or damaged chunk, or the reason why it cannot be read.
        #[source]
        source: Box<Self>,
    },
    /// A chunk does not exist, or the store found it damaged.
    #[error("its chunk {0} is not there any more, or damaged")]
    ChunkGone(Digest),
    /// The received bytes have another digest.
    #[error("what came is not {digest}: its digest is {is}")]
    Damaged {
        /// Expected digest.
        digest: Digest,
        /// Digest of the bytes.
        is: Digest,
    },
    /// The other side sends too much.
    #[error("what came has more than {max} bytes")]
    TooLong {
        /// Allowed size, bytes.
        max: usize,
    },
    /// The received manifest is invalid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The transfer was stopped.
    #[error("stopped")]
    Stopped,
    /// An impossible state.
    #[error("a bug: {0}")]
    Bug(String),
}

impl From<tokio::task::JoinError> for TransferError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Bug(error.to_string())
    }
}

impl TransferError {
    /// Returns true if the same transfer may succeed later without any change.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Lab(error) => error.may_pass(),
            Self::Content(error) => matches!(error, ContentError::Store(_)),
            Self::Address { may_pass, .. } => *may_pass,
            Self::FileOf { source, .. } => source.may_pass(),
            Self::Changed { .. } => true,
            _ => false,
        }
    }

    /// Returns the error of the lab behind it; `None`: it is not from the lab.
    pub fn refusal(&self) -> Option<&ClientError> {
        match self {
            Self::Lab(error) => Some(error),
            Self::FileOf { source, .. } => source.refusal(),
            _ => None,
        }
    }

    pub(super) fn file(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::File {
            path: path.into(),
            source: source.into(),
        }
    }

    /// Names the file, if the error concerns it.
    pub(super) fn in_file(self, path: &str) -> Self {
        if matches!(self, Self::Stopped) {
            return self;
        }
        Self::FileOf {
            path: path.to_owned(),
            source: Box::new(self),
        }
    }
}

fn listed(problems: &[Problem], more: usize) -> String {
    let mut all: Vec<String> = problems
        .iter()
        .map(|Problem { path, problem }| format!("'{path}': {problem}"))
        .collect();
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    format!("the folder has what cannot be put: {}", all.join("; "))
}
