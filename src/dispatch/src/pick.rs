//! Picks the next job for one host: the first that fits, in the order of shares.
//!
//! A host with 4 GB asks for a job. The order is strict: class, queue, account, then priority and age. The obvious way
//! walks this order and takes the first job that fits. If 5,000 accounts of one queue stand in front with jobs of 8 GB,
//! each request of a small host passes all of them. The opposite way first collects the sets of requirements, called
//! *shapes*, that the host can meet. That way is slow on a large host: it may collect a thousand shapes, although the
//! very first job fits.
//!
//! Nobody knows beforehand which way is cheaper. So both are tried in turn, with budgets that grow by a factor of
//! eight:
//!
//! ```text
//! budget    8   walk the order       over budget
//! budget   64   collect the shapes   40 checked, 3 fit, 5 buckets hold them: compare 5 heads, done
//! ```
//!
//! The two ways lead to the same job. Here the answer took some 50 steps, and the walk alone would have taken 5,000. If
//! the first job fits, the walk ends after a few entries and no shape is looked at. So the cost is a small multiple of
//! the cheaper way.
//!
//! Both ways look at *heads* only. A bucket holds the jobs of one account in one queue with one shape, and its head is
//! its first job. So 10,000 equal jobs of an account cost as much as one, and the cost does not grow with the number of
//! jobs. It does grow with the number of buckets that the cheaper way must compare.
//!
//! A pick changes nothing. It reports queues and accounts whose place in the order is noted too low. It also reports
//! the first job that it passed over because of running jobs, and jobs that a loaded host does not get. The caller acts
//! on these reports.

use crate::counted_bitset::Bitset;
use crate::front_set::FrontSet;
use crate::hosts::Hosts;
use crate::ids::{BucketId, JobKey, MemberId, Owner, Place, QueueId, ShapeId};
use crate::index::{Bucket, Index, KeyCells, digits};
use crate::interner::Atom;
use crate::kept_off::Waits;
use crate::ledger::{Ledger, MemberRank, QueueRank};
use crate::order::Walk;
use crate::reserve::{Limit, expected_ms};
use crate::shape::{Head, ShapeEntry, View, could_run, first_obstacle};
use slotmap::KeyData;

/// Entries looked at by the first walk.
const FIRST_BUDGET: u64 = 8;

/// Factor by which the budget of the next try grows.
const BUDGET_GROWS: u64 = 8;

/// Number of queues or accounts up to which all are compared. Beyond it, only as many as needed are, in their order.
const SCANNED_MAX: usize = 8;

/// Queues per account here from which the accounts under the host's keys are compared instead. A walk would pass
/// every queue that has nothing for this host.
const PASSED_PER_CELL: usize = 32;

/// Maximum wait before a long job reserves a host, ms.
const RESERVE_WAIT_MAX_MS: u64 = 8 * 3_600_000;

/// Counted work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub shapes_checked: u64,
    pub entries_visited: u64,
}

/// Looks for one host's next job.
#[derive(Debug)]
pub(crate) struct Picker<'a> {
    pub index: &'a Index,
    pub ledger: &'a Ledger,
    pub view: &'a View,
    pub group: &'a str,
    pub now: u64,
    /// Jobs that may still enter, if the host is reserved.
    pub limit: Option<Limit>,
    /// Time of submission before which a job may reserve the host when it is passed over.
    pub reserve_before: Option<u64>,
    /// Other hosts, if this host is loaded: one of them may be the better place for a job.
    pub loaded: Option<&'a Hosts>,
    /// Only queue whose jobs are looked at; `None`: all queues.
    pub only: Option<QueueId>,
    /// Jobs that wait under the host's keys.
    pub cells: Vec<&'a KeyCells>,
    pub work: Work,
    /// Queues whose place in the order is to be noted anew.
    pub stale_queues: Vec<QueueId>,
    pub stale_members: Vec<Owner>,
    /// True if no shape under the host's keys fits.
    pub nothing: bool,
    /// First job that could run here if other jobs left the host.
    pub passed_over: Option<JobKey>,
    /// Buckets that the host did not get because it is loaded, with the time of their next look.
    pub kept_off: Vec<(BucketId, u64)>,
}

/// Result of an ordered walk.
enum Found {
    Job(JobKey),
    Nothing,
    OverBudget,
}

impl Picker<'_> {
    /// Returns the next job for this host.
    pub(crate) fn pick(&mut self) -> Option<JobKey> {
        let candidates = self.candidates();
        if candidates.is_empty() {
            self.nothing = true;
            return None;
        }
        let mut budget = FIRST_BUDGET;
        let mut shapes = None;
        loop {
            match self.walk(&candidates, budget) {
                Found::Job(job) => return Some(job),
                Found::Nothing => return None,
                Found::OverBudget => {}
            }
            budget = budget.saturating_mul(BUDGET_GROWS);
            shapes = shapes.or_else(|| self.fitting_shapes(budget));
            self.nothing = shapes.as_ref().is_some_and(Vec::is_empty);
            if let Some(shapes) = shapes
                .as_ref()
                .filter(|shapes| self.holders(shapes) <= budget)
            {
                return self.best_of_shapes(shapes);
            }
        }
    }

    fn holders(&self, shapes: &[ShapeId]) -> u64 {
        let entries = shapes.iter().filter_map(|id| self.index.shapes.get(*id));
        entries.map(|entry| entry.holders.len() as u64).sum()
    }

    /// Returns the queues that have jobs under the host's keys whose rarest requirement and memory the host may meet.
    fn candidates(&self) -> Bitset {
        let (view, mut candidates) = (self.view, Bitset::default());
        // For a reservation those count that would fit if nothing else ran here.
        let most_mb = if view.hw_open || self.reserve_before.is_some() {
            view.total_mb
        } else {
            view.free_mb
        };
        let own = || view.env.tags.iter().chain(&view.env.devices);
        for cells in &self.cells {
            cells.queues.add_to(&mut candidates, own(), digits(most_mb));
        }
        candidates
    }

    fn walk(&mut self, candidates: &Bitset, budget: u64) -> Found {
        let ledger = self.ledger;
        let mut left = budget;
        if let Some(only) = self.only {
            let rank = ledger.queue_rank(only, self.now);
            return rank.map_or(Found::Nothing, |rank| self.first_of_queue(&rank, &mut left));
        }
        let cells = self.cells.iter().map(|cells| cells.cells.len());
        let cells = cells.sum::<usize>();
        if cells <= SCANNED_MAX || cells < ledger.order.len() / PASSED_PER_CELL {
            let mut ranks = self.ranks_under_keys();
            while let Some(rank) = ranks.pop() {
                match self.first_of_queue(&rank, &mut left) {
                    Found::Nothing => {}
                    done @ (Found::Job(_) | Found::OverBudget) => return done,
                }
            }
            return Found::Nothing;
        }
        let mut stale = std::mem::take(&mut self.stale_queues);
        let mut queues = Walk::new(&ledger.order);
        let now = self.now;
        let rank_of = |id| {
            candidates
                .contains(id)
                .then(|| ledger.queue_rank(id, now))
                .flatten()
        };
        let least = |noted, id| (noted, 0, id);
        let mut found = Found::Nothing;
        while let Some(rank) = queues.next(rank_of, |rank| rank.0, least, &mut stale) {
            found = match left.checked_sub(1) {
                None => Found::OverBudget,
                Some(rest) => {
                    left = rest;
                    self.work.entries_visited += 1;
                    self.first_of_queue(&rank, &mut left)
                }
            };
            if !matches!(found, Found::Nothing) {
                break;
            }
        }
        self.stale_queues = stale;
        found
    }

    /// Returns the queues under the host's keys, last first, if there are few.
    fn ranks_under_keys(&mut self) -> Vec<QueueRank> {
        let queues = self
            .cells
            .iter()
            .flat_map(|cells| cells.cells.values())
            .map(|cell| cell.queue);
        let mut ranks: Vec<QueueRank> = queues
            .filter_map(|id| self.ledger.queue_rank(id, self.now))
            .collect();
        self.work.entries_visited += ranks.len() as u64;
        ranks.sort_unstable_by(|a, b| b.cmp(a));
        ranks.dedup();
        ranks
    }

    fn first_of_queue(&mut self, rank: &QueueRank, left: &mut u64) -> Found {
        let (ledger, queue) = (self.ledger, rank.2);
        let Some(order) = ledger.queues.get(queue).map(|queue| &queue.order) else {
            return Found::Nothing;
        };
        if order.len() <= SCANNED_MAX {
            let now = self.now;
            let ranks = order
                .iter()
                .filter_map(|(_, id)| ledger.member_rank(*id, now));
            let mut ranks: Vec<MemberRank> = ranks.collect();
            ranks.sort_unstable();
            for (_, _, member) in ranks {
                match self.first_of_cell(member, rank, left) {
                    Found::Nothing => {}
                    done @ (Found::Job(_) | Found::OverBudget) => return done,
                }
            }
            return Found::Nothing;
        }
        let mut stale = Vec::new();
        let mut members = Walk::new(order);
        let mut found = Found::Nothing;
        while let Some((_, _, member)) = members.next(
            |id| ledger.member_rank(id, self.now),
            |rank| rank.0,
            |noted, id| (noted, 0, id),
            &mut stale,
        ) {
            found = match left.checked_sub(1) {
                None => Found::OverBudget,
                Some(rest) => {
                    *left = rest;
                    self.work.entries_visited += 1;
                    self.first_of_cell(member, rank, left)
                }
            };
            if !matches!(found, Found::Nothing) {
                break;
            }
        }
        self.stale_members
            .extend(stale.into_iter().map(|member| Owner { queue, member }));
        found
    }

    fn first_of_cell(&mut self, member: MemberId, rank: &QueueRank, left: &mut u64) -> Found {
        let mut best: Option<Head> = None;
        for at in 0..self.cells.len() {
            let Some(cell) = self
                .cells
                .get(at)
                .and_then(|cells| cells.cells.get(&member))
            else {
                continue;
            };
            match self.first_head(&cell.heads, best, rank.0.class(), left) {
                Ok(found) => best = found.or(best),
                Err(OverBudget) => return Found::OverBudget,
            }
        }
        best.map_or(Found::Nothing, |head| Found::Job(head.place.1))
    }

    fn first_head(
        &mut self,
        heads: &FrontSet<Head>,
        best: Option<Head>,
        class: u8,
        left: &mut u64,
    ) -> Result<Option<Head>, OverBudget> {
        for head in heads
            .iter()
            .take_while(|head| best.is_none_or(|best| head.place < best.place))
        {
            *left = left.checked_sub(1).ok_or(OverBudget)?;
            self.work.entries_visited += 1;
            let may_fit =
                head.memory_mb <= self.view.total_mb && head.needs.may_be_in(self.view.has);
            let place = may_fit.then(|| self.first_fit(head, class)).flatten();
            if let Some(place) = place {
                return Ok(Some(Head { place, ..*head }));
            }
        }
        Ok(None)
    }

    /// Returns the first job of a bucket that may have the host now.
    fn first_fit(&mut self, head: &Head, class: u8) -> Option<Place> {
        let index = self.index;
        let bucket = index.buckets.get(head.bucket)?;
        let shape = &index.shapes.get(bucket.shape)?.shape;
        self.work.shapes_checked += 1;
        let account = Some(self.ledger.account(bucket.owner));
        let Some(obstacle) = first_obstacle(account, shape, self.view) else {
            return self.next_to_enter(bucket, class);
        };
        let may_pass = obstacle.may_pass() && self.may_reserve(head.place.1);
        if may_pass && could_run(account, shape, self.view) {
            self.passed_over = Some(head.place.1);
        }
        None
    }

    /// Returns the job of a bucket that enters next. That is its first job, or, on a host reserved in its class, the
    /// shortest of the best priority that may enter.
    fn next_to_enter(&mut self, bucket: &Bucket, class: u8) -> Option<Place> {
        let first = bucket.jobs.first().copied()?;
        if self.limit.is_none_or(|limit| class > limit.class) {
            return self.may_enter(first.1, class).then_some(first);
        }
        let mut best = None;
        for place in bucket.within_reach() {
            self.work.entries_visited += 1;
            let takes_ms = self.expected_ms(place.1).unwrap_or(u64::MAX);
            let rank = (place.0, takes_ms, *place);
            if best.is_none_or(|best| rank < best) && self.may_enter(place.1, class) {
                best = Some(rank);
            }
        }
        best.map(|(.., place)| place)
    }

    fn expected_ms(&self, job: JobKey) -> Option<u64> {
        let job = self.index.jobs.get(&job)?;
        expected_ms(self.ledger, job, self.group)
    }

    /// Returns true if a passed-over job has waited long enough to reserve the host. A long job waits for half of its
    /// expected time, because an empty host is not worth a short wait.
    fn may_reserve(&self, job: JobKey) -> bool {
        let before = self.reserve_before.filter(|_| self.passed_over.is_none());
        let Some((before, known)) = before.zip(self.index.jobs.get(&job)) else {
            return false;
        };
        let half_ms = expected_ms(self.ledger, known, self.group).unwrap_or(0) / 2;
        let waits_ms = half_ms.min(RESERVE_WAIT_MAX_MS);
        known.submitted <= before && known.submitted.saturating_add(waits_ms) <= self.now
    }

    /// Returns true if a loaded host does not get a job that it could run.
    fn is_kept_off(&mut self, job: JobKey) -> bool {
        let (index, ledger) = (self.index, self.ledger);
        let again = self.loaded.and_then(|hosts| {
            let job = index.jobs.get(&job)?;
            let (shape, owner) = index.shape_of(job)?;
            let waits = Waits::new(ledger.account(owner), shape, job.submitted);
            Some((job.bucket, hosts.kept_off(waits, self.now)?))
        });
        self.kept_off.extend(again);
        again.is_some()
    }

    fn may_enter(&mut self, job: JobKey, class: u8) -> bool {
        if self.is_kept_off(job) {
            return false;
        }
        let Some(limit) = &self.limit else {
            return true;
        };
        let cached = self.index.jobs.get(&job);
        let known = cached.and_then(|job| Some((job, self.index.shape_of(job)?.0)));
        known.is_some_and(|(cached, shape)| {
            limit.admits(
                self.ledger,
                job,
                (cached, shape),
                class,
                self.group,
                self.now,
            )
        })
    }

    /// Returns the shapes that fit. `None`: that needs more than `checks_max` checks.
    fn fitting_shapes(&mut self, checks_max: u64) -> Option<Vec<ShapeId>> {
        let (index, view) = (self.index, self.view);
        let reach_mb = if view.hw_open {
            view.total_mb
        } else {
            view.free_mb
        };
        let mut fitting = Vec::new();
        let mut checks = 0;
        for cells in &self.cells {
            let own = view.env.tags.iter().chain(&view.env.devices);
            let anchors = std::iter::once(None).chain(own.map(|name| Some(Atom::clone(name))));
            for listed in anchors.filter_map(|anchor| cells.shapes.get(&anchor)) {
                for (_, id) in
                    listed.range(..=(reach_mb, ShapeId::from(KeyData::from_ffi(u64::MAX))))
                {
                    checks += 1;
                    self.work.shapes_checked += 1;
                    if checks > checks_max {
                        return None;
                    }
                    let entry = index.shapes.get(*id);
                    let fits = |entry: &ShapeEntry| {
                        entry.needs.may_be_in(view.has)
                            && first_obstacle(None, &entry.shape, view).is_none()
                    };
                    if entry.is_some_and(fits) {
                        fitting.push(*id);
                    }
                }
            }
        }
        Some(fitting)
    }

    fn best_of_shapes(&mut self, shapes: &[ShapeId]) -> Option<JobKey> {
        let index = self.index;
        let mut best = None;
        for bucket in shapes
            .iter()
            .filter_map(|id| index.shapes.get(*id))
            .flat_map(|entry| &entry.holders)
        {
            self.work.entries_visited += 1;
            let Some(held) = index.buckets.get(*bucket) else {
                continue;
            };
            let is_other = self.only.is_some_and(|only| only != held.owner.queue);
            if is_other || !self.view.env.serves(self.ledger.account(held.owner)) {
                continue;
            }
            let queue = self.ledger.queue_rank(held.owner.queue, self.now);
            let member = self.ledger.member_rank(held.owner.member, self.now);
            let (Some(queue), Some(member), Some(first)) = (queue, member, held.jobs.first())
            else {
                continue;
            };
            if best
                .as_ref()
                .is_some_and(|best| (queue, member, *first) >= *best)
            {
                continue;
            }
            let place = self.next_to_enter(held, queue.0.class());
            let rank = place.map(|place| (queue, member, place));
            best = best.into_iter().chain(rank).min();
        }
        best.map(|(_, _, place)| place.1)
    }
}

struct OverBudget;

#[cfg(test)]
mod tests;
