//! The limit of open files: the agent raises its own as far as its jobs need it, and jobs have the limit that was there before.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// Number of files that the agent has open besides those of jobs.
const OF_AGENT: u64 = 64;
/// Maximum number of files that it has open for one job: its pipe, its output, its process, the lock of its user,
/// connections.
const OF_JOB: u64 = 16;

/// Limits before the agent raised them.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of this process as far as `jobs_max` needs it and the hard limit allows. Returns the number of
/// jobs that it can hold, at least one.
pub(crate) fn raise(jobs_max: u32) -> u32 {
    let limits = getrlimit(Resource::Nofile);
    let before = *BEFORE.get_or_init(|| limits);
    let raised = raised(&limits, jobs_max);
    let raising = Rlimit {
        current: raised,
        ..before
    };
    let has = match setrlimit(Resource::Nofile, raising) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            limits.current
        }
    };
    jobs_max.min(jobs(has))
}

/// Restores the original limit of a job that has just started.
pub(crate) fn give_back(job: Pid) {
    let Some(before) = BEFORE.get() else { return };
    if let Err(error) = prlimit(Some(job), Resource::Nofile, *before) {
        tracing::debug!(%error, "a job has the agent's own limit of open files");
    }
}

/// Returns the soft limit for this number of jobs. `None`: unlimited.
fn raised(limits: &Rlimit, jobs_max: u32) -> Option<u64> {
    let wanted = OF_AGENT + OF_JOB * u64::from(jobs_max);
    let possible = limits.maximum.map_or(wanted, |hard| hard.min(wanted));
    limits.current.map(|soft| soft.max(possible))
}

/// Returns the number of jobs that fit below a soft limit, at least one.
fn jobs(limit: Option<u64>) -> u32 {
    let files = limit.unwrap_or(u64::MAX).saturating_sub(OF_AGENT);
    u32::try_from(files / OF_JOB).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_jobs_need_it() {
        let limits = |current, maximum| Rlimit { current, maximum };
        assert_eq!(raised(&limits(Some(256), Some(20_000)), 64), Some(1_088));
        assert_eq!(raised(&limits(Some(256), None), 256), Some(4_160));
        assert_eq!(raised(&limits(Some(256), Some(512)), 64), Some(512));
        assert_eq!(raised(&limits(Some(9_000), Some(9_000)), 64), Some(9_000));
        assert_eq!(raised(&limits(None, None), 64), None);
    }

    #[test]
    fn no_more_jobs_than_files_allow() {
        let fits = [
            (Some(1_088), 64),
            (Some(256), 12),
            (Some(10), 1),
            (None, u32::MAX),
        ];
        for (limit, most) in fits {
            assert_eq!(jobs(limit), most, "{limit:?}");
        }
    }
}
