//! How a job's workload is run. The rest of the agent knows only [`Launch`], [`Workload`] and
//! [`Verdict`]: a workload is started, watched to its end under a limit, and nothing of it is left.
//!
//! `process`: as plain processes of this host, for hw, vm and dc testboxes alike.

mod marked;
mod oom;
mod process;

pub(crate) use marked::kill_marked;
pub(crate) use process::{Launch, Limits, Verdict, Workload};
