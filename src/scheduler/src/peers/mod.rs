//! The other replicas: membership, numbers, hints.

pub(crate) mod hints;
pub(crate) mod membership;
pub(crate) mod numbers;
