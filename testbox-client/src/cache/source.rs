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

/// Maximum number of tries of a request that may succeed later. With the client's own tries they take some minutes.
const TRIES_MAX: u32 = 12;

/// A lab, behind the cache.
#[derive(Debug)]
pub(crate) struct Source {
    cache: Arc<Cache>,
    lab: Arc<dyn Remote>,
    fetched: AtomicU64,
}

impl Source {
    /// Returns a source that asks `lab` for chunks missing in `cache`.
    pub(crate) fn new(cache: Arc<Cache>, lab: Arc<dyn Remote>) -> Self {
        Self {
            cache,
            lab,
            fetched: AtomicU64::new(0),
        }
    }

    /// Returns the number of chunk bytes that came from the lab.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Returns a chunk from a cached file. `None`: not cached, or its bytes do not match, whoever damaged them.
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

    /// Reads a chunk from its address. If the bytes are wrong, the lab reads the chunk itself: it moves a damaged one
    /// aside, so that the next put sends it again.
    async fn read_direct(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        let bytes = self.lab.chunk(id, from).await?;
        let (read, digest) = (bytes.clone(), from.digest);
        let checking = tokio::task::spawn_blocking(move || Digest::of(&read) == digest);
        if checking.await.unwrap_or(false) {
            return Ok(bytes);
        }
        tracing::warn!(chunk = %digest, "a chunk of an input came damaged; the lab is asked for it");
        self.lab.chunk(id, &Place::through_remote(digest)).await
    }

    async fn asked(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        // The semaphore is never closed, so this cannot fail.
        let _permit = self.cache.abreast.acquire().await.ok();
        let bytes = if from.url.is_some() {
            self.read_direct(id, from).await?
        } else {
            // The chunk was expected in the cache, or the lab has no addresses, which it knows without a request.
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

/// Repeats a request after a pause, if that may help.
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

    /// Asks the lab for the addresses of the chunks that the cache lacks.
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A lab whose object store has a damaged chunk. The lab reports that when it is asked for the chunk itself.
    #[derive(Debug)]
    struct Poisoned {
        itself: Option<Bytes>,
        asked: Mutex<Vec<bool>>,
    }

    #[async_trait]
    impl Remote for Poisoned {
        async fn pin(&self, _: &str, _: &[Digest]) -> Result<Vec<Place>, TransferError> {
            Err(TransferError::Stopped)
        }

        async fn put_chunk(&self, _: &str, _: &Place, _: Bytes) -> Result<(), TransferError> {
            Err(TransferError::Stopped)
        }

        async fn put_manifest(&self, _: &str, _: &str, _: Bytes) -> Result<Digest, TransferError> {
            Err(TransferError::Stopped)
        }

        async fn manifest(&self, _: Digest) -> Result<Bytes, TransferError> {
            Err(TransferError::Stopped)
        }

        async fn places(&self, _: Digest, _: &[Digest]) -> Result<Vec<Place>, TransferError> {
            Err(TransferError::Stopped)
        }

        async fn chunk(&self, _: Digest, from: &Place) -> Result<Bytes, TransferError> {
            let is_direct = from.url.is_some();
            self.asked.lock().push(is_direct);
            if is_direct {
                return Ok(Bytes::from_static(b"poison"));
            }
            self.itself
                .clone()
                .ok_or(TransferError::ChunkGone(from.digest))
        }
    }

    async fn read(itself: Option<Bytes>) -> (Result<Bytes, TransferError>, Vec<bool>) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), None).unwrap();
        let lab = Arc::new(Poisoned {
            itself,
            asked: Mutex::default(),
        });
        let source = Source::new(Arc::new(cache), Arc::clone(&lab) as Arc<dyn Remote>);
        let mut place = Place::through_remote(Digest::of(b"good"));
        place.url = Some("http://store/chunk".to_owned());
        let read = source.chunk(Digest::of(b"manifest"), &place).await;
        let asked = lab.asked.lock().clone();
        (read, asked)
    }

    #[tokio::test]
    async fn the_lab_is_told_of_a_chunk_that_came_damaged() {
        let good = Bytes::from_static(b"good");
        let (bytes, asked) = read(Some(good.clone())).await;
        assert_eq!((bytes.unwrap(), asked), (good, vec![true, false]));
        let (gone, asked) = read(None).await;
        assert!(matches!(gone, Err(TransferError::ChunkGone(_))), "{gone:?}");
        assert_eq!(asked, [true, false]);
    }
}
