//! Accounts, their rights, who is told of their jobs, queues, submit rules, how long jobs are kept, and the audit log.

pub(crate) mod accounts;
pub(crate) mod notify;
pub(crate) mod policy;
pub(crate) mod queues;
pub(crate) mod retention;
pub(crate) mod rules;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{ctx::Ctx, ctx::Lab};
use fairlead_known::accounts::Accounts;
use fairlead_known::queues::Queues;
use fairlead_known::rules::Rules;
use fairlead_known::usage::Usage;

/// Accounts, queues and submit rules, with their limits.
#[derive(Debug)]
pub(crate) struct PeopleFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) accounts: Accounts,
    pub(crate) queues: Queues,
    pub(crate) rules: Rules,
    /// Use of the lab by those that limits are set of.
    pub(crate) usage: Usage,
    /// Right that the store's user lacks to delete old jobs, though they are to be deleted.
    pub(crate) undeletable: Mutex<Option<String>>,
}
