//! The testbox agent: asks a scheduler for work, runs it, streams its output, brings its results home.
//!
//! It owns what happens on one testbox: folders, processes, time limits, the journal that outlives a
//! crash. It never decides which job runs: it takes what it is given and says honestly what became of
//! it. [`run`] is the whole agent as a library; `fairlead-testbox` is the same as a program.

mod agent;
mod config;
mod event;
mod executor;
mod job;
mod timer;

pub use agent::run;
pub use config::{AgentConfig, BadConfig, Kinds};
pub use event::AgentEvent;
