//! Figures of a replay.

use serde::Serialize;

use crate::swf::TraceJob;

/// Minimum run time for a slowdown, seconds. Shorter jobs would outweigh all others.
const TAU_S: u64 = 10;

/// A job, and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The job.
    pub job: TraceJob,
    /// Start, seconds from the start of the trace.
    pub start_s: u64,
}

/// Waits of jobs, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waits {
    /// Mean wait.
    pub mean_s: f64,
    /// Median.
    pub p50_s: u64,
    /// 95th percentile.
    pub p95_s: u64,
    /// 99th percentile.
    pub p99_s: u64,
    /// Maximum.
    pub max_s: u64,
}

/// Measures of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    /// Number of jobs that ran.
    pub jobs: usize,
    /// Mean over jobs of (wait + run) / max(run, 10 s), at least 1 for each.
    pub bounded_slowdown: f64,
    /// Waits of the jobs.
    pub waits: Waits,
    /// Time from the first submit to the last end, seconds.
    pub makespan_s: u64,
    /// Share of the units in use from the first submit to the last end, 0 to 1.
    pub use_of_units: f64,
}

/// Measures the results of a trace's jobs on this number of units.
///
/// # Panics
/// Never. Without a job, all measures are 0.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub fn measure(outcomes: &[Outcome], units: u32) -> Measures {
    let wait = |outcome: &Outcome| outcome.start_s.saturating_sub(outcome.job.submit_s);
    let mut waits: Vec<u64> = outcomes.iter().map(wait).collect();
    waits.sort_unstable();
    let jobs = outcomes.len();
    let mean = |sum: f64| if jobs == 0 { 0.0 } else { sum / jobs as f64 };
    let slowdown = |outcome: &Outcome| {
        let all = wait(outcome) + outcome.job.run_s;
        (all as f64 / outcome.job.run_s.max(TAU_S) as f64).max(1.0)
    };
    let at = |percent: usize| {
        let rank = (jobs * percent).div_ceil(100).saturating_sub(1);
        waits.get(rank).copied().unwrap_or(0)
    };
    let end = |outcome: &Outcome| outcome.start_s.saturating_add(outcome.job.run_s);
    let first_s = outcomes.iter().map(|outcome| outcome.job.submit_s).min();
    let last_s = outcomes.iter().map(end).max();
    let makespan_s = last_s.unwrap_or(0).saturating_sub(first_s.unwrap_or(0));
    let work = outcomes
        .iter()
        .map(|outcome| outcome.job.run_s as f64 * f64::from(outcome.job.units));
    let room = makespan_s as f64 * f64::from(units);
    Measures {
        jobs,
        bounded_slowdown: mean(outcomes.iter().map(slowdown).sum()),
        waits: Waits {
            mean_s: mean(waits.iter().map(|wait| *wait as f64).sum()),
            p50_s: at(50),
            p95_s: at(95),
            p99_s: at(99),
            max_s: waits.last().copied().unwrap_or(0),
        },
        makespan_s,
        use_of_units: if room > 0.0 {
            work.sum::<f64>() / room
        } else {
            0.0
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(submit_s: u64, start_s: u64, run_s: u64) -> Outcome {
        let job = TraceJob {
            number: 1,
            submit_s,
            run_s,
            units: 2,
            requested_s: run_s,
            user: 1,
        };
        Outcome { job, start_s }
    }

    #[test]
    fn figures_are_as_by_hand() {
        let all = [outcome(0, 0, 100), outcome(0, 100, 5), outcome(50, 105, 95)];
        let measured = measure(&all, 4);
        // 1, (100 + 5) / 10, (55 + 95) / 95
        let slowdown = (1.0 + 10.5 + 150.0 / 95.0) / 3.0;
        assert!((measured.bounded_slowdown - slowdown).abs() < 1e-9);
        let waits = measured.waits;
        assert_eq!((waits.p50_s, waits.p95_s, waits.max_s), (55, 100, 100));
        assert!((waits.mean_s - 155.0 / 3.0).abs() < 1e-9);
        assert_eq!((measured.jobs, measured.makespan_s), (3, 200));
        assert!((measured.use_of_units - 400.0 / 800.0).abs() < 1e-9);
        assert_eq!(measure(&[], 4).jobs, 0);
    }
}
