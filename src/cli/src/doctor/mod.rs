//! What `fairlead doctor` looks at: one check a question, each with what was found and what to do. Owns the checks, and prints
//! nothing.

mod check;
mod local;
mod remote;

pub(crate) use check::{Check, Verdict};
pub(crate) use local::{of_folder, of_key};
pub(crate) use remote::of_scheduler;
