//! The lab as a file: what it says, how that differs from the lab, and the requests that make them equal.

mod acts;
mod check;
mod plan;
mod read;
mod tree;

pub(crate) use acts::{Tokens, carry_out};
pub(crate) use check::check;
pub(crate) use plan::{Change, Present, plan};
pub(crate) use read::read;
