//! Jobs that run in parts: makes their shards, stops them, and gives the whole its one result.
//!
//! A suite of tests takes ten hours on one host. In 20 shards, on 20 hosts, it takes half an hour. The user wants one
//! job with one result. Somebody must make the 20 shards, stop the rest when the job is cancelled, and end the job
//! once. If one replica kept that work in its memory and died after seven shards, 13 would be missing. If another
//! replica then began anew, seven would run twice.
//!
//! So nothing about the work is kept in memory alone. The *parent* is a stored job that is never dispatched. The id and
//! the first state of a shard follow from the parent and the shard's number. So any replica can make it, and two that
//! do so make one job. For example, parent 700 has 20 shards, which are jobs 701 to 720:
//!
//! ```text
//! replica A   stores 700, creates 701 to 707, and dies
//! replica B   reads 700 to 720 after five seconds: 708 to 720 are missing, creates them, notes "all made" in 700
//!             reads 700 to 720 when all seem over: 18 successes, 2 failures, ends 700 as failed
//! ```
//!
//! Each round of `look` reads the parent and all shards in real time. The rules in `lifecycle::shards` then name one
//! step: make shards, note something in the parent, stop shards, plan, end, or wait. Each step is a create of a known
//! id or a compare-and-set. So a replica that repeats the step of another one does no harm, and there is no leader. The
//! rest is care for the load: the first replica by rendezvous hashing looks first, and each other one two seconds
//! later.
//!
//! An end that was only read may vanish with a node of the store. So an end that this replica only read is written once
//! more before the parent ends.
//!
//! - `look` finds the next step and does it, `make` creates shards, and `write` changes the parent.
//! - `plan` packs the tests that a job listed into its shards, by the times in `test_times`.
//! - `rerun` and `again` run jobs again, or only the parts that failed.

mod again;
mod look;
mod make;
mod plan;
pub(crate) mod rerun;
mod test_times;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::{
    ctx::Ctx, files::FileFlow, jobs::JobFlow, peers::PeerFlow, reuse::ReuseFlow,
    submission::SubmissionFlow,
};
use fairlead_known::test_times::PendingTimes;

/// Jobs that run in parts.
#[derive(Debug)]
pub(crate) struct ShardFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) jobs: Arc<JobFlow>,
    pub(crate) peers: Arc<PeerFlow>,
    pub(crate) files: Arc<FileFlow>,
    pub(crate) reuse: Arc<ReuseFlow>,
    pub(crate) submission: Arc<SubmissionFlow>,
    /// Runs of tests that are not written yet.
    pub(crate) test_times: PendingTimes,
}
