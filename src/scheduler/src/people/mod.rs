//! Accounts, their rights, who is told of their jobs, queues, submit rules, how long jobs are kept, and the audit log.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod notify;
pub(crate) mod policy;
pub(crate) mod queues;
pub(crate) mod retention;
pub(crate) mod rules;
