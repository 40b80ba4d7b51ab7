//! The watched jobs as plain lines, where there is no terminal: one line for each change.

use serde_json::{Value, json};

use super::look::{Counts, Look};
use crate::{
    results::blamed,
    table::{harmless, or_dash},
};

/// Maximum number of remembered failed jobs that were reported.
const TOLD_MAX: usize = 1000;

/// State of the lines printed so far.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    counts: Option<Counts>,
    told: Vec<String>,
}

/// News of an update: counts, and failed jobs.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) lines: Vec<String>,
    pub(crate) values: Vec<Value>,
}

impl Lines {
    /// Returns the news since the last update.
    pub(crate) fn news(&mut self, look: &Look) -> News {
        let mut news = News::default();
        for job in look.failed.iter().rev() {
            if self.told.contains(&job.job_id) {
                continue;
            }
            if self.told.len() >= TOLD_MAX {
                self.told.remove(0);
            }
            self.told.push(job.job_id.clone());
            news.lines.push(harmless(&format!(
                "job {} failed: {} on {}, {}",
                job.job_id,
                blamed(&job.job_health),
                or_dash(&job.host),
                or_dash(&job.params)
            )));
            news.values.push(json!({ "failed": job }));
        }
        if self.counts.as_ref() != Some(&look.counts) {
            let counts = &look.counts;
            news.lines.push(said(counts));
            news.values.push(json!({ "counts": counts }));
            self.counts = Some(counts.clone());
        }
        news
    }
}

/// Returns the counts as one line.
pub(crate) fn said(counts: &Counts) -> String {
    let cancelled = match counts.cancelled {
        0 => String::new(),
        jobs => format!(", {jobs} cancelled"),
    };
    let elsewhere = match counts.elsewhere {
        0 => String::new(),
        jobs => format!(", {jobs} in unknown stages"),
    };
    format!(
        "{}/{} ended: {} waiting, {} on testboxes, {} succeeded, {} failed{cancelled}{elsewhere}",
        counts.ended(),
        counts.jobs,
        counts.waiting,
        counts.running,
        counts.succeeded,
        counts.failed
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watching::look::sample as job;

    #[test]
    fn only_what_changed_is_told() {
        let mut lines = Lines::default();
        let mut look = Look {
            counts: Counts {
                jobs: 3,
                waiting: 2,
                failed: 1,
                ..Counts::default()
            },
            failed: vec![job(7, "finish", "fail")],
            ..Look::default()
        };
        let news = lines.news(&look);
        assert_eq!(
            news.lines,
            [
                "job 7 failed: fail on server-1, nr_threads=4 mode=process",
                "1/3 ended: 2 waiting, 0 on testboxes, 0 succeeded, 1 failed",
            ]
        );
        assert_eq!(news.values.len(), 2);
        assert!(lines.news(&look).lines.is_empty());
        look.counts.waiting = 1;
        look.counts.cancelled = 1;
        let news = lines.news(&look);
        assert_eq!(
            news.lines,
            ["2/3 ended: 1 waiting, 0 on testboxes, 0 succeeded, 1 failed, 1 cancelled"]
        );
    }
}
