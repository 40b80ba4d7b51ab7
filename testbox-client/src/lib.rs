//! The testbox agent: asks a scheduler for work, runs it, streams its output, brings its results home.
//!
//! It owns what happens on one testbox: folders, processes, time limits, the journal that outlives a
//! crash. It never decides which job runs: it takes what it is given and says honestly what became of
//! it. [`run`] is the whole agent as a library; `fairlead-testbox` is the same as a program. [`protocol`] is what it
//! says to a scheduler and when, without IO.
//!
//! # What a job finds
//! Its own folder `work_dir/JOB_ID-ATTEMPT/` as working directory and `HOME`; its script run by the
//! interpreter of its `#!` line, else by `/bin/sh`; stdin empty; stdout and stderr together in
//! `$RESULT_ROOT/output`, which the scheduler gets while it runs. `PATH`, `LANG=C.UTF-8`, `TMPDIR`,
//! `JOB_ID`, `ATTEMPT`, `RESULT_ROOT` (a local folder: what is in it at the end is uploaded), `SUITE`,
//! `TESTBOX`, `HOST`, and the job's parameters as [`fairlead_job::environment`] names them. Nothing
//! else of the agent's own environment.
//!
//! # How it ends
//! | health | when |
//! |---|---|
//! | `success`, `fail` | exit code 0, another one (128 + n after signal n) |
//! | `soft_timeout` | over its own limit and what users have added: SIGTERM, grace, SIGKILL |
//! | `oom` | died of a SIGKILL that nobody here sent, and the kernel counted a kill for want of memory |
//! | as ordered | the scheduler ordered it to stop |
//! | `abort_invalid` | it cannot be run as written: no script and no runner, no such interpreter |
//! | `abort_provider` | this machine could not run it, or its agent was stopped or died |
//!
//! # Who it runs as
//! Where the agent is root, each `vm`/`dc` job can have a user of its own ([`JobUsers`]): it sees no other job's
//! processes or folder, and at its end all processes of that user are killed. `hw` jobs run as the agent does.
//!
//! # What is best effort
//! Jobs are plain processes. At a job's end its process group is killed, and every process that still
//! carries its mark in the environment, so daemons in sessions of their own too; without a user of its own, one that
//! wipes its environment and leaves its group escapes. Memory is counted, not enforced. The kernel counts kills
//! for want of memory by machine, so with several jobs at once a neighbour's may be taken for this
//! job's.

mod agent;
mod bad_config;
mod config;
mod event;
mod executor;
mod isolation;
mod job;
mod job_line;
pub mod protocol;
mod remove_tree;
#[cfg(test)]
mod testing;
mod timer;

pub use agent::run;
pub use bad_config::BadConfig;
pub use config::{AgentConfig, Kinds};
pub use event::AgentEvent;
pub use isolation::{JobUsers, UserRange, launched};
pub use job_line::JobLine;
