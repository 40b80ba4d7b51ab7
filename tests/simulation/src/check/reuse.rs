//! Checks jobs that have the results of others (I16). The other job ran the same thing on such a machine, lately, for an
//! account that lets it be taken. No other run ended otherwise. Nothing ever runs for a job that has a result.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::{DataReadiness, Health, JobId, Stage};
use fairlead_store::{JobState, NewJob};

use super::{Check, broken, fit::lacks};
use crate::{
    reuse::{ACCOUNTS, key_of, within_s},
    scenario::HostPlan,
    truth::Change,
    world::{Violation, World},
};

/// Maximum time between the lookup of a job's result and its creation, ms, because the store may be slow.
const ON_ITS_WAY_MS: u64 = 60_000;
/// Time for which a replica may not know the boot of a host during calm in addition to a refresh, ms. Hosts are read
/// every ten seconds.
const BOOTS_MS: u64 = 10_000 + 5_000;
/// Time until an end is noted during calm, ms.
const NOTED_MS: u64 = 5_000;
/// Time for which a job may wait for a job that has ended in addition to a refresh, ms. Replicas look every ten
/// seconds.
const JOINED_MS: u64 = 10_000 + 5_000;

/// Class of machines: group, architecture, and kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Class {
    group: String,
    arch: &'static str,
    boots: u32,
}

impl Class {
    fn of(plan: &HostPlan, boots: u32) -> Self {
        let group = plan.name.split("--").next().unwrap_or_default();
        Self {
            group: group.to_owned(),
            arch: plan.arch,
            boots,
        }
    }
}

/// Reuse settings of a submitted job.
#[derive(Debug, Clone)]
struct Wanted {
    key: String,
    within_s: u64,
    /// Time of its creation, ms.
    born_ms: u64,
}

/// A job that ran to its own end.
#[derive(Debug, Clone)]
struct End {
    id: JobId,
    /// Replica that wrote the end.
    replica: String,
    account: String,
    /// Class of the host of its last run. `None`: unknown.
    class: Option<Class>,
    is_good: bool,
    /// True if it ran to check the result of another job.
    is_audit: bool,
    at_ms: u64,
}

/// State of the judge about reuse.
#[derive(Debug, Default)]
pub(super) struct Reuses {
    wanted: BTreeMap<JobId, Wanted>,
    /// Times and numbers of the boots of each host, the last one last.
    boots: BTreeMap<usize, Vec<(u64, u32)>>,
    /// Class of the host of each run.
    ran_on: BTreeMap<(JobId, u16), Class>,
    /// Ends by key.
    ends: BTreeMap<String, Vec<End>>,
    /// Time at which each replica was last killed before calm, ms.
    killed: BTreeMap<String, u64>,
    /// Keys with different results, as far as they are counted.
    differing: BTreeSet<String>,
}

/// Returns true if the workload itself caused this end.
fn is_own_failure(health: Health) -> bool {
    matches!(health, Health::Fail | Health::Oom)
}

/// Returns true for a success and false for a failure of the workload itself. `None`: the end says nothing about it.
fn own_end(state: &JobState) -> Option<bool> {
    let ran = state.stage == Stage::Finish && state.reused_from.is_none() && !state.stop_asked;
    if !ran || state.shards.is_some() {
        return None;
    }
    let failed_before = state.attempts.iter().any(|it| is_own_failure(it.health));
    match state.health {
        Health::Success => Some(!failed_before),
        health => is_own_failure(health).then_some(false),
    }
}

impl Reuses {
    /// Returns the present class of a host.
    fn class_now(&self, host: usize, plan: &HostPlan) -> Option<Class> {
        let (_, boots) = self.boots.get(&host)?.last()?;
        Some(Class::of(plan, *boots))
    }

    /// Returns the classes that a host had at any time since `since_ms`.
    fn classes_since(&self, host: usize, plan: &HostPlan, since_ms: u64) -> Vec<Class> {
        let boots = self.boots.get(&host).map_or(&[][..], Vec::as_slice);
        let ends = boots.iter().skip(1).map(|(from_ms, _)| *from_ms);
        let times = boots.iter().zip(ends.chain([u64::MAX]));
        let late = times.filter(|(_, until_ms)| *until_ms >= since_ms);
        late.map(|((_, boots), _)| Class::of(plan, *boots))
            .collect()
    }
}

impl Check {
    /// Notes that a job is about to be created.
    pub(super) fn wants(&mut self, job: &NewJob, now_ms: u64) {
        let id = job.state.job_id;
        let place = job.state.shard.filter(|place| !place.has_own_body());
        let wanted = match place {
            None => Wanted {
                key: key_of(&job.body),
                within_s: within_s(&job.body),
                born_ms: now_ms,
            },
            Some(place) => {
                let Some(whole) = self.reuses.wanted.get(&place.of) else {
                    return;
                };
                let parent = self.history.jobs.get(&place.of);
                let parts = parent.and_then(|parent| parent.state.shards.as_ref());
                let count = parts.map_or(0, |parts| parts.count);
                Wanted {
                    key: format!("{}: {} of {count}", whole.key, place.n),
                    within_s: whole.within_s,
                    born_ms: now_ms,
                }
            }
        };
        self.reuses.wanted.entry(id).or_insert(wanted);
    }

    /// Checks a run that starts. No workload may run for a job that has a result or waits for one.
    pub(super) fn may_run(
        &mut self,
        id: JobId,
        attempt: u16,
        host: usize,
    ) -> Result<(), Violation> {
        let plan = self.plans.get(host);
        let class = plan.and_then(|plan| self.reuses.class_now(host, plan));
        if let Some(class) = class {
            self.reuses.ran_on.insert((id, attempt), class);
        }
        let state = self.history.jobs.get(&id).map(|track| &track.state);
        match state.and_then(|state| state.reused_from) {
            Some(from) => broken(
                "I16",
                format!("job {id} runs, and has the result of {from}"),
            ),
            None => Ok(()),
        }
    }

    /// Checks a changed or created state: its reuse of other jobs must be right.
    pub(super) fn takes_rightly(
        &mut self,
        change: &Change,
        replica: &str,
        asked_ms: u64,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let (before, after) = (change.before.as_deref(), &*change.after);
        let was_over = before.is_some_and(|before| before.stage.is_terminal());
        if was_over {
            return Ok(());
        }
        self.is_told_rightly(before, after)?;
        if after.reused_from.is_some() {
            if before.is_some_and(|before| before.stage != Stage::Submit) {
                return broken(
                    "I16",
                    format!("job {} ran, and gets a result", after.job_id),
                );
            }
            return self.is_taken_rightly(after, asked_ms, now_ms);
        }
        let id = after.job_id;
        if let Some(is_good) = own_end(after)
            && let Some(wanted) = self.reuses.wanted.get(&id)
            && wanted.within_s > 0
        {
            let end = End {
                id,
                replica: replica.to_owned(),
                account: after.account.clone(),
                class: self.reuses.ran_on.get(&(id, after.attempt)).cloned(),
                is_good,
                is_audit: after.reuse.as_ref().is_some_and(|it| it.audit_of.is_some()),
                at_ms: now_ms,
            };
            let key = wanted.key.clone();
            let ends = self.reuses.ends.entry(key.clone()).or_default();
            ends.push(end);
            let differ = ends.iter().any(|one| one.is_good != is_good);
            if differ && self.reuses.differing.insert(key) {
                self.counts.differing += 1;
            }
        }
        Ok(())
    }

    /// Checks that the other jobs that a job names run the same thing.
    fn is_told_rightly(
        &mut self,
        before: Option<&JobState>,
        after: &JobState,
    ) -> Result<(), Violation> {
        let id = after.job_id;
        let said = |state: &JobState| {
            let reuse = state.reuse.as_deref();
            reuse.map_or((None, None), |reuse| (reuse.joined, reuse.audit_of))
        };
        let (joined, audit_of) = said(after);
        let (was_joined, was_audit_of) = before.map_or((None, None), said);
        if let Some(other) = joined.filter(|_| was_joined != joined) {
            self.counts.joins += 1;
            self.same_thing(after, other, "waits for")?;
        }
        if let Some(other) = audit_of.filter(|_| was_audit_of != audit_of) {
            self.counts.audits += 1;
            self.same_thing(after, other, "checks")?;
        }
        if joined.is_some() && after.stage.is_held() && after.waits.is_some() {
            return broken(
                "I16",
                format!("job {id} is held while it waits for a result"),
            );
        }
        Ok(())
    }

    fn same_thing(&self, state: &JobState, other: JobId, verb: &str) -> Result<(), Violation> {
        let id = state.job_id;
        let wanted = |id: JobId| self.reuses.wanted.get(&id);
        let (Some(own), Some(others)) = (wanted(id), wanted(other)) else {
            // The key was noted before the job was created, and perhaps it never will be.
            return Ok(());
        };
        if own.key == others.key && own.within_s > 0 && others.within_s > 0 && id != other {
            return Ok(());
        }
        broken(
            "I16",
            format!(
                "job {id} {verb} job {other}, which runs another thing: '{}' and '{}'",
                own.key, others.key
            ),
        )
    }

    /// Checks that a job rightly has the result of another one.
    fn is_taken_rightly(
        &mut self,
        after: &JobState,
        asked_ms: u64,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let (id, from) = (after.job_id, after.reused_from.unwrap_or_default());
        let wrong =
            |what: String| broken("I16", format!("job {id} has the result of {from}: {what}"));
        let Some(origin) = self.history.jobs.get(&from) else {
            return wrong("nobody knows it".to_owned());
        };
        let (ended_ms, origin) = (origin.changed_ms, &origin.state);
        let Some(wanted) = self.reuses.wanted.get(&id) else {
            return wrong("nobody knows what it wants".to_owned());
        };
        if own_end(origin) != Some(true) {
            return wrong(format!("that one is no success: {origin:?}"));
        }
        self.same_thing(after, from, "takes from")?;
        if after.account != origin.account && !shares(&origin.account) {
            return wrong(format!(
                "{} does not share with {}",
                origin.account, after.account
            ));
        }
        if !is_its_result(after, origin) {
            return wrong(format!("it is not the same: {after:?}"));
        }
        let joined = after.reuse.as_ref().and_then(|reuse| reuse.joined);
        if let Some(joined) = joined.filter(|joined| *joined != from) {
            let other = self.history.jobs.get(&joined).map(|track| &track.state);
            if other.and_then(|other| other.reused_from) != Some(from) {
                return wrong(format!("it waited for {joined}"));
            }
        }
        // A result that the job waited for must not be young, but from the job's own time.
        let is_fresh = joined.is_some() && ended_ms >= wanted.born_ms;
        let until_ms = origin
            .end_ms
            .saturating_add(wanted.within_s.saturating_mul(1_000));
        if !is_fresh && until_ms.saturating_add(ON_ITS_WAY_MS) < self.slowest_wall_ms(asked_ms) {
            return wrong(format!("that one ended at {}, too long ago", origin.end_ms));
        }
        if joined.is_none() {
            self.class_lives(after, origin, asked_ms)?;
        }
        self.nothing_speaks_against(after, asked_ms)?;
        self.counts.reused += 1;
        if joined.is_some() {
            self.counts.shared += 1;
        }
        self.counts.reused_of_others += u64::from(after.account != origin.account);
        self.changed_ms = now_ms;
        Ok(())
    }

    /// Checks that some host of the result's class could run the job now, perhaps after a wait. During calm all
    /// replicas know the hosts.
    fn class_lives(
        &self,
        after: &JobState,
        origin: &JobState,
        asked_ms: u64,
    ) -> Result<(), Violation> {
        // A replica whose clock is ahead considers its own knowledge newer than another replica's later write.
        let (_, apart_ms) = self.fastest_wall_ms(asked_ms);
        let patience_ms = BOOTS_MS + self.refresh_ms + apart_ms + self.stepped_ms;
        let since_ms = asked_ms.saturating_sub(patience_ms);
        let since_ms = if self.calm_since_ms.is_some() {
            since_ms
        } else {
            0
        };
        let ran_on = self.reuses.ran_on.get(&(origin.job_id, origin.attempt));
        let lives = |(host, plan): (usize, &HostPlan)| {
            let classes = self.reuses.classes_since(host, plan, since_ms);
            ran_on.is_some_and(|class| classes.contains(class)) && lacks(origin, plan).is_none()
        };
        if self.plans.iter().enumerate().any(lives) {
            return Ok(());
        }
        broken(
            "I16",
            format!(
                "job {} has the result of {}, which ran on {ran_on:?}, and no such host could run it",
                after.job_id, origin.job_id
            ),
        )
    }

    /// Checks that no other run of the same thing ended differently, as far as the job's account can know.
    fn nothing_speaks_against(&self, after: &JobState, asked_ms: u64) -> Result<(), Violation> {
        let wanted = self.reuses.wanted.get(&after.job_id);
        let ends = wanted.and_then(|wanted| self.reuses.ends.get(&wanted.key));
        let calm_ms = self.calm_since_ms.unwrap_or(u64::MAX);
        let is_old = |since_ms: u64| since_ms.saturating_add(NOTED_MS + self.refresh_ms) < asked_ms;
        let may_know = |end: &&End| {
            let is_its = end.account == after.account || shares(&end.account);
            // A replica that dies may lose ends that it did not note yet.
            let killed_ms = self.reuses.killed.get(&end.replica);
            let is_noted = killed_ms.is_none_or(|killed_ms| *killed_ms < end.at_ms);
            is_its && is_noted && is_old(end.at_ms.max(calm_ms))
        };
        let known: Vec<&End> = ends.into_iter().flatten().filter(may_know).collect();
        let failed = known.iter().find(|end| {
            let differs = |other: &&&End| {
                let is_same = other.class.is_some() && other.class == end.class;
                other.is_good && (is_same || end.is_audit)
            };
            !end.is_good && known.iter().any(|other| differs(&other))
        });
        match failed {
            Some(end) => broken(
                "I16",
                format!(
                    "job {} has the result of another one, although job {} failed: {known:?}",
                    after.job_id, end.id
                ),
            ),
            None => Ok(()),
        }
    }

    /// Notes that a replica is killed.
    pub(crate) fn is_killed(&mut self, slot: usize, now_ms: u64) {
        self.reuses.killed.insert(format!("r{slot}"), now_ms);
    }

    /// Checks that no job waits long for the result of a job that has ended.
    pub(super) fn no_join_is_forgotten(&self, calm_ms: u64, now_ms: u64) -> Result<(), Violation> {
        let patience_ms = JOINED_MS + self.refresh_ms;
        let is_old = |since_ms: u64| since_ms.max(calm_ms) + patience_ms < now_ms;
        let states = self.history.jobs.values();
        let mut waiting = states.filter(|track| {
            let state = &track.state;
            state.stage == Stage::Submit && state.waits.is_some() && is_old(track.changed_ms)
        });
        let forgotten = waiting.find_map(|track| {
            let joined = track.state.reuse.as_ref()?.joined?;
            let other = self.history.jobs.get(&joined)?;
            let has_all = other.state.data_readiness >= DataReadiness::Uploaded
                || other.state.health != Health::Success;
            let is_over = other.state.stage.is_terminal() && has_all && is_old(other.changed_ms);
            is_over.then_some((track.state.job_id, joined))
        });
        match forgotten {
            Some((id, joined)) => broken("I16", format!("job {id} still waits for job {joined}")),
            None => Ok(()),
        }
    }
}

/// Returns true if a job that never ran has the end of the other one.
fn is_its_result(after: &JobState, origin: &JobState) -> bool {
    let ran = after.used_ms + after.running_ms + after.dispatch_ms > 0 || !after.host.is_empty();
    !ran && after.stage == Stage::Finish
        && after.health == origin.health
        && after.exit_code == origin.exit_code
        && after.outputs == origin.outputs
        && after.cases == origin.cases
        && after.result_root == origin.result_root
        && after.attempt == origin.attempt
}

/// Returns true if an account shares its results.
fn shares(account: &str) -> bool {
    ACCOUNTS.first() == Some(&account)
}

impl World {
    /// Notes that a host starts, after this number of boots.
    pub(crate) fn is_booted(&self, host: usize, boots: Option<u32>) {
        if let Some(boots) = boots {
            let now_ms = self.now_ms();
            let mut check = self.check();
            let known = check.reuses.boots.entry(host).or_default();
            known.push((now_ms, boots));
        }
    }
}
