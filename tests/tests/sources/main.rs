//! Tests of the project's own text: layers, rooms, libraries, words, and what no compiler checks.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod arrows;
mod libraries;
mod rooms;
mod soak;
mod tidy;
mod words;
