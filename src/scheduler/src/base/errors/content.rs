//! Errors of inputs and outputs by content.

use fairlead_content::{BadDigest, ContentError, Digest};

/// An error of content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ContentFault {
    #[error("there is no content '{0}'")]
    Unknown(Digest),
    #[error("there is no chunk {0}")]
    NoChunk(Digest),
    #[error("{0}")]
    BadDigest(#[from] BadDigest),
    #[error("{0}")]
    Wrong(String),
    #[error("{0}")]
    ChunksMissing(String),
    #[error("the content store has a damaged object: {0}")]
    Damaged(String),
    #[error("the content store cannot be reached, or says no")]
    Unreachable,
}

impl From<ContentError> for ContentFault {
    fn from(error: ContentError) -> Self {
        match error {
            ContentError::ChunksMissing { .. } => Self::ChunksMissing(error.to_string()),
            ContentError::NotWhatItSays { .. }
            | ContentError::ChunkSize(_)
            | ContentError::Exists(_)
            | ContentError::Manifest(_) => Self::Wrong(error.to_string()),
            ContentError::Damaged { .. } => Self::Damaged(error.to_string()),
            ContentError::Store(_)
            | ContentError::Bug(_)
            | ContentError::Collecting
            | ContentError::CollectedByAnother(_) => {
                tracing::error!(%error, "the content store does not answer as it should");
                Self::Unreachable
            }
        }
    }
}
