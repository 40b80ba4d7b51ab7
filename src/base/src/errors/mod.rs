//! Errors as values: an enum for each domain. Their texts are the messages that people read in the log and in answers.
//! Beside each text stand its code and its hint. Causes go to the log only.

/// Defines the errors of a subject. Each variant has its code and its hint. `as`: a status that differs from the
/// code's. `of`: fields that the hint uses.
macro_rules! refusals {
    (
        $(#[$of_all:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[doc = $doc:literal])*
                #[error($text:tt $($values:tt)*)]
                $variant:ident $(( $($tuple:tt)* ))? $({ $($named:tt)* })? =>
                    $code:ident $(as $status:literal)? $(of ($($field:tt)*))?, $hint:expr;
            )+
        }
    ) => {
        $(#[$of_all])*
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        $vis enum $name {
            $(
                $(#[doc = $doc])*
                #[error($text $($values)*)]
                $variant $(( $($tuple)* ))? $({ $($named)* })?,
            )+
        }

        impl $name {
            /// Returns the code, status and hint for the client.
            $vis fn told(&self) -> $crate::errors::Told {
                use $crate::errors::{ErrorCode, Told};
                match self {
                    $(
                        Self::$variant { $($($field)*,)? .. } => {
                            Told::new(ErrorCode::$code, $hint)$(.with_status($status))?
                        }
                    )+
                }
            }

            /// Text and hint of each variant, as written.
            #[cfg(test)]
            $vis const WORDS: &[(&str, &str)] = &[$(($text, stringify!($hint))),+];
        }
    };
}

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
use fairlead_job::{Fault, FieldError};
use fairlead_store::{ItemError, StoreError};

pub use self::{
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
use crate::sealing::NoKey;

/// Longest repeated part of a bad value, characters.
const EXCERPT_CHARS: usize = 40;

/// Parts of an answer to a refused request besides its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    code: ErrorCode,
    status: u16,
    hint: String,
}

impl Told {
    fn new(code: ErrorCode, hint: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            hint: hint.into(),
        }
    }

    /// Sets another status, for compass-ci's that differ from the code's.
    fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

/// Refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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
    /// An invalid job or a bad name, with its hint.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// An impossible state; the log has details.
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
        /// Lead of the clock, ms.
        by_ms: i64,
    },
    /// A refusal given as text, which only the client looks at.
    #[error(transparent)]
    Said(#[from] ErrorBody),
}

impl Refusal {
    /// Creates a refusal from text.
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        ErrorBody::new(code, message, hint).into()
    }

    fn told(&self) -> Told {
        match self {
            Self::Store(fault) => fault.told(),
            Self::NoKey(_) => Told::new(
                ErrorCode::Unavailable,
                "an operator can import the key from a backup: fairlead key import FILE",
            ),
            Self::Job(error) => error.told(),
            Self::File(error) => error.told(),
            Self::Content(fault) => fault.told(),
            Self::Submit(error) => error.told(),
            Self::Timer(error) => error.told(),
            Self::People(error) => error.told(),
            Self::Pool(error) => error.told(),
            Self::Host(error) => error.told(),
            Self::Peer(error) => error.told(),
            Self::Request(error) => error.told(),
            Self::Field(error) => {
                let code = match error.fault {
                    Fault::Value => ErrorCode::BadField,
                    Fault::Name => ErrorCode::BadName,
                    Fault::Body => ErrorCode::BadBody,
                    Fault::Size => ErrorCode::TooLarge,
                };
                Told::new(code, error.hint.clone())
            }
            Self::Bug => Told::new(ErrorCode::Internal, "report it with the replica's log"),
            Self::Stopping => Told::new(
                ErrorCode::Unavailable,
                "ask again; another replica or its successor answers",
            ),
            Self::ClockOff { .. } => Told::new(
                ErrorCode::Unavailable,
                "ask another replica; its operator corrects the clock: chronyc tracking, timedatectl",
            ),
            Self::Said(body) => Told::new(body.code, body.hint.clone()),
        }
    }

    /// Returns the body of the answer.
    pub fn body(&self) -> ErrorBody {
        let Told { code, hint, .. } = self.told();
        ErrorBody::new(code, self.to_string(), hint)
    }

    /// Returns the status of the answer.
    pub fn status(&self) -> u16 {
        self.told().status
    }

    /// Returns true if a store may accept it later.
    pub fn may_pass(&self) -> bool {
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

/// Returns a client's text, short and printable, for a message.
pub fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(EXCERPT_CHARS).collect();
    start.escape_default().to_string()
}

#[cfg(test)]
mod tests;
