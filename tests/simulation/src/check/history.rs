//! Checks each change of a stored state against the allowed transitions.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{Health, JobId, Stage};
use fairlead_store::JobState;

use super::{Check, broken, fit::lacks, hosts::may_have, queues::is_in_its_queue};
use crate::{query::waits, truth::Change, world::Violation};

/// Time within which a host must report that it stopped a job as told, ms.
const STOPPING_MS: u64 = 120_000;

/// A stored claim.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) at_ms: u64,
    pub(super) asked_ms: u64,
    pub(super) id: JobId,
    pub(super) class: u8,
    pub(super) memory_mb: u32,
    pub(super) cpus: u32,
    pub(super) host: usize,
}

/// History of the stored states of one job.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) state: Arc<JobState>,
    pub(super) changed_ms: u64,
    /// Time since which it waits and may run, ms.
    pub(super) waits_since_ms: Option<u64>,
    /// Time at which it last stopped waiting, ms.
    pub(super) waited_until_ms: u64,
    /// Replica that wrote it last before its host was heard of. Only that replica can have handed it out.
    pub(super) handed_by: String,
    /// Session and request of each claim, by token. The job may belong to another session since.
    claims: BTreeMap<String, (String, u64)>,
}

impl Track {
    /// Returns session and request of its present claim.
    pub(super) fn asked(&self) -> Option<(&str, u64)> {
        let (session, request) = self.claims.get(&self.state.claim_token)?;
        Some((session, *request))
    }
}

/// History of all jobs.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) jobs: BTreeMap<JobId, Track>,
    pub(super) claims: Vec<Claimed>,
}

impl History {
    pub(super) fn unchanged_since(&self, id: JobId, at_ms: u64) -> bool {
        self.jobs.get(&id).is_some_and(|it| it.changed_ms < at_ms)
    }

    fn keep(&mut self, change: &Change, by: &str, now_ms: u64) {
        let state = &change.after;
        let track = self.jobs.entry(state.job_id).or_insert_with(|| Track {
            state: Arc::clone(state),
            changed_ms: now_ms,
            waits_since_ms: None,
            waited_until_ms: 0,
            handed_by: String::new(),
            claims: BTreeMap::new(),
        });
        let waited = track.waits_since_ms.is_some();
        track.waits_since_ms = match (waited, waits(state)) {
            // More hosts than before may run the job, and they have had no chance yet.
            (true, true) if state.any_of != track.state.any_of => Some(now_ms),
            (true, true) => track.waits_since_ms,
            (_, true) => Some(now_ms),
            (_, false) => None,
        };
        if waited && !waits(state) {
            track.waited_until_ms = now_ms;
        }
        if state.stage == Stage::Dispatch {
            by.clone_into(&mut track.handed_by);
        }
        track.changed_ms = now_ms;
        track.state = Arc::clone(state);
        if !state.claim_token.is_empty() {
            let claim = track.claims.entry(state.claim_token.clone());
            claim.or_insert_with(|| (state.session.clone(), state.request));
        }
    }
}

impl Check {
    /// Checks a state that replica `by` changed in truth.
    pub(super) fn changed(
        &mut self,
        change: &Change,
        by: &str,
        asked_ms: u64,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let after = &change.after;
        match &change.before {
            // The parent was stopped before this shard existed.
            None if after.shard.is_some() && after.stage == Stage::Cancel => {}
            None if self.is_nobodys(after) => {}
            None if after.reused_from.is_some() => is_in_its_queue(after)?,
            None if after.stage != Stage::Submit || after.attempt != 1 => {
                return broken(
                    "I9",
                    format!("job {} is born in stage {}", after.job_id, after.stage),
                );
            }
            None => is_in_its_queue(after)?,
            Some(before) if before.stage.is_terminal() => after_the_end(before, after)?,
            Some(before) if before.stage == Stage::Submit && after.reused_from.is_some() => {}
            Some(before) if before.stage == Stage::Submit => {
                self.leaves_waiting(before, after, asked_ms, now_ms)?;
            }
            Some(before) => self.leaves_held(before, after, asked_ms)?,
        }
        if after.shards.is_some() {
            if after.stage.is_terminal() {
                self.parent_ends(after)?;
                self.counts.wholes += 1;
            }
        } else if after.stage == Stage::Finish
            && after.health == Health::Success
            && after.reused_from.is_none()
            && !self.is_nobodys(after)
        {
            self.success_was_reported(after)?;
        }
        self.history.keep(change, by, now_ms);
        self.fill_limits(now_ms);
        Ok(())
    }

    fn success_was_reported(&self, after: &JobState) -> Result<(), Violation> {
        let key = (after.job_id, after.claim_token.clone());
        if self.reported.get(&key) == Some(&Health::Success) {
            return Ok(());
        }
        broken(
            "I8",
            format!("job {} is a success that no host reported", after.job_id),
        )
    }

    fn leaves_waiting(
        &mut self,
        before: &JobState,
        after: &JobState,
        asked_ms: u64,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let id = after.job_id;
        self.follows_what_it_needs(before, after)?;
        if after.stage == Stage::Submit {
            if after.attempt != before.attempt || !after.claim_token.is_empty() {
                return broken(
                    "I9",
                    format!("waiting job {id} got another attempt or a token"),
                );
            }
            if after.ready && before.start_ms > self.latest_wall_ms(now_ms) {
                return broken(
                    "I3",
                    format!("job {id} is ready before its time, {}", before.start_ms),
                );
            }
            return Ok(());
        }
        if after.stage.is_terminal() {
            let latest_ms = self.latest_wall_ms(now_ms);
            return ends_leaves_waiting(before, after, latest_ms);
        }
        if after.stage != Stage::Dispatch || after.attempt != before.attempt || !before.ready {
            return broken(
                "I9",
                format!("job {id} goes from submit to {}", after.stage),
            );
        }
        let known = self.history.jobs.get(&id);
        if after.claim_token.is_empty()
            || known.is_some_and(|it| it.claims.contains_key(&after.claim_token))
        {
            return broken("I2", format!("job {id} is claimed without a fresh token"));
        }
        self.counts.claims += 1;
        self.alone_in_its_sequence(after)?;
        self.may_have_it(after, asked_ms, now_ms)?;
        self.claimed(after, asked_ms, now_ms)
    }

    /// Checks that the jobs of a sequence respect their limits, and that a job's retries run before the next job.
    fn alone_in_its_sequence(&self, after: &JobState) -> Result<(), Violation> {
        let beside = |state: &&Arc<JobState>| {
            state.job_id != after.job_id
                && (&state.account, &state.sequence) == (&after.account, &after.sequence)
                && (state.stage.is_held() || (state.sequence_turn && !state.stage.is_terminal()))
        };
        if after.sequence.is_empty() {
            return Ok(());
        }
        let states = self.history.jobs.values().map(|track| &track.state);
        let others: Vec<&Arc<JobState>> = states.filter(beside).collect();
        // A member with a lower limit got its turn first.
        let limits = others.iter().map(|state| state.sequence_limit);
        let limit = limits.chain([after.sequence_limit, 1]).max().unwrap_or(1);
        if others.len() < usize::from(limit) {
            return Ok(());
        }
        let others: Vec<String> = others.iter().map(|it| it.job_id.to_string()).collect();
        broken(
            "I3",
            format!(
                "job {} of sequence '{}' begins beside job {}, although {limit} may run",
                after.job_id,
                after.sequence,
                others.join(", ")
            ),
        )
    }

    /// Checks a claim: its host can run it, and its request is not overfilled.
    fn claimed(&mut self, after: &JobState, asked_ms: u64, now_ms: u64) -> Result<(), Violation> {
        let id = after.job_id;
        let found = self.plans.iter().position(|plan| plan.name == after.host);
        let Some((host, plan)) = found.and_then(|at| Some((at, self.plans.get(at)?))) else {
            return broken(
                "I3",
                format!("job {id} is claimed for no host: '{}'", after.host),
            );
        };
        if let Some(lack) = lacks(after, plan) {
            return broken(
                "I3",
                format!("job {id} is claimed for {}, which lacks {lack}", plan.name),
            );
        }
        let (got, others) = self.of_one_request(after);
        let offered = self
            .hosts
            .get(host)
            .and_then(|it| it.offered(&after.session, after.request));
        if let Some(offer) = offered
            && (got.jobs > offer.jobs || (!plan.is_hw() && got.is_more_than(&offer)))
        {
            return broken(
                "I2",
                format!(
                    "request {} of {} offered {offer:?}, and gets {got:?}: {id} by {}, {}",
                    after.request,
                    plan.name,
                    after.replica,
                    others.join(", ")
                ),
            );
        }
        self.history.claims.push(Claimed {
            at_ms: now_ms,
            asked_ms,
            id,
            class: after.class,
            memory_mb: after.memory_mb,
            cpus: after.cpus,
            host,
        });
        Ok(())
    }

    fn leaves_held(
        &mut self,
        before: &JobState,
        after: &JobState,
        asked_ms: u64,
    ) -> Result<(), Violation> {
        let id = after.job_id;
        if after.stage == Stage::Submit {
            return self.back_to_waiting(before, after, asked_ms);
        }
        if after.attempt != before.attempt {
            return broken(
                "I9",
                format!(
                    "held job {id} goes from attempt {} to {}",
                    before.attempt, after.attempt
                ),
            );
        }
        if after.stage.is_terminal() {
            if after.health == Health::Unknown {
                return broken("I8", format!("job {id} ended without a health"));
            }
            if after.health == Health::AbortProvider {
                return self.lease_was_lost(before, asked_ms);
            }
            return Ok(());
        }
        if after.stage != before.stage && !before.stage.may_become(after.stage) {
            return broken(
                "I9",
                format!("job {id} goes from {} to {}", before.stage, after.stage),
            );
        }
        if after.stage == Stage::Running && before.stage != Stage::Running {
            self.begins_with_its_peers(after)?;
        }
        if after.claim_token != before.claim_token {
            let handed_again = before.stage == Stage::Dispatch
                && after.stage == Stage::Dispatch
                && after.host == before.host
                && after.session != before.session;
            if !handed_again {
                return broken("I2", format!("job {id} changes its owner while it is held"));
            }
        }
        if after.host != before.host {
            return broken(
                "I2",
                format!("job {id} moves from {} to {}", before.host, after.host),
            );
        }
        Ok(())
    }

    /// Checks that all nodes of a cluster waited for each other in a round in which one runs.
    fn begins_with_its_peers(&self, after: &JobState) -> Result<(), Violation> {
        let Some(place) = &after.cluster else {
            return Ok(());
        };
        let was_there = |peer: &JobState| {
            let round = peer.cluster.as_ref().map_or(0, |peer| peer.round);
            let waits = peer.stage >= Stage::WaitPeer && peer.stage.is_held();
            // A peer may since have gone on to a later round, or ended.
            round > place.met || peer.stage.is_terminal() || (round == place.met && waits)
        };
        let known = |id| self.history.jobs.get(id).map(|track| &track.state);
        let missing = place
            .jobs
            .iter()
            .find(|id| **id != after.job_id && !known(*id).is_some_and(|peer| was_there(peer)));
        match missing {
            Some(peer) => broken(
                "I12",
                format!("job {} begins without its peer {peer}", after.job_id),
            ),
            None => Ok(()),
        }
    }

    fn back_to_waiting(
        &mut self,
        before: &JobState,
        after: &JobState,
        asked_ms: u64,
    ) -> Result<(), Violation> {
        let id = after.job_id;
        if !after.claim_token.is_empty() || !after.host.is_empty() {
            return broken("I2", format!("job {id} waits and still has an owner"));
        }
        if after.attempt == before.attempt {
            self.counts.given_back += 1;
            if before.stage == Stage::Dispatch || gave_up_waiting(before, after) {
                return Ok(());
            }
            return broken(
                "I9",
                format!(
                    "job {id} goes from {} back to submit in the same attempt",
                    before.stage
                ),
            );
        }
        let recorded = after.attempts.last().is_some_and(|last| {
            last.attempt == before.attempt && last.claim_token == before.claim_token
        });
        if after.attempt != before.attempt + 1 || !recorded {
            return broken(
                "I9",
                format!("attempt {} of job {id} is not on record", before.attempt),
            );
        }
        self.goes_elsewhere(before, after, asked_ms)?;
        let lost = after
            .attempts
            .last()
            .is_some_and(|last| last.health == Health::AbortProvider);
        if lost {
            return self.lease_was_lost(before, asked_ms);
        }
        Ok(())
    }

    /// Returns true if its host should have reported the stop by now, by the clock that is furthest ahead.
    fn did_not_stop(&self, state: &JobState, now_ms: u64) -> bool {
        state.stop_asked && state.stop_ms.saturating_add(STOPPING_MS) <= self.latest_wall_ms(now_ms)
    }

    /// Checks a lost lease. Its host must not have had a good answer within the lease, unless it reports that it no
    /// longer has the job.
    fn lease_was_lost(&mut self, before: &JobState, asked_ms: u64) -> Result<(), Violation> {
        self.counts.lost += 1;
        let key = (before.job_id, before.claim_token.clone());
        let reported = self.reported.get(&key) == Some(&Health::AbortProvider);
        let lives = self
            .plans
            .iter()
            .position(|plan| plan.name == before.host)
            .and_then(|host| self.hosts.get(host))
            .is_some_and(|host| {
                let asked = host.asked.as_ref();
                let has = asked.is_none_or(|request| may_have(request, before));
                host.session == before.session && has
            });
        let Some((_, renewed_ms)) = self
            .renewed
            .get(&before.claim_token)
            .filter(|_| lives && !reported && !self.did_not_stop(before, asked_ms))
        else {
            return Ok(());
        };
        let silent_ms = asked_ms.saturating_sub(*renewed_ms);
        // The decision may have waited for an answer of the store before it was sent.
        let slack_ms = 1_500;
        if silent_ms + slack_ms < self.lease_ms {
            return broken(
                "I2",
                format!(
                    "{} lost job {} after {silent_ms} ms, the lease is {} ms",
                    before.host, before.job_id, self.lease_ms
                ),
            );
        }
        Ok(())
    }
}

/// Checks that a cluster node that was not let through goes into another round.
fn gave_up_waiting(before: &JobState, after: &JobState) -> bool {
    let both = before.cluster.as_ref().zip(after.cluster.as_ref());
    both.is_some_and(|(before, after)| !before.is_through() && after.round > before.round)
}

fn after_the_end(before: &JobState, after: &JobState) -> Result<(), Violation> {
    let mut same = after.clone();
    same.data_readiness = before.data_readiness;
    // The count of confirming writes may differ.
    same.claim_seq = before.claim_seq;
    if same == *before {
        return Ok(());
    }
    broken(
        "I8",
        format!(
            "job {} had ended ({}, {}) and changes to {}, {}",
            before.job_id, before.stage, before.health, after.stage, after.health
        ),
    )
}

fn ends_leaves_waiting(
    before: &JobState,
    after: &JobState,
    latest_ms: u64,
) -> Result<(), Violation> {
    let id = after.job_id;
    if after.attempt == before.attempt {
        let is_due = (1..=latest_ms).contains(&before.alarm_ms);
        let failed = before.attempts.last().map(|last| last.health);
        return match after.stage {
            // No peer is left for the next try.
            Stage::Finish if after.cluster.is_some() && failed == Some(after.health) => Ok(()),
            Stage::Finish if after.health == Health::TimeoutSubmit && is_due => Ok(()),
            // Its shards decide the end of a parent.
            Stage::Finish if after.shards.is_some() => Ok(()),
            Stage::Cancel | Stage::AbortWait | Stage::AbortInvalid => Ok(()),
            stage => broken("I9", format!("waiting job {id} goes to {stage}")),
        };
    }
    // It is the end of a former owner, accepted while no other host had the job.
    let record = before
        .attempts
        .last()
        .filter(|last| last.attempt == after.attempt);
    let rightly = after.attempt + 1 == before.attempt
        && record.is_some_and(|last| last.claim_token == after.claim_token);
    if rightly {
        return Ok(());
    }
    broken(
        "I8",
        format!(
            "job {id} waits for attempt {} and attempt {} ends",
            before.attempt, after.attempt
        ),
    )
}
