//! The next job for one host: the order of shares, and within it the first that fits.
//!
//! Two ways lead to the same answer: walking the order and checking heads (quick when much fits), and collecting
//! the shapes that fit and comparing their heads (quick when little fits). They are tried in turn with growing
//! budgets, so that the cost is a small multiple of the cheaper one, and neither grows with the number of jobs.

use crate::atoms::Atom;
use crate::event::JobKey;
use crate::index::{BucketId, Head, Index};
use crate::ledger::{Ledger, MemberId, MemberRank, QueueId, QueueRank};
use crate::reserve::Limit;
use crate::shape::{Lack, ShapeId, View, lacks, passes_with_jobs};
use slotmap::KeyData;
use std::collections::BTreeSet;

/// Heads looked at before the shapes are.
const FIRST_BUDGET: u64 = 16;

/// How much cheaper it is to check a shape than to look at a head.
const SHAPES_A_HEAD: u64 = 16;

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
    /// The host is reserved: who may still enter.
    pub limit: Option<Limit>,
    /// Jobs that have waited since before this may reserve the host when passed over.
    pub reserve_before: Option<u64>,
    pub work: Work,
    /// The first job that could run here were it not for others that do.
    pub passed_over: Option<JobKey>,
}

/// What an ordered walk came to.
enum Walk {
    Found(JobKey),
    Nothing,
    OverBudget,
}

impl Picker<'_> {
    /// The next job for this host.
    pub(crate) fn pick(&mut self) -> Option<JobKey> {
        let mut budget = FIRST_BUDGET;
        loop {
            match self.walk(budget) {
                Walk::Found(job) => return Some(job),
                Walk::Nothing => return None,
                Walk::OverBudget => {}
            }
            if let Some(shapes) = self.fitting_shapes(budget.saturating_mul(SHAPES_A_HEAD)) {
                return self.best_of_shapes(&shapes);
            }
            budget = budget.saturating_mul(SHAPES_A_HEAD);
        }
    }

    fn walk(&mut self, budget: u64) -> Walk {
        let mut left = budget;
        let mut queues = Ranked::new(self.queue_ranks());
        self.work.entries_visited += queues.len();
        while let Some(rank) = queues.next() {
            let queue = rank.3;
            let mut members = Ranked::new(self.member_ranks(queue));
            self.work.entries_visited += members.len();
            while let Some((_, _, member)) = members.next() {
                match self.first_of_cell(queue, member, &rank, &mut left) {
                    Walk::Nothing => {}
                    done @ (Walk::Found(_) | Walk::OverBudget) => return done,
                }
            }
        }
        Walk::Nothing
    }

    fn queue_ranks(&self) -> Vec<QueueRank> {
        let mut ranks = Vec::new();
        for key in &self.view.keys {
            ranks.extend(
                self.index
                    .queues_under(key)
                    .filter_map(|id| self.ledger.queue_rank(id, self.now)),
            );
        }
        ranks
    }

    fn member_ranks(&self, queue: QueueId) -> Vec<MemberRank> {
        let all = (queue, MemberId::from(KeyData::from_ffi(0)))
            ..=(queue, MemberId::from(KeyData::from_ffi(u64::MAX)));
        let cells = self
            .view
            .keys
            .iter()
            .filter_map(|key| self.index.keys.get(key));
        let members = cells.flat_map(|cells| {
            cells
                .cells
                .range(all.clone())
                .map(|((_, member), _)| *member)
        });
        members
            .filter_map(|member| self.ledger.member_rank(member, self.now))
            .collect()
    }

    fn first_of_cell(
        &mut self,
        queue: QueueId,
        member: MemberId,
        rank: &QueueRank,
        left: &mut u64,
    ) -> Walk {
        let (index, view) = (self.index, self.view);
        let mut best: Option<Head> = None;
        for key in &view.keys {
            let Some(heads) = index
                .keys
                .get(key)
                .and_then(|cells| cells.cells.get(&(queue, member)))
            else {
                continue;
            };
            match self.first_head(heads, best, rank.0.0, left) {
                Ok(found) => best = found.or(best),
                Err(OverBudget) => return Walk::OverBudget,
            }
        }
        best.map_or(Walk::Nothing, |head| Walk::Found(head.place.1))
    }

    fn first_head(
        &mut self,
        heads: &BTreeSet<Head>,
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
            if head.memory_mb <= self.view.total_mb && self.fits(head.bucket, head.place.1, class) {
                return Ok(Some(*head));
            }
        }
        Ok(None)
    }

    fn fits(&mut self, bucket: BucketId, job: JobKey, class: u8) -> bool {
        let index = self.index;
        let entry = index
            .buckets
            .get(bucket)
            .and_then(|bucket| index.shapes.get(bucket.shape));
        let Some(entry) = entry else { return false };
        self.work.shapes_checked += 1;
        match lacks(&entry.shape, self.view).next() {
            None => self.may_enter(job, class),
            Some(lack) => {
                self.note_passed_over(lack, entry.shape.as_ref(), job);
                false
            }
        }
    }

    fn note_passed_over(&mut self, lack: Lack, shape: &crate::shape::Shape, job: JobKey) {
        let Some(before) = self.reserve_before.filter(|_| self.passed_over.is_none()) else {
            return;
        };
        let waited = self
            .index
            .jobs
            .get(&job)
            .is_some_and(|job| job.submitted <= before);
        if waited && passes_with_jobs(lack, shape, self.view) {
            self.passed_over = Some(job);
        }
    }

    fn may_enter(&self, job: JobKey, class: u8) -> bool {
        let Some(limit) = &self.limit else {
            return true;
        };
        let Some(cached) = self.index.jobs.get(&job) else {
            return false;
        };
        limit.admits(self.ledger, job, cached, class, self.group, self.now)
    }

    /// The shapes that fit, unless that takes more than `checks_max` checks.
    fn fitting_shapes(&mut self, checks_max: u64) -> Option<Vec<ShapeId>> {
        let (index, view) = (self.index, self.view);
        let reach_mb = if view.hw_open {
            view.total_mb
        } else {
            view.free_mb
        };
        let mut fitting = Vec::new();
        let mut checks = 0;
        for cells in view.keys.iter().filter_map(|key| index.keys.get(key)) {
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
                    if entry.is_some_and(|entry| lacks(&entry.shape, view).next().is_none()) {
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
            let queue = self.ledger.queue_rank(held.owner.queue, self.now);
            let member = self.ledger.member_rank(held.owner.member, self.now);
            let (Some(queue), Some(member), Some(place)) = (queue, member, held.jobs.first())
            else {
                continue;
            };
            let rank = (queue, member, *place);
            if best.as_ref().is_none_or(|best| rank < *best) && self.may_enter(place.1, queue.0.0) {
                best = Some(rank);
            }
        }
        best.map(|(_, _, place)| place.1)
    }
}

struct OverBudget;

/// Ranks in order, each once. The first is found by one look at all; only when it was of no use are they sorted.
struct Ranked<T> {
    ranks: Vec<T>,
    sorted: bool,
    last: Option<T>,
}

impl<T: Ord + Copy> Ranked<T> {
    fn new(ranks: Vec<T>) -> Self {
        Self {
            ranks,
            sorted: false,
            last: None,
        }
    }

    fn len(&self) -> u64 {
        self.ranks.len() as u64
    }

    fn next(&mut self) -> Option<T> {
        if self.last.is_none() {
            self.last = self.ranks.iter().min().copied();
            return self.last;
        }
        if !self.sorted {
            self.ranks.sort_unstable_by(|a, b| b.cmp(a));
            self.sorted = true;
        }
        while let Some(rank) = self.ranks.pop() {
            if Some(rank) > self.last {
                self.last = Some(rank);
                return self.last;
            }
        }
        None
    }
}
