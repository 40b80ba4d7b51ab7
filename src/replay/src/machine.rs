//! A trace on one machine: its processors are the CPUs of one host, which asks for work whenever something changed.

use std::sync::Arc;

use fairlead_dispatch::{About, EngineConfig, JobFacts, JobKey, Kind, Millis, Policy, Version};
use serde::Serialize;

use crate::{
    Outcome,
    swf::TraceJob,
    world::{self, Host, Load},
};

const HOST: &str = "machine";
const HOST_KEY: &str = "dc.any";
/// Maximum number of jobs in one answer. Jobs of one instant arrive in several answers.
const ANSWER_JOBS: u32 = 256;

/// Source of the engine's expected run times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "clap", value(rename_all = "snake_case"))]
pub enum Estimates {
    /// The time that users asked for
    Requested,
    /// The time that jobs really took
    Actual,
    /// The mean time of the user's earlier jobs
    Learned,
}

/// Accounts of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "clap", value(rename_all = "snake_case"))]
pub enum Accounts {
    /// Each user has an account of equal weight
    Users,
    /// All jobs are of one account: first come, first served
    One,
}

/// Rules of a replay of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Number of processors of the machine, at least 1. Jobs that need more are left out.
    pub units: u32,
    /// Expected run times of the engine.
    pub estimates: Estimates,
    /// Accounts that are charged.
    pub accounts: Accounts,
    /// Wait of a job before it reserves the machine, ms. 0: it never does.
    pub reserve_after_ms: u64,
}

/// Returns the start of each job of a trace, and the number of jobs that are left out because they need more units than
/// exist. The same trace and rules give the same answer.
pub fn replay(jobs: &[TraceJob], rules: &Rules) -> (Vec<Outcome>, usize) {
    let fits = |job: &&TraceJob| job.units <= rules.units;
    let fitting: Vec<TraceJob> = jobs.iter().filter(fits).copied().collect();
    let left_out = jobs.len().saturating_sub(fitting.len());
    let load = |job: &TraceJob| Load {
        submit_ms: job.submit_s * MS,
        run_ms: job.run_s * MS,
        memory_mb: 1,
        cpus: job.units,
    };
    let loads: Vec<Load> = fitting.iter().map(load).collect();
    let about = About {
        keys: vec![HOST_KEY.to_owned()],
        ..About::default()
    };
    let machine = Host {
        name: HOST.to_owned(),
        about: Arc::new(about),
        memory_mb: MEMORY_MB,
        cpus: rules.units,
        is_whole: false,
    };
    let dispatch = world::Rules {
        config: EngineConfig {
            reserve_after_ms: rules.reserve_after_ms,
            ..EngineConfig::default()
        },
        policy: Policy::default(),
        asks_every_ms: 0,
        answer_jobs: ANSWER_JOBS,
        learns: rules.estimates == Estimates::Learned,
    };
    let told = |n: usize| facts(&fitting[n], rules);
    let starts = world::run(dispatch, &[machine], &loads, told);
    let begun = fitting.iter().zip(&starts);
    let outcomes = begun.filter_map(|(job, start)| {
        let start_s = start.as_ref()?.at_ms / MS;
        Some(Outcome { job: *job, start_s })
    });
    (outcomes.collect(), left_out)
}

/// Number of milliseconds in a second.
const MS: u64 = 1_000;
/// Memory of the machine, MB. It is enough for all jobs.
const MEMORY_MB: u32 = 1 << 30;

fn facts(job: &TraceJob, rules: &Rules) -> JobFacts {
    let account = match rules.accounts {
        Accounts::Users => format!("user-{}", job.user),
        Accounts::One => "one".to_owned(),
    };
    let timeout_s = match rules.estimates {
        Estimates::Requested | Estimates::Learned => job.requested_s,
        Estimates::Actual => job.run_s,
    };
    JobFacts {
        key: JobKey(0),
        version: Version {
            primary_term: 0,
            seq_no: 0,
        },
        queue: account.clone(),
        account,
        suite: format!("user-{}", job.user),
        class: 0,
        priority: 0,
        kind: Kind::Dc,
        arch: String::new(),
        host_keys: vec![HOST_KEY.to_owned()],
        memory_mb: 1,
        cpus: job.units,
        tags: Vec::new(),
        not_tags: Vec::new(),
        any_of: Vec::new(),
        devices: Vec::new(),
        not_on: Vec::new(),
        cache_dirs: Vec::new(),
        prefer: Vec::new(),
        timeout_s,
        submitted: Millis(0),
        not_before: Millis(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64, submit_s: u64, run_s: u64, units: u32) -> TraceJob {
        TraceJob {
            number,
            submit_s,
            run_s,
            units,
            requested_s: run_s,
            user: 1,
        }
    }

    fn starts(jobs: &[TraceJob], accounts: Accounts) -> Vec<u64> {
        let rules = Rules {
            units: 10,
            estimates: Estimates::Requested,
            accounts,
            reserve_after_ms: 1,
        };
        let (outcomes, left_out) = replay(jobs, &rules);
        assert_eq!(left_out, 0);
        outcomes.iter().map(|outcome| outcome.start_s).collect()
    }

    #[test]
    fn jobs_begin_when_there_is_room() {
        let jobs = [job(1, 0, 100, 6), job(2, 0, 50, 4), job(3, 10, 10, 10)];
        assert_eq!(starts(&jobs, Accounts::One), [0, 0, 100]);
    }

    #[test]
    fn a_job_passes_a_reservation_if_it_is_short_or_fits_beside_it() {
        let jobs = [
            job(1, 0, 100, 6),
            // This job waits for the first one.
            job(2, 10, 100, 8),
            // This job would end too late, and needs processors of the second one.
            job(3, 70, 200, 3),
            // This job fits beside the second one.
            job(4, 70, 1_000, 2),
            // This job ends before the second one starts.
            job(5, 70, 20, 1),
        ];
        assert_eq!(starts(&jobs, Accounts::One), [0, 100, 200, 70, 70]);
    }

    #[test]
    fn each_user_has_a_share() {
        let jobs: Vec<TraceJob> = (1..=20).map(|n| job(n, 0, 100, 10)).collect();
        let with_other = |submit_s| {
            let other = TraceJob {
                user: 2,
                ..job(21, submit_s, 100, 10)
            };
            [&jobs[..], &[other]].concat()
        };
        let last = |submit_s, accounts| starts(&with_other(submit_s), accounts).pop();
        assert_eq!(last(40, Accounts::Users), Some(100));
        assert_eq!(last(40, Accounts::One), Some(2_000));
        // One job had the machine reserved before the other user came, and the next one waited longer than the other
        // user's job.
        assert_eq!(last(60, Accounts::Users), Some(300));
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        let rules = Rules {
            units: 10,
            estimates: Estimates::Actual,
            accounts: Accounts::One,
            reserve_after_ms: 0,
        };
        let (outcomes, left_out) = replay(&[job(1, 0, 5, 11), job(2, 0, 5, 10)], &rules);
        assert_eq!((outcomes.len(), left_out), (1, 1));
    }
}
