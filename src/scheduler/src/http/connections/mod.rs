//! Limits of unidentified and silent connections.

mod connection;
mod held;
mod watched;

pub(crate) use self::{
    connection::{Connection, Connections},
    held::Held,
    watched::Watched,
};
