//! Checks the calm phase: no host idles beside a job that it could run, higher classes go first, and everything ends as
//! it was reported.

use fairlead_dispatch::EngineConfig;
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::JobState;

use super::{
    Check, broken,
    fit::lacks,
    history::{Claimed, Track},
    hosts::may_have,
};
use crate::{scenario::HostPlan, truth::Truth, world::Violation};

/// Time for which a host may idle beside a waiting job in addition to a refresh, ms (I6). It includes the messages.
const IDLE_MS: u64 = 2_000 + 500;
/// Delay after which a job's time must be noticed in addition to a refresh, ms, and the further delay for each replica.
const LATE_MS: u64 = 5_000;
const TURN_MS: u64 = 2_000;
/// Maximum duration of a claim, ms. A job that is being claimed is not passed over.
const CLAIM_MS: u64 = 1_000;

impl Check {
    /// Starts the judgement of calm.
    pub(crate) fn calm_begins(&mut self, now_ms: u64) {
        self.calm_since_ms = Some(now_ms);
        self.history.claims.clear();
    }

    /// Checks that due times were noticed. Each replica looks a little later than the previous one.
    fn nobody_is_late(&self, calm_ms: u64, now_ms: u64) -> Result<(), Violation> {
        let patience_ms = LATE_MS + self.refresh_ms + TURN_MS * self.replicas;
        if now_ms < calm_ms + patience_ms {
            return Ok(());
        }
        let (latest_ms, apart_ms) = self.fastest_wall_ms(now_ms);
        // The replica with the fastest clock alone knows of a time that is still seconds ahead for the others.
        let patience_ms = patience_ms + apart_ms;
        let is_late = |state: &&std::sync::Arc<JobState>| {
            state.stage == Stage::Submit
                && state.alarm_ms > 0
                && state.alarm_ms + patience_ms < latest_ms
                // A stopping parent rings until its last shard has ended, which may take any time.
                && !(state.shards.is_some() && state.stop_asked)
        };
        let mut states = self.history.jobs.values().map(|track| &track.state);
        match states.find(is_late) {
            Some(state) => broken(
                "I6",
                format!(
                    "job {} was to be looked at at {}",
                    state.job_id, state.alarm_ms
                ),
            ),
            None => Ok(()),
        }
    }

    /// Returns true if an engine may reserve a host for a job that has waited long by some replica's clock. Only clocks
    /// that were far apart make the wait so long.
    fn may_be_reserved(&self, plan: &HostPlan, now_ms: u64) -> bool {
        let after_ms = EngineConfig::default().reserve_after_ms;
        let before_ms = self.latest_wall_ms(now_ms).saturating_sub(after_ms);
        let mut states = self.history.jobs.values().map(|track| &track.state);
        states.any(|state| {
            let waits = state.stage == Stage::Submit && state.ready;
            waits && state.ready_ms <= before_ms && lacks(state, plan).is_none()
        })
    }

    /// Checks that no host waits long for work while a job waits long for it (I6).
    pub(crate) fn nobody_idles(&self, now_ms: u64) -> Result<(), Violation> {
        let Some(calm_ms) = self.calm_since_ms else {
            return Ok(());
        };
        self.nobody_is_late(calm_ms, now_ms)?;
        self.nothing_is_kept_for_ever(calm_ms, now_ms)?;
        self.no_join_is_forgotten(calm_ms, now_ms)?;
        let patience_ms = IDLE_MS + self.refresh_ms;
        let long = |since_ms: u64| since_ms.max(calm_ms) + patience_ms < now_ms;
        for (plan, side) in self.plans.iter().zip(&self.hosts) {
            let Some((request, sent_ms)) = side.asks.as_ref().filter(|(_, sent)| *sent >= calm_ms)
            else {
                continue;
            };
            if !long(*sent_ms) || self.may_be_reserved(plan, now_ms) {
                continue;
            }
            let waiting = self
                .history
                .jobs
                .values()
                .filter(|track| track.waits_since_ms.is_some_and(long));
            // If an answer was in transit when the host asked, it has less room than it reports.
            let held = self.history.jobs.values().map(|track| &track.state);
            let held = held.filter(|state| {
                state.stage.is_held() && state.host == plan.name && may_have(request, state)
            });
            let held: Vec<_> = held.collect();
            if plan.is_hw() && !held.is_empty() {
                continue;
            }
            let held_mb: u32 = held.iter().map(|state| state.memory_mb).sum();
            let left_mb = plan.memory_mb.saturating_sub(held_mb);
            let free_mb = request.free_memory_mb.min(left_mb);
            let held_cpus: u32 = held.iter().map(|state| state.cpus).sum();
            let left_cpus = plan.cpus.map(|cpus| cpus.saturating_sub(held_cpus));
            let free_cpus = request.free_cpus.min(left_cpus);
            let passed = waiting.map(|track| &track.state).find(|state| {
                lacks(state, plan).is_none()
                    && (plan.is_hw()
                        || (state.memory_mb <= free_mb
                            && free_cpus.is_none_or(|free| state.cpus <= free)))
                    && !self.is_kept_off(state, plan, now_ms)
            });
            if let Some(state) = passed {
                return broken(
                    "I6",
                    format!(
                        "{} idles since {sent_ms} ms (request {}) beside job {}",
                        plan.name, request.request, state.job_id
                    ),
                );
            }
        }
        Ok(())
    }

    /// Checks that no claim passed over a job of a higher class that its host could have run (I4).
    pub(crate) fn higher_classes_went_first(&mut self, now_ms: u64) -> Result<(), Violation> {
        let due = |claim: &Claimed| claim.at_ms + CLAIM_MS < now_ms;
        let claims = std::mem::take(&mut self.history.claims);
        let (judged, later): (Vec<_>, Vec<_>) = claims.into_iter().partition(due);
        self.history.claims = later;
        for claim in judged {
            self.is_right_order(&claim, now_ms)?;
        }
        Ok(())
    }

    fn is_right_order(&self, claim: &Claimed, now_ms: u64) -> Result<(), Violation> {
        let Some((calm_ms, plan)) = self.calm_since_ms.zip(self.plans.get(claim.host)) else {
            return Ok(());
        };
        let patience_ms = IDLE_MS + self.refresh_ms;
        if claim.asked_ms < calm_ms + patience_ms {
            return Ok(());
        }
        // Only the present state counts: a claim of an older state is refused, and the next job is taken.
        let waited_long = |track: &Track| {
            track.changed_ms + patience_ms < claim.asked_ms
                && track
                    .waits_since_ms
                    .is_some_and(|since_ms| since_ms + patience_ms < claim.asked_ms)
        };
        let passed = self.history.jobs.values().find(|track| {
            track.state.class > claim.class
                && waited_long(track)
                && track.state.memory_mb
                    <= claim
                        .memory_mb
                        .max(if plan.is_hw() { plan.memory_mb } else { 0 })
                && (plan.is_hw() || plan.cpus.is_none() || track.state.cpus <= claim.cpus)
                && lacks(&track.state, plan).is_none()
                && !self.is_kept_off(&track.state, plan, now_ms)
        });
        match passed {
            Some(track) => broken(
                "I4",
                format!(
                    "{} got job {} of class {} at {} ms, and job {} of class {} waits",
                    plan.name,
                    claim.id,
                    claim.class,
                    claim.at_ms,
                    track.state.job_id,
                    track.state.class
                ),
            ),
            None => Ok(()),
        }
    }

    /// Returns the unfinished jobs.
    pub(crate) fn open(&self) -> Vec<JobId> {
        let open = self
            .history
            .jobs
            .iter()
            .filter(|(_, track)| !track.state.stage.is_terminal());
        open.map(|(id, _)| *id).collect()
    }

    /// Checks the end: every acknowledged job exists and has ended as reported.
    pub(crate) fn all_ended(&self, truth: &Truth) -> Result<(), Violation> {
        for id in &self.acknowledged {
            let Some(entry) = truth.job(*id) else {
                return broken("I1", format!("acknowledged job {id} is not in the store"));
            };
            if !entry.state.stage.is_terminal() {
                return broken(
                    "I1",
                    format!(
                        "acknowledged job {id} is still in stage {}",
                        entry.state.stage
                    ),
                );
            }
        }
        for id in &self.acknowledged {
            if let Some(entry) = truth.job(*id) {
                self.is_counted(&entry.state)?;
            }
        }
        for ((id, token), health) in &self.taken {
            let state = truth.job(*id).map(|entry| &entry.state);
            if !state.is_some_and(|state| is_on_record(state, token, *health)) {
                return broken(
                    "I8",
                    format!("an end of job {id} ({health}) was taken and is not on record"),
                );
            }
        }
        Ok(())
    }
}

/// Returns true if the end of this claim is recorded.
fn is_on_record(state: &JobState, token: &str, health: Health) -> bool {
    let last = state.claim_token == token && state.stage == Stage::Finish && state.health == health;
    let earlier = |it: &fairlead_store::Attempt| it.claim_token == token && it.health == health;
    last || state.attempts.iter().any(earlier)
}
