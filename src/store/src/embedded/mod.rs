//! The store for one machine: SQLite in one file, for one process at a time.
//!
//! [`EmbeddedStore`] owns a lock file, one writer thread and a few reading connections. Writes of one group are
//! committed together with one fsync, each item with its own result. SQLite never runs on the async runtime's own threads;
//! jobs are encoded there before they reach the writer, which has the most to do.

mod apply;
mod check;
mod copies;
mod docs;
mod find;
mod folder;
mod handle;
mod log;
mod merge;
mod months;
mod numbers;
mod open;
mod pairs;
mod people;
mod read;
mod schema;
mod search;
mod statements;
mod tally;
mod waiting;
mod writer;

pub use copies::{RestoreOptions, backup, restore};
pub use handle::EmbeddedStore;
