//! Foundations of a replica: clocks, configuration, errors, metrics, secrets, the engine's inbox, and what several flows
//! share of the store. Knows no flow.

#![expect(
    missing_docs,
    reason = "an error has its text, and a field a plain name"
)]

pub mod budget;
pub mod clock;
pub mod config;
pub mod errors;
pub mod file_modes;
pub mod gzip;
pub mod health_check;
pub mod host_names;
pub mod keyring;
pub mod lab_clock;
pub mod mailbox;
pub mod metrics;
pub mod names;
pub mod parts;
pub mod patterns;
pub mod peer_link;
pub mod providers;
pub mod query;
pub mod ring;
pub mod roles;
pub mod sealing;
pub mod start_error;
pub mod storage;
pub mod tasks;
pub mod text;
pub mod webhook_targets;

pub use crate::{
    clock::{Clock, Pause},
    config::{Access, Config, ConnectionLimits, FilesIn, Limits, StoreChoice},
    file_modes::ResultFiles,
    health_check::HealthCheck,
    parts::Parts,
    peer_link::PeerLink,
    providers::{Programs, ProviderMachine, ProviderPool, Providers},
    start_error::StartError,
    webhook_targets::Targets as WebhookTargets,
};
