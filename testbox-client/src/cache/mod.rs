//! The cache of inputs: files by what they hold, so that a machine fetches each of them once.
//!
//! It owns a folder and the way of a file into the folder of a job. Nothing in that folder is trusted: a file is hashed
//! when a job gets it, and the job gets the bytes that were hashed. A damaged file is dropped and fetched anew.
//!
//! | below its folder | is |
//! |---|---|
//! | `files/ab/DIGEST` | a file of mode 0444; with `-x` behind the digest: of mode 0555 |
//! | `new/` | files on their way; an agent that starts removes them |
//! | `manifests/ID` | the manifests of inputs that jobs had lately |
//!
//! Files that a running job has are never removed. Of all others, the least recently used go first. The time of last
//! access of a file keeps that order over restarts.

mod files;
mod give;
mod key;
mod manifests;
mod place;
mod reading;
mod source;
#[cfg(test)]
mod tests;
mod unfinished;

pub(crate) use files::Hold;
pub(crate) use give::{Cache, Fetch, GiveError};
pub(crate) use key::Wanted;
pub(crate) use manifests::file_of;
pub(crate) use place::Way;
pub(crate) use source::Source;
