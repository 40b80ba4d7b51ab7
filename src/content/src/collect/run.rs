//! One run of a collector: its options, its counts, and the order of its work.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{
    pinned::{Pinned, written_ms},
    terms::Term,
};
use crate::{ContentError, ContentStore, Digest};

/// Digests of a batch at most.
pub(super) const BATCH: usize = 1_000;
/// A batch deletes nothing after this time.
pub(super) const BATCH_WITHIN: Duration = Duration::from_mins(1);
/// Most digests of chunks that a pass holds in memory.
pub(super) const NAMED_MAX: usize = 4_000_000;

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

pub(super) struct Run<'a> {
    pub(super) store: &'a ContentStore,
    pub(super) options: &'a CollectOptions,
    pub(super) marks: &'a dyn Marks,
    /// `None`: nothing is removed.
    pub(super) term: Option<Term>,
    pub(super) pinned: Pinned,
    pub(super) begun: Duration,
    pub(super) batches: u64,
    pub(super) told: Collected,
}

impl ContentStore {
    /// Removes what nobody names. Puts, reads and other collections may go on meanwhile.
    ///
    /// # Errors
    /// [`ContentError::CollectedByAnother`]: somebody else does it. [`ContentError::Damaged`]: a manifest cannot be read,
    /// so nobody knows which chunks it names; [`ContentStore::check`] moves it aside. Whatever was left half done is done by
    /// the next collection.
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
    /// The time now, UTC epoch ms, by the caller's clock.
    pub(super) fn now_ms(&self) -> u64 {
        let passed = self.store.clock.elapsed().saturating_sub(self.begun);
        let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        self.options.now_ms.saturating_add(passed)
    }

    /// Whether what was written then is older than the grace period.
    pub(super) fn is_old(&self, meta: &object_store::ObjectMeta) -> bool {
        self.is_older(meta, self.options.grace)
    }

    pub(super) fn is_older(&self, meta: &object_store::ObjectMeta, than: Duration) -> bool {
        let than = u64::try_from(than.as_millis()).unwrap_or(u64::MAX);
        written_ms(meta).saturating_add(than) < self.now_ms()
    }

    /// Tells others that this collector lives. Called between any two things that may take long.
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
