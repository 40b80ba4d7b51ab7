//! Checks who gets a host, and how much: cordoned, suspect and reserved hosts, and limits of running jobs. It uses the
//! true documents, and forgives what replicas cannot have read yet.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_job::{Health, JobId, Stage};
use fairlead_store::{DocKind, DocWrite, JobState};
use serde_json::Value;

use super::{Check, broken, fit::lacks};
use crate::{scenario::HostPlan, world::Violation};

/// Account of health checks. A suspect host gets only its jobs.
pub(super) const HEALTH_CHECK: &str = "health-check";
/// Time for which replicas may not know of a document or a job in addition to a refresh, ms. It covers a read every
/// other second, and a claim in transit.
const NEWS_MS: u64 = 2_500 + 1_000;
/// Interval at which replicas read the list of hosts, ms.
const HOSTS_MS: u64 = 10_000;

/// Restrictions on the jobs of a host.
#[derive(Debug, Default)]
struct Door {
    closed: bool,
    suspect: bool,
    /// Accounts that it is reserved for, and the end by the replicas' clocks, UTC epoch ms.
    kept: Option<(Vec<String>, u64)>,
    /// Time of the last change, ms.
    since_ms: u64,
    /// Time of the first document of the host, ms.
    known_ms: Option<u64>,
    /// True if an admin has opened it.
    opened: bool,
}

impl Door {
    fn serves(&self, account: &str) -> bool {
        let kept = self.kept.as_ref();
        let keeps_off =
            kept.is_some_and(|(accounts, _)| !accounts.iter().any(|one| one == account));
        match (self.closed, self.suspect) {
            (true, _) => false,
            (_, true) => account == HEALTH_CHECK,
            _ => !keeps_off,
        }
    }
}

/// A limit of jobs on testboxes.
#[derive(Debug)]
struct Limit {
    hard: Option<u64>,
    since_ms: u64,
    is_full: bool,
    full_until_ms: u64,
}

/// Hosts by name, limits by account (`false`) or queue (`true`), and the recorded health checks.
#[derive(Debug, Default)]
pub(super) struct Doors {
    hosts: BTreeMap<String, Door>,
    limits: BTreeMap<(bool, String), Limit>,
    checks: BTreeSet<JobId>,
}

fn is_of(state: &JobState, (is_queue, name): &(bool, String)) -> bool {
    name == if *is_queue {
        &state.queue
    } else {
        &state.account
    }
}

impl Check {
    fn news_ms(&self) -> u64 {
        NEWS_MS + self.refresh_ms
    }

    /// Notes that an admin is about to open a host.
    pub(crate) fn is_opened(&mut self, host: &str) {
        self.doors.hosts.entry(host.to_owned()).or_default().opened = true;
    }

    /// Returns the hosts that are still suspect. Empty: none.
    pub(crate) fn suspects(&self) -> String {
        let hosts = self.doors.hosts.iter();
        let suspects = hosts.filter(|(_, door)| door.suspect);
        let suspects = suspects.map(|(host, _)| format!("suspect {host}"));
        suspects.collect::<Vec<_>>().join(", ")
    }

    /// Returns the hosts that ask during calm and are not stored, so that no other replica knows them. Empty: none.
    pub(crate) fn strangers(&self) -> String {
        let known = |host: &str| {
            self.doors
                .hosts
                .get(host)
                .is_some_and(|door| door.known_ms.is_some())
        };
        let sides = self.plans.iter().zip(&self.hosts);
        let ask = sides.filter(|(_, side)| {
            let sent = side.asks.as_ref().map(|(_, sent_ms)| *sent_ms);
            sent.is_some() && sent >= self.calm_since_ms
        });
        let strangers = ask.filter(|(plan, _)| !known(&plan.name));
        let strangers = strangers.map(|(plan, _)| format!("{}, which is not stored", plan.name));
        strangers.collect::<Vec<_>>().join(", ")
    }

    /// Notes that a small document was written in truth.
    pub(super) fn doc_written(
        &mut self,
        kind: DocKind,
        write: &DocWrite,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let body = write.body.as_ref();
        match kind {
            DocKind::Host => {
                let door = self.doors.hosts.entry(write.id.clone()).or_default();
                door.known_ms = body.and(door.known_ms.or(Some(now_ms)));
            }
            DocKind::Closure => return self.closure_written(&write.id, body, now_ms),
            DocKind::Reservation => {
                let kept = body.and_then(|body| {
                    let accounts = serde_json::from_value(body["accounts"].clone()).ok()?;
                    Some((accounts, body["until_ms"].as_u64()?))
                });
                let door = self.doors.hosts.entry(write.id.clone()).or_default();
                (door.kept, door.since_ms) = (kept, now_ms);
            }
            DocKind::Queue | DocKind::Account => {
                let hard = body.and_then(|body| body["limits"]["running"]["hard"].as_u64());
                let whose = (kind == DocKind::Queue, write.id.clone());
                let full_until_ms = self
                    .doors
                    .limits
                    .get(&whose)
                    .map_or(0, |it| it.full_until_ms);
                let limit = Limit {
                    hard,
                    since_ms: now_ms,
                    is_full: false,
                    full_until_ms,
                };
                self.doors.limits.insert(whose, limit);
                self.fill_limits(now_ms);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that only an admin, or a passed health check, opens a host.
    fn closure_written(
        &mut self,
        host: &str,
        body: Option<&Value>,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let passed = |state: &JobState| {
            (state.account.as_str(), state.host.as_str()) == (HEALTH_CHECK, host)
                && (state.stage, state.health) == (Stage::Finish, Health::Success)
        };
        let mut states = self.history.jobs.values().map(|track| &track.state);
        let is_well = states.any(|state| passed(state));
        let door = self.doors.hosts.entry(host.to_owned()).or_default();
        // The cordon of a machine that its pool ended is forgotten with it.
        let rightly = door.opened || is_well || door.known_ms.is_none();
        if body.is_none() && door.suspect && !rightly {
            return broken("I11", format!("suspect host {host} is opened by nobody"));
        }
        let how = body.and_then(|body| body["how"].as_str());
        (door.suspect, door.closed) = (how == Some("suspect"), how == Some("cordon"));
        door.since_ms = now_ms;
        let check = body.and_then(|body| body["check"]["job_id"].as_str()?.parse().ok());
        self.doors.checks.extend::<Option<JobId>>(check);
        Ok(())
    }

    /// Checks a new health check: a document must have recorded it before.
    pub(super) fn check_is_made(&self, id: JobId) -> Result<(), Violation> {
        if self.doors.checks.contains(&id) {
            return Ok(());
        }
        broken("I11", format!("health check {id} is one too many"))
    }

    /// Finds the limits that are reached.
    pub(super) fn fill_limits(&mut self, now_ms: u64) {
        for (whose, limit) in &mut self.doors.limits {
            let states = self.history.jobs.values().map(|track| &track.state);
            let held = states.filter(|state| state.stage.is_held() && is_of(state, whose));
            let held = u64::try_from(held.count()).unwrap_or(u64::MAX);
            let is_full = limit.hard.is_some_and(|most| held >= most);
            if limit.is_full && !is_full {
                limit.full_until_ms = now_ms;
            }
            limit.is_full = is_full;
        }
    }

    /// Returns true if restrictions may keep a waiting job off a host, apart from the host's properties.
    pub(super) fn is_kept_off(&self, state: &JobState, plan: &HostPlan, now_ms: u64) -> bool {
        let fresh = |since_ms: u64| since_ms > 0 && since_ms + 3 * self.news_ms() > now_ms;
        let door = self.doors.hosts.get(&plan.name);
        let shut = door.is_some_and(|door| !door.serves(&state.account) || fresh(door.since_ms));
        let limits = self.doors.limits.iter();
        let mut limits = limits.filter(|(whose, _)| is_of(state, whose));
        shut || state.not_on.contains(&plan.name)
            || limits.any(|(_, limit)| {
                limit.is_full || fresh(limit.full_until_ms) || fresh(limit.since_ms)
            })
    }

    /// Checks that a claim respects all restrictions that its replica must have known.
    pub(super) fn may_have_it(
        &self,
        after: &JobState,
        asked_ms: u64,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let (id, host) = (after.job_id, &after.host);
        if after.not_on.contains(host) {
            return broken("I3", format!("job {id} comes to {host}, where it failed"));
        }
        let is_old = |since_ms: u64| since_ms + self.news_ms() < asked_ms;
        if !self.calm_since_ms.is_some_and(is_old) {
            return Ok(());
        }
        let latest_ms = self.latest_wall_ms(now_ms);
        let holds = |door: &&Door| {
            let is_over = |(_, until_ms): &(Vec<String>, u64)| *until_ms <= latest_ms;
            let by_time = !door.closed && !door.suspect;
            is_old(door.since_ms) && !(by_time && door.kept.as_ref().is_some_and(is_over))
        };
        let door = self.doors.hosts.get(host).filter(holds);
        if door.is_some_and(|door| !door.serves(&after.account)) {
            return broken(
                "I3",
                format!("job {id} of {} comes to {host}: {door:?}", after.account),
            );
        }
        let limits = self.doors.limits.iter();
        for (whose, limit) in limits.filter(|(whose, _)| is_of(after, whose)) {
            let Some(most) = limit.hard.filter(|_| is_old(limit.since_ms)) else {
                continue;
            };
            let others = self.history.jobs.values().filter(|track| {
                let state = &track.state;
                let is_held = state.stage.is_held() && is_old(track.waited_until_ms);
                is_held && state.job_id != id && is_of(state, whose)
            });
            let many = u64::try_from(others.count()).unwrap_or(u64::MAX);
            if many >= most {
                return broken(
                    "I3",
                    format!("job {id} begins beside {many} of {whose:?}, whose limit is {most}"),
                );
            }
        }
        Ok(())
    }

    /// Checks that a job that avoids a host returns there only if no other host could run it.
    pub(super) fn goes_elsewhere(
        &self,
        before: &JobState,
        after: &JobState,
        asked_ms: u64,
    ) -> Result<(), Violation> {
        let patience_ms = HOSTS_MS + self.news_ms();
        let is_old = |since_ms: u64| since_ms + patience_ms < asked_ms;
        let in_calm = self.calm_since_ms.is_some_and(is_old);
        if !before.retry_elsewhere || after.not_on.contains(&before.host) || !in_calm {
            return Ok(());
        }
        let other = self.plans.iter().find(|plan| {
            let door = self.doors.hosts.get(&plan.name);
            let is_known = door.is_some_and(|door| {
                door.known_ms.is_some_and(is_old)
                    && (door.since_ms == 0 || is_old(door.since_ms))
                    && door.serves(&before.account)
            });
            let failed = plan.name == before.host || before.not_on.contains(&plan.name);
            is_known && !failed && lacks(before, plan).is_none()
        });
        match other {
            Some(plan) => broken(
                "I3",
                format!(
                    "job {} may come back to {}, and {} could run it",
                    before.job_id, before.host, plan.name
                ),
            ),
            None => Ok(()),
        }
    }

    /// Checks that reservations end at their time.
    pub(super) fn nothing_is_kept_for_ever(
        &self,
        calm_ms: u64,
        now_ms: u64,
    ) -> Result<(), Violation> {
        let patience_ms = 2 * self.news_ms();
        let (fastest_ms, _) = self.fastest_wall_ms(now_ms);
        let earliest_ms = fastest_ms.saturating_sub(patience_ms);
        let is_late = |door: &Door| {
            let kept = door.kept.as_ref();
            let is_over = kept.is_some_and(|(_, until_ms)| *until_ms < earliest_ms);
            is_over && door.since_ms + patience_ms < now_ms
        };
        let mut hosts = self.doors.hosts.iter();
        match hosts.find(|(_, door)| calm_ms + patience_ms < now_ms && is_late(door)) {
            Some((host, door)) => broken("I6", format!("{host} is not given back: {door:?}")),
            None => Ok(()),
        }
    }
}
