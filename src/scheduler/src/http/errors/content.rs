//! Codes and hints about inputs, outputs and reuse.

use std::borrow::Cow;

use fairlead_api::ErrorCode::{
    self, BadBody, BadField, BadName, Conflict, DataFull, NotFound, Quota, TooLarge, Unavailable,
};

use crate::base::errors::{ContentFault, SubmitError};

pub(super) fn of_content(fault: &ContentFault) -> (ErrorCode, Cow<'static, str>) {
    use ContentFault as F;
    let (code, hint) = match fault {
        F::Unknown(_) => (NotFound, "list yours: fairlead content ls"),
        F::NoChunk(_) => (
            NotFound,
            "it was collected, or it is damaged: put the files again",
        ),
        F::NotOfIt { .. } => (NotFound, "ask for chunks that its manifest names"),
        F::BadPut(_) => (
            BadField,
            "choose 1 to 64 letters, digits, - and _ by chance, the same for all requests of a put",
        ),
        F::TooManyChunks { .. } => (TooLarge, "send several requests with the same put"),
        F::BadName { .. } => (BadField, "choose a shorter name"),
        F::BadTime(_) => (
            BadField,
            "as +14d from now, 2026-11-22T05:00:00Z, or empty: no longer than jobs name it",
        ),
        F::BadUntil { days_max, .. } => {
            let hint = format!("choose a time within the next {days_max} days");
            return (BadField, hint.into());
        }
        F::OverQuota { .. } => (
            Quota,
            "give some up: fairlead content rm ID, or ask an admin for a higher limit",
        ),
        F::BadDigest(_) => (BadName, "'fairlead put DIR' prints the id"),
        F::Wrong(_) => (BadBody, "send the bytes again"),
        F::ChunksMissing(_) => (
            Conflict,
            "pin the chunks again, and send those that are missing",
        ),
        // Nobody heals it by asking again.
        F::Damaged(_) => (
            NotFound,
            "put the files again; an admin can find what is damaged: fairlead content check",
        ),
        F::Collecting => (Unavailable, "try again in a minute"),
        F::CollectedByAnother(_) => (Conflict, "wait until that is over"),
        F::Full => (
            DataFull,
            "an operator makes room; a testbox soon ends its job without this",
        ),
        F::Unreachable => (Unavailable, "try again in a few seconds"),
    };
    (code, hint.into())
}

/// What helps with `inputs` and `reuse`.
pub(super) fn of_content_field(error: &SubmitError) -> &'static str {
    use SubmitError as E;
    match error {
        E::UnknownInput(..) => "put it first: fairlead put DIR prints the id",
        E::SeveralOfName { .. } => {
            "give one of them a name of its own: a matrix makes several jobs of one name"
        }
        _ => "leave out 'reuse', or write reuse: no",
    }
}
