//! The changes of a submit's jobs, for those who follow them.
//!
//! Nothing is kept for it: an event is a job's present state, and its time tells a follower that comes back, to this
//! replica or another, where to go on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fairlead_api::JobEvent;
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{JobState, Parts, Search, SearchOrder};

use crate::views::ViewFlow;
use fairlead_base::{
    budget::{Charge, Identity},
    errors::Refusal,
};

/// Jobs of one search.
const PAGE_JOBS: u32 = 1_000;
/// How often a submit is looked at, ms; for each further thousand jobs as much again.
const LOOK_MS: u64 = 1_000;
/// A change may be found later than one that came after it: so far back those who come back are told again, ms.
const AGAIN_MS: u64 = 10_000;

/// What is known of a job: another one is news.
type Seen = (Stage, Health, u16);

/// Follows the jobs of a submit.
pub(crate) struct Follower {
    flow: Arc<ViewFlow>,
    submit_id: String,
    /// Changes before were told, UTC epoch ms.
    told_ms: u64,
    seen: BTreeMap<JobId, Seen>,
    is_first: bool,
    _place: Charge,
}

/// What a follower hears.
pub(crate) enum Told {
    /// Jobs that changed, by time; none: nothing happened for a while.
    Changes(Vec<JobEvent>),
    /// All jobs have ended: so many, and so many of them not well.
    Over { jobs: usize, failed: usize },
}

impl Follower {
    /// Begins with all jobs that changed at `told_ms` or later, and a little before.
    pub(crate) fn new(
        flow: Arc<ViewFlow>,
        whose: Identity,
        submit_id: String,
        told_ms: u64,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            _place: flow.ctx.wait_place(whose)?,
            flow,
            submit_id,
            told_ms: told_ms.saturating_sub(AGAIN_MS),
            seen: BTreeMap::new(),
            is_first: true,
        })
    }

    /// The next changes, after at most `LOOK_MS` for each thousand jobs.
    pub(crate) async fn next(&mut self) -> Result<Told, Refusal> {
        if self.is_first {
            self.is_first = false;
            // What was just submitted is to be found, too.
            self.flow.ctx.store.refresh().await?;
        } else {
            let thousands = u64::try_from(self.seen.len() / 1_000).unwrap_or(u64::MAX);
            let pause_ms = LOOK_MS.saturating_mul(thousands.saturating_add(1));
            self.flow
                .ctx
                .clock
                .sleep(Duration::from_millis(pause_ms))
                .await;
        }
        let changes = self.look().await?;
        if !changes.is_empty() || !self.is_over() {
            return Ok(Told::Changes(changes));
        }
        // Jobs of the same submit may have come just now.
        self.flow.ctx.store.refresh().await?;
        let changes = self.look().await?;
        if !changes.is_empty() || !self.is_over() {
            return Ok(Told::Changes(changes));
        }
        let failed = |(_, health, _): &&Seen| *health != Health::Success;
        Ok(Told::Over {
            jobs: self.seen.len(),
            failed: self.seen.values().filter(failed).count(),
        })
    }

    /// Whether there is such a submit, as far as was looked.
    pub(crate) fn is_known(&self) -> bool {
        !self.seen.is_empty()
    }

    fn is_over(&self) -> bool {
        self.is_known() && self.seen.values().all(|(stage, ..)| stage.is_terminal())
    }

    /// Looks at all jobs.
    async fn look(&mut self) -> Result<Vec<JobEvent>, Refusal> {
        let mut search = Search {
            submit_ids: vec![self.submit_id.clone()],
            parts: Parts::All,
            order: SearchOrder::OldestFirst,
            limit: PAGE_JOBS,
            ..Search::default()
        };
        let mut changes = Vec::new();
        loop {
            let page = self.flow.ctx.store.search(&search).await?;
            search.after = page.jobs.last().map(|job| job.state.job_id);
            for job in page.jobs {
                // Shards that somebody submitted by themselves are jobs of a submit, others are parts of one.
                if job.state.shard.is_some_and(|place| !place.has_own_body()) {
                    continue;
                }
                let state = self.flow.jobs.as_shown(job.state);
                let seen = (state.stage, state.health, state.attempt);
                if self.seen.insert(state.job_id, seen) == Some(seen) {
                    continue;
                }
                let event = event_of(state);
                if event.at_ms >= self.told_ms {
                    changes.push(event);
                }
            }
            if !page.more {
                break;
            }
        }
        changes.sort_by_key(|event| event.at_ms);
        Ok(changes)
    }
}

/// When a job came to where it is, UTC epoch ms.
fn changed_ms(state: &JobState) -> u64 {
    let last = state.attempts.last().map_or(0, |attempt| attempt.end_ms);
    [
        state.submit_ms,
        last,
        state.dispatch_ms,
        state.boot_ms,
        state.setup_ms,
        state.wait_peer_ms,
        state.running_ms,
        state.post_run_ms,
        state.manual_check_ms,
        state.end_ms,
    ]
    .into_iter()
    .max()
    .unwrap_or_default()
}

fn event_of(state: JobState) -> JobEvent {
    JobEvent {
        job_id: state.job_id.to_string(),
        job_stage: state.stage.into(),
        job_health: state.health.into(),
        attempt: state.attempt,
        at_ms: changed_ms(&state),
        suite: state.suite,
        params: state.params,
        host: state.host,
        reason: state.reason,
        result_root: state.result_root,
    }
}
