//! The users of a shared queue, as in its document.

use fairlead_api::QueueUsers;
use fairlead_dispatch::Policy;

use crate::queues::{Queues, Set};
use fairlead_base::{
    errors::{PeopleError, Refusal},
    names::check_name,
};

/// Name of the field that sets the users of a queue.
pub const USERS: &str = "users";

/// Maximum number of accounts that a queue names.
pub const USERS_MAX: usize = 1_000;

/// Returns true if every site has this queue.
pub fn is_built_in(queue: &str) -> bool {
    Policy::default().queues.contains_key(queue)
}

/// Meaning of a queue name for an account that submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Not a shared queue.
    Nobodys,
    /// A built-in queue whose users were never set.
    BuiltIn,
    /// A queue from before queues had users. It is open to all.
    Unsaid,
    /// Open to all accounts.
    Open,
    /// Open to named accounts: true if this account is among them.
    Named(bool),
}

impl Queues {
    /// Returns the meaning of a name for this account.
    pub fn meaning(&self, name: &str, account: &str) -> Meaning {
        let unsaid = |is_set: bool| match (is_built_in(name), is_set) {
            (true, _) => Meaning::BuiltIn,
            (false, true) => Meaning::Unsaid,
            (false, false) => Meaning::Nobodys,
        };
        self.look_at_users(name, |users| match users {
            None => unsaid(false),
            Some(None) => unsaid(true),
            Some(Some(QueueUsers::Own)) => Meaning::Nobodys,
            Some(Some(QueueUsers::All)) => Meaning::Open,
            Some(Some(QueueUsers::Named(accounts))) => {
                Meaning::Named(accounts.iter().any(|named| named == account))
            }
        })
    }

    /// Returns a warning for admins if a queue is open only because its users were never set. Empty: no warning.
    pub fn warning_of(&self, name: &str) -> String {
        match self.meaning(name, "") {
            Meaning::Unsaid => open_words(name),
            Meaning::Nobodys | Meaning::BuiltIn | Meaning::Open | Meaning::Named(_) => {
                String::new()
            }
        }
    }
}

/// Returns the warning about a queue that is open because its users were never set.
pub fn open_words(queue: &str) -> String {
    format!(
        "queue '{queue}' is open to all accounts: it was set before queues had users. Say who may use it: \
         fairlead queues set {queue} --users all"
    )
}

/// Returns the users of a queue after a change. `None`: not set.
pub fn users_after(
    queue: &str,
    known: Option<&Set>,
    change: Option<&QueueUsers>,
) -> Option<QueueUsers> {
    let users = match (change, known) {
        (Some(users), _) => Some(users.clone()),
        (None, Some(set)) => set.users.clone(),
        (None, None) => Some(QueueUsers::Own),
    };
    // A built-in queue is never an account's own: its own rule applies again.
    users.filter(|users| *users != QueueUsers::Own || !is_built_in(queue))
}

/// Checks the users of a queue, and removes duplicate accounts.
pub fn check_users(users: &QueueUsers) -> Result<QueueUsers, Refusal> {
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
