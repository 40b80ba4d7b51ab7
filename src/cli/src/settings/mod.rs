//! Settings of the CLI: the scheduler, the account, defaults of jobs. A flag overrides the environment, then a file,
//! then the default. Each value remembers its origin.

mod environment;
mod file;
mod flags;
mod labs;
mod origin;
mod resolve;

pub(crate) use environment::{API_KEY, Environment, PASSWORD};
pub(crate) use file::KEYS;
pub(crate) use flags::Flags;
pub(crate) use labs::check_lab;
pub(crate) use origin::{Origin, Setting};
pub(crate) use resolve::{Settings, lab_names};
