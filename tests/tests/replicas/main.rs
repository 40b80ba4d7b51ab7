//! Black-box tests of several replicas over one Elasticsearch: real processes, plain HTTP, kills and pauses; the launcher,
//! the proxy, and a site's starting files.
//!
//! `row_NN_…` are rows of a list of compass-ci's faults, those of several schedulers.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod bench;
mod bulk;
mod clocks;
mod crowd;
mod launcher;
mod leases;
mod load;
mod news;
mod pools;
mod proxy;
mod rows;
mod sessions;
mod upgrade;
