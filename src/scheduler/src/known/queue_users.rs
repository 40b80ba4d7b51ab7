//! The users of a shared queue, as in its document.

use fairlead_api::QueueUsers;
use fairlead_dispatch::Policy;

use crate::{
    base::{
        errors::{PeopleError, Refusal},
        names::check_name,
    },
    known::queues::Set,
};

/// The field of a change of a queue that says who may use it.
pub(crate) const USERS: &str = "users";

/// Most accounts that a queue names.
pub(crate) const USERS_MAX: usize = 1_000;

/// Whether every site has this queue.
pub(crate) fn is_built_in(queue: &str) -> bool {
    Policy::default().queues.contains_key(queue)
}

/// Who may use a queue after a change of it; `None`: nobody says so.
pub(crate) fn users_after(
    queue: &str,
    known: Option<&Set>,
    change: Option<&QueueUsers>,
) -> Option<QueueUsers> {
    let users = match (change, known) {
        (Some(users), _) => Some(users.clone()),
        (None, Some(set)) => set.users.clone(),
        (None, None) => Some(QueueUsers::Own),
    };
    // A built-in queue is nobody's own: its own rule holds again.
    users.filter(|users| *users != QueueUsers::Own || !is_built_in(queue))
}

/// Checks who is to use a queue; each account is named once.
pub(crate) fn check_users(users: &QueueUsers) -> Result<QueueUsers, Refusal> {
    let QueueUsers::Named(accounts) = users else {
        return Ok(users.clone());
    };
    let mut accounts = accounts.clone();
    accounts.sort_unstable();
    accounts.dedup();
    for account in &accounts {
        check_name(USERS, account)?;
    }
    match accounts.len() {
        0 => Err(PeopleError::NoUsers.into()),
        given if given > USERS_MAX => {
            let max = USERS_MAX;
            Err(PeopleError::TooManyUsers { given, max }.into())
        }
        _ => Ok(QueueUsers::Named(accounts)),
    }
}
