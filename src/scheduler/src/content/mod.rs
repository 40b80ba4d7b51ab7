//! Inputs and outputs by content: who may put and read them, and what jobs name.

mod holder;
pub(crate) mod puts;
mod quotas;
pub(crate) mod reads;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use holder::Holder;
