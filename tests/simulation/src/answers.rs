//! Errors of a store that answers otherwise than it should.

use fairlead_store::{ItemError, StoreError};

pub(super) fn unavailable() -> StoreError {
    StoreError::Unavailable {
        reason: "no node answers".to_owned(),
    }
}

pub(super) fn unknown() -> ItemError {
    ItemError::Unknown {
        reason: "no answer".to_owned(),
    }
}

pub(super) fn not_taken() -> ItemError {
    ItemError::NotTaken {
        reason: "busy".to_owned(),
    }
}
