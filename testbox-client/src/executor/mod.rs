//! Runs a job's workload. The rest of the agent knows only [`Launch`], [`Workload`] and [`Verdict`]. A workload is
//! started and watched to its end under a limit, and none of its processes remains.
//!
//! `process` runs it as plain processes of this host, for hw, vm and dc testboxes.

mod marked;
mod oom;
mod process;

pub(crate) use marked::kill_marked;
pub(crate) use process::{Launch, Limits, Verdict, Workload};
