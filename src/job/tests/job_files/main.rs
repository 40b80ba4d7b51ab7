//! Job files from outside: exact expansions, refusals, plans, and whatever bytes a fuzzer thinks of.

mod common;
mod corpus;
mod golden;
