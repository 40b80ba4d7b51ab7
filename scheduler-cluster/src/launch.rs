//! The launcher: replicas of one scheduler as processes of this machine, remembered in a folder.
//!
//! It owns the folder: `cluster.json` (what was started and how), `logs/`, the shared `data/`, and the
//! Elasticsearch that it started itself. A process is named by its id and its birth, so that an id that was
//! given to another process since is never signalled. Entry point: [`Cluster`].

mod cluster;
mod elastic;
mod error;
mod folder;
mod plan;
mod process;
mod upgrade;
mod view;

pub use cluster::Cluster;
pub use elastic::{Elastic, OwnElastic};
pub use error::{LaunchError, failure_code};
pub use folder::{Replica, Settings};
pub use plan::Asked;
pub use process::Process;
pub use view::{Condition, ReplicaView, exit_code};
