//! The other replicas: membership, numbers, hints, clocks.

pub(crate) mod clocks;
pub(crate) mod hints;
pub(crate) mod membership;
pub(crate) mod numbers;

use std::sync::Arc;

use fairlead_job::{IdMaker, JobId};
use parking_lot::Mutex;

use crate::{ctx::Ctx, jobs::JobFlow};
use fairlead_base::peer_link::PeerLink;
use fairlead_known::replicas::Vitals;

/// This replica among the others: its number, the ids that it makes, and what it tells them.
#[derive(Debug)]
pub(crate) struct PeerFlow {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) jobs: Arc<JobFlow>,
    /// The way to other replicas.
    pub(crate) link: Arc<dyn PeerLink>,
    /// Held by the one task that looks at the number.
    pub(crate) numbering: tokio::sync::Mutex<()>,
    pub(crate) ids: Mutex<IdMaker>,
}

impl PeerFlow {
    /// From now on ids are made by `ids`.
    pub(crate) fn number_ids(&self, ids: IdMaker) {
        *self.ids.lock() = ids;
    }

    /// A new job's id.
    pub(crate) fn next_id(&self) -> JobId {
        self.next_ids(1)
    }

    /// The second of new ids. While nobody has looked whether this replica still has its number, it is the last second
    /// in which it surely had it.
    fn id_second(&self) -> u64 {
        let wall_s = self.ctx.clock.wall_s();
        let number = self.ctx.replicas.numbered();
        number.map_or(wall_s, |number| wall_s.min(number.until_s()))
    }

    /// The first of a block of ids: of a parent and its shards, or of one job.
    pub(crate) fn next_ids(&self, many: u16) -> JobId {
        let now_s = self.id_second();
        self.ids.lock().block(now_s, u32::from(many))
    }

    /// How this replica is now.
    pub(crate) fn vitals(&self) -> Vitals {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Vitals {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            lag_ms: self.lag_ms(),
            inbox: count(self.ctx.engine.depth()),
            held: count(self.jobs.live.count()),
            store_requests: self.ctx.metrics.times.store.all_in_flight(),
        }
    }

    /// How long ago all changes of the store were known here, ms.
    pub(crate) fn lag_ms(&self) -> u64 {
        let now = self.ctx.clock.now();
        let lag_ms = self.jobs.feed.lag_ms(now);
        lag_ms.unwrap_or_else(|| self.ctx.clock.age_ms())
    }
}
