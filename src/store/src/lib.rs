//! The store: every submitted job, and which host has it. It is the truth of a lab.
//!
//! [`JobStore`] is the seam. `embedded` (SQLite, one machine) and `elasticsearch` (any number of replicas) pass one
//! conformance suite. Nothing here decides who gets a job: compare-and-set does.

mod alternatives;
pub mod check;
mod clock;
pub mod codec;
pub mod elasticsearch;
pub mod embedded;
pub mod error;
mod groups;
mod health;
pub mod job_alarms;
mod job_state;
mod left_out;
pub mod query;
mod reuse;
mod shards;
mod state_patch;
pub mod store;

pub use check::{Fault, Finding, Findings, check_jobs};
pub use elasticsearch::{ElasticConfig, ElasticStore};
pub use embedded::{EmbeddedStore, RestoreOptions, backup, restore};
pub use error::{ItemError, StoreError};
pub use groups::{Group, GroupBy};
pub use health::{Condition, StoreHealth};
pub use job_state::{Attempt, ClusterPlace, JobState, NewJob, Otherwise, StoredJob, Version};
pub use query::{
    ChangeMark, ChangePage, ChangeRanges, Changes, CountOf, Counts, FIND_BEST, Find, Page, Parts,
    Pull, PullBy, Search, SearchOrder, SearchPage, Usage,
};
pub use reuse::Reusing;
pub use shards::{CaseCounts, ShardPlace, Sharding};
pub use state_patch::{ClaimFields, StatePatch};
pub use store::{
    AT_MS, Created, Doc, DocFind, DocKind, DocPage, DocWrite, DueDoc, EventFind, EventRecord,
    Expect, JobStore, OldMonth, Patch, StageCounts,
};
