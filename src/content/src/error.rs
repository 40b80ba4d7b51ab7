//! Why something about content cannot be done.

use std::{error::Error, io};

use crate::{CHUNK_BYTES_MAX, Digest, ManifestError};

/// Why something about content cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The bytes have another digest.
    #[error("the bytes are not {digest}: their digest is {is}")]
    NotWhatItSays {
        /// What they should be.
        digest: Digest,
        /// What they are.
        is: Digest,
    },
    /// A chunk of an impossible size.
    #[error("a chunk of {0} bytes: 1 to {CHUNK_BYTES_MAX} are allowed")]
    ChunkSize(usize),
    /// A manifest whose chunks are not all there.
    #[error("{count} chunks of the manifest are not there, the first is {first}")]
    ChunksMissing {
        /// One of them.
        first: Digest,
        /// How many.
        count: usize,
    },
    /// Something has this name already.
    #[error("'{0}' is there already")]
    Exists(String),
    /// No manifest, or one that cannot be.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Something that was stored cannot be read.
    #[error("{what} is damaged: {problem}")]
    Damaged {
        /// What.
        what: String,
        /// How.
        problem: String,
    },
    /// What was asked for is just being removed, and it takes long.
    #[error("a collection is at work on some of it; try again in a minute")]
    Collecting,
    /// Another collector is at work.
    #[error("'{0}' is collecting already")]
    CollectedByAnother(String),
    /// Nobody knows who names manifests.
    #[error("what names content cannot be read: {0}")]
    Marks(String),
    /// The object store says no, or nothing.
    #[error("the content store: {0}")]
    Store(#[from] object_store::Error),
    /// What never happens.
    #[error("a bug: {0}")]
    Bug(String),
}

impl ContentError {
    /// Whether there is no room: a disk, its inodes, or what its quota gives are used up.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let Self::Store(error) = self else {
            return false;
        };
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            let of_io = error.downcast_ref::<io::Error>();
            if of_io.is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded)) {
                return true;
            }
            // The source of an error that wraps another one is that one's source.
            let wrapped = of_io.and_then(io::Error::get_ref);
            cause = wrapped.map_or_else(|| error.source(), |inner| Some(inner));
        }
        false
    }
}

impl From<tokio::task::JoinError> for ContentError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Bug(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_trouble() {
        let of = |kind: io::ErrorKind| {
            let source = io::Error::other(io::Error::from(kind)).into();
            let store = "folder";
            ContentError::from(object_store::Error::Generic { store, source })
        };
        assert!(of(io::ErrorKind::StorageFull).is_full());
        assert!(of(io::ErrorKind::QuotaExceeded).is_full());
        assert!(!of(io::ErrorKind::PermissionDenied).is_full());
        assert!(!ContentError::Collecting.is_full());
    }
}
