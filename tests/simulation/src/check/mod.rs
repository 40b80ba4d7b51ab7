//! The judge: compares the promises with the events. It sees the truth of the store, every answer to a host or a user,
//! and the run of each workload. It takes no part.

mod calm;
mod counts;
mod doors;
mod fit;
mod history;
mod hosts;
mod needs;
mod queues;
mod reuse;
mod shards;

use std::collections::{BTreeMap, BTreeSet};

use fairlead_api::{ErrorCode, Grant};
use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{DocKind, DocWrite, NewJob};

use super::{
    net::Answer,
    scenario::{HostPlan, Scenario},
    timers,
    truth::Change,
    world::{Violation, WALL_START_MS, World},
};
pub use counts::Counts;
use doors::{Doors, HEALTH_CHECK};
use history::History;
use hosts::HostSide;
use reuse::Reuses;

/// State of the judge.
#[derive(Debug)]
pub(super) struct Check {
    plans: Vec<HostPlan>,
    lease_ms: u64,
    refresh_ms: u64,
    /// Lead of each replica's wall clock over the true time, ms. The next field is the maximum lead of any clock.
    clocks_ms: Vec<i64>,
    ahead_ms: i64,
    /// Sum of all clock steps, ms.
    stepped_ms: u64,
    replicas: u64,
    phantoms: bool,
    acknowledged: BTreeSet<JobId>,
    submits: u64,
    /// Job of each run of each timer.
    timed: BTreeMap<String, JobId>,
    /// Job of each entry of each submit.
    made: BTreeMap<String, JobId>,
    /// Requests that users repeated without an answer to the first, and those that arrived twice.
    repeated: BTreeSet<String>,
    history: History,
    doors: Doors,
    reuses: Reuses,
    hosts: Vec<HostSide>,
    /// Host and send time of the last request after which a claim was confirmed, by token.
    renewed: BTreeMap<String, (usize, u64)>,
    runs: BTreeMap<JobId, Vec<Run>>,
    /// Ends that hosts reported. The next field has the accepted ones.
    reported: BTreeMap<(JobId, String), Health>,
    taken: BTreeMap<(JobId, String), Health>,
    calm_since_ms: Option<u64>,
    /// Time of the last change of any state, ms.
    pub(super) changed_ms: u64,
    pub(super) counts: Counts,
}

/// A workload that runs on a host, as the host sees it.
#[derive(Debug, Clone)]
struct Run {
    host: usize,
    attempt: u16,
    from_ms: u64,
    /// Time at which it ends by itself, or has ended, ms.
    until_ms: u64,
    ended: bool,
    stop_when_cut_off: bool,
    /// True if its agent died since. Then nobody stops it when it is cut off.
    orphaned: bool,
}

fn broken(invariant: &'static str, what: impl Into<String>) -> Result<(), Violation> {
    Err(Violation {
        invariant,
        what: what.into(),
    })
}

impl Check {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            plans: scenario.hosts.clone(),
            lease_ms: scenario.lease_ms,
            refresh_ms: scenario.refresh_ms,
            clocks_ms: scenario.skews_ms.clone(),
            ahead_ms: scenario.skews_ms.iter().copied().max().unwrap_or(0),
            stepped_ms: 0,
            replicas: u64::try_from(scenario.replicas()).unwrap_or(1),
            phantoms: scenario.faults.write_phantom > 0,
            acknowledged: BTreeSet::new(),
            submits: 0,
            timed: BTreeMap::new(),
            made: BTreeMap::new(),
            repeated: BTreeSet::new(),
            history: History::default(),
            doors: Doors::default(),
            reuses: Reuses::default(),
            hosts: scenario.hosts.iter().map(|_| HostSide::default()).collect(),
            renewed: BTreeMap::new(),
            runs: BTreeMap::new(),
            reported: BTreeMap::new(),
            taken: BTreeMap::new(),
            calm_since_ms: None,
            changed_ms: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the latest time that any replica's wall clock may have shown, UTC epoch ms.
    fn latest_wall_ms(&self, now_ms: u64) -> u64 {
        WALL_START_MS
            .saturating_add(now_ms)
            .saturating_add_signed(self.ahead_ms)
    }

    /// Returns the time of the wall clock that is furthest ahead, UTC epoch ms, and the distance to the last one, ms.
    fn fastest_wall_ms(&self, now_ms: u64) -> (u64, u64) {
        let clocks = self.clocks_ms.iter().copied();
        let (ahead_ms, behind_ms) = (clocks.clone().max(), clocks.min());
        let (ahead_ms, behind_ms) = (ahead_ms.unwrap_or(0), behind_ms.unwrap_or(0));
        let now_ms = WALL_START_MS.saturating_add(now_ms);
        (
            now_ms.saturating_add_signed(ahead_ms),
            ahead_ms.abs_diff(behind_ms),
        )
    }

    /// Returns the time of the wall clock that is furthest behind, UTC epoch ms.
    fn slowest_wall_ms(&self, now_ms: u64) -> u64 {
        let behind_ms = self.clocks_ms.iter().copied().min().unwrap_or(0);
        WALL_START_MS
            .saturating_add(now_ms)
            .saturating_add_signed(behind_ms)
    }

    /// Returns the lead of a replica's wall clock over the true time, ms.
    pub(super) fn clock_of(&self, slot: usize) -> i64 {
        self.clocks_ms.get(slot).copied().unwrap_or(0)
    }

    /// Notes a step of a wall clock.
    pub(super) fn clock_steps(&mut self, slot: usize, by_ms: i64) {
        self.stepped_ms += by_ms.unsigned_abs();
        if let Some(clock_ms) = self.clocks_ms.get_mut(slot) {
            *clock_ms += by_ms;
            self.ahead_ms = self.ahead_ms.max(*clock_ms);
        }
    }

    /// Returns the sum of all clock steps, ms.
    pub(super) fn stepped_ms(&self) -> u64 {
        self.stepped_ms
    }

    /// Returns the name of the next submit.
    pub(super) fn next_submit(&mut self) -> String {
        self.submits += 1;
        format!("submit {}", self.submits)
    }

    /// Notes that a request may reach the replicas more than once.
    pub(super) fn may_be_repeated(&mut self, what: &str) {
        self.repeated.insert(what.to_owned());
    }

    /// Checks a new job. Its submit, unless it was repeated, must not have created another job from it.
    fn created(&mut self, job: &NewJob) -> Result<(), Violation> {
        let id = job.state.job_id;
        if job.state.account == HEALTH_CHECK {
            return self.check_is_made(id);
        }
        if let Some(run) = timers::run_of(&job.body) {
            let first = *self.timed.entry(run.clone()).or_insert(id);
            if first != id {
                return broken("I10", format!("{run} is job {first} and job {id}"));
            }
            return Ok(());
        }
        if job.state.shard.is_some() {
            return self.shard_is_made(&job.state);
        }
        let asked = &job.body["labels"];
        let place = job.state.cluster.as_ref();
        let node = place.and_then(|place| place.jobs.iter().position(|peer| *peer == id));
        let each = format!("{asked} {node:?}");
        let first = *self.made.entry(each).or_insert(id);
        // A node that was stored without its peers is cancelled, and its submit is refused.
        let known = self.history.jobs.get(&first);
        let is_taken_back = known.is_some_and(|it| {
            it.state.stage == Stage::Cancel && it.state.reason.ends_with("could not be stored")
        });
        let is_repeated = asked[0]
            .as_str()
            .is_none_or(|what| self.repeated.contains(what));
        if first != id && !is_repeated && !is_taken_back {
            return broken("I1", format!("{asked} made job {first} and job {id}"));
        }
        Ok(())
    }

    /// Notes that a user was told that the job is stored.
    pub(super) fn submitted(&mut self, id: JobId) {
        self.counts.acknowledged += 1;
        self.acknowledged.insert(id);
    }

    /// Notes that a host reports an end.
    pub(super) fn end_is_reported(&mut self, grant: &Grant, health: Health) {
        if let Ok(id) = grant.job_id.parse() {
            self.reported
                .insert((id, grant.claim_token.clone()), health);
        }
    }

    /// Notes that a host sends a heartbeat with exactly these jobs. It has given up its other jobs, even if it never
    /// gets the answer (seed 4201).
    pub(super) fn named(&mut self, host: usize, tokens: &[&str]) {
        self.renewed
            .retain(|token, (its, _)| *its != host || tokens.contains(&token.as_str()));
    }

    /// Notes a good answer to a request in which a host named exactly these jobs.
    pub(super) fn renewed(&mut self, host: usize, tokens: &[&str], sent_ms: u64) {
        // The host needs no news of jobs that it names no more.
        self.renewed.retain(|token, (its, at_ms)| {
            *its != host || *at_ms >= sent_ms || tokens.contains(&token.as_str())
        });
        for token in tokens {
            let (_, at_ms) = self
                .renewed
                .entry((*token).to_owned())
                .or_insert((host, sent_ms));
            *at_ms = sent_ms.max(*at_ms);
        }
    }

    /// Returns true if one of these jobs was ended by others than its host. The host cannot know that yet.
    pub(super) fn ended_elsewhere(&self, has: &[(String, u16)]) -> bool {
        has.iter().any(|(id, attempt)| {
            let id = id.parse().ok();
            let track = id.and_then(|id: JobId| self.history.jobs.get(&id));
            track.is_some_and(|track| {
                !track.state.stage.is_held() || track.state.attempt != *attempt
            })
        })
    }

    fn run_ends(&mut self, host: usize, key: &(String, u16), now_ms: u64) {
        let Ok(id) = key.0.parse::<JobId>() else {
            return;
        };
        for run in self.runs.entry(id).or_default() {
            if run.host == host && run.attempt == key.1 && !run.ended {
                run.ended = true;
                run.until_ms = run.until_ms.min(now_ms);
            }
        }
    }

    /// Checks a workload that starts. A workload that must never run twice at once must not run anywhere.
    fn run_begins(&mut self, run: Run, id: JobId, now_ms: u64) -> Result<(), Violation> {
        self.counts.runs += 1;
        self.may_run(id, run.attempt, run.host)?;
        let runs = self.runs.entry(id).or_default();
        let overlaps = |other: &&Run| !other.ended && other.until_ms > now_ms;
        let other = runs.iter().find(overlaps).cloned();
        let (host, attempt) = (run.host, run.attempt);
        let alone = run.stop_when_cut_off;
        runs.push(run);
        let Some(other) = other else {
            return Ok(());
        };
        self.counts.overlaps += 1;
        if (alone && !other.orphaned) || other.host == host {
            return broken(
                "I2",
                format!(
                    "job {id} begins on host {host} (attempt {attempt}) while it runs on host {} (attempt {}) since {} ms",
                    other.host, other.attempt, other.from_ms
                ),
            );
        }
        Ok(())
    }

    /// Checks that an answer to a user or host is not a crash.
    fn answered(what: &str, answer: &Answer) -> Result<(), Violation> {
        if answer.status == ErrorCode::Internal.status() {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            return broken("answers", format!("{what}: {text}"));
        }
        Ok(())
    }
}

impl World {
    /// Notes that a job is about to be created.
    pub(super) fn is_wanted(&self, job: &NewJob) {
        let now_ms = self.now_ms();
        self.check().wants(job, now_ms);
    }

    /// Checks a job that was created.
    pub(super) fn created(&self, job: &NewJob) {
        self.checked(|check, _| check.created(job));
    }

    /// Checks a small document that was written in truth.
    pub(super) fn doc_written(&self, kind: DocKind, write: &DocWrite) {
        self.checked(|check, now_ms| check.doc_written(kind, write, now_ms));
    }

    /// Checks a state of a job that was changed in truth.
    pub(super) fn changed(&self, change: &Change, by: &str, asked_ms: u64) {
        let after = &change.after;
        let from = change.before.as_ref().map_or("", |it| it.stage.as_str());
        self.note(format_args!(
            "{by}: {} #{} {from}>{} {} {}/{} {} {}",
            after.job_id,
            after.attempt,
            after.stage,
            after.host,
            change.version.primary_term,
            change.version.seq_no,
            if after.stage.is_terminal() {
                after.health.as_str()
            } else {
                ""
            },
            after.reason,
        ));
        self.checked(|check, now_ms| {
            check.changed_ms = now_ms;
            let replica = by.split('.').next().unwrap_or(by);
            check.takes_rightly(change, replica, asked_ms, now_ms)?;
            check.changed(change, replica, asked_ms, now_ms)
        });
    }

    /// Checks a grant that arrived at a host.
    pub(super) fn granted(&self, host: usize, grant: &Grant, fits: bool, has: &[(String, u16)]) {
        let verdict = if fits { "takes" } else { "cannot take" };
        self.note(format_args!(
            "{} {verdict} {} #{}",
            self.scenario.hosts.get(host).map_or("", |it| &it.name),
            grant.job_id,
            grant.attempt
        ));
        // The host may have jobs that have ended without its knowledge. Then it gives this one back.
        if !fits && !self.check().ended_elsewhere(has) {
            let what = format!(
                "host {host} is granted job {}, for which it has no room",
                grant.job_id
            );
            self.violated("I2", what);
        }
    }

    /// Checks a workload that starts.
    pub(super) fn run_begins(&self, host: usize, grant: &Grant, until_ms: u64) {
        self.note(format_args!(
            "{} begins {} #{}, to {until_ms}",
            self.scenario.hosts.get(host).map_or("", |it| &it.name),
            grant.job_id,
            grant.attempt
        ));
        let Ok(id) = grant.job_id.parse::<JobId>() else {
            return;
        };
        self.checked(|check, now_ms| {
            let run = Run {
                host,
                attempt: grant.attempt,
                from_ms: now_ms,
                until_ms,
                ended: false,
                stop_when_cut_off: grant.stop_when_cut_off,
                orphaned: false,
            };
            check.run_begins(run, id, now_ms)
        });
    }

    /// Notes that a workload has ended.
    pub(super) fn run_ends(&self, host: usize, key: &(String, u16)) {
        let now_ms = self.now_ms();
        self.check().run_ends(host, key, now_ms);
    }

    /// Notes the answer to the report of an end.
    pub(super) fn end_answered(&self, host: usize, grant: &Grant, health: Health, answer: &Answer) {
        self.note(format_args!(
            "{} is told {} for {} #{}",
            self.scenario.hosts.get(host).map_or("", |it| &it.name),
            answer.status,
            grant.job_id,
            grant.attempt
        ));
        self.checked(|check, _| {
            if answer.is_good()
                && let Ok(id) = grant.job_id.parse()
            {
                check.taken.insert((id, grant.claim_token.clone()), health);
            }
            Check::answered("the report of an end", answer)
        });
    }

    /// Checks the answer to a user.
    pub(super) fn user_answered(&self, what: &str, answer: &Answer) {
        self.note(format_args!("user: {what} is answered {}", answer.status));
        self.checked(|_, _| Check::answered(what, answer));
    }

    /// Checks that a host was rightly told that a job is no longer its own.
    pub(super) fn told_to_forget(
        &self,
        host: usize,
        key: &(String, u16),
        token: &str,
        sent_ms: u64,
    ) {
        self.note(format_args!(
            "{} is told to forget {} #{}",
            self.scenario.hosts.get(host).map_or("", |it| &it.name),
            key.0,
            key.1
        ));
        let Ok(id) = key.0.parse::<JobId>() else {
            return;
        };
        let truth = self
            .truth()
            .job(id)
            .map(|entry| std::sync::Arc::clone(&entry.state));
        self.checked(|check, _| {
            let is_its =
                truth.is_some_and(|state| state.claim_token == token && state.stage.is_held());
            if is_its && !check.phantoms && check.history.unchanged_since(id, sent_ms) {
                return broken(
                    "I2",
                    format!("host {host} was told to forget job {id}, which is its own"),
                );
            }
            Ok(())
        });
    }
}
