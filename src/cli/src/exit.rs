//! Exit codes, and the one error type that carries one. Owns the mapping from every library's errors to
//! a code; prints nothing.

use std::fmt;

use fairlead_api::{ErrorBody, client::ClientError};
use fairlead_content::transfer::TransferError;
use fairlead_job::file::JobFileError;
use serde_json::{Value, json};

/// Success. For `run` and `submit -m`: every job succeeded.
pub(crate) const OK: u8 = 0;
/// A job did not succeed.
pub(crate) const JOB_FAILED: u8 = 1;
/// `plan`: the lab differs from the file, as in `diff`.
pub(crate) const DIFFERS: u8 = 1;
/// The command line, the configuration or a job file is wrong. Nothing was done.
pub(crate) const USAGE: u8 = 2;
/// The scheduler refused the request, or a part of it.
pub(crate) const REFUSED: u8 = 3;
/// No scheduler answers.
pub(crate) const UNREACHABLE: u8 = 4;
/// A problem on this machine: a folder, a port, a full disk.
pub(crate) const LOCAL: u8 = 5;
/// `doctor` or `check` found a problem.
pub(crate) const TO_MEND: u8 = 6;
/// The time limit was reached before the jobs had ended.
pub(crate) const TOO_LATE: u8 = 7;
/// Stopped by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Exit codes as `--help` shows them.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done; with run and submit -m: every job succeeded
  1    a job failed; plan: the lab differs from the file
  2    wrong command line, configuration, job file or lab file; nothing was done
  3    the scheduler refused the request, or a part of it
  4    no scheduler answers
  5    a problem of this machine: a folder, a port, a full disk
  6    doctor or check found a problem
  7    wait: the jobs had not ended when the time was up
  130  stopped by Ctrl-C";

/// Reason why a command ends, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One of the constants of this module.
    pub(crate) code: u8,
    /// Problem in lower case, with the value and the limit. It may have several lines.
    pub(crate) message: String,
    /// Advice for the user. Empty: the message is enough.
    pub(crate) hint: String,
    /// Error of the scheduler, if it refused something.
    refusal: Option<Box<ErrorBody>>,
    /// True if the problem may disappear with time: no scheduler answers, or none can answer now.
    pub(crate) may_pass: bool,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
            refusal: None,
            may_pass: false,
        }
    }

    /// Returns a failure by a mistake of the user.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(USAGE, message, hint)
    }

    /// Returns a failure of this machine.
    pub(crate) fn local(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(LOCAL, message, hint)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "\nhint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

impl From<JobFileError> for Failure {
    fn from(error: JobFileError) -> Self {
        // Its text already has place, snippet and hint.
        Self::usage(error.to_string(), "")
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let may_pass = error.may_pass();
        let failure = match error {
            ClientError::Refused { status, body } => {
                let message = format!("{} ({}, {status})", body.message, body.code.as_str());
                let hint = body.hint.clone();
                Self {
                    refusal: Some(Box::new(body)),
                    ..Self::new(REFUSED, message, hint)
                }
            }
            ClientError::Unreachable { tried, cause, hint } => {
                let message = format!("no scheduler answers at {}: {cause}", tried.join(", "));
                Self::new(UNREACHABLE, message, hint)
            }
            ClientError::OutcomeUnknown { url, cause } => Self::new(
                UNREACHABLE,
                format!("{url} gave no answer: {cause}"),
                "the request may have been done; check before you repeat it",
            ),
            error @ ClientError::BadAnswer { .. } => Self::new(
                UNREACHABLE,
                error.to_string(),
                "check that this is the address of a scheduler; `fairlead config show` shows its origin",
            ),
            error @ ClientError::BadUrl { .. } => Self::usage(
                error.to_string(),
                "`fairlead config show` shows the origin of each setting",
            ),
            error => Self::local(error.to_string(), ""),
        };
        Self {
            may_pass,
            ..failure
        }
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        let may_pass = error.may_pass();
        let message = error.to_string();
        let failure = match error {
            TransferError::Lab(error) => return error.into(),
            TransferError::FileOf { path, source } => {
                let of = Self::from(*source);
                let named = |message: &str| format!("'{path}' cannot be had: {message}");
                let refusal = of.refusal.map(|mut body| {
                    body.message = named(&body.message);
                    body
                });
                return Self {
                    message: named(&of.message),
                    refusal,
                    ..of
                };
            }
            TransferError::Unknown(_) => {
                Self::new(REFUSED, message, "list yours: fairlead content ls")
            }
            TransferError::ChunkGone(_) | TransferError::Damaged { .. } => Self::new(
                REFUSED,
                message,
                "put the files again; an admin can find what is damaged: fairlead content check",
            ),
            TransferError::Address { .. } if may_pass => {
                Self::new(UNREACHABLE, message, "try again in a few minutes")
            }
            TransferError::Address { .. } | TransferError::TooLong { .. } => {
                Self::new(REFUSED, message, "ask the operator of the lab")
            }
            TransferError::Stopped => Self::new(INTERRUPTED, message, ""),
            TransferError::Unfit { .. } => {
                Self::local(message, "remove them, or put another folder")
            }
            TransferError::NotEmpty(_) => {
                Self::usage(message, "name a folder that is empty or does not exist yet")
            }
            TransferError::Changed { path } => Self::local(
                format!("'{path}' changed while it was put"),
                "put it again when nobody writes to it",
            ),
            _ => Self::local(message, ""),
        };
        Self {
            may_pass,
            ..failure
        }
    }
}

/// Returns the exit code and text of an error.
pub(crate) fn describe(error: &anyhow::Error) -> (u8, String) {
    let code = error
        .downcast_ref::<Failure>()
        .map_or(LOCAL, |failure| failure.code);
    (code, format!("{error:#}"))
}

/// Returns the name of an exit code, for programs.
fn name_of(code: u8) -> &'static str {
    match code {
        JOB_FAILED => "job_failed",
        USAGE => "usage",
        REFUSED => "refused",
        UNREACHABLE => "unreachable",
        TO_MEND => "to_mend",
        TOO_LATE => "too_late",
        INTERRUPTED => "interrupted",
        _ => "local",
    }
}

/// Returns a failure as an object for programs. A refusal of the scheduler has its own code.
pub(crate) fn object(error: &anyhow::Error) -> Value {
    let failure = error.downcast_ref::<Failure>();
    let exit_code = failure.map_or(LOCAL, |failure| failure.code);
    let (code, message, hint) = match failure {
        Some(Failure {
            refusal: Some(body),
            ..
        }) => (body.code.as_str(), body.message.clone(), body.hint.as_str()),
        Some(failure) => (
            name_of(exit_code),
            failure.message.clone(),
            failure.hint.as_str(),
        ),
        None => (name_of(exit_code), format!("{error:#}"), ""),
    };
    // The text of a job file's error ends with its hint.
    let (message, hint) = match message.split_once("\nhint: ") {
        Some((message, own)) if hint.is_empty() => (message.to_owned(), own.to_owned()),
        _ => (message, hint.to_owned()),
    };
    json!({ "code": code, "message": message, "hint": hint, "exit_code": exit_code })
}

/// Returns an unreadable command line as an object for programs.
pub(crate) fn usage_object(error: &clap::Error) -> Value {
    let text = error.render().to_string();
    let mut parts = text.splitn(2, "\n\n");
    let message = parts.next().unwrap_or_default().trim();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let hint = parts.next().unwrap_or_default().trim();
    json!({ "code": name_of(USAGE), "message": message, "hint": hint, "exit_code": USAGE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_help() {
        for code in [
            OK,
            JOB_FAILED,
            USAGE,
            REFUSED,
            UNREACHABLE,
            LOCAL,
            TO_MEND,
            INTERRUPTED,
        ] {
            assert!(
                HELP.lines()
                    .any(|line| line.split_whitespace().next() == Some(&code.to_string())),
                "{code}"
            );
        }
    }

    #[test]
    fn a_failure_keeps_its_code_under_context() {
        let error = anyhow::Error::new(Failure::usage("bad", "do this")).context("while reading");
        assert_eq!(describe(&error).0, USAGE);
        assert!(describe(&error).1.contains("hint: do this"));
    }
}
