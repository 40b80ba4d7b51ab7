//! Job files from outside: exact expansions, refusals, plans, and whatever bytes a fuzzer thinks of.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot go on says why and fails"
)]

mod common;
mod corpus;
mod examples;
mod fuzz;
mod golden;
mod model;
mod plans;
mod refusals;
