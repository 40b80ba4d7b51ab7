//! One replica: engine, store, HTTP routes, sessions, leases and timers put together.
//!
//! Entry point: [`Server::start`]. The engine's task decides (`engine_task`), claims are settled in
//! `claims`, a job's state changes in one place (`jobs`), hosts ask in `consume`, and `http` only translates.

mod accounts;
mod alarms;
mod book;
mod boot;
mod claims;
mod clock;
mod closures;
mod clusters;
pub mod config;
mod consume;
mod core;
mod dependants;
mod doubts;
mod engine_task;
mod explain;
mod feed;
mod fits;
mod fresh;
mod graph;
mod health_checks;
mod hints;
mod hosts;
mod http;
mod intake;
mod jobs;
mod lease;
mod limits;
mod mailbox;
mod make;
mod max_run;
mod metrics;
mod numbers;
mod old_months;
mod overdue;
mod peers;
mod queues;
mod record;
mod refusal;
mod renewal;
mod repeats;
mod replica;
mod replicas;
mod reservations;
mod results;
mod secrets;
pub mod sequences;
mod server;
mod sessions;
mod submit;
mod sync;
#[cfg(test)]
mod testing;
mod timers;
mod turns;
mod update;
mod view;
mod wait;
mod waiters;
mod writer;

pub use clock::{Clock, Pause};
pub use config::{Access, Config, Limits, StoreChoice};
pub use fairlead_dispatch::CACHE_JOBS;
pub use fairlead_store::ElasticConfig;
pub use health_checks::HealthCheck;
pub use intake::{Item, read_submit};
pub use peers::PeerLink;
pub use replica::{Parts, Replica};
pub use server::{Server, StartError, add_account};
