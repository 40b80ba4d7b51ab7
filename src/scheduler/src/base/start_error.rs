//! Errors of a replica's start.

use std::net::SocketAddr;

use fairlead_store::StoreError;

/// Why a replica did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address could not be bound.
    #[error(
        "cannot listen on {address}: {cause}\n  hint: choose another --listen, or stop the program that uses it"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// The system's words.
        cause: std::io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data folder cannot be used.
    #[error(
        "cannot use the data folder {path}: {cause}\n  hint: choose another --data, or make it writable"
    )]
    Data {
        /// Which.
        path: String,
        /// The system's words.
        cause: std::io::Error,
    },
    /// The place of inputs and outputs cannot be used.
    #[error(
        "cannot use {location} for inputs and outputs: {cause}\n  hint: choose another --content"
    )]
    Content {
        /// Which.
        location: String,
        /// Why.
        cause: String,
    },
    /// The lab's keys could not be changed.
    #[error("{message}\n  hint: {hint}")]
    Key {
        /// Why.
        message: String,
        /// What to do.
        hint: String,
    },
    /// An account could not be made.
    #[error("{message}\n  hint: {hint}")]
    Account {
        /// Why.
        message: String,
        /// What to do.
        hint: String,
    },
}
