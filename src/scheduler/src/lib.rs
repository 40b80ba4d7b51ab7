//! One replica: engine, store, HTTP routes, sessions, leases and timers put together.
//!
//! Entry point: [`Server::start`].

pub mod config;
pub mod server;

pub use config::{Access, Config, Limits, StoreChoice};
pub use server::{Server, StartError};
