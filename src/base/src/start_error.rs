//! Errors of a replica's start.

use std::net::SocketAddr;

use fairlead_store::StoreError;

/// Reason why a replica did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address could not be bound.
    #[error(
        "cannot listen on {address}: {cause}\n  hint: choose another --listen, or stop the program that uses it"
    )]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Message of the system.
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
        /// Path of the folder.
        path: String,
        /// Message of the system.
        cause: std::io::Error,
    },
    /// The data folder belongs to a lab on Elasticsearch, and an embedded store was asked for.
    #[error(
        "the data folder {path} belongs to the lab at {lab}\n  hint: name that store with --elasticsearch and --index-prefix, or another --data"
    )]
    LabFolder {
        /// Path of the folder.
        path: String,
        /// The lab.
        lab: String,
    },
    /// The data folder is not the one of the lab.
    #[error(
        "the data folder {path} is not the one of this lab, whose replicas share one for results and logs\n  hint: name the shared folder with --data; if the lab's folder was lost or moved here: echo '{file}' > {path}/lab.json"
    )]
    OtherFolder {
        /// Path of the folder.
        path: String,
        /// Content of the file in the lab's folder.
        file: String,
    },
    /// There are files of jobs, and the store has no job.
    #[error(
        "the store has no job, and {path} has files of jobs: all of them would go\n  hint: name the store of the lab that they belong to, with --data or --elasticsearch"
    )]
    EmptyStore {
        /// Path of the files.
        path: String,
    },
    /// The place of inputs and outputs cannot be used.
    #[error(
        "cannot use {location} for inputs and outputs: {cause}\n  hint: choose another --content"
    )]
    Content {
        /// Location.
        location: String,
        /// Reason.
        cause: String,
    },
    /// The clock of this machine is not that of the lab.
    #[error(
        "the clock of this machine says {own}, and the clocks of the other replicas say {others}: they are {apart_s} s apart; expected at most 5 s\n  hint: correct the clock with your time service (chronyc tracking, timedatectl), then start again"
    )]
    ClockOff {
        /// Time by this machine's clock.
        own: String,
        /// Time by the others' clocks.
        others: String,
        /// The difference, s.
        apart_s: u64,
    },
    /// The lab's keys could not be changed.
    #[error("{message}\n  hint: {hint}")]
    Key {
        /// Reason.
        message: String,
        /// Advice.
        hint: String,
    },
    /// An account could not be made.
    #[error("{message}\n  hint: {hint}")]
    Account {
        /// Reason.
        message: String,
        /// Advice.
        hint: String,
    },
}
