//! Why files cannot be moved, by what people can do about it.

use std::{io, path::PathBuf};

use fairlead_api::ClientError;

use crate::{ContentError, Digest, ManifestError};

/// Something in a folder that cannot be put, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Below the folder; what is no UTF-8 is shown with replacements.
    pub path: String,
    /// What is wrong: a fragment such as `it is a socket`.
    pub problem: String,
}

/// Why files cannot be moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The lab says no, or does not answer.
    #[error(transparent)]
    Lab(#[from] ClientError),
    /// The store says no.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// Nobody has this id, or not for who asks.
    #[error("there is no content '{0}'")]
    Unknown(Digest),
    /// The object store behind an address says no, or does not answer.
    #[error("the object store at {host}: {problem}")]
    Address {
        /// Its host, without the signed address.
        host: String,
        /// What it said.
        problem: String,
        /// Whether it may go better later.
        may_pass: bool,
    },
    /// The folder has something that cannot be put. Nothing was put.
    #[error("{}", listed(.problems, *.more))]
    Unfit {
        /// What and why, the first [`Problem`]s in the order of paths.
        problems: Vec<Problem>,
        /// How many more there are.
        more: usize,
    },
    /// A file was written to while it was put. Nothing refers to what was sent of it.
    #[error("'{path}' changed while it was put (hint: put it again when nobody writes to it)")]
    Changed {
        /// Below the folder.
        path: String,
    },
    /// More than the caller allows.
    #[error("the files have more than {max} bytes")]
    TooLarge {
        /// How many are allowed.
        max: u64,
    },
    /// This machine cannot read or write a file.
    #[error("'{}': {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is something where files are to go.
    #[error("'{}' is there already, and is no empty folder", .0.display())]
    NotEmpty(PathBuf),
    /// A file that cannot be had as it was put. Nothing of it is left at its place.
    #[error("'{path}' cannot be had: {source}")]
    FileOf {
        /// Below the folder.
        path: String,
        /// Which of its chunks is missing or damaged, or why it cannot be read.
        #[source]
        source: Box<Self>,
    },
    /// A chunk is not there, or the store found it damaged.
    #[error("its chunk {0} is not there any more, or damaged")]
    ChunkGone(Digest),
    /// What came has another digest.
    #[error("what came is not {digest}: its digest is {is}")]
    Damaged {
        /// What it should be.
        digest: Digest,
        /// What it is.
        is: Digest,
    },
    /// The other side sends too much.
    #[error("what came has more than {max} bytes")]
    TooLong {
        /// How many are allowed.
        max: usize,
    },
    /// What should be a manifest is none.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Somebody said stop.
    #[error("stopped")]
    Stopped,
    /// What never happens.
    #[error("a bug: {0}")]
    Bug(String),
}

impl From<tokio::task::JoinError> for TransferError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Bug(error.to_string())
    }
}

impl TransferError {
    /// Whether the same may succeed later without anybody changing anything.
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

    /// The refusal or the silence of the lab behind it; `None`: it is not the lab's.
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

    /// Names the file, if it is the file's fault.
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
