//! Several replicas over one real Elasticsearch: the launcher, fail-over, upgrades, the proxy, the files
//! that a site starts from.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod bench;
mod launcher;
mod load;
mod proxy;
mod upgrade;
