//! One run of a collector: its options, its counts, and the order of its work.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{
    pinned::{Pinned, written_ms},
    terms::Term,
};
use crate::{ContentError, ContentStore, Digest};

/// Maximum number of digests in a batch.
pub(super) const BATCH: usize = 1_000;
/// Time after which a batch deletes nothing.
pub(super) const BATCH_WITHIN: Duration = Duration::from_mins(1);
/// Maximum number of chunk digests that a pass holds in memory.
pub(super) const NAMED_MAX: usize = 4_000_000;

/// Source of names of manifests besides accounts: kept jobs, and reusable answers.
#[async_trait]
pub trait Marks: Send + Sync {
    /// Tells for each of these manifests if it is named now. At most 1,000 are asked at a time. The answer must
    /// include every name that existed before the question.
    async fn named(&self, ids: &[Digest]) -> Result<Vec<bool>, ContentError>;
}

/// Options of a collection.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// Age up to which objects stay.
    pub grace: Duration,
    /// True to count only: nothing is written or removed.
    pub dry_run: bool,
    /// The time now, UTC epoch ms.
    pub now_ms: u64,
    /// Name of the collecting replica, for others to read.
    pub holder: String,
}

/// Result of a collection.
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
    /// Bytes that were removed; with `dry_run`: that would be.
    pub bytes_removed: u64,
    /// Bytes of the manifests and chunks that stay.
    pub bytes_kept: u64,
}

pub(super) struct Run<'a> {
    pub(super) store: &'a ContentStore,
    pub(super) options: &'a CollectOptions,
    pub(super) marks: &'a dyn Marks,
    /// Term; `None`: nothing is removed.
    pub(super) term: Option<Term>,
    pub(super) pinned: Pinned,
    pub(super) begun: Duration,
    pub(super) batches: u64,
    pub(super) told: Collected,
}

impl ContentStore {
    /// Removes unnamed content. Puts, reads and other collections may go on meanwhile.
    ///
    /// # Errors
    /// [`ContentError::CollectedByAnother`]: another collector is at work. [`ContentError::Damaged`]: a manifest
    /// cannot be read, so the chunks that it names are unknown; [`ContentStore::check`] moves it aside. The next
    /// collection completes unfinished work.
    pub fn collect<'a>(
        &'a self,
        options: &'a CollectOptions,
        marks: &'a dyn Marks,
    ) -> BoxFuture<'a, Result<Collected, ContentError>> {
        Box::pin(async move {
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
        })
    }
}

impl Run<'_> {
    /// Returns the present time, UTC epoch ms, by the caller's clock.
    pub(super) fn now_ms(&self) -> u64 {
        let passed = self.store.clock.elapsed().saturating_sub(self.begun);
        let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        self.options.now_ms.saturating_add(passed)
    }

    /// Returns true if an object is older than the grace period.
    pub(super) fn is_old(&self, meta: &object_store::ObjectMeta) -> bool {
        self.is_older(meta, self.options.grace)
    }

    pub(super) fn is_older(&self, meta: &object_store::ObjectMeta, than: Duration) -> bool {
        let than = u64::try_from(than.as_millis()).unwrap_or(u64::MAX);
        written_ms(meta).saturating_add(than) < self.now_ms()
    }

    /// Renews the term of this collector. Called between any two steps that may take long.
    pub(super) async fn keep(&mut self) -> Result<(), ContentError> {
        match &mut self.term {
            Some(term) => term.keep(self.store).await,
            None => Ok(()),
        }
    }

    pub(super) fn is_pinned(&self, digest: Digest) -> bool {
        self.pinned.holds(digest, self.now_ms())
    }
}
