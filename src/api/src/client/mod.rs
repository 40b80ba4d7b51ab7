//! The typed client: one method an endpoint, over one replica or several.
//!
//! It owns fail-over and repetition: which refusals and lost connections are tried again, where, and
//! for how long. It never repeats a request whose first outcome is unknown unless the endpoint is
//! idempotent by design, so a submit is never done twice.
//!
//! Entry point: [`Client::new`].

mod call;
mod config;
mod error;
mod file_body;
mod files;
mod jobs;
mod reply;
mod site;
mod testbox;
mod timers;
mod transport;

pub use config::{ClientConfig, JobQuery, JobUpdate};
pub use error::ClientError;
pub use files::{UploadBody, UploadOutcome};
pub use reply::ByteStream;
pub use testbox::LogAppend;
pub use transport::Client;

#[cfg(test)]
mod tests;
