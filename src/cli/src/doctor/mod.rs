//! The checks of `fairlead doctor`: each has one question, a finding and a suggestion. Prints nothing.

mod check;
mod local;
mod remote;

pub(crate) use check::{Check, Verdict};
pub(crate) use local::{of_folder, of_key};
pub(crate) use remote::of_scheduler;
