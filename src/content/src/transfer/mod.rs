//! Moves files by content between this machine and a lab, or a store.
//!
//! [`put`] and [`put_paths`] send a folder. [`get`] writes one, and [`fetch_file`] writes a single file of it. They
//! speak to a [`Remote`]: to a lab over HTTP ([`LabRemote`]), or to a [`crate::ContentStore`] itself.
//!
//! Nothing is believed. Each chunk is hashed when it is read from a file and when it comes from afar. No symbolic link
//! is followed below the folder that is put or written.

mod bytes_read;
mod cutting;
mod direct;
mod error;
mod folder;
mod get;
mod lab;
mod local;
mod put;
mod remote;
mod scan;
mod sending;
mod stoppable;
mod writing;

#[cfg(test)]
mod tests;

pub use error::{Problem, TransferError};
pub use get::{GetOptions, GetProgress, Got, decoded, fetch_file, get};
pub use lab::LabRemote;
pub use put::{Put, PutOptions, put, put_paths};
pub use remote::{PARALLEL, PARALLEL_MAX, Place, Remote};
pub use sending::PutProgress;
pub use stoppable::Stoppable;
