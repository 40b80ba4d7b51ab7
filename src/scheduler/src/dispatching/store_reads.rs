//! Reads waiting jobs for the engine: counts each second, pulls and finds on demand.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_dispatch::{
    CPUS_UNCHECKED, Cursor, Dimension, DimensionCounts, Event, FindPlace, JobFacts, JobKey,
    OfferKey, PulledPage, Reached,
};
use fairlead_job::JobId;
use fairlead_store::{Counts, Find, Page, Pull, PullBy, StoreError, StoredJob};

use crate::dispatching::DispatchFlow;
use fairlead_known::board::Waiting;
use fairlead_lifecycle::engine_facts::facts;

/// How often the store is looked at, and the waiting jobs are counted, ms.
const LOOK_MS: u64 = 1_000;
/// Counting takes one part of so many of the time: with a million jobs it is done less often.
const COUNT_PART: u64 = 25;
/// Times between two counts, ms: the shortest that is long enough, at most the last. News is read each second all
/// the same.
const COUNT_EVERY_MS: [u64; 3] = [1_000, 2_000, 4_000];

impl DispatchFlow {
    /// Counts the waiting jobs, for the engine and for limits.
    pub(crate) async fn count(&self) -> Result<(), StoreError> {
        let mut of = self.lab.hosts.count_of();
        let pooled = self.lab.pools.keys();
        if let Some(keys) = of.host_keys.as_mut().filter(|_| !pooled.is_empty()) {
            keys.extend(pooled.iter().cloned());
            keys.sort_unstable();
            keys.dedup();
        }
        let counts = self.ctx.store.count(&of).await?;
        self.lab.board.counted(Waiting {
            at_ms: self.ctx.clock.now().0,
            queues: counts.queues.clone(),
        });
        self.submission.note_waiting(&counts);
        if !pooled.is_empty() {
            self.lab.pools.counted(&counts.host_keys);
        }
        let counts = dimension_counts(counts, of.host_keys);
        self.ctx.engine.tell(Event::CountsRefreshed(counts));
        Ok(())
    }

    /// Pulls pages for the engine, all in one request.
    pub(crate) async fn pull(self: Arc<Self>, wanted: Vec<PageRequest>) {
        let pulls: Vec<Pull> = wanted.iter().map(PageRequest::request).collect();
        let mut pages = read(self.ctx.store.pull(&pulls).await).into_iter();
        for PageRequest { dimension, .. } in wanted {
            let page = pages.next().map(|page| PulledPage {
                jobs: self.news_of(&page),
                reached: reached(&page),
                last: page.jobs.last().map(cursor),
                more: page.more,
            });
            self.ctx.engine.tell(Event::PullEnded { dimension, page });
        }
    }

    /// Finds jobs for an offer, for the engine.
    pub(crate) async fn find(self: Arc<Self>, offer: OfferKey, asked: FindAsked) {
        let FindAsked {
            limit,
            accounts,
            pairs_max,
            after,
        } = asked;
        let requirement = self.jobs.waiters.get(offer).map(|waiter| {
            let (offer, about) = (&waiter.offer, &waiter.offer.about);
            Find {
                host: offer.host.clone(),
                keys: about.keys.clone(),
                arch: about.arch.clone(),
                free_memory_mb: offer.free_memory_mb,
                free_cpus: Some(offer.free_cpus).filter(|cpus| *cpus != CPUS_UNCHECKED),
                tags: about.tags.clone(),
                devices: about.devices.clone(),
                accounts: if accounts.is_empty() {
                    about.accounts.clone()
                } else {
                    accounts
                },
                limit,
                pairs_max,
                after,
            }
        });
        let (mut needs_mb, mut next) = (u32::MAX, None);
        if let Some(find) = requirement
            && let Some(page) = read(self.ctx.store.find(&[find]).await).first()
        {
            let news = self.news_of(page);
            if !news.is_empty() {
                self.ctx.engine.tell(Event::JobsLearned(news));
            }
            let needs = page.jobs.iter().map(|job| job.state.memory_mb);
            needs_mb = needs.max().unwrap_or(0);
            next.clone_from(&page.next);
        }
        self.ctx.engine.tell(Event::FindEnded {
            offer,
            needs_mb,
            next,
        });
    }

    /// What the engine is told of what was read.
    fn news_of(&self, page: &Page) -> Vec<JobFacts> {
        // One that has ended meanwhile would stay in memory until somebody tries to claim it.
        let is_news = |job: &&StoredJob| self.jobs.weigh(job.state.job_id, job.version);
        page.jobs.iter().filter(is_news).map(facts).collect()
    }
}

/// A find that the engine wants.
pub(crate) struct FindAsked {
    /// Jobs of each account in a queue.
    pub(crate) limit: u32,
    /// Only of these accounts; empty: of all that the offer's host serves.
    pub(crate) accounts: Vec<String>,
    pub(crate) pairs_max: u32,
    pub(crate) after: Option<FindPlace>,
}

/// A page that the engine wants.
pub(crate) struct PageRequest {
    pub(crate) dimension: Dimension,
    pub(crate) limit: u32,
    pub(crate) after: Option<Cursor>,
}

impl PageRequest {
    fn request(&self) -> Pull {
        let after = self.after;
        Pull {
            by: match &self.dimension {
                Dimension::All => PullBy::All,
                Dimension::Account(name) => PullBy::Account(name.clone()),
                Dimension::Queue(name) => PullBy::Queue(name.clone()),
                Dimension::HostKey(name) => PullBy::HostKey(name.clone()),
            },
            limit: self.limit,
            after: after.map(|last| (last.class, last.priority, JobId::new(last.key.0))),
        }
    }
}

/// A job's place in a page.
fn cursor(job: &StoredJob) -> Cursor {
    Cursor {
        class: job.state.class,
        priority: job.state.priority,
        key: JobKey(job.state.job_id.get()),
    }
}

/// How far a page goes in each pair of queue and account.
fn reached(page: &Page) -> Vec<Reached> {
    let mut last: BTreeMap<(&str, &str), &StoredJob> = BTreeMap::new();
    for job in &page.jobs {
        last.insert((&job.state.queue, &job.state.account), job);
    }
    let reached = last.into_iter().map(|((queue, account), job)| Reached {
        queue: queue.to_owned(),
        account: account.to_owned(),
        priority: job.state.priority,
        key: JobKey(job.state.job_id.get()),
    });
    reached.collect()
}

/// Pages that were asked for; none if the store could not be asked.
fn read(pages: Result<Vec<Page>, StoreError>) -> Vec<Page> {
    pages.unwrap_or_else(|error| {
        tracing::warn!(%error, "waiting jobs could not be read from the store");
        Vec::new()
    })
}

/// When the waiting jobs are counted: at the same times by all replicas, so that the store, which keeps the last
/// answer, counts once for all of them.
#[derive(Debug, Default)]
pub(crate) struct CountPace {
    /// How long counting took, ms: the longest of late. An answer that the store still had takes no time.
    took_ms: u64,
    /// In which of the times between two counts the last one began.
    last: Option<u64>,
}

impl CountPace {
    fn every_ms(&self) -> u64 {
        let least_ms = self.took_ms.saturating_mul(COUNT_PART);
        let long_enough = COUNT_EVERY_MS.into_iter().find(|ms| *ms >= least_ms);
        long_enough.unwrap_or(COUNT_EVERY_MS[2])
    }

    /// Whether it is time to count.
    pub(crate) fn is_due(&self, wall_ms: u64) -> bool {
        self.last != Some(wall_ms / self.every_ms())
    }

    /// Counting took so long.
    pub(crate) fn took(&mut self, took_ms: u64, wall_ms: u64) {
        self.took_ms = took_ms.max(self.took_ms.saturating_mul(7) / 8);
        self.last = Some(wall_ms / self.every_ms());
    }
}

/// Time until the clock shows the next whole second, ms. Who wakes a moment before it has seen it.
pub(crate) fn until_look_ms(wall_ms: u64) -> u64 {
    let left_ms = LOOK_MS - wall_ms % LOOK_MS;
    if left_ms < LOOK_MS / 10 {
        left_ms + LOOK_MS
    } else {
        left_ms
    }
}

fn dimension_counts(counts: Counts, asked: Option<Vec<String>>) -> DimensionCounts {
    let accounts = counts
        .accounts
        .into_iter()
        .map(|(name, n)| (Dimension::Account(name), n));
    let queues = counts
        .queues
        .into_iter()
        .map(|(name, n)| (Dimension::Queue(name), n));
    let keys = counts
        .host_keys
        .into_iter()
        .map(|(name, n)| (Dimension::HostKey(name), n));
    DimensionCounts {
        total: counts.total,
        by: accounts.chain(queues).chain(keys).collect(),
        pairs: counts.pairs,
        partial: counts.partial,
        host_keys: asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_counted_less_often_but_not_seldom() {
        let every = [0, 1, 40, 41, 80, 100, 5_000].map(|took_ms| {
            let mut pace = CountPace::default();
            pace.took(took_ms, 0);
            pace.every_ms()
        });
        assert_eq!(every, [1_000, 1_000, 1_000, 2_000, 2_000, 4_000, 4_000]);
    }

    #[test]
    fn replicas_count_in_the_same_looks_whoever_it_took_long() {
        let (mut a, mut b) = (CountPace::default(), CountPace::default());
        let mut counted = Vec::new();
        for second in 0..40 {
            let wall_ms = second * 1_000 + 3;
            for (pace, took_ms) in [(&mut a, 140), (&mut b, if second < 4 { 140 } else { 1 })] {
                if pace.is_due(wall_ms) {
                    pace.took(took_ms, wall_ms);
                    counted.push(second);
                }
            }
        }
        // Until B, which always found the answer there, takes it for cheap.
        let expected: Vec<u64> = [0, 4, 8, 12, 16].iter().flat_map(|s| [*s, *s]).collect();
        assert!(counted.starts_with(&expected), "{counted:?}");
    }

    #[test]
    fn looks_begin_with_the_second() {
        let waits = [0, 1, 900, 999, 1_000, 5_400].map(until_look_ms);
        assert_eq!(waits, [1_000, 999, 100, 1_001, 1_000, 600]);
    }
}
