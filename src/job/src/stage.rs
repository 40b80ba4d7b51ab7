//! compass-ci's three axes of a job: stage, health, and data readiness.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::TboxType;

/// The text is not one of the words of an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {axis} '{value}' (one of: {known})")]
pub struct UnknownWord {
    /// Which axis: `job_stage`, `job_health` or `job_data_readiness`.
    pub axis: &'static str,
    /// Unknown value, cut to 40 characters.
    pub value: String,
    /// All words of the axis, comma separated.
    pub known: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $axis:literal, $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl Default for $name {
            /// The first word: where a job begins.
            fn default() -> Self {
                [$(Self::$variant),+][0]
            }
        }

        impl $name {
            /// Every word, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|w| w.as_str() == text).ok_or_else(|| UnknownWord {
                    axis: $axis,
                    value: text.chars().take(40).collect(),
                    known: Self::ALL.iter().map(|w| w.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

words! {
    /// How far a job is. Only moves forward within an attempt (invariant I9).
    Stage, "job_stage",
    /// Waits for a testbox.
    Submit = "submit",
    /// Claimed for a testbox, not yet seen to start.
    Dispatch = "dispatch",
    /// The testbox boots or fetches what it needs.
    Boot = "boot",
    /// The testbox prepares the run.
    Setup = "setup",
    /// Waits for the other nodes of a cluster job.
    WaitPeer = "wait_peer",
    /// The workload runs.
    Running = "running",
    /// Results are collected.
    PostRun = "post_run",
    /// Somebody is logged in after the run.
    ManualCheck = "manual_check",
    /// The end was put off by a user.
    Renew = "renew",
    /// Ended by itself, by a limit or by loss: health says which.
    Finish = "finish",
    /// Cancelled before it ran.
    Cancel = "cancel",
    /// Could never run as written.
    AbortInvalid = "abort_invalid",
    /// A job that it waited for failed.
    AbortWait = "abort_wait",
    /// The machine that had it could not run it.
    AbortProvider = "abort_provider",
}

impl Stage {
    /// The number that compass-ci stores as `istage`, 0 to 13.
    pub fn istage(self) -> u8 {
        self as u8
    }

    /// Returns true if nothing more happens to the attempt.
    pub fn is_terminal(self) -> bool {
        self >= Self::Finish
    }

    /// Returns true if a testbox holds the job.
    pub fn is_held(self) -> bool {
        self > Self::Submit && self < Self::Finish
    }

    /// Returns true if an attempt may go from here to `next`. Skipping is allowed, going back or repeating is not;
    /// `manual_check` and `renew` may follow each other, and nothing follows an end.
    pub fn may_become(self, next: Self) -> bool {
        if self.is_terminal() {
            return false;
        }
        matches!((self, next), (Self::Renew, Self::ManualCheck)) || next > self
    }

    /// The health of a job that was in this stage for too long.
    pub fn timeout_health(self) -> Health {
        match self {
            Self::Submit => Health::TimeoutSubmit,
            Self::Dispatch => Health::TimeoutDispatch,
            Self::Boot => Health::TimeoutBoot,
            Self::Setup => Health::TimeoutSetup,
            Self::WaitPeer => Health::TimeoutWaitPeer,
            Self::PostRun => Health::TimeoutPostRun,
            Self::ManualCheck => Health::TimeoutManualCheck,
            Self::Renew => Health::TimeoutRenew,
            _ => Health::TimeoutRunning,
        }
    }

    /// Returns the default time limit of an attempt in this stage, in seconds (compass-ci's defaults). `None`: the
    /// stage has no limit of its own.
    pub fn default_timeout_s(self, tbox_type: TboxType) -> Option<u64> {
        match self {
            Self::Dispatch => Some(3600),
            Self::Boot => Some(match tbox_type {
                TboxType::Hw => 1200,
                TboxType::Vm => 600,
                TboxType::Dc => 180,
            }),
            Self::Setup => Some(600),
            Self::WaitPeer => Some(7200),
            Self::PostRun => Some(1800),
            Self::ManualCheck => Some(36_000),
            _ => None,
        }
    }
}

words! {
    /// How a job ended, or that it has not.
    Health, "job_health",
    /// Not ended yet.
    Unknown = "unknown",
    /// The workload exited with 0.
    Success = "success",
    /// The workload exited with another code.
    Fail = "fail",
    /// Cancelled by a person.
    Cancel = "cancel",
    /// The kernel could not be fetched.
    WgetKernelFail = "wget_kernel_fail",
    /// An initrd could not be fetched.
    WgetInitrdFail = "wget_initrd_fail",
    /// An initrd was damaged.
    InitrdBroken = "initrd_broken",
    /// The disk could not be loaded.
    LoadDiskFail = "load_disk_fail",
    /// A mount failed.
    ErrorMount = "error_mount",
    /// The CPU's microcode is not the wanted one.
    MicrocodeMismatch = "microcode_mismatch",
    /// Could never run as written.
    AbortInvalid = "abort_invalid",
    /// A job that it waited for failed.
    AbortWait = "abort_wait",
    /// The machine that had it was lost or could not run it.
    AbortProvider = "abort_provider",
    /// Given up.
    Abort = "abort",
    /// Ran into its own time limit and was stopped in order.
    SoftTimeout = "soft_timeout",
    /// NFS did not answer.
    NfsHang = "nfs_hang",
    /// Out of memory.
    Oom = "oom",
    /// The kernel panicked.
    KernelPanic = "kernel_panic",
    /// Stopped by a person while it ran.
    Terminate = "terminate",
    /// Something else used the machine meanwhile.
    Disturbed = "disturbed",
    /// Waited for a testbox longer than it may, or past its deadline.
    TimeoutSubmit = "timeout_submit",
    /// Too long in stage dispatch.
    TimeoutDispatch = "timeout_dispatch",
    /// Too long in stage boot.
    TimeoutBoot = "timeout_boot",
    /// Too long in stage setup.
    TimeoutSetup = "timeout_setup",
    /// Too long in stage `wait_peer`.
    TimeoutWaitPeer = "timeout_wait_peer",
    /// Ran over its time limit.
    TimeoutRunning = "timeout_running",
    /// Too long in stage `post_run`.
    TimeoutPostRun = "timeout_post_run",
    /// Too long in stage `manual_check`.
    TimeoutManualCheck = "timeout_manual_check",
    /// Ran over its renewed time.
    TimeoutRenew = "timeout_renew",
    /// Its console says that a kernel stopped. (`kernel_panic` is what machines say themselves.)
    Panic = "panic",
    /// Its console says that a kernel killed what ran.
    Oops = "oops",
    /// Its console has a report of a sanitizer.
    Sanitizer = "sanitizer",
    /// Its console says that a CPU or a task makes no progress.
    Lockup = "lockup",
    /// Its console says that a rule of locking was broken.
    Lockdep = "lockdep",
    /// Its console has a kernel warning.
    Warning = "warning",
    /// Its console says that a kernel lost memory.
    Leak = "leak",
}

impl Health {
    /// The kinds of kernel crashes that a console tells of.
    pub const CRASHES: [Self; 8] = [
        Self::Panic,
        Self::Oops,
        Self::Sanitizer,
        Self::Lockup,
        Self::Lockdep,
        Self::Warning,
        Self::Leak,
        Self::Oom,
    ];
    /// How jobs end that people stop: cancelled while they wait, or terminated on a host.
    pub const STOPPED: [Self; 2] = [Self::Cancel, Self::Terminate];
}

words! {
    /// True if the results are in.
    DataReadiness, "job_data_readiness",
    /// Nothing yet.
    None = "N/A",
    /// On their way.
    Uploading = "uploading",
    /// All files are here.
    Uploaded = "uploaded",
    /// Post-processed: nothing more comes.
    Complete = "complete",
    /// Some will never come.
    Incomplete = "incomplete",
    /// The job never ran, there are none.
    Norun = "norun",
}

impl DataReadiness {
    /// The number that compass-ci stores as `idata_readiness`, 0 to 5.
    pub fn number(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_compass_ci_s() {
        assert_eq!(Stage::Submit.istage(), 0);
        assert_eq!(Stage::Finish.istage(), 9);
        assert_eq!(Stage::AbortProvider.istage(), 13);
        assert_eq!("wait_peer".parse(), Ok(Stage::WaitPeer));
        assert_eq!("N/A".parse(), Ok(DataReadiness::None));
        assert!("started".parse::<Stage>().is_err());
    }

    #[test]
    fn a_stage_never_goes_back() {
        for &from in Stage::ALL {
            for &to in Stage::ALL {
                let back = to <= from && (from, to) != (Stage::Renew, Stage::ManualCheck);
                if back || from.is_terminal() {
                    assert!(!from.may_become(to), "{from} to {to}");
                } else {
                    assert!(from.may_become(to), "{from} to {to}");
                }
            }
        }
    }
}
