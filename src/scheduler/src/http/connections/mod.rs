//! Connections before they say who they are, and silent ones: their limits, and what keeps them open.

mod connection;
mod held;
mod watched;

pub(crate) use self::{
    connection::{Connection, Connections},
    held::Held,
    watched::Watched,
};
