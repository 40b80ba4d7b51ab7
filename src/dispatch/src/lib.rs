//! The engine: decides which waiting job goes to which offer. Synchronous and deterministic.
//!
//! It has no clock, randomness, tasks, IO or wire types. Time, ids and versions arrive in events, and the same events
//! give the same decisions. Entry point: [`Engine::on`].
#![deny(
    clippy::float_arithmetic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::iter_over_hash_type
)]
#![forbid(unsafe_code)]

mod admission;
mod affinity;
mod ahead;
mod cache;
mod claims;
mod counted;
mod counted_bitset;
mod coverage;
mod covering;
mod engine;
pub mod event;
mod evict;
mod evict_plan;
pub mod explain;
mod explaining;
mod fetch;
mod front_set;
mod gates;
mod hosts;
mod ids;
mod index;
mod interner;
mod judge;
mod kept_off;
pub mod labels;
mod ledger;
mod loaded;
mod meter;
mod order;
pub mod peers;
mod pick;
mod placing;
pub mod policy;
mod pulls;
mod report;
mod requirement;
mod reserve;
mod run_times;
mod runs;
mod serve;
mod shape;
mod wait_report;

pub use admission::Admission;
pub use counted::NAMES_MAX;
pub use engine::Engine;

pub use event::{
    About, Cursor, Decision, Dimension, DimensionCounts, EVENT_JOBS_MAX, Event, FindPlace,
    HostLoad, JobFacts, JobKey, Kind, Millis, NOT_ON_MAX, Offer, OfferKey, PulledPage, Reached,
    Refusal, Running, Version,
};
pub use explain::{
    Ahead, Count, EXPLAIN_COUNT_MAX, EXPLAIN_LIST_MAX, HostExplanation, HostVerdict,
    JobExplanation, JobState, Limited, QueueStanding, Reason, ShapeVerdict,
};
pub use judge::{COMPARED_MAX, More};
pub use kept_off::LOADED_WAIT_MS;
pub use peers::{OVERTAKES_MAX, Peers};
pub use policy::{Allowance, CACHE_JOBS, EngineConfig, Policy, QueuePolicy};
pub use report::{HostReport, QueueReport, REPORT_JOBS_MAX, Stats};
pub use requirement::{
    Alternative, CPUS_UNCHECKED, HostProperties, JobRequirements, Name, Requirement,
};
pub use run_times::{BUCKETS, Histogram, JobKind, RunTimes, StoredTimes};
pub use wait_report::{WAIT_REPORT_LOOKS_MAX, WaitReason};
