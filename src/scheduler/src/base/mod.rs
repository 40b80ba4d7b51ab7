//! Foundations of all other rooms: clocks, configuration, errors, metrics, secrets, the engine's inbox. Knows no flow.

pub(crate) mod budget;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod errors;
pub(crate) mod file_modes;
pub(crate) mod gzip;
pub(crate) mod health_check;
pub(crate) mod host_names;
pub(crate) mod keyring;
pub(crate) mod lab_clock;
pub(crate) mod mailbox;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod parts;
pub(crate) mod patterns;
pub(crate) mod peer_link;
pub(crate) mod providers;
pub(crate) mod query;
pub(crate) mod ring;
pub(crate) mod roles;
pub(crate) mod sealing;
pub(crate) mod start_error;
pub(crate) mod tasks;
pub(crate) mod text;
pub(crate) mod webhook_targets;
