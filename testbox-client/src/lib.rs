//! The testbox agent: asks a scheduler for work, runs it, streams its output, and uploads its results.
//!
//! It owns everything on one testbox: folders, processes, time limits, and the journal that survives a crash. It never
//! decides which job runs: it takes the granted jobs and reports their ends truthfully. [`run`] is the whole agent as a
//! library, and `fairlead-testbox` is the program. [`protocol`] decides without IO what it sends to a scheduler, and when.
//!
//! # The environment of a job
//! - Working directory and `HOME`: its own folder `work_dir/JOB_ID-ATTEMPT/`.
//! - Interpreter of its script: the one in its `#!` line, else `/bin/sh`.
//! - stdin is empty. stdout and stderr go together to `$RESULT_ROOT/output`, which the scheduler gets while the job runs.
//! - Variables: `PATH`, `LANG=C.UTF-8`, `TMPDIR`, `JOB_ID`, `ATTEMPT`, `RESULT_ROOT`, `SUITE`, `TESTBOX`, `HOST`.
//!   `RESULT_ROOT` is a local folder, whose files are uploaded at the end.
//! - `FAIRLEAD_INPUTS` and `FAIRLEAD_OUTPUTS`, the folders of its inputs and outputs, if it says that it has some.
//! - The job's parameters, as [`fairlead_job::environment`] names them.
//! - Nothing else of the agent's own environment.
//!
//! # The end of a job
//! | health | when |
//! |---|---|
//! | `success`, `fail` | exit code 0, another one (128 + n after signal n) |
//! | `soft_timeout` | over its own limit and the time that users added: SIGTERM, grace, SIGKILL |
//! | `oom` | died of a SIGKILL that the agent did not send, and the kernel counted a kill because memory ran out |
//! | as ordered | the scheduler ordered it to stop |
//! | `abort_invalid` | it cannot be run as written: no script and no runner, no such interpreter |
//! | `abort_provider` | this machine could not run it, or its agent was stopped or died |
//!
//! # The user of a job
//! If the agent is root, each `vm`/`dc` job can have its own user ([`JobUsers`]). It sees no other job's processes or
//! folder, and at its end all processes of that user are killed. `hw` jobs run as the agent's user.
//!
//! # Best effort
//! Jobs are plain processes. Where the agent can make control groups, these limit the memory and the number of processes
//! of `vm` and `dc` jobs. At the end of a job all processes of its groups are killed.
//!
//! Elsewhere nothing is limited. At the end of a job, its process group is killed, and every process with its mark in the
//! environment. So daemons in sessions of their own are killed, too. Without its own user, a process escapes if it wipes
//! its environment and leaves its group. The kernel counts out-of-memory kills per machine, so with several jobs a
//! neighbour's kill may count for this job.

mod agent;
mod bad_config;
mod blocking;
mod cache;
mod config;
mod event;
mod executor;
mod facts;
mod isolation;
mod job;
mod job_line;
mod load;
mod lock;
mod open_files;
pub mod protocol;
mod remove_tree;
#[cfg(test)]
mod testing;
mod timer;

pub use agent::run;
pub use bad_config::BadConfig;
pub use config::{AgentConfig, ExecutorChoice, Kinds};
pub use event::AgentEvent;
pub use isolation::{JobUsers, UserRange, launched};
pub use job::{Patience, until_stored};
pub use job_line::JobLine;
