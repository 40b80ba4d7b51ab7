//! Inputs and outputs by content: who may put and read them, and what jobs name.

pub(crate) mod puts;
pub(crate) mod reads;
