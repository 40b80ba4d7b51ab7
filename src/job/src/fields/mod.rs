//! The fields of a job: each is read and checked here, for a submit as for a dry run.

pub(crate) mod alternatives;
pub(crate) mod bounds;
pub(crate) mod callback;
pub(crate) mod cluster;
pub(crate) mod content;
pub(crate) mod counted;
pub(crate) mod crash;
pub(crate) mod error;
pub(crate) mod group;
pub(crate) mod guest;
pub(crate) mod job;
pub(crate) mod key;
pub(crate) mod limits;
pub(crate) mod needs;
pub(crate) mod place;
pub(crate) mod read;
pub(crate) mod retry;
pub(crate) mod reuse;
pub(crate) mod sequence;
pub(crate) mod shards;
pub(crate) mod shutdown;
pub(crate) mod submit;
pub(crate) mod table;
pub(crate) mod wait_on;
pub(crate) mod when;
