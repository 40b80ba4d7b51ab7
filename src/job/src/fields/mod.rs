//! The fields of a job: each is read and checked here.

mod cluster;
mod error;
mod job;
mod limits;
mod place;
pub(crate) mod read;
mod retry;
mod shutdown;
mod when;

pub use cluster::{ClusterNode, NODES_MAX, cluster_nodes};
pub use error::FieldError;
pub use job::{JobFields, max_run};
pub use limits::{LIMITED, SILENCE_TIMEOUT, limit_s};
pub use retry::{Backoff, Cause, Retry};
pub use shutdown::OnShutdown;
pub use when::When;
