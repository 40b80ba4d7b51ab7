//! Limits of unidentified and silent connections, and of those that do not read.

mod connection;
mod held;
mod watched;

pub(crate) use self::{
    connection::{Connection, Connections, network},
    held::{Held, UnderWay},
    watched::Watched,
};
