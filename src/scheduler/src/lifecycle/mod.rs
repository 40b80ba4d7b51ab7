//! Rules of a job's life. Pure: a state and a time in, the next state out.

pub(crate) mod after_report;
pub(crate) mod alarm;
pub(crate) mod attempt;
pub(crate) mod backoff;
pub(crate) mod changed;
pub(crate) mod cluster;
pub(crate) mod engine_facts;
pub(crate) mod fields;
pub(crate) mod hold;
pub(crate) mod invariants;
pub(crate) mod packing;
pub(crate) mod parent;
pub(crate) mod report;
pub(crate) mod result_paths;
pub(crate) mod reuse;
pub(crate) mod sequence;
pub(crate) mod shards;
pub(crate) mod stages;
pub(crate) mod touch;
pub(crate) mod wait_on;
