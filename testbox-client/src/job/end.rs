//! The end of a job in the scheduler's terms: health, exit code, reason.

use std::io;

use fairlead_job::Health;

use super::journal::End;
use crate::{
    executor::{NotBegun, Verdict},
    protocol::Why,
};

pub(super) fn unrun(health: Health, reason: String) -> End {
    End {
        health: health.as_str().to_owned(),
        exit_code: None,
        reason,
        ran: false,
        lost: None,
        avoid_host: false,
        crash_signature: None,
        used: None,
    }
}

/// Returns the end of a job that could not be started. A missing interpreter or an oversized environment is the job's
/// fault, everything else this machine's.
pub(super) fn not_started(program: &str, error: &io::Error) -> End {
    use io::ErrorKind::{ArgumentListTooLong, InvalidInput, NotFound, PermissionDenied};
    let of_job = matches!(
        error.kind(),
        NotFound | PermissionDenied | ArgumentListTooLong | InvalidInput
    );
    let health = if of_job {
        Health::AbortInvalid
    } else {
        Health::AbortProvider
    };
    unrun(health, format!("cannot start '{program}': {error}"))
}

/// Returns the end of a job that was told to stop. `None`: forget it.
pub(super) fn stopped(why: Why, exit_code: Option<i32>) -> Option<End> {
    let (health, reason) = match why {
        Why::Forget { .. } => return None,
        Why::Agent => {
            let health = Health::AbortProvider.as_str().to_owned();
            (health, "the testbox agent was stopped".to_owned())
        }
        Why::Order { health, reason } => (health, reason),
    };
    Some(End {
        health,
        reason,
        exit_code,
        ran: exit_code.is_some(),
        lost: None,
        avoid_host: false,
        crash_signature: None,
        used: None,
    })
}

/// Returns the end of a job whose `program` was started. `over` is the reason for a job stopped at its time limit.
pub(super) fn ended(verdict: Verdict, program: &str, over: String) -> Option<End> {
    let end = |health: Health, code, reason| {
        Some(End {
            health: health.as_str().to_owned(),
            exit_code: Some(code),
            reason,
            ran: true,
            lost: None,
            avoid_host: false,
            crash_signature: None,
            used: None,
        })
    };
    match verdict {
        Verdict::Stopped { code, why } => stopped(why, Some(code)),
        Verdict::NotLaunched(failure) if failure.is_program() => {
            Some(not_started(program, &failure.error()))
        }
        Verdict::NotLaunched(failure) => Some(unrun(
            Health::AbortProvider,
            format!("its launcher cannot {}: {}", failure.step, failure.error()),
        )),
        Verdict::NotBegun(why) => Some(not_begun(why)),
        Verdict::Unfinished => Some(End {
            ran: true,
            ..unrun(
                Health::Fail,
                "its machine ended before the job did".to_owned(),
            )
        }),
        Verdict::TooLong { code } => end(Health::SoftTimeout, code, over),
        Verdict::Exited {
            code, oom: true, ..
        } => end(
            Health::Oom,
            code,
            "the kernel killed it because memory ran out".to_owned(),
        ),
        Verdict::Exited {
            code,
            signal: Some(signal),
            ..
        } => end(
            Health::Fail,
            code,
            format!("killed by signal {signal} ({})", signal_name(signal)),
        ),
        Verdict::Exited { code: 0, .. } => end(Health::Success, 0, String::new()),
        Verdict::Exited { code, .. } => end(Health::Fail, code, format!("exit code {code}")),
    }
}

/// Returns the end of a job that its guest did not start. Its output has the guest's message.
fn not_begun(why: NotBegun) -> End {
    let health = if why.is_job {
        Health::AbortInvalid
    } else {
        Health::AbortProvider
    };
    End {
        ran: true,
        ..unrun(health, why.reason)
    }
}

/// Returns true if the job ended without an order.
pub(super) fn is_own(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Exited { .. }
            | Verdict::TooLong { .. }
            | Verdict::Unfinished
            | Verdict::NotBegun(_)
    )
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => "another",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_becomes_a_health() {
        let exited = |code, signal, oom| Verdict::Exited { code, signal, oom };
        for (verdict, health, reason) in [
            (exited(0, None, false), "success", ""),
            (exited(1, None, false), "fail", "exit code 1"),
            (
                exited(137, Some(9), false),
                "fail",
                "killed by signal 9 (SIGKILL)",
            ),
            (
                exited(137, Some(9), true),
                "oom",
                "the kernel killed it because memory ran out",
            ),
            (
                exited(137, None, true),
                "oom",
                "the kernel killed it because memory ran out",
            ),
            (Verdict::TooLong { code: 0 }, "soft_timeout", "too long"),
        ] {
            let end = ended(verdict, "sh", "too long".to_owned()).unwrap();
            assert_eq!((end.health.as_str(), end.reason.as_str()), (health, reason));
            assert!(end.ran);
        }
    }

    #[test]
    fn a_forgotten_job_has_no_end() {
        let why = Why::Forget {
            reason: String::new(),
        };
        assert_eq!(stopped(why, Some(0)), None);
        assert!(!stopped(Why::Agent, None).unwrap().ran);
    }

    #[test]
    fn a_start_that_fails_is_the_job_s_fault_or_the_machine_s() {
        let kind = |kind| not_started("x", &io::Error::from(kind)).health;
        assert_eq!(kind(io::ErrorKind::NotFound), "abort_invalid");
        assert_eq!(kind(io::ErrorKind::WouldBlock), "abort_provider");
    }
}
