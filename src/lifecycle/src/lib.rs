//! Rules of a job's life. Pure: a state and a time in, the next state out.

pub mod after_report;
pub mod alarm;
pub mod attempt;
pub mod backoff;
pub mod changed;
pub mod cluster;
pub mod engine_facts;
pub mod fields;
pub mod hold;
pub mod invariants;
pub mod packing;
pub mod parent;
pub mod report;
pub mod result_paths;
pub mod reuse;
pub mod sequence;
pub mod shards;
pub mod stages;
pub mod touch;
pub mod wait_on;
