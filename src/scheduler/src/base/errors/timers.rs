//! Errors of timers.

/// An error of a timer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimerError {
    #[error("timer: missing")]
    NoName,
    #[error("timer: a timer of this name exists already")]
    Exists,
    #[error("account '{account}' has no timer '{name}'")]
    Unknown { account: String, name: String },
    #[error("timer '{name}' belongs to account '{account}', not to '{asker}'")]
    NotOwner {
        name: String,
        account: String,
        asker: String,
    },
    #[error("{field}: a run every {shortest_s} s; the shortest interval is {least_s} s")]
    TooOften {
        field: &'static str,
        shortest_s: u64,
        least_s: u64,
    },
    #[error("account '{account}' has {there} timers; the limit is {max}")]
    TooMany {
        account: String,
        there: u64,
        max: u64,
    },
    #[error("no change was given")]
    NoChange,
    #[error("a run of timer '{0}' is due and cannot start now")]
    RunDue(String),
    /// Whoever submitted it.
    #[error("there is no account '{0}' any more")]
    NoSubmitter(String),
}
