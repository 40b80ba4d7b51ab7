//! Results of earlier jobs for new ones: which jobs may take one, which results there are, and why or why not.
//!
//! A job that takes a result is created as ended, and nothing runs for it. All documents here are hints. Before a job
//! takes a result, the job that has it is read in real time.

mod asked;
mod explain;
mod fate;
mod forget;
mod hosts;
mod learn;
pub(crate) mod look_up;
mod release;
mod runs;
mod settings;

#[cfg(test)]
mod tests;
