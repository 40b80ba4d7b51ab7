//! Settings of the CLI: the scheduler, the account, defaults of jobs. A flag overrides the environment, then a file,
//! then the default. Each value remembers its origin.

mod file;
mod origin;
mod resolve;

pub(crate) use file::KEYS;
pub(crate) use origin::{Origin, Setting};
pub(crate) use resolve::{API_KEY, Environment, Flags, PASSWORD, Settings};
