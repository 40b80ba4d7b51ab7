//! How fast it is, beside what limits it: Elasticsearch's own rate of the same writes, in the same run.
//!
//! A machine is noisy and no two are alike: only ratios say something. So each round measures Elasticsearch alone
//! ([`raw`]) and then fairlead over it ([`load`]), with the same documents, and the report has both side by side.
//! Elasticsearch has one core, and fairlead and the load another, in both.

mod cli;
mod cost;
mod engine;
mod figure;
mod history;
mod layouts;
mod load;
mod pin;
mod plots;
mod raw;
mod report;
mod run;
mod sample;
mod solo;

pub use cli::BenchArgs;
