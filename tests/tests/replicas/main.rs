//! Black-box tests of several replicas over one Elasticsearch: real processes, plain HTTP, kills and pauses.
//!
//! `row_NN_…` are rows of a list of compass-ci's faults, those of several schedulers.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod bulk;
mod crowd;
mod leases;
mod news;
mod pools;
mod rows;
mod sessions;
