//! Tests of what people type and program: the command, the examples of the guides, and clients of other languages.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod cli;
mod clients;
mod guides;
