//! The use of the lab: sums of samples over a time.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_api::{QueueView, UsageReport, UsageRow};
use fairlead_store::StoreError;

use crate::{
    samples::SampleFlow,
    samples::ids::{HOUR, MINUTE, hour_id, minute_id, moment_of},
};
use fairlead_known::samples::{By, MINUTE_MS, OTHERS, Row, Sample, SharesGot};

/// So many minutes before now are read by the minute: later ones are not summed up for sure.
const FRESH_MINUTES: u64 = 120;
/// An hour, ms.
const HOUR_MS: u64 = 3_600_000;
/// How old shares may be that are shown, ms.
const SHARES_MS: u64 = 30_000;
/// Minutes of an hour.
const HOUR_MINUTES: u64 = 60;

impl SampleFlow {
    /// What ran between two times, by names of one kind, most busy first. The beginning is rounded down to the hour if it
    /// is more than two hours ago.
    pub(crate) async fn usage(
        &self,
        by: Kind,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<UsageReport, StoreError> {
        let (since, sample) = self.sum_of_samples(since_ms, until_ms).await?;
        let rows = self.rows_of(by, &sample);
        let all_ms: u64 = rows.values().map(|row| row.busy_ms).sum();
        let mut rows: Vec<UsageRow> = rows
            .into_iter()
            .map(|(name, row)| row_of(name, &row, all_ms))
            .collect();
        rows.sort_by(|a, b| {
            (b.busy_ms, b.dispatched, &a.name).cmp(&(a.busy_ms, a.dispatched, &b.name))
        });
        Ok(UsageReport {
            by: word_of(by).to_owned(),
            since_ms: since,
            until_ms,
            rows,
        })
    }

    /// The rows of a sample by names of one kind. A class is the sum of the queues that are in it now.
    pub(crate) fn rows_of(&self, kind: Kind, sample: &Sample) -> BTreeMap<String, Row> {
        let by = match kind {
            Kind::Of(by) => by,
            Kind::Class => By::Queue,
        };
        let rows = sample.rows.get(&by).cloned().unwrap_or_default();
        if kind != Kind::Class {
            return rows;
        }
        let mut classes: BTreeMap<String, Row> = BTreeMap::new();
        for (queue, row) in rows {
            let class = if queue == OTHERS {
                queue
            } else {
                self.people.queues.class(&queue).to_string()
            };
            classes.entry(class).or_default().add(&row);
        }
        classes
    }

    /// The sum of all samples between two times, and when it begins.
    async fn sum_of_samples(
        &self,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<(u64, Sample), StoreError> {
        let mut sum = Sample::default();
        let begin = self
            .each_sample(since_ms, until_ms, |_, sample| sum.add(sample))
            .await?;
        Ok((begin, sum))
    }

    /// What ran of each queue in the last hour.
    pub(crate) async fn waits_by_queue(&self) -> Result<BTreeMap<String, Row>, StoreError> {
        let now_ms = self.ctx.clock.wall_ms();
        let since_ms = now_ms.saturating_sub(HOUR_MS);
        let (_, sample) = self.sum_of_samples(since_ms, now_ms).await?;
        Ok(sample.rows.get(&By::Queue).cloned().unwrap_or_default())
    }

    /// What ran between two times in steps of a minute, or of an hour where the beginning is more than two hours ago: how
    /// long a step is, and each step with its begin, ms.
    pub(crate) async fn samples_by_step(
        &self,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<(u64, BTreeMap<u64, Sample>), StoreError> {
        let is_fresh = since_ms / MINUTE_MS >= self.first_fresh_minute();
        let step_ms = if is_fresh { MINUTE_MS } else { HOUR_MS };
        let mut steps: BTreeMap<u64, Sample> = BTreeMap::new();
        self.each_sample(since_ms, until_ms, |at_ms, sample| {
            let step = steps.entry(at_ms / step_ms * step_ms).or_default();
            step.add(sample);
        })
        .await?;
        Ok((step_ms, steps))
    }

    /// Minutes before it may be summed up by the hour.
    fn first_fresh_minute(&self) -> u64 {
        (self.ctx.clock.wall_ms() / MINUTE_MS).saturating_sub(FRESH_MINUTES)
    }

    /// Looks at all samples between two times, each with its begin, ms. Answers when they begin.
    async fn each_sample(
        &self,
        since_ms: u64,
        until_ms: u64,
        mut look: impl FnMut(u64, &Sample),
    ) -> Result<u64, StoreError> {
        let (first, last) = (since_ms / MINUTE_MS, until_ms.div_ceil(MINUTE_MS));
        let fresh = self.first_fresh_minute();
        if first >= fresh {
            self.each_minute(&mut look, first, last, &BTreeSet::new())
                .await?;
            return Ok(first * MINUTE_MS);
        }
        let first = first / HOUR_MINUTES;
        let mut summed = BTreeSet::new();
        let mut after = hour_id(first, "");
        'hours: loop {
            let page = self.page_of_samples(HOUR, &after).await?;
            for (id, sample) in &page {
                let Some((hour, run)) = moment_of(id) else {
                    continue;
                };
                if hour * HOUR_MINUTES >= last {
                    break 'hours;
                }
                summed.insert((hour, run.to_owned()));
                look(hour * HOUR_MS, sample);
            }
            let Some((last, _)) = page.into_iter().next_back() else {
                break;
            };
            after = last;
        }
        // Hours that nobody has summed up yet.
        let unsummed = (fresh / HOUR_MINUTES).max(first) * HOUR_MINUTES;
        self.each_minute(&mut look, unsummed, last, &summed).await?;
        Ok(first * HOUR_MS)
    }

    /// Looks at samples of minutes, but not of hours that are summed up.
    async fn each_minute(
        &self,
        look: &mut impl FnMut(u64, &Sample),
        first: u64,
        last: u64,
        summed: &BTreeSet<(u64, String)>,
    ) -> Result<(), StoreError> {
        let mut after = minute_id(first, "");
        loop {
            let page = self.page_of_samples(MINUTE, &after).await?;
            for (id, sample) in &page {
                let Some((minute, run)) = moment_of(id) else {
                    continue;
                };
                if minute >= last {
                    return Ok(());
                }
                if !summed.contains(&(minute / HOUR_MINUTES, run.to_owned())) {
                    look(minute * MINUTE_MS, sample);
                }
            }
            let Some((last, _)) = page.into_iter().next_back() else {
                return Ok(());
            };
            after = last;
        }
    }

    /// Queues with the shares that they got of late. A store that does not answer for them leaves them out.
    pub(crate) async fn with_shares_got(&self, mut views: Vec<QueueView>) -> Vec<QueueView> {
        let shares = self.shares_got().await.unwrap_or_default();
        for view in &mut views {
            let of = |shares: &BTreeMap<String, u32>| shares.get(&view.name).copied();
            view.got_1h_permille = of(&shares.hour);
            view.got_24h_permille = of(&shares.day);
        }
        views
    }

    /// The part of the testbox time that each queue got, looked at at most every half minute.
    async fn shares_got(&self) -> Result<SharesGot, StoreError> {
        let now = self.ctx.clock.now().0;
        if let Some(known) = self
            .known
            .samples
            .shares_since(now.saturating_sub(SHARES_MS))
        {
            return Ok(known);
        }
        let shares = SharesGot {
            at_ms: now,
            hour: self.shares_of(HOUR_MS).await?,
            day: self.shares_of(24 * HOUR_MS).await?,
        };
        self.known.samples.keep_shares(shares.clone());
        Ok(shares)
    }

    /// The same of a time until now, thousandths.
    pub(crate) async fn shares_of(&self, for_ms: u64) -> Result<BTreeMap<String, u32>, StoreError> {
        let now_ms = self.ctx.clock.wall_ms();
        let since_ms = now_ms.saturating_sub(for_ms);
        let report = self.usage(Kind::Of(By::Queue), since_ms, now_ms).await?;
        let share = |row: UsageRow| (row.name, row.share_permille);
        Ok(report.rows.into_iter().map(share).collect())
    }
}

/// What people ask for: names of a kind that samples have, or classes of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Of(By),
    Class,
}

fn word_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Of(By::Account) => "account",
        Kind::Of(By::Queue) => "queue",
        Kind::Of(By::Host) => "host",
        Kind::Of(By::Suite) => "suite",
        Kind::Class => "class",
    }
}

fn row_of(name: String, row: &Row, all_ms: u64) -> UsageRow {
    let share = u128::from(row.busy_ms) * 1000 / u128::from(all_ms.max(1));
    UsageRow {
        name,
        dispatched: row.dispatched,
        ended: row.ended,
        failed: row.failed,
        busy_ms: row.busy_ms,
        share_permille: u32::try_from(share).unwrap_or(1000),
        wait_p50_s: row.wait_s(500),
        wait_p95_s: row.wait_s(950),
    }
}
