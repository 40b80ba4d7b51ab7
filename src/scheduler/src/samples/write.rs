//! Writes the samples of each minute, sums them up by the hour, and forgets old ones.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_store::{DocFind, DocKind, DocWrite, Expect, StoreError};

use crate::{
    samples::SampleFlow,
    samples::ids::{HOUR, MINUTE, hour_id, minute_id, moment_of},
};
use fairlead_base::errors::Refusal;
use fairlead_known::samples::{MINUTE_MS, Sample};

/// Minutes of an hour.
const HOUR_MINUTES: u64 = 60;
/// An hour is summed up when it has been over for so long: samples come late, minutes.
const SETTLED_MINUTES: u64 = 10;
/// How long samples of minutes are kept, minutes: two days.
const MINUTES_KEPT: u64 = 2 * 24 * 60;
/// How long those of hours are kept, hours: 400 days.
const HOURS_KEPT: u64 = 400 * 24;
/// Documents of one page.
const PAGE: u32 = 1_000;

impl SampleFlow {
    /// Writes the samples of minutes that are over.
    pub(crate) async fn write_samples(self: &Arc<Self>) -> Result<(), Refusal> {
        for (minute, sample) in self.known.samples.over(self.ctx.clock.wall_ms()) {
            let id = minute_id(minute, &self.ctx.replicas.run);
            let told = sample.clone();
            let add = async |known: Option<Sample>| {
                let mut all = known.unwrap_or_default();
                all.add(&told);
                Ok::<_, Refusal>(all.cut())
            };
            self.ctx.docs.change(&id, add).await?;
            self.known.samples.written(minute, &sample);
        }
        Ok(())
    }

    /// Sums up hours that are over, whoever counted them, and forgets what is old. Replicas do the same at the same time,
    /// and write the same.
    pub(crate) async fn sum_up_samples(self: &Arc<Self>) -> Result<(), Refusal> {
        let now = self.ctx.clock.wall_ms() / MINUTE_MS;
        let settled = now.saturating_sub(SETTLED_MINUTES) / HOUR_MINUTES;
        let there = self
            .sample_ids(HOUR, &hour_id(settled.saturating_sub(49), ""))
            .await?;
        let mut hours: BTreeMap<String, Sample> = BTreeMap::new();
        let mut old = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.page_of_samples(MINUTE, &after).await?;
            for (id, sample) in &page {
                let Some((minute, run)) = moment_of(id) else {
                    continue;
                };
                let hour = hour_id(minute / HOUR_MINUTES, run);
                if minute / HOUR_MINUTES < settled && !there.contains(&hour) {
                    hours.entry(hour).or_default().add(sample);
                }
                if minute + MINUTES_KEPT < now {
                    old.push(id.clone());
                }
            }
            let Some((last, _)) = page.into_iter().next_back() else {
                break;
            };
            after = last;
        }
        for (id, sample) in hours {
            let sum = sample.cut();
            self.ctx
                .docs
                .change(&id, async |_| Ok::<_, Refusal>(sum.clone()))
                .await?;
        }
        let oldest = hour_id((now / HOUR_MINUTES).saturating_sub(HOURS_KEPT), "");
        let hours = self.sample_ids(HOUR, "").await?;
        old.extend(hours.into_iter().filter(|id| *id < oldest));
        let write = |id| DocWrite {
            id,
            expect: Expect::Any,
            body: None,
        };
        for ids in old.chunks(PAGE as usize) {
            let writes = ids.iter().cloned().map(write).collect();
            // One that another replica deleted is gone, too.
            let _ = self.ctx.store.put_docs(DocKind::Sample, writes).await;
        }
        Ok(())
    }

    /// The ids of samples behind one.
    async fn sample_ids(&self, prefix: &str, after: &str) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        let mut after = after.to_owned();
        loop {
            let page = self.page_of_samples(prefix, &after).await?;
            let Some((last, _)) = page.last() else {
                return Ok(ids);
            };
            after.clone_from(last);
            ids.extend(page.into_iter().map(|(id, _)| id));
        }
    }

    /// A page of samples, by id.
    pub(crate) async fn page_of_samples(
        &self,
        prefix: &str,
        after: &str,
    ) -> Result<Vec<(String, Sample)>, StoreError> {
        let find = DocFind {
            prefix: prefix.to_owned(),
            after: after.to_owned(),
            limit: PAGE,
        };
        let page = self.ctx.docs.page::<Sample>(&find).await?;
        Ok(page
            .into_iter()
            .map(|(id, known)| (id, known.doc))
            .collect())
    }
}
