//! Simulated testboxes: they speak the wire format to whatever replica they reach, as the real agent
//! does, and they die, come back with a new session, and lose the line.

mod agent;
mod client;
mod course;
mod machine;
mod roster;

pub(super) use machine::{Machine, live};
