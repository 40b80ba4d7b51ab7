//! The engine's report for people and tests: queues, hosts, counted work, and the check of all indexes.

use crate::engine::Engine;
use crate::ids::{JobKey, Millis, OfferKey};
use crate::ledger::Queue;
use crate::run_times::RunTimes;
use std::collections::{BTreeMap, BTreeSet};

/// Most jobs named in the report of one host; more are only counted.
pub const REPORT_JOBS_MAX: usize = 64;

/// State of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReport {
    /// Its name.
    pub name: String,
    /// Its class, 0 to 9, higher first.
    pub class: u8,
    /// Its weight inside the class, 1 to 10,000.
    pub weight: u32,
    /// True if no job of it is dispatched for now.
    pub paused: bool,
    /// Accounts that have or had jobs in it.
    pub accounts: u64,
    /// Jobs that wait and are cached here.
    pub waiting: u64,
    /// Jobs claimed whose claim is not settled.
    pub in_flight: u64,
    /// Jobs that hosts have.
    pub running: u64,
    /// Share of hosts × time that its jobs had since this engine began, ms of a whole host.
    pub charged_ms: u64,
    /// Its weight's part among the queues of its class that have jobs, in thousandths. 0: it has no jobs.
    pub share_permille: u32,
    /// Lead (negative: lag) of its virtual time over its class, ms of a whole host at weight 1 and the normal rate.
    pub lag_ms: i64,
}

/// State of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Its host group.
    pub group: String,
    /// Its architecture.
    pub arch: String,
    /// Host keys that it offered last.
    pub keys: Vec<String>,
    /// Memory that jobs may take now, MB, as far as is known here.
    pub free_memory_mb: u32,
    /// Memory of the whole host, MB.
    pub total_memory_mb: u32,
    /// Time of its last request; 0: it has jobs, but has not asked here.
    pub last_seen: Millis,
    /// Its open request, if it asks now.
    pub asking: Option<OfferKey>,
    /// Jobs in flight to it or running on it, at most [`REPORT_JOBS_MAX`].
    pub jobs: Vec<JobKey>,
    /// Total number of these jobs.
    pub jobs_total: u64,
    /// The job that it is reserved for.
    pub reserved_for: Option<JobKey>,
}

/// Counted work and sizes. Work counts up from the engine's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Times that a shape was checked against a host.
    pub shapes_checked: u64,
    /// Index entries (queues, accounts, first jobs, waiting offers) looked at.
    pub entries_visited: u64,
    /// Decisions made.
    pub decisions: u64,
    /// Waiting jobs in memory.
    pub cached_jobs: u64,
    /// Distinct shapes of those.
    pub shapes: u64,
    /// Groups of jobs of one account, queue and shape.
    pub buckets: u64,
    /// Jobs claimed whose claim is not settled.
    pub in_flight: u64,
    /// Jobs that hosts have.
    pub running: u64,
    /// Hosts known.
    pub hosts: u64,
    /// Offers not answered.
    pub offers: u64,
    /// Queues known.
    pub queues: u64,
    /// Distinct names in memory.
    pub names: u64,
    /// Hosts reserved for a job.
    pub reservations: u64,
    /// Accounts in queues that are known.
    pub members: u64,
    /// Accounts and groups of jobs looked at for evictions. Counts up from the engine's start.
    pub eviction_looks: u64,
}

impl Engine {
    /// Returns all known queues, by name.
    pub fn queues(&self, now: Millis) -> Vec<QueueReport> {
        let now = self.now.max(now.0);
        let weights = self.weights();
        let mut known: Vec<&Queue> = self.ledger.queues.values().collect();
        known.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        known
            .into_iter()
            .map(|queue| self.queue_report(queue, &weights, now))
            .collect()
    }

    fn accounts_in(&self, queue: &Queue) -> u64 {
        let members = queue.members.values();
        let members = members.filter_map(|id| self.ledger.members.get(*id));
        let accounts: BTreeSet<&str> = members.map(|member| &*member.account).collect();
        accounts.len() as u64
    }

    /// Returns the sum of the weights of the queues that have jobs, by class.
    fn weights(&self) -> BTreeMap<u8, u64> {
        let mut weights: BTreeMap<u8, u64> = BTreeMap::new();
        for queue in self.ledger.queues.values().filter(|queue| has_jobs(queue)) {
            let sum = weights.entry(queue.class()).or_default();
            *sum = sum.saturating_add(u64::from(weight(queue)));
        }
        weights
    }

    /// Returns the part of a queue's weight among the queues of its class that have jobs, in thousandths.
    pub(crate) fn share_permille(&self, queue: &Queue) -> u32 {
        share_permille(queue, &self.weights())
    }

    fn queue_report(&self, queue: &Queue, weights: &BTreeMap<u8, u64>, now: u64) -> QueueReport {
        QueueReport {
            name: queue.name.to_string(),
            class: queue.class(),
            weight: weight(queue),
            paused: queue.policy.paused,
            accounts: self.accounts_in(queue),
            waiting: queue.tally.waiting,
            in_flight: queue.tally.in_flight,
            running: queue.tally.running,
            charged_ms: queue.busy_ms(now),
            share_permille: share_permille(queue, weights),
            lag_ms: self.ledger.lag_ms(queue, now),
        }
    }

    /// Returns all known hosts, by name.
    pub fn hosts(&self) -> Vec<HostReport> {
        let mut reports: Vec<HostReport> = self
            .hosts
            .present()
            .map(|(id, host)| HostReport {
                name: host.name.to_string(),
                group: host.group.to_string(),
                arch: host.view.env.arch.to_string(),
                keys: host.view.keys.iter().map(ToString::to_string).collect(),
                free_memory_mb: host.view.free_mb,
                total_memory_mb: host.view.total_mb,
                last_seen: Millis(host.last_seen),
                asking: host.open,
                jobs: host.runs.iter().take(REPORT_JOBS_MAX).copied().collect(),
                jobs_total: host.runs.len() as u64,
                reserved_for: self
                    .reservations
                    .values()
                    .find(|r| r.host == id)
                    .map(|r| r.job),
            })
            .collect();
        reports.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    /// Returns the run times of jobs, as far as is known.
    pub fn run_times(&self) -> &RunTimes {
        &self.ledger.run_times
    }

    /// Returns counted work and sizes.
    pub fn stats(&self) -> Stats {
        Stats {
            shapes_checked: self.work.shapes_checked,
            entries_visited: self.work.entries_visited,
            decisions: self.decisions_made,
            cached_jobs: self.index.jobs.len() as u64,
            shapes: self.index.shapes.len() as u64,
            buckets: self.index.buckets.len() as u64,
            in_flight: self.in_flight,
            running: (self.runs.len() as u64).saturating_sub(self.in_flight),
            hosts: self.hosts.known.len() as u64,
            offers: self.hosts.offers.len() as u64,
            queues: self.ledger.queues.len() as u64,
            names: self.atoms.len() as u64,
            reservations: self.reservations.len() as u64,
            members: self.ledger.members.len() as u64,
            eviction_looks: self.cache.plan.looks,
        }
    }

    /// Checks all indexes against each other. For tests and simulation: takes time in proportion to the size of the
    /// state.
    ///
    /// # Panics
    /// Panics if any index disagrees with another.
    pub fn sanity_check(&self) {
        self.index.sanity_check();
        self.ledger.sanity_check();
        self.ledger.check_notes(self.now);
        self.hosts.sanity_check();
        assert!(self.dirty.is_empty() && self.fresh.is_empty() && self.touched.is_empty());
        assert_eq!(self.runs.len(), self.ledger.charges.len());
        let flights = self.runs.values().filter(|run| run.flight.is_some());
        assert_eq!(flights.count() as u64, self.in_flight);
        for (since, offer) in &self.cache.gated {
            let open = self.hosts.offers.get(offer);
            assert!(
                open.is_some_and(|open| open.since == *since && open.is_untouched()),
                "a gate for no offer"
            );
        }
        for (key, run) in &self.runs {
            assert!(
                !self.index.jobs.contains_key(key),
                "a job both waits and runs"
            );
            assert_eq!(
                self.ledger.charges.get(key).map(|c| c.since.is_none()),
                Some(run.flight.is_some())
            );
            let host = self.hosts.known.get(run.host);
            assert!(
                host.is_some_and(|host| host.runs.contains(key)),
                "a host does not know its job"
            );
        }
        self.check_keys_of_hosts();
        assert_eq!(
            self.hosts
                .known
                .values()
                .map(|host| host.runs.len())
                .sum::<usize>(),
            self.runs.len()
        );
        let waiting: u64 = self
            .ledger
            .queues
            .values()
            .map(|queue| queue.tally.waiting)
            .sum();
        assert_eq!(waiting, self.index.jobs.len() as u64);
        self.check_offers();
        for job in self.gates.until.keys() {
            assert!(
                self.index.jobs.contains_key(job),
                "a gate for a job that does not wait"
            );
        }
    }

    fn check_offers(&self) {
        for (key, offer) in &self.hosts.offers {
            let flights = self
                .runs
                .values()
                .filter(|run| run.flight.as_ref().is_some_and(|f| f.offer == *key));
            assert_eq!(u32::try_from(flights.count()), Ok(offer.in_flight));
            let listed = self.hosts.is_listed(*key);
            assert!(!listed || offer.is_untouched());
            let due = self.hosts.deadlines.contains(&(offer.waits_until, *key));
            assert_eq!(due, offer.in_flight == 0);
        }
    }

    fn check_keys_of_hosts(&self) {
        for (_, host) in self.hosts.present() {
            let now_made = |(made, _): &&(u64, _)| *made == self.index.keys_made;
            let Some((_, ids)) = host.under.as_ref().filter(now_made) else {
                continue;
            };
            let there = ids.iter().filter(|id| self.index.keys.contains_key(**id));
            assert!(
                there.eq(&self.index.key_ids(&host.view.keys)),
                "{} has keys it does not know of",
                host.name
            );
        }
    }
}

fn has_jobs(queue: &Queue) -> bool {
    queue.tally.waiting > 0 || queue.tally.held() > 0
}

fn weight(queue: &Queue) -> u32 {
    queue.policy.weight.clamp(1, crate::meter::WEIGHT_MAX)
}

fn share_permille(queue: &Queue, weights: &BTreeMap<u8, u64>) -> u32 {
    let of_class = weights.get(&queue.class()).copied().unwrap_or(0).max(1);
    let share = if has_jobs(queue) {
        u64::from(weight(queue)).saturating_mul(1_000) / of_class
    } else {
        0
    };
    u32::try_from(share).unwrap_or(1_000)
}
