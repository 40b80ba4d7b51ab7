//! Plots: jobs that ran in each minute or hour.

use fairlead_api::{Series, SeriesPoint};
use fairlead_store::StoreError;

use crate::{dashboard::DashboardFlow, samples::usage::Kind};
use fairlead_known::samples::{By, Row};

impl DashboardFlow {
    /// What ran between two times, of one name of a kind or of all.
    pub(crate) async fn series(
        &self,
        of: Option<(Kind, &str)>,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<Series, StoreError> {
        let (step_ms, steps) = self.samples.samples_by_step(since_ms, until_ms).await?;
        let points = steps.into_iter().filter_map(|(at_ms, sample)| {
            let row = if let Some((kind, name)) = of {
                self.samples.rows_of(kind, &sample).remove(name)?
            } else {
                let mut sum = Row::default();
                let queues = sample.rows.get(&By::Queue)?.values();
                queues.for_each(|row| sum.add(row));
                sum
            };
            Some(point(at_ms, &row))
        });
        Ok(Series {
            since_ms,
            until_ms,
            step_ms,
            points: points.collect(),
        })
    }
}

fn point(at_ms: u64, row: &Row) -> SeriesPoint {
    SeriesPoint {
        at_ms,
        dispatched: row.dispatched,
        ended: row.ended,
        failed: row.failed,
        busy_ms: row.busy_ms,
        wait_p50_s: row.wait_s(500),
        wait_p95_s: row.wait_s(950),
    }
}
