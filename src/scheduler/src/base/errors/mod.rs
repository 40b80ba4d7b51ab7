//! Errors as values: an enum for each domain. Their texts are the messages that people read in the log and in answers.
//! `http/errors` gives each its code, its hint and its status. Causes go to the log only.

mod content;
mod files;
mod hosts;
mod jobs;
mod people;
mod pools;
mod requests;
mod store;
mod submissions;
mod timers;

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_job::FieldError;
use fairlead_store::{ItemError, StoreError};

pub(crate) use self::{
    content::ContentFault,
    files::{FileError, PathProblem},
    hosts::{HostError, PeerError},
    jobs::JobError,
    people::PeopleError,
    pools::PoolError,
    requests::RequestError,
    store::StoreFault,
    submissions::SubmitError,
    timers::TimerError,
};
use crate::base::sealing::NoKey;

/// So much of a bad value is said back.
const EXCERPT_CHARS: usize = 40;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Store(#[from] StoreFault),
    #[error(transparent)]
    NoKey(#[from] NoKey),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Content(#[from] ContentFault),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Timer(#[from] TimerError),
    #[error(transparent)]
    People(#[from] PeopleError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A job that cannot be, or a bad name, with its hint.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// What cannot be; the log says more.
    #[error("a bug in the scheduler")]
    Bug,
    /// The replica is stopping.
    #[error("this replica is stopping")]
    Stopping,
    /// The replica's clock is off.
    #[error(
        "the clock of this replica is {} s {} the others': it does nothing until they agree",
        .by_ms.unsigned_abs() / 1000, if *.by_ms < 0 { "behind" } else { "ahead of" }
    )]
    ClockOff {
        /// What it is ahead, ms.
        by_ms: i64,
    },
    /// In words: of what nobody but the client looks at.
    #[error(transparent)]
    Said(#[from] ErrorBody),
}

impl Refusal {
    /// A refusal in words.
    pub(crate) fn new(
        code: ErrorCode,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        ErrorBody::new(code, message, hint).into()
    }

    /// Whether a store may take it later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Store(fault) => {
                !matches!(fault, StoreFault::RefusedDocument | StoreFault::Missing)
            }
            Self::NoKey(_)
            | Self::Content(
                ContentFault::Full | ContentFault::Unreachable | ContentFault::Damaged(_),
            )
            | Self::Stopping
            | Self::ClockOff { .. }
            | Self::Job(JobError::Contended(_)) => true,
            _ => false,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        StoreFault::from(error).into()
    }
}

impl From<ItemError> for Refusal {
    fn from(error: ItemError) -> Self {
        StoreFault::from(error).into()
    }
}

impl From<fairlead_content::ContentError> for Refusal {
    fn from(error: fairlead_content::ContentError) -> Self {
        match error {
            // Names are those of results.
            fairlead_content::ContentError::Exists(_) => FileError::Exists.into(),
            error => ContentFault::from(error).into(),
        }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        FileError::from(error).into()
    }
}

/// What a client sent, short and printable, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(EXCERPT_CHARS).collect();
    start.escape_default().to_string()
}
