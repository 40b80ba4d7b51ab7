//! Shares of dispatches for queues of low classes, so that strict classes do not starve them. Part of [`Ledger`].
//!
//! When a host gets a job of a higher class while such a queue has waiting jobs, the queue is credited with its share.
//! With a credit of one dispatch it comes first on the next host that could run one of its jobs.

use crate::ids::QueueId;
use crate::ledger::state::{Ledger, Queue};

/// Credit of one whole dispatch.
const WHOLE_DISPATCH: u32 = 1_000;

impl Ledger {
    /// Lists the queues that have a share of dispatches.
    pub(crate) fn list_background(&mut self) {
        let with_share =
            |(id, queue): (QueueId, &Queue)| (queue.policy.background_permille > 0).then_some(id);
        self.background = self.queues.iter().filter_map(with_share).collect();
    }

    /// Notes that a host is about to get a job of this queue. Returns the queues of lower classes that are due
    /// before.
    pub(crate) fn pass_over(&mut self, next: QueueId) -> Vec<QueueId> {
        let Some(class) = self.queues.get(next).map(Queue::class) else {
            return Vec::new();
        };
        let Self {
            background, queues, ..
        } = self;
        let due = background.iter().copied().filter(|id| {
            let Some(queue) = queues.get_mut(*id) else {
                return false;
            };
            if *id == next {
                queue.credit = queue.credit.saturating_sub(WHOLE_DISPATCH);
            }
            let waits = queue.tally.waiting > 0 && !queue.policy.paused;
            if !waits || queue.class() >= class {
                return false;
            }
            let share = u32::from(queue.policy.background_permille);
            // No more than one dispatch is owed at a time.
            queue.credit = queue
                .credit
                .saturating_add(share)
                .min(WHOLE_DISPATCH + share);
            queue.credit >= WHOLE_DISPATCH
        });
        due.collect()
    }

    /// Charges a due queue for its job that goes first.
    pub(crate) fn takes_its_share(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(id) {
            queue.credit = queue.credit.saturating_sub(WHOLE_DISPATCH);
        }
    }
}
