//! How many chunks a put or a get moves at a time.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Barrier;

use super::*;

/// Time that a chunk waits for others.
const OTHERS_COME_WITHIN: Duration = Duration::from_mins(1);

/// A store to and from which chunks go only together.
#[derive(Debug)]
struct Together {
    store: ContentStore,
    barrier: Barrier,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

impl Together {
    fn new(many: usize) -> Self {
        Self {
            store: ContentStore::in_memory(),
            barrier: Barrier::new(many),
            under_way: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }

    async fn meet(&self) -> Result<(), TransferError> {
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let others = tokio::time::timeout(OTHERS_COME_WITHIN, self.barrier.wait()).await;
        others.map_err(|_| TransferError::Bug("no others came".to_owned()))?;
        Ok(())
    }
}

#[async_trait]
impl Remote for Together {
    async fn pin(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        Remote::pin(&self.store, put, chunks).await
    }

    async fn put_chunk(&self, put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError> {
        self.meet().await?;
        let stored = Remote::put_chunk(&self.store, put, to, bytes).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        stored
    }

    async fn put_manifest(
        &self,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError> {
        Remote::put_manifest(&self.store, put, name, manifest).await
    }

    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError> {
        Remote::manifest(&self.store, id).await
    }

    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        Remote::places(&self.store, id, chunks).await
    }

    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        self.meet().await?;
        let read = Remote::chunk(&self.store, id, from).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        read
    }
}

#[tokio::test]
async fn many_small_chunks_move_in_the_place_of_a_large_one() {
    // Bytes of each file, `parallel`, and how many chunks are under way.
    for (size, parallel, together) in [
        (1_000, 8, 57),
        (65_536, 2, 9),
        (65_537, 2, 2),
        (100_000, 8, 8),
        (1_000, 1, 1),
        (1_000, PARALLEL_MAX, PARALLEL_MAX),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let name = |n: usize| format!("file-{n}");
        let files = (0..together * 3).map(|n| (name(n), file(&noise(&name(n), size))));
        write(dir.path(), &files.collect());
        let remote = Together::new(together);
        let options = PutOptions {
            parallel,
            ..PutOptions::default()
        };
        let sent = put(&remote, dir.path().to_owned(), &options, &|_| {}).await;
        let sent = sent.unwrap();
        assert_eq!(sent.sent_chunks, u64::try_from(together * 3).unwrap());
        assert_eq!(remote.most.swap(0, Ordering::Relaxed), together, "{size}");
        let (options, into) = (GetOptions { parallel }, dir.path().join("back"));
        let got = get(&remote, sent.id, into, &options, &|_| {}).await;
        assert_eq!(got.unwrap().bytes, sent.bytes);
        assert_eq!(remote.most.load(Ordering::Relaxed), together, "{size}");
    }
}
