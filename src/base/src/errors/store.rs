//! Errors of the store, without its own words: those go to the log.

use fairlead_store::{ItemError, StoreError};

refusals! {
    /// An error of the store.
    #[derive(Copy)]
    pub enum StoreFault {
        #[error("the store cannot be read now")]
        Unreadable => Unavailable, "nothing was changed; try again in a few seconds";
        /// A bug: the store does not understand a request.
        #[error("the store refused a request of ours")]
        RefusedRequest => Internal, "the replica's log has the reason";
        #[error("no such document")]
        Missing => NotFound, "it may have been deleted";
        #[error("somebody else changed it at the same time")]
        Conflict => Conflict, "read it again, then repeat";
        #[error("the store refused the document")]
        RefusedDocument => BadField, "the replica's log names the field";
        #[error("the store takes no writes now; nothing was written")]
        NotTaken => Unavailable, "try again in a few seconds";
        #[error("the store did not say whether the write is in")]
        Unknown => Unknown, "ask for the state before you repeat it";
    }
}

impl From<StoreError> for StoreFault {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "the store did not answer a read");
        match error {
            StoreError::Unavailable { .. } => Self::Unreadable,
            StoreError::Refused { .. } | StoreError::Unusable { .. } => Self::RefusedRequest,
        }
    }
}

impl From<ItemError> for StoreFault {
    fn from(error: ItemError) -> Self {
        match error {
            ItemError::Missing => Self::Missing,
            ItemError::Conflict { .. } => Self::Conflict,
            ItemError::Refused { reason } => {
                tracing::warn!(reason, "the store refused a document");
                Self::RefusedDocument
            }
            ItemError::NotTaken { reason } => {
                tracing::debug!(reason, "the store did not take a write");
                Self::NotTaken
            }
            ItemError::Unknown { reason } => {
                tracing::debug!(reason, "the store did not say whether a write is in");
                Self::Unknown
            }
        }
    }
}
