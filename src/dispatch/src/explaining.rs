//! Explains why a job waits, and why a host is idle.
//!
//! It uses the rules of matching ([`crate::requirement`]), so nothing is judged in two ways. Its cost grows with the
//! known hosts and never with the jobs. Every list in an answer is bounded.

use crate::engine::Engine;
use crate::event::JobFacts;
use crate::explain::{
    Ahead, Count, EXPLAIN_COUNT_MAX, EXPLAIN_LIST_MAX, HostExplanation, HostVerdict,
    JobExplanation, JobState, QueueStanding, Reason, ShapeVerdict,
};
use crate::hosts::Host;
use crate::ids::{HostId, JobKey, MemberId, Millis, QueueId, ShapeId};
use crate::interner::Atom;
use crate::judge::{Judge, plain_shape, texts};
use crate::kept_off::Waits;
use crate::labels::place_of;
use crate::requirement::{Name, Requirement};
use crate::shape::{Gate, Shape, View};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Engine {
    /// Explains the state of a job that waits here, is in flight or runs. `None`: the engine does not know the job.
    pub fn explain_job(&self, now: Millis, job: JobKey) -> Option<JobExplanation> {
        let now = self.now.max(now.0);
        if let Some(cached) = self.index.jobs.get(&job) {
            let (shape, owner) = self.index.shape_of(cached)?;
            let standing = self.standing(owner.queue, owner.member);
            let mut explained = self.explain((job, cached.submitted), shape, standing, now);
            explained.state = JobState::Waiting;
            explained.ahead = Ahead {
                overtaken_by: self.overtaken_by(job, cached),
                ..self.ahead(owner, (Reverse(cached.priority), job), now)
            };
            self.add_gate(&mut explained.reasons, job, shape);
            return Some(explained);
        }
        let run = self.runs.get(&job)?;
        let host = self.host_name(run.host);
        let since = self
            .ledger
            .charges
            .get(&job)
            .and_then(|charge| charge.since);
        let state = match &run.flight {
            Some(flight) => JobState::InFlight {
                host,
                offer: flight.offer,
            },
            None => JobState::Running {
                host,
                since: Millis(since.unwrap_or(now)),
            },
        };
        Some(JobExplanation {
            job,
            state,
            standing: self.standing(run.owner.queue, run.owner.member),
            ahead: Ahead::default(),
            reasons: Vec::new(),
            behind: Vec::new(),
            reserved_host: None,
            hosts_known: self.hosts.present().count() as u64,
            hosts_able: 0,
            hosts_ready: 0,
            hosts: Vec::new(),
            hosts_more: 0,
        })
    }

    /// Returns the reason why a paused queue dispatches nothing.
    fn why_paused(&self) -> Reason {
        if self.ledger.policy.paused {
            Reason::LabPaused
        } else {
            Reason::QueuePaused
        }
    }

    /// Explains any job by its facts, in memory here or not: for example if any known host could ever run it.
    pub fn explain_facts(&self, now: Millis, facts: &JobFacts) -> JobExplanation {
        if let Some(known) = self.explain_job(now, facts.key) {
            return known;
        }
        let now = self.now.max(now.0);
        let shape = plain_shape(&self.atoms, facts);
        let owner = self.ledger.known_owner(&facts.queue, &facts.account);
        let (queue, _) = place_of(&facts.queue, &facts.account);
        let policy = self.ledger.policy.of_queue(queue);
        let standing = owner.map_or_else(
            || QueueStanding {
                queue: queue.to_owned(),
                account: facts.account.clone(),
                class: policy.priority.min(crate::ids::CLASS_MAX),
                weight: policy.weight.clamp(1, crate::meter::WEIGHT_MAX),
                paused: policy.paused,
                share_permille: 0,
                background_permille: policy.background_permille,
            },
            |owner| self.standing(owner.queue, owner.member),
        );
        let submitted = facts.submitted.0.min(now);
        let mut explained = self.explain((facts.key, submitted), &shape, standing, now);
        let place = (Reverse(facts.priority), facts.key);
        explained.ahead = match owner {
            Some(owner) => self.ahead(owner, place, now),
            None => self.ahead_of_newcomer(queue),
        };
        explained
    }

    fn explain(
        &self,
        (job, submitted): (JobKey, u64),
        shape: &Shape,
        standing: QueueStanding,
        now: u64,
    ) -> JobExplanation {
        let waits = Waits::new(&standing.account, shape, submitted);
        let judge = Judge::new(self, waits, now);
        let mut verdicts: Vec<(bool, usize, HostId, &Host)> =
            Vec::with_capacity(self.hosts.known.len());
        let (mut able, mut ready) = (0, 0);
        for (id, host) in self.hosts.present() {
            let could = judge.is_able(host);
            able += u64::from(could);
            ready += u64::from(judge.is_ready(host));
            verdicts.push((!could, judge.lacking(&host.view), id, host));
        }
        verdicts.sort_unstable_by(|a, b| (a.0, a.1, &a.3.name).cmp(&(b.0, b.1, &b.3.name)));
        let hosts_more = verdicts.len().saturating_sub(EXPLAIN_LIST_MAX) as u64;
        let named = verdicts.into_iter().take(EXPLAIN_LIST_MAX);
        let hosts = named.map(|(unable, _, id, host)| {
            let mut reasons = reasons(&standing.account, shape, &host.view);
            self.add_host_reasons(&mut reasons, job, id, host);
            reasons.extend(host.why_loaded().filter(|_| judge.is_kept(host)));
            HostVerdict {
                host: host.name.to_string(),
                able: !unable,
                reasons,
            }
        });
        let hosts = hosts.collect();
        let reserved = self.reservations.values().find(|r| r.job == job);
        let paused = standing.paused.then(|| self.why_paused());
        let limits = self
            .ledger
            .limits_reached(&standing.queue, &standing.account);
        let all_loaded = self.all_loaded(waits, now);
        let reasons = paused.into_iter().chain(limits).chain(all_loaded).collect();
        JobExplanation {
            job,
            state: JobState::NotCached,
            reasons,
            behind: self
                .ledger
                .limits_passed(&standing.queue, &standing.account),
            standing,
            ahead: Ahead::default(),
            reserved_host: reserved.map(|r| self.host_name(r.host)),
            hosts_known: self.hosts.present().count() as u64,
            hosts_able: able,
            hosts_ready: ready,
            hosts,
            hosts_more,
        }
    }

    fn host_name(&self, id: HostId) -> String {
        let host = self.hosts.known.get(id);
        host.map(|host| host.name.to_string()).unwrap_or_default()
    }

    fn add_host_reasons(&self, reasons: &mut Vec<Reason>, job: JobKey, id: HostId, host: &Host) {
        let offer = host.open.and_then(|offer| self.hosts.offers.get(&offer));
        // One that is full with what is on its way to it asks for nothing.
        if offer.is_none_or(|offer| offer.is_untouched() && offer.room() == 0) {
            reasons.push(Reason::NotAsking {
                last_seen: Millis(host.last_seen),
            });
        }
        let reserved = self
            .reservations
            .values()
            .find(|r| r.host == id && r.job != job);
        reasons.extend(reserved.map(|r| Reason::ReservedFor(r.job)));
    }

    fn add_gate(&self, reasons: &mut Vec<Reason>, job: JobKey, shape: &Shape) {
        let Some(until) = self.gates.until.get(&job).copied().map(Millis) else {
            return;
        };
        match shape.gate {
            Gate::Open => {}
            Gate::Affine(_) => reasons.push(Reason::WaitingForAffinity { until }),
            Gate::Blocked => reasons.push(Reason::WaitingForStore { until }),
        }
    }

    fn standing(&self, queue: QueueId, member: MemberId) -> QueueStanding {
        let account = self
            .ledger
            .members
            .get(member)
            .map(|member| member.account.to_string());
        let (name, policy) = self
            .ledger
            .queues
            .get(queue)
            .map(|q| (q.name.to_string(), q.policy))
            .unwrap_or_default();
        let class = policy.priority.min(crate::ids::CLASS_MAX);
        QueueStanding {
            queue: name,
            account: account.unwrap_or_default(),
            class,
            weight: policy.weight.clamp(1, crate::meter::WEIGHT_MAX),
            paused: policy.paused,
            share_permille: self
                .ledger
                .queues
                .get(queue)
                .map_or(0, |queue| self.share_permille(queue)),
            background_permille: policy.background_permille,
        }
    }

    /// Explains why a host is idle, or how busy it is. `None`: it has neither asked nor has it jobs. The time is not
    /// used yet.
    pub fn explain_host(&self, _now: Millis, host: &str) -> Option<HostExplanation> {
        let id = self.hosts.id(host)?;
        let known = self.hosts.known.get(id).filter(|host| !host.left)?;
        let offer = known
            .open
            .and_then(|key| Some((key, Millis(self.hosts.offers.get(&key)?.since))));
        let (shapes, shapes_more) = self.shapes_for(known);
        let cells = known
            .view
            .keys
            .iter()
            .filter_map(|key| self.index.under(key));
        Some(HostExplanation {
            host: known.name.to_string(),
            asking: offer,
            last_seen: Millis(known.last_seen),
            jobs: known.runs.len() as u64,
            free_memory_mb: known.view.free_mb,
            reserved_for: self
                .reservations
                .values()
                .find(|r| r.host == id)
                .map(|r| r.job),
            load: known.load,
            jobs_under_keys: cells.map(|cells| cells.jobs).sum(),
            shapes,
            shapes_more,
        })
    }

    fn shapes_for(&self, host: &Host) -> (Vec<ShapeVerdict>, bool) {
        let cells = host
            .view
            .keys
            .iter()
            .filter_map(|key| self.index.under(key));
        let listed = cells
            .flat_map(|cells| cells.shapes.values())
            .flatten()
            .map(|(_, id)| *id);
        let mut found: BTreeMap<ShapeId, ShapeVerdict> = BTreeMap::new();
        for id in listed {
            if found.contains_key(&id) {
                continue;
            }
            if found.len() >= EXPLAIN_LIST_MAX {
                return (found.into_values().collect(), true);
            }
            let Some(verdict) = self.shape_verdict(id, host) else {
                continue;
            };
            found.insert(id, verdict);
        }
        (found.into_values().collect(), false)
    }

    fn shape_verdict(&self, id: ShapeId, host: &Host) -> Option<ShapeVerdict> {
        let entry = self.index.shapes.get(id)?;
        let buckets = entry
            .holders
            .iter()
            .take(EXPLAIN_LIST_MAX)
            .filter_map(|id| self.index.buckets.get(*id));
        let counted: u64 = buckets.clone().map(|bucket| bucket.jobs.len() as u64).sum();
        let example = buckets
            .clone()
            .filter_map(|bucket| bucket.jobs.first())
            .min()?
            .1;
        let jobs = Count {
            counted: counted.min(EXPLAIN_COUNT_MAX),
            more: counted > EXPLAIN_COUNT_MAX || entry.holders.len() > EXPLAIN_LIST_MAX,
        };
        // Reasons of all of them: those of one account say more only if no other's could run here.
        let owners = buckets
            .clone()
            .map(|bucket| self.ledger.account(bucket.owner));
        let served = owners.clone().find(|account| host.view.env.serves(account));
        let account = served.or_else(|| owners.clone().next())?;
        let mut reasons = reasons(account, &entry.shape, &host.view);
        self.add_gate(&mut reasons, example, &entry.shape);
        Some(ShapeVerdict {
            jobs,
            example,
            reasons,
        })
    }
}

/// Returns all reasons why a host cannot run a shape, with details. Gates are left out: they belong to the job, not
/// to the host.
fn reasons(account: &str, shape: &Shape, host: &View) -> Vec<Reason> {
    let missing = |needs: &[Atom], has: &[Atom]| {
        let lacks = |name: &&Atom| has.binary_search(name).is_err();
        needs
            .iter()
            .filter(lacks)
            .map(ToString::to_string)
            .collect()
    };
    let reason = |unmet| match unmet {
        Requirement::Account => Reason::KeptFor {
            accounts: texts(&host.env.accounts),
        },
        Requirement::HostKey => Reason::MissingKey {
            wants: texts(shape.keys.get(..EXPLAIN_LIST_MAX).unwrap_or(&shape.keys)),
        },
        Requirement::OtherHost => Reason::FailedThere,
        Requirement::Architecture => Reason::Arch {
            needs: shape.arch.to_string(),
            has: host.env.arch.to_string(),
        },
        Requirement::Memory => Reason::Memory {
            needs_mb: shape.memory_mb,
            free_mb: host.memory_for(shape.kind),
            total_mb: host.total_mb,
        },
        Requirement::Cpus => Reason::Cpus {
            needs: shape.cpus,
            free: host.cpus_for(shape.kind),
            total: host.total_cpus,
        },
        Requirement::Tags => Reason::Tags {
            missing: missing(&shape.tags, &host.env.tags),
        },
        Requirement::NotTags => Reason::AvoidedTags {
            has: (shape.not_tags.iter())
                .filter(|tag| tag.is_among(&host.env.tags))
                .map(ToString::to_string)
                .collect(),
        },
        Requirement::AnyOf => Reason::NoAlternative {
            has: texts(&host.env.tags),
        },
        Requirement::Devices => Reason::Devices {
            missing: missing(&shape.devices, &host.env.devices),
        },
    };
    let (required, has) = (shape.requirements(Some(account)), host.now(shape.kind));
    let unmet = required.unmet_by(&has).map(reason);
    let busy = (!host.admits(shape.kind)).then_some(Reason::BusyHw);
    unmet.chain(busy).collect()
}
