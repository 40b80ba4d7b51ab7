//! One replica: engine, store, HTTP routes, sessions, leases and timers put together.
//!
//! Entry point: [`Server::start`]. Facts know nobody (`fairlead-base`, `-lifecycle`, `-known`), flows know facts (`jobs`, `hosts`,
//! `submission`, `waiting`, `timers`), and `http` knows flows and only translates. `ctx` is the state that flows share.

mod bulk;
mod care;
mod content;
mod ctx;
mod dashboard;
mod dispatching;
mod files;
mod flows;
mod hosts;
mod http;
mod jobs;
mod peers;
mod people;
mod placement;
mod replica;
mod reuse;
mod rounds;
mod samples;
mod scaling;
mod server;
mod shards;
mod submission;
#[cfg(test)]
mod testing;
mod timers;
mod upkeep;
mod views;
mod waiting;
mod webhooks;

pub use crate::care::check::{CheckOptions, Checked, check_lab, set_files_aside};
pub use crate::care::prune::{PruneOptions, Pruned, prune};
pub use crate::care::restore::{Restored, restore_lab};
pub use crate::submission::intake::{Item, read_submit};
pub use crate::upkeep::key_check::{KeyState, look_at_key};
pub use crate::upkeep::keys::{
    KeyView, Keys, RetiredKeys, import_keys, retire_key, rotate_key, show_keys,
};
pub use crate::{
    replica::{Gauges, Replica},
    server::{Server, add_account},
};
pub use fairlead_base::{
    Access, Clock, Config, ConnectionLimits, FilesIn, HealthCheck, Limits, Parts, Pause, PeerLink,
    Programs, ProviderMachine, ProviderPool, Providers, ResultFiles, StartError, StoreChoice,
    WebhookTargets,
};
pub use fairlead_dispatch::CACHE_JOBS;
pub use fairlead_store::{ElasticConfig, Finding, RestoreOptions, backup as backup_store};
