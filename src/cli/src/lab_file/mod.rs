//! The lab as a file: what it says, how that differs from the lab, and the requests that make them equal.

mod acts;
mod check;
mod difference;
mod plan;
mod read;
mod tree;

pub(crate) use acts::{Tokens, carry_out};
pub(crate) use check::check;
pub(crate) use difference::Change;
pub(crate) use plan::{Present, plan};
pub(crate) use read::read;
