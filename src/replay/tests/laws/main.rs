//! Tests of the laws of dispatch and of scaling on whole traces.

mod day;
mod easy;
mod scaling;
