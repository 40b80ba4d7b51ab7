//! Which jobs a command means: one set of selectors for all commands, and the question before many are changed.

mod caution;
mod condition;
mod selector;

pub(crate) use caution::{Caution, agrees};
pub(crate) use condition::value_of;
pub(crate) use selector::{Found, MATCHES_MAX, Selector, failures, held_stages};
