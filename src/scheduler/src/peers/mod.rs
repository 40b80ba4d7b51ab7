//! The other replicas: membership, numbers, hints, clocks.

pub(crate) mod clocks;
pub(crate) mod hints;
pub(crate) mod membership;
pub(crate) mod numbers;
