//! Tests of several replicas over one real Elasticsearch: the launcher, fail-over, upgrades, the proxy, and a site's
//! starting files.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod bench;
mod launcher;
mod load;
mod proxy;
mod upgrade;
