//! Errors of inputs and outputs by content.

use fairlead_content::{BadDigest, ContentError, Digest};

refusals! {
    /// An error of content.
    pub enum ContentFault {
        #[error("there is no content '{0}'")]
        Unknown(Digest) => NotFound, "list yours: fairlead content ls";
        #[error("there is no chunk {0}")]
        NoChunk(Digest) => NotFound, "it was collected, or it is damaged: put the files again";
        #[error("chunk {chunk} is not one of content '{id}'")]
        NotOfIt { chunk: Digest, id: Digest } => NotFound, "ask for chunks that its manifest names";
        #[error("put: '{0}' is no word for a put")]
        BadPut(String) => BadField,
            "choose 1 to 64 letters, digits, - and _ by chance, the same for all requests of a put";
        #[error("chunks: {given} were given; at most {max} can be named at once")]
        TooManyChunks { given: usize, max: usize } => TooLarge,
            "send several requests with the same put";
        #[error("name: it has {given} bytes, or characters that cannot be printed; the limit is {max}")]
        BadName { given: usize, max: usize } => BadField, "choose a shorter name";
        #[error("until: '{0}' is not a time")]
        BadTime(String) => BadField,
            "as +14d from now, 2026-11-22T05:00:00Z, or empty: no longer than jobs name it";
        #[error("until: {until} is in the past, or too far ahead")]
        BadUntil { until: String, days_max: u64 } => BadField of (days_max),
            format!("choose a time within the next {days_max} days");
        #[error(
            "account '{account}' has {present_mb} MB of inputs and outputs{when}, and would have {more_mb} MB more; its limit is {most_mb} MB"
        )]
        OverQuota {
            account: String,
            present_mb: u64,
            more_mb: u64,
            most_mb: u64,
            /// Age of the files, in words; empty: all.
            when: &'static str,
        } => Quota, "give some up: fairlead content rm ID, or ask an admin for a higher limit";
        #[error("{0}")]
        BadDigest(#[from] BadDigest) => BadName, "'fairlead put DIR' prints the id";
        #[error("{0}")]
        Wrong(String) => BadBody, "send the bytes again";
        #[error("{0}")]
        ChunksMissing(String) => Conflict, "pin the chunks again, and send those that are missing";
        #[error("the content store has a damaged object: {0}")]
        Damaged(String) => NotFound,
            "put the files again; an admin can find what is damaged: fairlead content check";
        #[error("a collection is at work on some of it")]
        Collecting => Unavailable, "try again in a minute";
        #[error("'{0}' is collecting already")]
        CollectedByAnother(String) => Conflict, "wait until that is over";
        #[error("the content store is full")]
        Full => DataFull, "an operator makes room; a testbox soon ends its job without this";
        #[error("the content store cannot be reached, or says no")]
        Unreachable => Unavailable, "try again in a few seconds";
    }
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
