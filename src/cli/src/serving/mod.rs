//! The settings of `fairlead serve`: flags, environment and a TOML file, made one command line.
//!
//! The keys are the flags themselves, so no key can be forgotten. A flag wins over the environment, the environment over
//! the file, and the file over the default.

mod file;
mod keys;
mod layers;
pub(crate) mod values;

pub(crate) use keys::{Kind, keys};
pub(crate) use layers::{Layers, Resolved};
