//! Accounts and queues: who asks, what they may do, and what they did.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod policy;
pub(crate) mod queues;
