//! Settings of the CLI: where the scheduler is, who asks, what jobs get. Flag over environment over
//! file over default, and each value remembers where it came from.

mod file;
mod origin;
mod resolve;

pub(crate) use file::KEYS;
pub(crate) use origin::{Origin, Setting};
pub(crate) use resolve::{API_KEY, Environment, Flags, PASSWORD, Settings};
