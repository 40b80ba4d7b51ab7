//! Tests of upgrades, of restores, and of Elasticsearch with TLS and logins.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod secured;
mod snapshots;
mod upgrade;
