//! Errors of accounts and queues: missing rights, and values that cannot be set.

use fairlead_job::RuleError;

/// An error of an account or a queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeopleError {
    // Who asks.
    #[error("no token was sent")]
    NoToken,
    #[error("unknown token")]
    UnknownToken,
    #[error("this token of account '{0}' is over")]
    TokenOver(String),
    #[error("the token does not belong to the account in my_account")]
    OthersToken,
    /// A newer version gave it a role that this one does not know.
    #[error("account '{0}' has a role that this replica does not know")]
    NewRole(String),
    #[error("account '{0}' is not an admin")]
    NotAdmin(String),
    #[error("account '{0}' is not a testbox")]
    NotTestbox(String),
    #[error("account '{account}' does not name host '{host}'")]
    NotItsHost { account: String, host: String },
    #[error("account '{0}' is a testbox: it asks for work and reports, and does nothing else")]
    OnlyTestbox(String),
    #[error("account '{account}' may not put a host into group '{group}'")]
    NotItsGroup { account: String, group: String },

    // Setting an account.
    #[error("role: unknown role '{0}'")]
    UnknownRole(String),
    #[error("{0} cannot be set in an open lab, only limits can")]
    OpenLab(String),
    #[error("hosts: an account of role '{0}' names no hosts")]
    NamesNoHosts(String),
    #[error("hosts: {given} patterns; 1 to {max} can be named")]
    HostPatterns { given: usize, max: usize },
    #[error("hosts: '{0}' is no pattern of host names")]
    BadHostPattern(String),

    // Setting a limit, of an account or a queue.
    #[error("limits.{what}: {given} is over {max}")]
    LimitTooHigh {
        what: &'static str,
        given: u64,
        max: u64,
    },
    #[error("limits.{what}: only accounts have this limit")]
    LimitOfAccounts { what: &'static str },
    #[error("limits.{what}: a soft limit was given")]
    NoSoftLimit { what: &'static str },
    #[error("limits.{what}: the soft limit {soft} is over the hard limit {hard}")]
    SoftOverHard {
        what: &'static str,
        soft: u64,
        hard: u64,
    },

    // Setting a queue.
    #[error("no change was given")]
    NoChange,
    #[error("priority: {given} is over {max}")]
    PriorityTooHigh { given: u8, max: u8 },
    #[error("weight: {given} is not 1 to {max}")]
    BadWeight { given: u32, max: u32 },
    #[error("background_permille: {given} is over {max}")]
    BackgroundTooHigh { given: u16, max: u16 },
    #[error("users: the list is empty")]
    NoUsers,
    #[error("users: {given} accounts are over {max}")]
    TooManyUsers { given: usize, max: usize },
    #[error("queue '{0}' has the default policy")]
    DefaultPolicy(String),
    #[error("unknown queue '{0}'")]
    UnknownQueue(String),
    #[error("no account '{0}'")]
    UnknownAccount(String),
    #[error("account '{0}' is your own")]
    OwnAccount(String),

    // Who is told of the jobs of an account.
    #[error("account '{asker}' may not see or set who is told of the jobs of '{account}'")]
    OthersNotify { asker: String, account: String },
    #[error("nobody is told of the jobs of account '{0}' that do not say so themselves")]
    NoNotify(String),

    // Setting how long jobs are kept.
    #[error("expires_s: {0}, but no new token is made")]
    NoNewToken(u64),
    #[error("{what}: {given} is not between {min} and {max}")]
    TokenTime {
        what: &'static str,
        given: u64,
        min: u64,
        max: u64,
    },
    #[error("keep_months: no old jobs can be deleted: the login of Elasticsearch lacks {0}")]
    MayNotDrop(String),
    #[error("keep_months: {given} is over {max}")]
    TooManyMonths { given: u32, max: u32 },

    // Setting submit rules.
    #[error("{0}")]
    BadRule(RuleError),
    #[error("{0}")]
    BadReuse(String),
}
