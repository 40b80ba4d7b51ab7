//! Inputs and outputs by content: who may put and read them, and what jobs name.

pub(crate) mod care;
pub(crate) mod holder;
pub(crate) mod puts;
mod quotas;
pub(crate) mod reads;
pub(crate) mod wire;

#[cfg(test)]
mod tests;
