//! Runs a job's workload. The rest of the agent knows only [`Launch`], [`Workload`] and [`Verdict`]. A workload is
//! started and watched to its end under a limit, and none of its processes remains.
//!
//! `process` runs it as plain processes of this host, `container` in a container of podman or docker, and `machine` in
//! a virtual machine of QEMU. `choice` decides which.

mod choice;
mod container;
mod digests;
mod engine;
mod entry;
mod groups;
mod image_cache;
mod images_here;
mod machine;
mod marked;
mod oom;
mod process;
mod tool;

pub(crate) use choice::{Executors, NoPlace};
pub(crate) use container::NotBegun;
pub(crate) use entry::{GUEST_FOLDER, INPUTS, INSIDE, Note, OUTPUTS, Task};
pub(crate) use machine::ResultLimits;
pub(crate) use marked::{MARK, kill_marked};
pub(crate) use process::{Launch, Limits, Outcome, Place, Verdict, Workload};
pub(crate) use tool::ask;
