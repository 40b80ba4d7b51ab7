//! Faults for real: replicas, Elasticsearch nodes and testboxes are killed and paused by a seeded plan while
//! jobs run, and then the whole history is judged.
//!
//! The replicas and the nodes are processes; the testboxes are many tasks of this one, which speak the wire
//! format and note when each job ran. The judge ([`check`]) compares what the submitters were told, what ran,
//! what the replicas logged and what the store says in the end. Entry point: [`FaultsArgs::run`].

mod agent;
mod check;
mod cli;
mod course;
mod fleet;
mod grants;
mod history;
mod lanes;
mod meters;
mod report;
mod run;
mod submitter;

pub use cli::FaultsArgs;
