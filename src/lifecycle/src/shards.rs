//! A sharded job: the states of its shards, and what becomes of the parent. Pure.
//!
//! Any replica may make the shards of a job, and any may end the whole. If each decided by what it remembers, two could
//! make different shards, or end the job in two ways. So everything here is a function of stored states. A parent is a
//! stored job that is never dispatched. It stays in stage submit until one write ends it. The first state of a shard
//! follows from its parent and its number, so any replica can make a shard that is missing. The result of the parent
//! follows from the ends of its shards.
//!
//! For example, 18 of 20 shards succeed. If shards 4 and 9 end with `fail`, the parent ends with `fail`. If they end
//! with two different healths that are both the lab's fault, it ends with `abort_provider`. Other mixtures end with
//! `fail`. A parent that was stopped ends with the health of the stop.

use std::collections::BTreeMap;

use fairlead_job::{Cause, DataReadiness, Health, JobFields, JobId, Stage};
use fairlead_store::{CaseCounts, JobState, ShardPlace, Sharding, StoredJob};

use crate::{
    attempt::{cancelled, ended, to_be_stopped},
    parent::{closed, counted, end_stage, stopping},
};
use fairlead_base::{errors::JobError, text::cut};

/// Time after the end of its last shard for which a parent waits for late data, ms.
pub const DATA_COMES_MS: u64 = 60_000;
/// Maximum number of shards that a reason names.
const NAMED_MAX: usize = 5;
/// Maximum length of stored parameters, bytes.
const PARAMS_MAX: usize = 200;

/// Next step for a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// None: it has ended.
    Over,
    /// Wait until this time, UTC epoch ms. `None`: until something changes.
    Wait(Option<u64>),
    /// Make these shards, by number.
    Make(Vec<u16>),
    /// Store the parent in this state.
    Note(Box<JobState>),
    /// Stop these shards, by number.
    Stop(Vec<u16>),
    /// Pack the listed tests.
    Plan,
    /// End the parent in this state, if the read states of its shards are confirmed.
    End(Box<JobState>),
}

/// Returns the first state of shard `n` (from 1). `fields` choose its hosts, if they differ from the parent's.
pub fn shard_state(parent: &JobState, n: u16, fields: Option<&JobFields>) -> JobState {
    let sharding = parent.shards.as_deref().cloned().unwrap_or_default();
    let Sharding {
        count,
        released_ms,
        lister,
        ..
    } = sharding;
    let id = parent.job_id.behind(if n == 0 { lister } else { n });
    let (old, new) = (parent.job_id.to_string(), id.to_string());
    let mut state = JobState {
        job_id: id,
        shards: None,
        shard: Some(ShardPlace {
            of: parent.job_id,
            n,
            total: count,
        }),
        ready: true,
        ready_ms: released_ms,
        submit_ms: released_ms,
        params: params(parent, n, count),
        result_root: parent.result_root.replace(&old, &new),
        // Only the parent counts among the jobs that ran the same test.
        fingerprint: String::new(),
        waits: None,
        sequence: String::new(),
        sequence_same_host: false,
        sequence_limit: 0,
        sequence_per_minute: 0,
        sequence_replace: None,
        sequence_turn: false,
        claim_seq: 0,
        outputs: String::new(),
        reason: String::new(),
        stop_asked: false,
        stop_ms: 0,
        stop_health: None,
        stop_grace_s: None,
        callback: None,
        notify: None,
        held_by: String::new(),
        // Each shard has a key of its own.
        reuse: None,
        reused_from: None,
        ..parent.clone()
    };
    if let Some(fields) = fields {
        place(&mut state, fields);
    }
    if parent.stop_asked {
        // The parent was stopped before this shard existed.
        return cancelled(&state, parent.stop_ms, &parent.reason);
    }
    state.set_alarm()
}

/// Sets the hosts of a shard from its own fields.
fn place(state: &mut JobState, fields: &JobFields) {
    let count = |list: &[String]| u16::try_from(list.len()).unwrap_or(u16::MAX);
    state.testbox.clone_from(&fields.testbox);
    state.tbox_group.clone_from(&fields.tbox_group);
    state.tbox_type = fields.tbox_type;
    state.arch.clone_from(&fields.arch);
    state.host_keys.clone_from(&fields.host_keys);
    state.memory_mb = fields.memory_mb;
    state.guest_memory_mb = fields.guest_memory_mb;
    state.cpus = fields.cpus;
    state.tags_n = count(&fields.tags);
    state.tags.clone_from(&fields.tags);
    state.not_tags.clone_from(&fields.not_tags);
    state.any_of.clone_from(&fields.any_of);
    state.devices_n = count(&fields.devices);
    state.devices.clone_from(&fields.devices);
    state.cache_dirs.clone_from(&fields.cache_dirs);
    state.timeout_s = fields.timeout_s;
    state.suite.clone_from(&fields.suite);
}

fn params(parent: &JobState, n: u16, count: u16) -> String {
    let own = match n {
        0 => "shard=list".to_owned(),
        n => format!("shard={n}/{count}"),
    };
    if parent.params.is_empty() || own.len() + 1 + parent.params.len() > PARAMS_MAX {
        return own;
    }
    format!("{own} {}", parent.params)
}

/// Returns the next step for a parent, from its state and those of its shards, in order. `None` among them: that shard
/// does not exist.
pub fn next(parent: &JobState, shards: &[Option<StoredJob>], now_ms: u64) -> Next {
    let Some(sharding) = parent.shards.as_deref() else {
        return Next::Over;
    };
    if parent.stage != Stage::Submit {
        return Next::Over;
    }
    if sharding.released_ms == 0 {
        return Next::Wait(None);
    }
    if sharding.is_uncounted() {
        return next_of_group(parent, sharding, shards, now_ms);
    }
    let numbered = (1..=sharding.count).zip(shards);
    let missing = numbered.filter(|(_, shard)| shard.is_none());
    let missing: Vec<u16> = missing.map(|(n, _)| n).collect();
    if !missing.is_empty() {
        return Next::Make(missing);
    }
    if !sharding.made {
        return Next::Note(Box::new(made(parent)));
    }
    let states: Vec<&JobState> = shards.iter().flatten().map(|job| &job.state).collect();
    if let Some(stopped) = stopped_by_itself(parent, sharding, &states, now_ms) {
        return Next::Note(Box::new(stopped));
    }
    if states.iter().all(|shard| shard.stage.is_terminal()) {
        let last_ms = states.iter().map(|shard| shard.end_ms).max().unwrap_or(0);
        let until_ms = last_ms.saturating_add(DATA_COMES_MS);
        if until_ms > now_ms && states.iter().any(|shard| is_data_due(shard)) {
            return Next::Wait(Some(until_ms));
        }
        let counting = states.into_iter().filter(|it| !is_nobodys(parent, it));
        return Next::End(Box::new(over(
            parent,
            &counting.collect::<Vec<_>>(),
            now_ms,
        )));
    }
    let is_told = |shard: &JobState| shard.stage.is_terminal() || shard.stop_asked;
    let untold = states.iter().filter(|shard| !is_told(shard));
    let untold: Vec<u16> = untold.filter_map(|shard| Some(shard.shard?.n)).collect();
    if parent.stop_asked && !untold.is_empty() {
        return Next::Stop(untold);
    }
    Next::Wait(Some(parent.finish_by_ms).filter(|ms| *ms > 0 && !parent.stop_asked))
}

/// Returns the next step for a group whose final number of shards is open. `shards` are those that joined it.
fn next_of_group(
    parent: &JobState,
    sharding: &Sharding,
    shards: &[Option<StoredJob>],
    now_ms: u64,
) -> Next {
    if sharding.is_open() {
        let is_late = (1..=now_ms).contains(&parent.finish_by_ms);
        if parent.stop_asked || is_late {
            return Next::Note(Box::new(closed(parent, now_ms)));
        }
        let joined = shards.iter().flatten().map(|job| &job.state);
        let mut failed = joined.filter(|shard| has_failed(shard));
        return match failed.next().filter(|_| sharding.fail_fast) {
            Some(failed) => {
                let stopped = stopped_by_failure(parent, failed, now_ms);
                Next::Note(Box::new(closed(&stopped, now_ms)))
            }
            None => Next::Wait(Some(parent.finish_by_ms).filter(|ms| *ms > 0)),
        };
    }
    match u16::try_from(shards.len()) {
        Ok(count) if count > 0 => Next::Note(Box::new(counted(parent, count))),
        _ => {
            let (health, reason) = if parent.stop_asked {
                let health = parent.stop_health.unwrap_or(Health::Terminate);
                (health, parent.reason.as_str())
            } else {
                let reason = "no job joined the group before it was closed";
                (Health::Fail, reason)
            };
            Next::End(Box::new(never_planned(parent, health, now_ms, reason)))
        }
    }
}

/// Returns a placeholder for a number of a group without a job. The number belonged to a create that was never
/// acknowledged.
pub fn nobodys_shard(parent: &JobState, n: u16) -> JobState {
    let state = shard_state(parent, n, None);
    if state.stage.is_terminal() {
        return state;
    }
    let reason = "no job joined the group under this number";
    ended(
        &state,
        Stage::Finish,
        Health::Success,
        state.submit_ms,
        reason,
    )
}

/// Returns true if this is such a placeholder, which counts for nothing.
pub fn is_nobodys(parent: &JobState, shard: &JobState) -> bool {
    let is_group = parent.shards.as_ref().is_some_and(|it| it.is_group());
    is_group && shard.shard.is_some_and(|place| !place.has_own_body())
}

/// Returns a job that joins a group as the shard with this number.
pub fn joined(job: &JobState, parent: JobId, n: u16) -> JobState {
    JobState {
        shard: Some(ShardPlace {
            of: parent,
            n,
            total: 0,
        }),
        ..job.clone()
    }
}

/// Returns the next step for a parent whose tests must still be listed. `lister` is the job that lists them, if it
/// exists.
pub fn next_of_list(parent: &JobState, lister: Option<&JobState>, now_ms: u64) -> Next {
    let waits = parent.stage == Stage::Submit;
    let Some(sharding) = parent.shards.as_deref().filter(|_| waits) else {
        return Next::Over;
    };
    if sharding.released_ms == 0 {
        return Next::Wait(None);
    }
    let Some(lister) = lister else {
        return Next::Make(vec![0]);
    };
    let is_late = (1..=now_ms).contains(&parent.finish_by_ms);
    if lister.stage.is_terminal() {
        let health = match (parent.stop_asked, lister.health) {
            (true, _) => parent.stop_health.unwrap_or(Health::Terminate),
            (false, Health::Success) if is_late => Health::TimeoutRunning,
            (false, Health::Success) => return Next::Plan,
            (false, health) => health,
        };
        let reason = if parent.stop_asked {
            parent.reason.clone()
        } else {
            let (id, health) = (lister.job_id, lister.health);
            format!("job {id}, which lists its tests, ended with {health}")
        };
        return Next::End(Box::new(never_planned(parent, health, now_ms, &reason)));
    }
    if is_late && !parent.stop_asked {
        let reason = "its tests were not listed in time";
        let stopped = stopping(parent, Health::TimeoutRunning, now_ms, reason);
        return Next::Note(Box::new(stopped));
    }
    if parent.stop_asked && !lister.stop_asked {
        return Next::Stop(vec![0]);
    }
    Next::Wait(Some(parent.finish_by_ms).filter(|ms| *ms > 0 && !parent.stop_asked))
}

/// Returns a parent that ends before it has any shard.
pub fn never_planned(parent: &JobState, health: Health, now_ms: u64, reason: &str) -> JobState {
    ended(parent, end_stage(health), health, now_ms, reason)
}

/// Returns the parent whose tests are packed into `count` shards by this plan.
pub fn planned(parent: &JobState, count: u16, digest: &str) -> JobState {
    let mut next = parent.clone();
    if let Some(shards) = &mut next.shards {
        shards.count = count;
        digest.clone_into(&mut shards.plan);
    }
    next.set_alarm()
}

/// Returns the parent after all its shards are stored.
pub fn made(parent: &JobState) -> JobState {
    let mut next = parent.clone();
    if let Some(shards) = &mut next.shards {
        shards.made = true;
    }
    next.set_alarm()
}

/// Returns the parent whose shards must stop, because one failed or because the time is up. `None`: they go on.
fn stopped_by_itself(
    parent: &JobState,
    sharding: &Sharding,
    shards: &[&JobState],
    now_ms: u64,
) -> Option<JobState> {
    if parent.stop_asked {
        return None;
    }
    if (1..=now_ms).contains(&parent.finish_by_ms) {
        let open = shards.iter().filter(|shard| !shard.stage.is_terminal());
        let open = open.count();
        if open > 0 {
            let reason = format!("{open} of {} shards were not over in time", sharding.count);
            return Some(stopping(parent, Health::TimeoutRunning, now_ms, &reason));
        }
    }
    let failed = shards.iter().find(|shard| has_failed(shard));
    let failed = failed.filter(|_| sharding.fail_fast)?;
    let others_run = shards.iter().any(|shard| !shard.stage.is_terminal());
    others_run.then(|| stopped_by_failure(parent, failed, now_ms))
}

fn stopped_by_failure(parent: &JobState, failed: &JobState, now_ms: u64) -> JobState {
    let n = failed.shard.map_or(0, |shard| shard.n);
    let reason = format!("shard {n} ended with {}: fail_fast", failed.health);
    stopping(parent, failed.health, now_ms, &reason)
}

/// Returns true if a shard failed for good.
pub fn has_failed(shard: &JobState) -> bool {
    shard.stage.is_terminal() && shard.health != Health::Success
}

/// Returns a shard of a stopping parent, told to stop. `None`: it was already told to, or has ended.
pub fn stopped_shard(parent: &JobState, shard: &JobState, now_ms: u64) -> Option<JobState> {
    let mut stopped = taken_out(shard, now_ms, &parent.reason)?;
    if shard.stage != Stage::Submit {
        stopped.stop_grace_s = parent.stop_grace_s;
    }
    Some(stopped)
}

/// Returns a shard that no longer counts, cancelled or told to stop. `None`: it was already told to, or has ended.
pub fn taken_out(shard: &JobState, now_ms: u64, reason: &str) -> Option<JobState> {
    match shard.stage {
        stage if stage.is_terminal() => None,
        Stage::Submit => Some(cancelled(shard, now_ms, reason)),
        _ => to_be_stopped(shard, now_ms, reason),
    }
}

/// Fails for a shard, because such an act applies to all shards of its parent.
pub fn check_whole(state: &JobState) -> Result<(), JobError> {
    let Some(place) = state.shard else {
        return Ok(());
    };
    Err(JobError::IsShard {
        id: state.job_id,
        n: place.n,
        parent: place.of,
    })
}

/// Returns true if data of an ended shard may still come.
pub fn is_data_due(shard: &JobState) -> bool {
    let is_lost = shard.health.cause() == Some(Cause::Infra);
    shard.stage == Stage::Finish
        && shard.data_readiness == DataReadiness::Incomplete
        && !is_lost
        && shard.stop_health.is_none()
}

/// Returns the parent after all its shards have ended.
fn over(parent: &JobState, shards: &[&JobState], now_ms: u64) -> JobState {
    let mut ends: BTreeMap<Health, u16> = BTreeMap::new();
    let mut cases = CaseCounts::default();
    for shard in shards {
        let same = ends.entry(shard.health).or_default();
        *same = same.saturating_add(1);
        cases.add(&own_cases(shard));
    }
    let health = health_of(parent, &ends);
    let reason = reason_of(parent, shards);
    let began_ms = shards.iter().map(|shard| shard.running_ms);
    let mut next = ended(parent, end_stage(health), health, now_ms, &reason);
    next.running_ms = began_ms.filter(|ms| *ms > 0).min().unwrap_or(0);
    next.data_readiness = readiness(shards);
    next.cases = (!cases.is_empty()).then(|| Box::new(cases));
    if let Some(sharding) = &mut next.shards {
        sharding.ends = ends;
    }
    next
}

/// Returns the test cases of a shard. Failed ones are prefixed with its number.
fn own_cases(shard: &JobState) -> CaseCounts {
    let mut cases = shard.cases.as_deref().cloned().unwrap_or_default();
    let n = shard.shard.map_or(0, |shard| shard.n);
    for failure in &mut cases.first_failures {
        let named = format!("{n}: {failure}");
        cut(&named, CaseCounts::FAILURE_BYTES_MAX).clone_into(failure);
    }
    cases
}

/// Returns success if all shards succeeded, the common health of the unsuccessful shards, or a general failure.
fn health_of(parent: &JobState, ends: &BTreeMap<Health, u16>) -> Health {
    if let Some(health) = parent.stop_health.filter(|_| parent.stop_asked) {
        return health;
    }
    let mut bad = ends.keys().filter(|health| **health != Health::Success);
    match (bad.next(), bad.next()) {
        (None, _) => Health::Success,
        (Some(only), None) => *only,
        (Some(first), Some(second)) => {
            let is_lost = |health: &Health| health.cause() == Some(Cause::Infra);
            let all_lost = is_lost(first) && is_lost(second) && bad.all(is_lost);
            if all_lost {
                Health::AbortProvider
            } else {
                Health::Fail
            }
        }
    }
}

fn reason_of(parent: &JobState, shards: &[&JobState]) -> String {
    if parent.stop_asked {
        return parent.reason.clone();
    }
    let failed = shards.iter().filter(|shard| has_failed(shard));
    let failed: Vec<&&JobState> = failed.collect();
    if failed.is_empty() {
        return String::new();
    }
    let named = failed.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named
        .map(|shard| {
            let n = shard.shard.map_or(0, |shard| shard.n);
            format!("{n} ({})", shard.health)
        })
        .collect();
    if failed.len() > NAMED_MAX {
        named.push("…".to_owned());
    }
    let (bad, all) = (failed.len(), shards.len());
    format!("{bad} of {all} shards failed: {}", named.join(", "))
}

fn readiness(shards: &[&JobState]) -> DataReadiness {
    use DataReadiness::{Complete, Incomplete, Norun, Uploaded};
    let ran = shards.iter().map(|shard| shard.data_readiness);
    let mut ran = ran.filter(|readiness| *readiness != Norun).peekable();
    if ran.peek().is_none() {
        return Norun;
    }
    ran.fold(Complete, |all, one| match (all, one) {
        (Complete, Complete) => Complete,
        (Complete | Uploaded, Complete | Uploaded) => Uploaded,
        _ => Incomplete,
    })
}

#[cfg(test)]
mod tests;
