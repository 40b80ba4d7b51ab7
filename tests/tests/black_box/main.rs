//! Black-box tests: real processes, plain HTTP, both stores.
//!
//! `row_NN_…` are rows of a list of compass-ci's faults, those of one scheduler.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod access;
mod agents;
mod api;
mod backup;
mod bad_input;
mod care;
mod completing;
mod content;
mod content_care;
mod content_puts;
mod daily;
mod dashboard;
mod described;
mod documented;
mod dry_runs;
mod facts;
mod fairness;
mod fuzz;
mod groups;
mod host_load;
mod hosts;
mod inputs;
mod lab_file;
mod life;
mod limits;
mod login;
mod main_job;
mod matching;
mod network_boot;
mod notices;
mod outages;
mod pools;
mod promises;
mod questions;
mod questions_acts;
mod reads;
mod replays;
mod reuse;
mod rules;
mod serve_config;
mod shards;
mod storage;
mod waiting;
mod watch;
mod webhooks;
