//! Figures of jobs that ran: waits and shares, of all and by class, account and queue.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use crate::{
    Past, Ran,
    bins::{Levels, Time},
};

/// Number of bins for the check whether jobs wait.
const PARTS: usize = 2_000;
/// Number of milliseconds in an hour.
const HOUR_MS: f64 = 3_600_000.0;

/// Waits and use of some jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Group of the jobs: `all`, a class, an account or a queue.
    pub name: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Share of the use of hosts while one of these jobs waited, 0 to 1. Absent: none waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Hours of whole hosts that they used.
    pub host_hours: f64,
    /// Mean wait, seconds.
    pub mean_s: f64,
    /// Median wait, seconds.
    pub p50_s: f64,
    /// 95th percentile of the waits, seconds.
    pub p95_s: f64,
    /// 99th percentile of the waits, seconds.
    pub p99_s: f64,
    /// Maximum wait, seconds.
    pub max_s: f64,
}

/// Figures of all jobs and of groups of them. Each list begins with the largest use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of jobs that never started.
    pub left_out: usize,
    /// Figures of all jobs.
    pub all: Figures,
    /// Figures by class, the highest first.
    pub classes: Vec<Figures>,
    /// Figures by account.
    pub accounts: Vec<Figures>,
    /// Figures by queue.
    pub queues: Vec<Figures>,
}

/// Summarizes a replay.
pub fn summarize(past: &Past) -> Summary {
    let from_ms = past.ran.iter().map(|ran| ran.submit_ms).min().unwrap_or(0);
    let to_ms = past.ran.iter().map(Ran::end_ms).max().unwrap_or(1);
    let time = Time::new(from_ms, to_ms, PARTS);
    let all: Vec<&Ran> = past.ran.iter().collect();
    let of = |name: String, ran: &[&Ran]| {
        let is_short = while_they_wait(ran, time);
        let (part, used) = (
            used_while(ran, time, &is_short),
            used_while(&all, time, &is_short),
        );
        figures(name, ran, (used > 0.0).then(|| part / used))
    };
    let by = |name: fn(&Ran) -> Arc<str>| {
        let mut groups: BTreeMap<Arc<str>, Vec<&Ran>> = BTreeMap::new();
        for ran in &past.ran {
            groups.entry(name(ran)).or_default().push(ran);
        }
        let groups = groups.iter();
        let mut all: Vec<Figures> = groups
            .map(|(name, ran)| of(name.to_string(), ran))
            .collect();
        all.sort_by(|a, b| b.host_hours.total_cmp(&a.host_hours));
        all
    };
    let mut classes = by(|ran| ran.class.to_string().into());
    classes.sort_by(|a, b| b.name.cmp(&a.name));
    Summary {
        left_out: past.left_out,
        all: of("all".to_owned(), &all),
        classes,
        accounts: by(|ran| Arc::clone(&ran.account)),
        queues: by(|ran| Arc::clone(&ran.queue)),
    }
}

/// Returns true for each bin in which jobs wait: at least one of them on average over half of the bin.
fn while_they_wait(ran: &[&Ran], time: Time) -> Vec<bool> {
    let mut waiting = Levels::new(time);
    for one in ran {
        waiting.add(one.submit_ms, one.start_ms, 1.0);
    }
    let levels = waiting.points().into_iter();
    levels.map(|(_, level)| level >= 0.5).collect()
}

/// Returns the use of jobs in those bins.
fn used_while(ran: &[&Ran], time: Time, parts: &[bool]) -> f64 {
    let mut used = Levels::new(time);
    for one in ran {
        used.add(one.start_ms, one.end_ms(), one.amount);
    }
    let counted = used.sums().iter().zip(parts);
    counted
        .filter(|(_, counts)| **counts)
        .map(|(sum, _)| sum)
        .sum()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "times of jobs are far below 2^53 ms"
)]
fn figures(name: String, ran: &[&Ran], share: Option<f64>) -> Figures {
    let mut waits: Vec<u64> = ran.iter().map(|ran| ran.wait_ms()).collect();
    waits.sort_unstable();
    let jobs = waits.len();
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    let at = |percent: usize| {
        let rank = (jobs * percent).div_ceil(100).saturating_sub(1);
        seconds(waits.get(rank).copied().unwrap_or(0))
    };
    let sum = waits.iter().copied().fold(0, u64::saturating_add);
    Figures {
        name,
        jobs,
        share,
        host_hours: ran.iter().map(|ran| ran.used()).sum::<f64>() / HOUR_MS,
        mean_s: seconds(sum) / jobs.max(1) as f64,
        p50_s: at(50),
        p95_s: at(95),
        p99_s: at(99),
        max_s: at(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(account: &str, class: u8, start_s: u64, run_s: u64) -> Ran {
        Ran {
            submit_ms: 0,
            start_ms: start_s * 1_000,
            run_ms: run_s * 1_000,
            amount: 1.0,
            account: Arc::from(account),
            queue: Arc::from("q"),
            class,
        }
    }

    #[test]
    fn a_share_is_of_the_time_while_they_wait() {
        // y runs and waits while x runs, too. Then y runs while nobody waits.
        let past = Past {
            ran: vec![
                ran("x", 3, 0, 1_800),
                ran("y", 3, 600, 1_800),
                ran("y", 9, 1_800, 3_600),
            ],
            left_out: 4,
        };
        let summary = summarize(&past);
        let names: Vec<&str> = summary
            .accounts
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["y", "x"]);
        let (y, x) = (&summary.accounts[0], &summary.accounts[1]);
        // Until 1,800 s x took 1,800 s, and y 1,200 s.
        assert!((y.share.unwrap() - 0.4).abs() < 0.01, "{y:?}");
        assert_eq!((x.jobs, x.max_s, x.share), (1, 0.0, None));
        assert_eq!(summary.all.share, Some(1.0));
        assert!((summary.all.host_hours - 2.0).abs() < 1e-9);
        assert_eq!((summary.all.p50_s, summary.all.p95_s), (600.0, 1_800.0));
        assert!((summary.all.mean_s - 800.0).abs() < 1e-9);
        assert_eq!(summary.left_out, 4);
        assert_eq!(summary.classes[0].name, "9");
        assert_eq!(summary.queues.len(), 1);
    }

    #[test]
    fn without_waits_there_are_no_shares() {
        let past = Past {
            ran: vec![ran("x", 3, 0, 60)],
            left_out: 0,
        };
        assert_eq!(summarize(&past).accounts[0].share, None);
        let nothing = Past {
            ran: Vec::new(),
            left_out: 0,
        };
        let summary = summarize(&nothing);
        assert_eq!((summary.all.jobs, summary.all.max_s), (0, 0.0));
    }
}
