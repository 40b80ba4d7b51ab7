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

/// Requests to the object store that one call has under way at a time.
pub(crate) const ABREAST: usize = 16;
/// How long the pin of a manifest that is written lasts. It stays for this time also when the manifest is there.
pub(crate) const WRITING_PIN: Duration = Duration::from_hours(1);
/// A manifest is written within this time of its pin.
pub(crate) const WRITING_WITHIN: Duration = Duration::from_mins(30);

/// What is known of a manifest, so that nobody needs to read all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// How many files, links and empty folders.
    pub files: u64,
    /// Bytes of all its files together.
    pub bytes: u64,
    /// How many different chunks.
    pub chunks: u64,
    /// See [`crate::sketch`].
    pub sketch: Vec<String>,
}

/// What an account has under an id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// What the account calls it; empty: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When it was put, UTC epoch ms.
    pub put_ms: u64,
    /// The job that has it as its outputs; empty: somebody put it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_id: String,
    /// Until when it is kept whatever jobs do, UTC epoch ms; 0: no such time.
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
    /// The folder that it is in, if it is in one.
    pub(crate) folder: Option<Arc<std::path::Path>>,
}

impl ContentStore {
    /// Over any object store. `signer`: makes addresses that anybody can use for a while; `None`: it cannot.
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

    /// How the object store is, as this process sees it.
    pub fn health(&self) -> ContentHealth {
        self.health.told()
    }

    /// In memory, for tests: it ends with its last handle.
    pub fn in_memory() -> Self {
        Self::over(Arc::new(object_store::memory::InMemory::new()), None)
    }

    /// Whether clients can be given addresses of chunks.
    pub const fn presigns(&self) -> bool {
        self.signer.is_some()
    }

    /// Which of these chunks are not there, in this order, without repeats. Pin them first.
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

    /// Stores a chunk, if its bytes are what its digest says.
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

    /// The id of a manifest, and what is to be known of it. Nothing is stored.
    pub async fn read_manifest(&self, bytes: &Bytes) -> Result<(Digest, About), ContentError> {
        let read = work_on(bytes, |bytes| {
            Ok::<_, ContentError>((Digest::of(bytes), about_of(&Manifest::decode(bytes)?)))
        });
        read.await?
    }

    /// Stores a manifest, if all its chunks are there. Returns its id and what is known of it. The manifest and its chunks
    /// are pinned while it is written, and for an hour in all.
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

    /// Before a root is written that names these chunks: pins both, and refuses if a chunk is not there. Answers when it
    /// began, for [`ContentStore::check_in_time`].
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
        // What is refused leaves nothing.
        self.unpin(&put).await?;
        Err(ContentError::ChunksMissing {
            first: *first,
            count: missing.len(),
        })
    }

    /// Right before a root is written: refuses if its pin may end too soon.
    pub(crate) fn check_in_time(&self, begun: Duration) -> Result<(), ContentError> {
        if self.clock.elapsed().saturating_sub(begun) > WRITING_WITHIN {
            return Err(ContentError::Collecting);
        }
        Ok(())
    }

    /// Pins these, and answers the word of the pins.
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

    /// A manifest's bytes, checked; `None`: there is none.
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

    /// What is known of a manifest; `None`: there is none.
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

    /// Where anybody can PUT a chunk for a while; `None`: through a scheduler only.
    pub async fn url_to_put(
        &self,
        chunk: Digest,
        lasts: Duration,
    ) -> Result<Option<String>, ContentError> {
        self.signed(http::Method::PUT, chunk, lasts).await
    }

    /// Where anybody can GET a chunk for a while; `None`: through a scheduler only.
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

    /// What an account has under an id; `None`: nothing.
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

    /// The account gives an id up.
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

    /// Writes what is not there yet. Returns whether it was so.
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

    /// `None`: it is not there.
    pub(crate) async fn read(&self, name: &Path) -> Result<Option<Bytes>, ContentError> {
        let answer = async { self.objects.get(name).await?.bytes().await }.await;
        self.health.answered(&answer);
        if_there(answer)
    }

    /// An object's bytes and their digest; `None`: it is not there.
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

    /// `None`: it is not there.
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

    /// What lies in a folder itself, and which folders are in it.
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

/// Takes long for a large manifest.
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
