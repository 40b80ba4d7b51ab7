//! The store for any number of replicas: Elasticsearch 8 and 9, with its plain core only (no scripts, no update by
//! query).
//!
//! [`ElasticStore`] speaks HTTP by `reqwest`. It chooses nodes, sets deadlines, backs off, splits bulks and types replies.
//! Elastic's own client for Rust has only pre-releases, and `reqwest` below it.
//!
//! - An operation by id goes to the index that the id names.
//! - An incomplete search is an error.
//! - A write is `Ok` only if it was acknowledged.

mod body_cache;
mod bulk;
mod call;
mod changes;
mod check;
mod cluster;
mod config;
mod counts;
mod docs;
mod document_cache;
mod documents;
mod finds;
mod gets;
mod indices;
mod job_store;
mod jobs;
mod login;
mod looks;
mod months;
mod moving;
mod node;
mod open;
mod people;
mod places;
mod query;
mod reads;
mod reply;
mod searches;
mod searching;
mod setup;
mod start_error;
mod store;
mod submit;
mod templates;
mod there;

pub use config::ElasticConfig;
pub use store::ElasticStore;
