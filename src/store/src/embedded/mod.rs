//! The store for one machine: SQLite in one file, for one process at a time.
//!
//! [`EmbeddedStore`] owns a lock file, one writer thread and a few reading connections. Writes of one group are
//! committed together with one fsync, each item with its own result. Nothing runs on the async runtime's own threads.

mod apply;
mod copies;
mod docs;
mod find;
mod folder;
mod handle;
mod months;
mod numbers;
mod open;
mod read;
mod schema;
mod search;
mod tally;
mod waiting;
mod writer;

pub use copies::{backup, restore};
pub use handle::EmbeddedStore;
