//! The store of any number of replicas: Elasticsearch 8 and 9, with nothing but its plain core
//! (no scripts, no update by query, no aliases).
//!
//! [`ElasticStore`] is a thin layer over the `elasticsearch` crate, which brings TLS, credentials and
//! HTTP and nothing more: choice of node, deadlines, back-off, splitting of bulks and typed replies are
//! here. Invariants: an operation by id goes to the index that the id names; a search that is not whole
//! is an error; a write is `Ok` only when it was acknowledged.

mod bulk;
mod call;
mod changes;
mod cluster;
mod config;
mod counts;
mod docs;
mod document_cache;
mod documents;
mod finds;
mod job_store;
mod jobs;
mod login;
mod months;
mod node;
mod open;
mod places;
mod query;
mod reads;
mod reply;
mod searches;
mod setup;
mod start_error;
mod store;
mod submit;
mod templates;

pub use config::ElasticConfig;
pub use store::ElasticStore;
