//! Black-box tests of job files: exact expansions, refusals, plans, and fuzzing.

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
