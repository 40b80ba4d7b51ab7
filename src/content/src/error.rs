//! Why something about content cannot be done.

use std::{error::Error, io};

use crate::{CHUNK_BYTES_MAX, Digest, ManifestError};

/// Error of content.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The bytes have another digest.
    #[error("the bytes are not {digest}: their digest is {is}")]
    NotWhatItSays {
        /// Expected digest.
        digest: Digest,
        /// Digest of the bytes.
        is: Digest,
    },
    /// A chunk of an impossible size.
    #[error("a chunk of {0} bytes: 1 to {CHUNK_BYTES_MAX} are allowed")]
    ChunkSize(usize),
    /// A manifest with missing chunks.
    #[error("{count} chunks of the manifest are not there, the first is {first}")]
    ChunksMissing {
        /// First missing chunk.
        first: Digest,
        /// Number of missing chunks.
        count: usize,
    },
    /// The name is taken.
    #[error("'{0}' is there already")]
    Exists(String),
    /// Invalid manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A stored object cannot be read.
    #[error("{what} is damaged: {problem}")]
    Damaged {
        /// Name of the object.
        what: String,
        /// Problem with it.
        problem: String,
    },
    /// The requested content is just being removed, and that takes long.
    #[error("a collection is at work on some of it; try again in a minute")]
    Collecting,
    /// Another collector is at work.
    #[error("'{0}' is collecting already")]
    CollectedByAnother(String),
    /// The names of manifests are unknown.
    #[error("what names content cannot be read: {0}")]
    Marks(String),
    /// The object store refuses or does not answer.
    #[error("the content store: {0}")]
    Store(#[from] object_store::Error),
    /// An impossible state.
    #[error("a bug: {0}")]
    Bug(String),
}

impl ContentError {
    /// Returns true if there is no room: a disk, its inodes or its quota are used up.
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
