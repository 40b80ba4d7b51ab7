//! Error codes, which clients may branch on. One place maps them to HTTP.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal;)+) => {
        /// Why a request was refused. The text is stable; clients branch on it, people read the message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* #[serde(rename = $text)] $variant),+ }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The HTTP status it is answered with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }
        }
    };
}

codes! {
    /// The body is not the JSON or YAML that is expected.
    BadBody = "bad_body", 400;
    /// A field has a value that cannot be used.
    BadField = "bad_field", 400;
    /// A query parameter is unknown, or has a value that cannot be used.
    BadQuery = "bad_query", 400;
    /// The job file cannot be expanded.
    BadJobFile = "bad_job_file", 400;
    /// A path, id or name is malformed.
    BadName = "bad_name", 400;
    /// Nobody said who asks, or the token is wrong.
    Unauthorized = "unauthorized", 401;
    /// Known, but not allowed to do this.
    Forbidden = "forbidden", 403;
    /// A web page may have sent this to an open lab, or it was sent to a name that is not the scheduler's.
    CrossSite = "cross_site", 403;
    /// The account or the queue has as much as an admin allows it.
    Quota = "quota", 403;
    /// No such job, host, queue, account, file or path.
    NotFound = "not_found", 404;
    /// The path exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405;
    /// The body stopped coming, or came too slowly.
    BodyTimeout = "body_timeout", 408;
    /// The job is not in a stage where this can be done.
    WrongStage = "wrong_stage", 409;
    /// Another attempt, session or writer is ahead of this one.
    Conflict = "conflict", 409;
    /// Another session of this host was heard of after this one.
    SessionOver = "session_over", 409;
    /// Another agent has this host's name, and lives.
    HostConflict = "host_conflict", 409;
    /// The body, list or file is larger than the limit.
    TooLarge = "too_large", 413;
    /// The content type is not one that is understood.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// The job has ended and takes no more changes.
    Closed = "closed", 423;
    /// Too many requests are waiting or in flight. Try again later.
    TooMany = "too_many", 429;
    /// A bug. The log of the replica has the story.
    Internal = "internal", 500;
    /// The store or the replica cannot do this now. Nothing was done. Try again.
    Unavailable = "unavailable", 503;
    /// The data folder has no room for a file. Nothing was stored of it. An operator makes room.
    DataFull = "data_full", 507;
    /// A stored document is malformed, or a newer version wrote it. Nothing was done.
    UnreadableDocument = "unreadable_document", 503;
    /// Written or not: the store did not say. Ask again for the state before you repeat it.
    Unknown = "outcome_unknown", 503;
}

/// The body of every refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ErrorBody {
    /// What kind, for programs.
    pub code: ErrorCode,
    /// What is wrong: the value and the limit, one sentence.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl ErrorBody {
    /// A refusal.
    pub fn new(code: ErrorCode, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
        }
    }
}
