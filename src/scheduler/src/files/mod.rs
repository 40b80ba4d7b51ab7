//! Results and logs of jobs on disk.

pub(crate) mod cases;
pub(crate) mod gone;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod print;
pub(crate) mod quota;
pub(crate) mod read;
pub(crate) mod removal;
pub(crate) mod results;
pub(crate) mod room;
pub(crate) mod sealed;
pub(crate) mod stored;
pub(crate) mod walk;

use std::sync::Arc;

use crate::{ctx::Ctx, jobs::JobFlow, people::PeopleFlow};
use fairlead_known::{data_room::DataRoom, log_sizes::LogSizes};

/// Results and logs of jobs.
#[derive(Debug)]
pub(crate) struct FileFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) people: Arc<PeopleFlow>,
    pub(crate) jobs: Arc<JobFlow>,
    /// Logs that this replica appended to.
    pub(crate) log_sizes: LogSizes,
    /// Room of the data folder.
    pub(crate) room: DataRoom,
}
