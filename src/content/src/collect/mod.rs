//! Collection: what nobody names goes after a grace period.
//!
//! Manifests go first that nobody marks, keeps or pins, each with what is known of it and its owners' notes. Then chunks
//! go that no manifest names and nobody pins. Both go in batches. A batch is written down before it is decided, so that a
//! put sees it (see the module `pins`), and what the puts wrote is read again behind that.
//!
//! The order of the second look matters. Pins are read first, because a pin ends only when what it protected is named. So
//! what a pin no longer protects is already named in what is read after it.
//!
//! The lock of `terms` saves work. Two collectors at once would be as safe as one, because each has batches of its own.
//!
//! **Clocks.** Nothing depends on the clocks of two machines but for the ends of pins and the grace period, which are
//! long, and pins count for five minutes more. A collector that stood still in the middle of a batch deletes nothing more
//! once [`BATCH_WITHIN`] is over by its own clocks. A list counts as left behind after [`LEASE`], which is longer than that
//! and the longest request together.
//!
//! **Memory.** 48 bytes a manifest, and at most [`NAMED_MAX`] digests of chunks, for which a table has 40 to 80 bytes
//! each. A store with more chunks is collected in several passes over ranges of digests.

mod batch;
mod chunks;
mod manifests;
mod pinned;
mod rest;
mod terms;

use std::time::Duration;

use async_trait::async_trait;

use self::{pinned::Pinned, terms::Term};
use crate::{ContentError, ContentStore, Digest};

pub(crate) use self::batch::Condemned;

/// Digests of a batch at most.
const BATCH: usize = 1_000;
/// A batch deletes nothing after this time.
const BATCH_WITHIN: Duration = Duration::from_mins(1);
/// After this time without a change, a list or a collector counts as left behind. The longest request takes a minute of
/// repeats and two minutes for the last of them.
pub(crate) const LEASE: Duration = Duration::from_mins(5);
/// Most digests of chunks that a pass holds in memory.
const NAMED_MAX: usize = 4_000_000;

/// Who names manifests besides accounts: jobs that are kept, and answers that can be used again.
#[async_trait]
pub trait Marks: Send + Sync {
    /// Whether each of these manifests is named now. At most 1,000 are asked at a time. The answer must see all that was
    /// named before the question.
    async fn named(&self, ids: &[Digest]) -> Result<Vec<bool>, ContentError>;
}

/// What a collection may do.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// What was written within this time stays.
    pub grace: Duration,
    /// Only count: nothing is written and nothing is removed.
    pub dry_run: bool,
    /// The time now, UTC epoch ms.
    pub now_ms: u64,
    /// Who collects, for others to read: a replica's name.
    pub holder: String,
}

/// What a collection found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Manifests that were there at the beginning.
    pub manifests: u64,
    /// Those of them that were removed; with `dry_run`: that would be.
    pub manifests_removed: u64,
    /// Chunks that were there at the beginning.
    pub chunks: u64,
    /// Those of them that were removed; with `dry_run`: that would be.
    pub chunks_removed: u64,
    /// Bytes of what was removed, or would be.
    pub bytes_removed: u64,
    /// Bytes of the manifests and chunks that stay.
    pub bytes_kept: u64,
}

struct Run<'a> {
    store: &'a ContentStore,
    options: &'a CollectOptions,
    marks: &'a dyn Marks,
    /// `None`: nothing is removed.
    term: Option<Term>,
    pinned: Pinned,
    begun: Duration,
    batches: u64,
    told: Collected,
}

impl ContentStore {
    /// Removes what nobody names. Puts, reads and other collections may go on meanwhile.
    ///
    /// # Errors
    /// [`ContentError::CollectedByAnother`]: somebody else does it. [`ContentError::Damaged`]: a manifest cannot be read,
    /// so nobody knows which chunks it names; [`ContentStore::check`] moves it aside. Whatever was left half done is done by
    /// the next collection.
    pub async fn collect(
        &self,
        options: &CollectOptions,
        marks: &dyn Marks,
    ) -> Result<Collected, ContentError> {
        let begun = self.clock.elapsed();
        let term = if options.dry_run {
            None
        } else {
            Some(Term::take(self, &options.holder).await?)
        };
        let mut run = Run {
            store: self,
            options,
            marks,
            term,
            pinned: Pinned::default(),
            begun,
            batches: 0,
            told: Collected::default(),
        };
        run.tidy().await?;
        run.pinned.read(self).await?;
        run.manifests().await?;
        run.chunks().await?;
        run.end().await
    }
}

impl Run<'_> {
    /// The time now, UTC epoch ms, by the caller's clock.
    fn now_ms(&self) -> u64 {
        let passed = self.store.clock.elapsed().saturating_sub(self.begun);
        let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        self.options.now_ms.saturating_add(passed)
    }

    /// Whether what was written then is older than the grace period.
    fn is_old(&self, meta: &object_store::ObjectMeta) -> bool {
        self.is_older(meta, self.options.grace)
    }

    fn is_older(&self, meta: &object_store::ObjectMeta, than: Duration) -> bool {
        let than = u64::try_from(than.as_millis()).unwrap_or(u64::MAX);
        pinned::written_ms(meta).saturating_add(than) < self.now_ms()
    }

    /// Tells others that this collector lives. Called between any two things that may take long.
    async fn keep(&mut self) -> Result<(), ContentError> {
        match &mut self.term {
            Some(term) => term.keep(self.store).await,
            None => Ok(()),
        }
    }

    fn is_pinned(&self, digest: Digest) -> bool {
        self.pinned.holds(digest, self.now_ms())
    }
}
