//! Restores a replica's memory at its start, and later compares its live jobs with the store.

use std::collections::BTreeSet;

use fairlead_dispatch::Event;
use fairlead_job::{JobId, Stage};
use fairlead_store::{Search, SearchOrder, StoreError, StoredJob};

use crate::{jobs::time_limits::stage_began_ms, upkeep::UpkeepFlow};
use fairlead_base::storage::small_doc::DocError;
use fairlead_known::live_jobs::Sight;
use fairlead_lifecycle::{engine_facts::running, parent::is_released, stages::HELD};

/// Page of the searches at start.
const PAGE: u32 = 1_000;

impl UpkeepFlow {
    /// Restores what the store knows: queues, accounts, hosts, held jobs, jobs that wait for others. The
    /// waiting ones come by the first count. Leases start anew: a restart requeues nobody.
    pub(crate) async fn restore(&self) -> Result<(), StoreError> {
        self.ctx.store.refresh().await?;
        // Before anything is read, so that nothing falls in between.
        self.jobs.feed.begin(&self.ctx.store.change_mark().await?);
        self.people.reload_queues().await?;
        // Of rules that cannot be read the log tells; jobs come in all the same.
        if let Err(DocError::Store(error)) = self.people.rules.reload(&self.ctx.docs).await {
            return Err(error);
        }
        self.people.accounts.reload(&self.ctx.docs).await?;
        self.placement.load_hosts().await?;
        self.hosts.reload_closures().await?;
        self.hosts.reload_reservations().await?;
        for job in self.search_all(held_jobs()).await? {
            self.ctx
                .engine
                .tell(Event::JobHeld(Box::new(running(&job))));
            let stage_since = self.jobs.on_own_clock(stage_began_ms(&job.state));
            let sight = Sight {
                stage_since,
                ..self.jobs.sight()
            };
            self.jobs.live.put(job, sight);
        }
        let unready = Search {
            stages: vec![Stage::Submit],
            ready: Some(false),
            ..Search::default()
        };
        for job in self.search_all(unready).await? {
            self.waiting.known.dependants.add(&job.state);
            self.waiting.known.sequences.seen(&job.state);
            self.jobs.note_shards(&job.state);
            if is_released(&job.state) {
                // How far its shards are is not known yet.
                let now = self.ctx.clock.now();
                self.jobs.parents.look_at(job.state.job_id, now);
            }
        }
        self.submission.sum_up_hours().await?;
        self.samples.read_run_times().await?;
        self.dispatching.count().await?;
        tracing::info!(
            held = self.jobs.live.count(),
            "restored the jobs that testboxes hold"
        );
        Ok(())
    }

    async fn search_all(&self, mut search: Search) -> Result<Vec<StoredJob>, StoreError> {
        search.order = SearchOrder::OldestFirst;
        search.limit = PAGE;
        let mut found = Vec::new();
        loop {
            let page = self.ctx.store.search(&search).await?;
            search.after = page.jobs.last().map(|job| job.state.job_id);
            found.extend(page.jobs);
            if !page.more || search.after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Compares what is thought to be held with what is: whatever was missed, or seen and never came to be, is
    /// found here.
    pub(crate) async fn compare_held(&self) -> Result<(), StoreError> {
        let before: BTreeSet<JobId> = self.jobs.live.ids();
        let held = self.search_all(held_jobs()).await?;
        for job in &held {
            self.jobs.observe(job);
        }
        let found: BTreeSet<JobId> = held.iter().map(|job| job.state.job_id).collect();
        let missing: Vec<JobId> = before.difference(&found).copied().collect();
        if !missing.is_empty() {
            let stored = self.ctx.store.get(&missing).await?;
            stored
                .iter()
                .flatten()
                .for_each(|job| self.jobs.observe(job));
        }
        Ok(())
    }
}

fn held_jobs() -> Search {
    Search {
        stages: HELD.to_vec(),
        ..Search::default()
    }
}
