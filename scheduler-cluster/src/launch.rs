//! The launcher: runs replicas of one scheduler as processes of this machine, and stores them in a folder.
//!
//! It owns that folder: `cluster.json` (the started processes and their settings), `logs/`, the shared `data/`, and its
//! own Elasticsearch. A process is named by its id and its start time. So an id that now belongs to another process is
//! never signalled. Entry point: [`Cluster`].

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
pub use plan::{Asked, own_fairlead};
pub use process::Process;
pub use view::{Condition, ReplicaView, exit_code};
