//! Chunks, manifests and what is known of them, over an object store.
//!
//! Each object has a name that follows from what it holds, so writing it twice is writing it once, and nothing is ever
//! changed. The module `names` lists the objects.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, future::BoxFuture, stream};
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, path::Path, signer::Signer,
};
use serde::{Deserialize, Serialize};

use crate::{
    CHUNK_BYTES_MAX, ContentError, ContentHealth, Digest, Manifest, PIN_CHUNKS_MAX, Pin,
    beside::{hash, read_and_hash, work_on},
    clock::{Clock, MachineClock},
    health::Health,
    json::json,
    names::{OWNERS, about_name, chunk_name, digest_of, manifest_name, owner_name},
    pin::Watched,
    sketch,
};

/// Maximum number of simultaneous requests of one call to the object store.
pub(crate) const ABREAST: usize = 16;
/// Lifetime of the pin of a manifest that is being written. The pin stays for this time, also when the manifest
/// exists.
pub(crate) const WRITING_PIN: Duration = Duration::from_hours(1);
/// Maximum time from its pin in which a manifest is written.
pub(crate) const WRITING_WITHIN: Duration = Duration::from_mins(30);

/// Summary of a manifest, so that callers need not read all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Number of files, links and empty folders.
    pub files: u64,
    /// Bytes of all its files together.
    pub bytes: u64,
    /// Number of different chunks.
    pub chunks: u64,
    /// See [`crate::sketch`].
    pub sketch: Vec<String>,
}

/// Ownership note of an account for an id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// Name that the account gave it; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Time of the put, UTC epoch ms.
    pub put_ms: u64,
    /// Job whose outputs it is; empty: a person put it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_id: String,
    /// Time until which it is kept whatever jobs do, UTC epoch ms; 0: none.
    #[serde(default)]
    pub keep_until_ms: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Inputs, outputs and their chunks. A handle: clones are the same store.
#[derive(Debug, Clone)]
pub struct ContentStore {
    pub(crate) objects: Arc<dyn ObjectStore>,
    signer: Option<Arc<dyn Signer>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) health: Arc<Health>,
    pub(crate) watched: Watched,
    headers_to_put: &'static [(&'static str, &'static str)],
    /// Folder of the store, if it is in one.
    pub(crate) folder: Option<Arc<std::path::Path>>,
}

impl ContentStore {
    /// Creates a store over any object store. `signer`: signs addresses that anybody can use for a while; `None`:
    /// there are none.
    pub fn over(objects: Arc<dyn ObjectStore>, signer: Option<Arc<dyn Signer>>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(MachineClock::new());
        Self {
            objects,
            signer,
            health: Arc::new(Health::new(Arc::clone(&clock))),
            clock,
            watched: Watched::default(),
            headers_to_put: &[],
            folder: None,
        }
    }

    /// The same store with another clock, for tests.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let health = Arc::new(Health::new(Arc::clone(&clock)));
        self.with_clock_and_health(clock, health)
    }

    pub(crate) fn with_clock_and_health(self, clock: Arc<dyn Clock>, health: Arc<Health>) -> Self {
        Self {
            clock,
            health,
            ..self
        }
    }

    pub(crate) fn in_folder(self, folder: &std::path::Path) -> Self {
        Self {
            folder: Some(folder.into()),
            ..self
        }
    }

    pub(crate) fn with_headers_to_put(
        self,
        headers_to_put: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            headers_to_put,
            ..self
        }
    }

    /// Names and values of the headers that a request to [`ContentStore::url_to_put`] must have.
    pub const fn headers_to_put(&self) -> &'static [(&'static str, &'static str)] {
        self.headers_to_put
    }

    /// Returns the health of the object store, as this process sees it.
    pub fn health(&self) -> ContentHealth {
        self.health.told()
    }

    /// Creates a store in memory, for tests. It ends with its last handle.
    pub fn in_memory() -> Self {
        Self::over(Arc::new(object_store::memory::InMemory::new()), None)
    }

    /// Returns true if clients can be given addresses of chunks.
    pub const fn presigns(&self) -> bool {
        self.signer.is_some()
    }

    /// Returns those of these chunks that are missing, in this order, without repeats. Pin them first.
    pub async fn missing(&self, chunks: &[Digest]) -> Result<Vec<Digest>, ContentError> {
        let mut seen = BTreeSet::new();
        let asked = chunks.iter().copied().filter(|chunk| seen.insert(*chunk));
        let looks = stream::iter(asked).map(async |chunk| {
            let is_there = self.has(&chunk_name(chunk)).await?;
            Ok::<_, ContentError>((!is_there).then_some(chunk))
        });
        looks
            .buffered(ABREAST)
            .try_filter_map(async |missing| Ok(missing))
            .try_collect()
            .await
    }

    /// Stores a chunk, if its bytes match its digest.
    pub async fn put_chunk(&self, digest: Digest, bytes: Bytes) -> Result<(), ContentError> {
        if bytes.is_empty() || bytes.len() > CHUNK_BYTES_MAX {
            return Err(ContentError::ChunkSize(bytes.len()));
        }
        let is = hash(&bytes).await?;
        if is != digest {
            return Err(ContentError::NotWhatItSays { digest, is });
        }
        self.write(&chunk_name(digest), bytes).await
    }

    /// Returns the id and the summary of a manifest. Nothing is stored.
    pub async fn read_manifest(&self, bytes: &Bytes) -> Result<(Digest, About), ContentError> {
        let read = work_on(bytes, |bytes| {
            Ok::<_, ContentError>((Digest::of(bytes), about_of(&Manifest::decode(bytes)?)))
        });
        read.await?
    }

    /// Stores a manifest, if all its chunks exist. Returns its id and its summary. The manifest and its chunks are
    /// pinned while it is written, and for an hour in all.
    pub fn put_manifest(
        &self,
        bytes: Bytes,
    ) -> BoxFuture<'_, Result<(Digest, About), ContentError>> {
        Box::pin(async move {
            let read = work_on(&bytes, |bytes| {
                let manifest = Manifest::decode(bytes)?;
                Ok::<_, ContentError>((Digest::of(bytes), manifest.digests(), about_of(&manifest)))
            });
            let (id, chunks, about) = read.await??;
            let begun = self.begin_root(id, chunks).await?;
            self.write(&about_name(id), json(&about)?).await?;
            self.check_in_time(begun)?;
            self.write(&manifest_name(id), bytes).await?;
            Ok((id, about))
        })
    }

    /// Pins a root and the chunks that it names before the root is written. Fails if a chunk is missing. Returns the
    /// begin, for [`ContentStore::check_in_time`].
    pub(crate) async fn begin_root(
        &self,
        id: Digest,
        chunks: BTreeSet<Digest>,
    ) -> Result<Duration, ContentError> {
        let begun = self.clock.elapsed();
        let chunks: Vec<Digest> = chunks.into_iter().collect();
        let put = self.pin_for_writing(id, &chunks).await?;
        let missing = self.missing(&chunks).await?;
        let Some(first) = missing.first() else {
            return Ok(begun);
        };
        // A refused put leaves no pins.
        self.unpin(&put).await?;
        Err(ContentError::ChunksMissing {
            first: *first,
            count: missing.len(),
        })
    }

    /// Fails if a root is written so late that its pin may end too soon. Called right before the write.
    pub(crate) fn check_in_time(&self, begun: Duration) -> Result<(), ContentError> {
        if self.clock.elapsed().saturating_sub(begun) > WRITING_WITHIN {
            return Err(ContentError::Collecting);
        }
        Ok(())
    }

    /// Pins these, and returns the word of the pins.
    async fn pin_for_writing(&self, id: Digest, chunks: &[Digest]) -> Result<String, ContentError> {
        let lasts_ms = u64::try_from(WRITING_PIN.as_millis()).unwrap_or(u64::MAX);
        let all: Vec<Digest> = chunks.iter().copied().chain([id]).collect();
        let put = format!("manifest-{}", self.clock.fresh());
        for some in all.chunks(PIN_CHUNKS_MAX) {
            let pin = Pin {
                put: put.clone(),
                until_ms: self.clock.wall_ms().saturating_add(lasts_ms),
                digests: some.iter().copied().collect(),
            };
            self.pin(&pin).await?;
        }
        Ok(put)
    }

    /// Returns a manifest's verified bytes; `None`: there is none.
    pub async fn manifest(&self, id: Digest) -> Result<Option<Bytes>, ContentError> {
        let Some((bytes, is)) = self.read_hashed(&manifest_name(id)).await? else {
            return Ok(None);
        };
        if is == id {
            return Ok(Some(bytes));
        }
        self.health.damaged();
        Err(ContentError::Damaged {
            what: format!("manifest {id}"),
            problem: format!("the digest of its bytes is {is}"),
        })
    }

    /// Returns the summary of a manifest; `None`: there is none.
    pub fn about(&self, id: Digest) -> BoxFuture<'_, Result<Option<About>, ContentError>> {
        Box::pin(async move {
            if !self.has(&manifest_name(id)).await? {
                return Ok(None);
            }
            if let Some(json) = self.read(&about_name(id)).await?
                && let Ok(about) = serde_json::from_slice(&json)
            {
                return Ok(Some(about));
            }
            // It can always be made again.
            let Some(bytes) = self.manifest(id).await? else {
                return Ok(None);
            };
            let read = work_on(&bytes, |bytes| {
                Manifest::decode(bytes).map(|manifest| about_of(&manifest))
            });
            let about = read.await??;
            self.write(&about_name(id), json(&about)?).await?;
            Ok(Some(about))
        })
    }

    /// Returns an address at which anybody can PUT a chunk for a while; `None`: only through a scheduler.
    pub async fn url_to_put(
        &self,
        chunk: Digest,
        lasts: Duration,
    ) -> Result<Option<String>, ContentError> {
        self.signed(http::Method::PUT, chunk, lasts).await
    }

    /// Returns an address at which anybody can GET a chunk for a while; `None`: only through a scheduler.
    pub async fn url_to_get(
        &self,
        chunk: Digest,
        lasts: Duration,
    ) -> Result<Option<String>, ContentError> {
        self.signed(http::Method::GET, chunk, lasts).await
    }

    async fn signed(
        &self,
        method: http::Method,
        chunk: Digest,
        lasts: Duration,
    ) -> Result<Option<String>, ContentError> {
        let Some(signer) = &self.signer else {
            return Ok(None);
        };
        let url = signer.signed_url(method, &chunk_name(chunk), lasts).await;
        self.health.answered(&url);
        let url = url?;
        Ok(Some(url.to_string()))
    }

    /// Notes that an account has a manifest.
    pub async fn own(&self, account: &str, id: Digest, owned: &Owned) -> Result<(), ContentError> {
        self.write(&owner_name(account, id), json(owned)?).await
    }

    /// Returns the ownership note of an account for an id; `None`: there is none.
    pub async fn owned(&self, account: &str, id: Digest) -> Result<Option<Owned>, ContentError> {
        let Some(json) = self.read(&owner_name(account, id)).await? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&json);
        read.map(Some).map_err(|error| ContentError::Damaged {
            what: format!("the owner's note of {id}"),
            problem: error.to_string(),
        })
    }

    /// Removes the ownership note of an account for an id.
    pub async fn disown(&self, account: &str, id: Digest) -> Result<(), ContentError> {
        self.delete(&owner_name(account, id)).await
    }

    /// The ids that an account has, sorted, from behind `after` on, at most `limit`.
    pub async fn ids_of(
        &self,
        account: &str,
        after: Option<Digest>,
        limit: usize,
    ) -> Result<Vec<Digest>, ContentError> {
        let folder = Path::from_iter([OWNERS, account]);
        let found = self
            .list(&folder)
            .try_filter_map(async |meta| Ok(digest_of(&meta.location)));
        let mut ids: Vec<Digest> = found
            .try_filter(|id| std::future::ready(after.is_none_or(|after| *id > after)))
            .try_collect()
            .await?;
        ids.sort_unstable();
        ids.truncate(limit);
        Ok(ids)
    }

    pub(crate) async fn write(&self, name: &Path, bytes: Bytes) -> Result<(), ContentError> {
        let answer = self.objects.put(name, PutPayload::from_bytes(bytes)).await;
        self.health.answered(&answer);
        answer?;
        Ok(())
    }

    /// Writes an object that does not exist yet. Returns true if it did not.
    pub(crate) async fn create(&self, name: &Path, bytes: Bytes) -> Result<bool, ContentError> {
        let payload = PutPayload::from_bytes(bytes);
        let mode = PutMode::Create.into();
        let answer = self.objects.put_opts(name, payload, mode).await;
        self.health.answered(&answer);
        match answer {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads an object; `None`: it does not exist.
    pub(crate) async fn read(&self, name: &Path) -> Result<Option<Bytes>, ContentError> {
        let answer = async { self.objects.get(name).await?.bytes().await }.await;
        self.health.answered(&answer);
        if_there(answer)
    }

    /// Returns an object's bytes and their digest; `None`: it does not exist.
    pub(crate) async fn read_hashed(
        &self,
        name: &Path,
    ) -> Result<Option<(Bytes, Digest)>, ContentError> {
        let answer = async { read_and_hash(self.objects.get(name).await?).await }.await;
        self.health.answered(&answer);
        if_there(answer)
    }

    pub(crate) async fn has(&self, name: &Path) -> Result<bool, ContentError> {
        Ok(self.head(name).await?.is_some())
    }

    /// Returns an object's metadata; `None`: it does not exist.
    pub(crate) async fn head(&self, name: &Path) -> Result<Option<ObjectMeta>, ContentError> {
        let answer = self.objects.head(name).await;
        self.health.answered(&answer);
        if_there(answer)
    }

    pub(crate) fn list(
        &self,
        folder: &Path,
    ) -> impl Stream<Item = Result<ObjectMeta, ContentError>> + Unpin + use<> {
        let health = Arc::clone(&self.health);
        let found = self.objects.list(Some(folder));
        found.map(move |answer| {
            health.answered(&answer);
            answer.map_err(ContentError::from)
        })
    }

    /// Lists the objects and the folders directly in a folder.
    pub(crate) async fn list_folder(
        &self,
        folder: &Path,
    ) -> Result<object_store::ListResult, ContentError> {
        let answer = self.objects.list_with_delimiter(Some(folder)).await;
        self.health.answered(&answer);
        Ok(answer?)
    }

    pub(crate) async fn delete(&self, name: &Path) -> Result<(), ContentError> {
        let answer = self.objects.delete(name).await;
        self.health.answered(&answer);
        if_there(answer).map(|_| ())
    }
}

fn if_there<T>(answer: object_store::Result<T>) -> Result<Option<T>, ContentError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Summarizes a manifest. Takes long for a large one.
fn about_of(manifest: &Manifest) -> About {
    let chunks: BTreeSet<_> = manifest.chunks().collect();
    About {
        files: count(manifest.entries().len()),
        bytes: manifest.bytes(),
        chunks: count(chunks.len()),
        sketch: sketch(chunks),
    }
}

pub(crate) fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
