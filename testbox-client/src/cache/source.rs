//! Where the chunks of inputs come from: out of files of the cache that have them, else from the lab.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use fairlead_content::{
    Digest,
    transfer::{Place, Remote, TransferError},
};

use super::give::Cache;
use crate::{
    protocol::Backoff,
    timer::{pause, seed},
};

/// How often a request is tried that may succeed later: some minutes, with those that its client tries by itself.
const TRIES_MAX: u32 = 12;

/// A lab, and the cache before it.
#[derive(Debug)]
pub(crate) struct Source {
    cache: Arc<Cache>,
    lab: Arc<dyn Remote>,
    fetched: AtomicU64,
}

impl Source {
    /// Asks `lab` for what `cache` does not have.
    pub(crate) fn new(cache: Arc<Cache>, lab: Arc<dyn Remote>) -> Self {
        Self {
            cache,
            lab,
            fetched: AtomicU64::new(0),
        }
    }

    /// Bytes of chunks that came from the lab.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// A chunk out of a file of the cache. Whoever damaged it there, it is not taken with other bytes.
    async fn known(&self, chunk: Digest) -> Option<Bytes> {
        let piece = self.cache.manifests.piece(chunk)?;
        let files = Arc::clone(&self.cache.files);
        let reading = move || {
            let bytes = files.read(piece.file, piece.offset, piece.size)?;
            (Digest::of(&bytes) == chunk).then_some(bytes)
        };
        let read = tokio::task::spawn_blocking(reading).await;
        read.ok().flatten().map(Bytes::from)
    }

    async fn asked(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        // No error: nobody closes it.
        let _permit = self.cache.abreast.acquire().await.ok();
        let bytes = if from.url.is_some() {
            self.lab.chunk(id, from).await?
        } else {
            // It was to come out of the cache, or there are no addresses, as the lab knows without a question.
            let places = self.lab.places(id, &[from.digest]).await?;
            let through_it = Place::through_remote(from.digest);
            self.lab
                .chunk(id, places.first().unwrap_or(&through_it))
                .await?
        };
        let many = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.fetched.fetch_add(many, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Asks again after a while when that may help.
async fn patiently<T, F>(what: &'static str, ask: impl Fn() -> F + Send) -> Result<T, TransferError>
where
    F: Future<Output = Result<T, TransferError>> + Send,
{
    let mut backoff = Backoff::patient(seed());
    let mut tries = 1;
    loop {
        match ask().await {
            Err(error) if error.may_pass() && tries < TRIES_MAX => {
                tracing::warn!(what, %error, "an input cannot be fetched yet; retrying");
                pause(backoff.step()).await;
                tries += 1;
            }
            answer => return answer,
        }
    }
}

#[async_trait]
impl Remote for Source {
    async fn pin(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        self.lab.pin(put, chunks).await
    }

    async fn put_chunk(&self, put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError> {
        self.lab.put_chunk(put, to, bytes).await
    }

    async fn put_manifest(
        &self,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError> {
        self.lab.put_manifest(put, name, manifest).await
    }

    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError> {
        patiently("manifest", || self.lab.manifest(id)).await
    }

    /// Asks the lab only for addresses of chunks that the cache does not know.
    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        let is_known = |chunk: &Digest| self.cache.manifests.piece(*chunk).is_some();
        let asked: Vec<Digest> = chunks
            .iter()
            .copied()
            .filter(|chunk| !is_known(chunk))
            .collect();
        let places = patiently("addresses", || self.lab.places(id, &asked)).await?;
        let mut places: std::collections::HashMap<Digest, Place> = places
            .into_iter()
            .map(|place| (place.digest, place))
            .collect();
        let all = chunks.iter().map(|chunk| {
            let place = places.remove(chunk);
            place.unwrap_or_else(|| Place::through_remote(*chunk))
        });
        Ok(all.collect())
    }

    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        if let Some(bytes) = self.known(from.digest).await {
            return Ok(bytes);
        }
        patiently("chunk", || self.asked(id, from)).await
    }
}
