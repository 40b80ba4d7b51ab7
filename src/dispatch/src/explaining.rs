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
use crate::ids::{HostId, JobKey, MemberId, Millis, Owner, QueueId, ShapeId};
use crate::index::Job;
use crate::interner::{Atom, Atoms};
use crate::kept_off::Waits;
use crate::labels::place_of;
use crate::requirement::{Name, Requirement};
use crate::shape::{Gate, Shape, View};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Engine {
    /// Why a job that waits here, is in flight or runs is where it is. None: the engine does not know it.
    pub fn explain_job(&self, now: Millis, job: JobKey) -> Option<JobExplanation> {
        let now = self.now.max(now.0);
        if let Some(cached) = self.index.jobs.get(&job) {
            let (shape, owner) = self.index.shape_of(cached)?;
            let standing = self.standing(owner.queue, owner.member);
            let mut explained = self.explain((job, cached.submitted), shape, standing, now);
            explained.state = JobState::Waiting;
            explained.ahead = self.ahead(owner, Some((job, cached)), now);
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

    /// Why nothing of a queue that is paused is dispatched.
    fn why_paused(&self) -> Reason {
        if self.ledger.policy.paused {
            Reason::LabPaused
        } else {
            Reason::QueuePaused
        }
    }

    /// How any job would fare, in memory here or not: for example whether any known host could ever run it.
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
                share_per_mille: 0,
                background_per_mille: policy.background_per_mille,
            },
            |owner| self.standing(owner.queue, owner.member),
        );
        let submitted = facts.submitted.0.min(now);
        let mut explained = self.explain((facts.key, submitted), &shape, standing, now);
        explained.ahead = owner
            .map(|owner| self.ahead(owner, None, now))
            .unwrap_or_default();
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
        let kept_until = self.hosts.kept_off(waits, now);
        let is_kept = |host: &Host| kept_until.is_some() && host.is_loaded();
        let mut verdicts: Vec<(bool, usize, HostId, &Host)> =
            Vec::with_capacity(self.hosts.known.len());
        let (mut able, mut ready) = (0, 0);
        for (id, host) in self.hosts.present() {
            let anybodys = shape.requirements(None);
            let could = anybodys.first_unmet_by(&host.view.idle()).is_none();
            let lacking = lacking(&standing.account, shape, &host.view);
            able += u64::from(could);
            ready += u64::from(lacking == 0 && host.open.is_some() && !is_kept(host));
            verdicts.push((!could, lacking, id, host));
        }
        verdicts.sort_unstable_by(|a, b| (a.0, a.1, &a.3.name).cmp(&(b.0, b.1, &b.3.name)));
        let hosts_more = verdicts.len().saturating_sub(EXPLAIN_LIST_MAX) as u64;
        let named = verdicts.into_iter().take(EXPLAIN_LIST_MAX);
        let hosts = named.map(|(unable, _, id, host)| {
            let mut reasons = reasons(&standing.account, shape, &host.view);
            self.add_host_reasons(&mut reasons, job, id, host);
            reasons.extend(host.why_loaded().filter(|_| is_kept(host)));
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
            share_per_mille: self
                .ledger
                .queues
                .get(queue)
                .map_or(0, |queue| self.share_per_mille(queue)),
            background_per_mille: policy.background_per_mille,
        }
    }

    fn ahead(&self, owner: Owner, job: Option<(JobKey, &Job)>, now: u64) -> Ahead {
        let mut ahead = Ahead {
            in_account: self.ahead_in_account(owner, job),
            overtaken_by: job.map_or(0, |(key, job)| self.overtaken_by(key, job)),
            ..Ahead::default()
        };
        if let (Some(queue), Some(own)) = (
            self.ledger.queues.get(owner.queue),
            self.ledger.member_rank(owner.member, now),
        ) {
            let waits = |id: &&MemberId| {
                self.ledger
                    .members
                    .get(**id)
                    .is_some_and(|member| member.tally.waiting > 0)
            };
            let ranks = queue
                .members
                .values()
                .filter(waits)
                .filter_map(|id| self.ledger.member_rank(*id, now));
            for rank in ranks.filter(|rank| *rank < own) {
                let other = self.ledger.members.get(rank.2);
                if other.is_some_and(|other| &*other.account == self.ledger.account(owner)) {
                    ahead.labels += 1;
                } else {
                    ahead.accounts += 1;
                }
            }
        }
        let Some(own) = self.ledger.queue_rank(owner.queue, now) else {
            return ahead;
        };
        for (id, queue) in &self.ledger.queues {
            let Some(rank) = self
                .ledger
                .queue_rank(id, now)
                .filter(|_| queue.tally.waiting > 0)
            else {
                continue;
            };
            if rank.0.class() > own.0.class() {
                ahead.higher_classes += 1;
            } else if rank < own {
                ahead.queues += 1;
            }
        }
        ahead
    }

    fn overtaken_by(&self, key: JobKey, job: &Job) -> u64 {
        let bucket = self.index.buckets.get(job.bucket);
        bucket.map_or(0, |bucket| {
            bucket.overtakers.before((Reverse(job.priority), key))
        })
    }

    fn ahead_in_account(&self, owner: Owner, job: Option<(JobKey, &Job)>) -> Count {
        let mut counted = 0;
        for (_, bucket) in self.index.buckets_of(owner.member) {
            let place = job.map(|(key, job)| (Reverse(job.priority), key));
            let left = usize::try_from(EXPLAIN_COUNT_MAX.saturating_sub(counted))
                .unwrap_or(0)
                .saturating_add(1);
            let before = bucket
                .jobs
                .iter()
                .take_while(|other| place.is_none_or(|place| **other < place));
            counted += before.take(left).count() as u64;
            if counted > EXPLAIN_COUNT_MAX {
                return Count {
                    counted: EXPLAIN_COUNT_MAX,
                    more: true,
                };
            }
        }
        Count {
            counted,
            more: false,
        }
    }

    /// Why a host is idle, or how busy it is. None: it has neither asked nor has it jobs.
    /// Time plays no part so far; it is taken for the day it does.
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

/// The facts' shape. No name of it is kept.
fn plain_shape(known: &Atoms, facts: &JobFacts) -> Shape {
    let lists = [
        &facts.host_keys,
        &facts.tags,
        &facts.not_tags,
        &facts.devices,
        &facts.not_on,
    ];
    let each = facts.any_of.iter();
    let alternatives = each.flat_map(|one| one.tags.iter().chain(&one.not_tags));
    let names = lists.into_iter().flatten().chain([&facts.arch]);
    let names = names.chain(alternatives);
    let mut atoms = known.those_of(names.map(String::as_str));
    crate::engine::shape_of(&mut atoms, facts)
}

/// How much keeps jobs of a shape off a host.
fn lacking(account: &str, shape: &Shape, host: &View) -> usize {
    let required = shape.requirements(Some(account));
    required.unmet_by(&host.now(shape.kind)).count()
        + usize::from(!host.admits(shape.kind))
        + usize::from(!shape.is_let_in(host))
}

/// Everything that a host lacks for a shape, with what it is about. Gates belong to the job, not to the host.
fn reasons(account: &str, shape: &Shape, host: &View) -> Vec<Reason> {
    let texts = |names: &[Atom]| names.iter().map(ToString::to_string).collect();
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
