//! Errors of inputs and outputs by content.

use fairlead_content::{BadDigest, ContentError, Digest};

/// An error of content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ContentFault {
    #[error("there is no content '{0}'")]
    Unknown(Digest),
    #[error("there is no chunk {0}")]
    NoChunk(Digest),
    #[error("chunk {chunk} is not one of content '{id}'")]
    NotOfIt { chunk: Digest, id: Digest },
    #[error("put: '{0}' is no word for a put")]
    BadPut(String),
    #[error("chunks: {given} were given; at most {max} can be named at once")]
    TooManyChunks { given: usize, max: usize },
    #[error("name: it has {given} bytes, or characters that cannot be printed; the limit is {max}")]
    BadName { given: usize, max: usize },
    #[error("until: '{0}' is not a time")]
    BadTime(String),
    #[error("until: {until} is in the past, or too far ahead")]
    BadUntil { until: String, days_max: u64 },
    #[error(
        "account '{account}' has {present_mb} MB of inputs and outputs{when}, and would have {more_mb} MB more; its limit is {most_mb} MB"
    )]
    OverQuota {
        account: String,
        present_mb: u64,
        more_mb: u64,
        most_mb: u64,
        /// Of which time; empty: of all.
        when: &'static str,
    },
    #[error("{0}")]
    BadDigest(#[from] BadDigest),
    #[error("{0}")]
    Wrong(String),
    #[error("{0}")]
    ChunksMissing(String),
    #[error("the content store has a damaged object: {0}")]
    Damaged(String),
    #[error("a collection is at work on some of it")]
    Collecting,
    #[error("'{0}' is collecting already")]
    CollectedByAnother(String),
    #[error("the content store is full")]
    Full,
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
            ContentError::Collecting => Self::Collecting,
            ContentError::CollectedByAnother(who) => Self::CollectedByAnother(who),
            error if error.is_full() => {
                tracing::error!(%error, "the content store is full");
                Self::Full
            }
            ContentError::Store(_) | ContentError::Marks(_) | ContentError::Bug(_) => {
                tracing::error!(%error, "the content store does not answer as it should");
                Self::Unreachable
            }
        }
    }
}
