//! The typed client: one method per endpoint, over one replica or several.
//!
//! It owns fail-over and retries: which refusals and lost connections are retried, where, and for how long. If the
//! outcome of a request is unknown, it is repeated only if its endpoint is idempotent. So a submit is never done twice.
//!
//! Entry point: [`Client::new`].

mod call;
mod config;
mod content;
mod dashboard;
mod error;
mod file_body;
mod files;
mod groups;
mod jobs;
mod near;
mod pools;
mod reply;
mod site;
mod testbox;
mod timers;
mod transport;
mod webhooks;

pub use config::{ClientConfig, JobQuery, JobUpdate};
pub use content::AsJob;
pub use error::ClientError;
pub use files::{UploadBody, UploadOutcome};
pub use near::{is_loopback, jittered};
pub use reply::ByteStream;
pub use testbox::LogAppend;
pub use transport::Client;

#[cfg(test)]
mod tests;
