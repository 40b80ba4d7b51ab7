//! What goes over the wire: types, the endpoint table, error codes, and a typed client.
//!
//! No server dependencies: agents, the CLI and scripts link this crate alone.

pub mod client;
pub mod codes;
pub mod endpoints;
mod peers;
pub mod timers;
pub mod wire;

pub use client::{
    ByteStream, Client, ClientConfig, ClientError, JobQuery, JobUpdate, LogAppend, UploadBody,
    UploadOutcome,
};
pub use codes::{ErrorBody, ErrorCode};
pub use endpoints::{ENDPOINTS, Endpoint};
pub use peers::{Peer, PeersAnswer};
pub use timers::*;
pub use wire::*;
