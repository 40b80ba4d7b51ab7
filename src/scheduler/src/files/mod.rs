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
