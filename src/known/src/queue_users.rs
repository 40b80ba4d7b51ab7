//! The users of a shared queue, as in its document.

use fairlead_api::QueueUsers;
use fairlead_dispatch::Policy;

use crate::queues::{Queues, Set};
use fairlead_base::{
    errors::{PeopleError, Refusal},
    names::check_name,
};

/// The field of a change of a queue that says who may use it.
pub const USERS: &str = "users";

/// Most accounts that a queue names.
pub const USERS_MAX: usize = 1_000;

/// Whether every site has this queue.
pub fn is_built_in(queue: &str) -> bool {
    Policy::default().queues.contains_key(queue)
}

/// What a name is to an account that submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// No shared queue.
    Nobodys,
    /// A built-in queue of which nobody said who may use it.
    BuiltIn,
    /// A queue that was set before queues had users: open to all.
    Unsaid,
    /// Open to all.
    Open,
    /// For some, and whether this account is one of them.
    Named(bool),
}

impl Queues {
    /// What this name is to this account.
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

    /// What an admin should look at: a queue that is open only because nobody said who may use it.
    pub fn warning_of(&self, name: &str) -> String {
        match self.meaning(name, "") {
            Meaning::Unsaid => open_words(name),
            Meaning::Nobodys | Meaning::BuiltIn | Meaning::Open | Meaning::Named(_) => {
                String::new()
            }
        }
    }
}

/// Warns of a queue that is open only because nobody said who may use it.
pub fn open_words(queue: &str) -> String {
    format!(
        "queue '{queue}' is open to all accounts: it was set before queues had users. Say who may use it: \
         fairlead queues set {queue} --users all"
    )
}

/// Who may use a queue after a change of it; `None`: nobody says so.
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
    // A built-in queue is nobody's own: its own rule holds again.
    users.filter(|users| *users != QueueUsers::Own || !is_built_in(queue))
}

/// Checks who is to use a queue; each account is named once.
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
