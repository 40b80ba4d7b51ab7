//! Chunks, manifests and what is known of them, over an object store.
//!
//! Each object has a name that follows from what it holds, so writing it twice is writing it once, and nothing is ever
//! changed. Names begin with two digits of the digest below their kind, so that object stores spread them.
//!
//! | name | holds |
//! |---|---|
//! | `chunks/ab/DIGEST` | the bytes of a chunk |
//! | `manifests/ab/ID` | a manifest; it is written last |
//! | `about/ab/ID` | an [`About`] |
//! | `owners/ACCOUNT/ID` | an [`Owned`] |
//! | `pins/PUT/DIGEST` | a [`Pin`] |

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, path::Path, signer::Signer};
use serde::{Deserialize, Serialize};

use crate::{CHUNK_BYTES_MAX, ContentError, Digest, Manifest, sketch};

/// Requests to the object store that one call has under way at a time.
pub(crate) const ABREAST: usize = 16;
/// Most chunks of a pin.
pub const PIN_CHUNKS_MAX: usize = 10_000;

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

/// Digests that a collection must leave until a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Who pins: the same word for all pins of a put.
    pub put: String,
    /// Until when, UTC epoch ms.
    pub until_ms: u64,
    /// Chunks and manifests, at most [`PIN_CHUNKS_MAX`].
    pub digests: BTreeSet<Digest>,
}

/// Inputs, outputs and their chunks. A handle: clones are the same store.
#[derive(Debug, Clone)]
pub struct ContentStore {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) signer: Option<Arc<dyn Signer>>,
}

impl ContentStore {
    /// Over any object store. `signer`: makes addresses that anybody can use for a while; `None`: it cannot.
    pub fn over(objects: Arc<dyn ObjectStore>, signer: Option<Arc<dyn Signer>>) -> Self {
        Self { objects, signer }
    }

    /// In memory, for tests: it ends with its last handle.
    pub fn in_memory() -> Self {
        Self::over(Arc::new(object_store::memory::InMemory::new()), None)
    }

    /// Whether clients can be given addresses of chunks.
    pub const fn presigns(&self) -> bool {
        self.signer.is_some()
    }

    /// Keeps these digests from collection until a time. It is in the store when this returns.
    pub async fn pin(&self, pin: &Pin) -> Result<(), ContentError> {
        let json = serde_json::to_vec(pin).map_err(|error| ContentError::bug(&error))?;
        let name = Path::from_iter(["pins", &pin.put, &Digest::of(&json).to_string()]);
        self.write(&name, json.into()).await
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
        check(digest, &bytes)?;
        self.write(&chunk_name(digest), bytes).await
    }

    /// Stores a manifest, if all its chunks are there. Returns its id and what is known of it.
    pub async fn put_manifest(&self, bytes: Bytes) -> Result<(Digest, About), ContentError> {
        let manifest = Manifest::decode(&bytes)?;
        let id = Digest::of(&bytes);
        let chunks: BTreeSet<_> = manifest.chunks().collect();
        let digests: Vec<Digest> = chunks.iter().map(|chunk| chunk.digest).collect();
        let missing = self.missing(&digests).await?;
        if let Some(first) = missing.first() {
            return Err(ContentError::ChunksMissing {
                first: *first,
                count: missing.len(),
            });
        }
        let about = About {
            files: count(manifest.entries().len()),
            bytes: manifest.bytes(),
            chunks: count(chunks.len()),
            sketch: sketch(chunks),
        };
        let json = serde_json::to_vec(&about).map_err(|error| ContentError::bug(&error))?;
        self.write(&about_name(id), json.into()).await?;
        self.write(&manifest_name(id), bytes).await?;
        Ok((id, about))
    }

    /// A manifest's bytes, checked; `None`: there is none.
    pub async fn manifest(&self, id: Digest) -> Result<Option<Bytes>, ContentError> {
        self.read_checked(&manifest_name(id), id).await
    }

    /// What is known of a manifest; `None`: there is none.
    pub async fn about(&self, id: Digest) -> Result<Option<About>, ContentError> {
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
        let (_, about) = self.put_manifest(bytes).await?;
        Ok(Some(about))
    }

    /// A chunk's bytes, checked; `None`: it is not there.
    pub async fn chunk(&self, digest: Digest) -> Result<Option<Bytes>, ContentError> {
        self.read_checked(&chunk_name(digest), digest).await
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
        let url = signer.signed_url(method, &chunk_name(chunk), lasts).await?;
        Ok(Some(url.to_string()))
    }

    /// Notes that an account has a manifest.
    pub async fn own(&self, account: &str, id: Digest, owned: &Owned) -> Result<(), ContentError> {
        let json = serde_json::to_vec(owned).map_err(|error| ContentError::bug(&error))?;
        self.write(&owner_name(account, id), json.into()).await
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
        let folder = Path::from_iter(["owners", account]);
        let found = self.objects.list(Some(&folder));
        let mut ids: Vec<Digest> = found
            .try_filter_map(async |meta| {
                let name = meta
                    .location
                    .filename()
                    .and_then(|name| name.parse::<Digest>().ok());
                Ok(name.filter(|id| after.is_none_or(|after| *id > after)))
            })
            .try_collect()
            .await?;
        ids.sort_unstable();
        ids.truncate(limit);
        Ok(ids)
    }

    pub(crate) async fn write(&self, name: &Path, bytes: Bytes) -> Result<(), ContentError> {
        self.objects
            .put(name, PutPayload::from_bytes(bytes))
            .await?;
        Ok(())
    }

    /// `None`: it is not there.
    pub(crate) async fn read(&self, name: &Path) -> Result<Option<Bytes>, ContentError> {
        match self.objects.get(name).await {
            Ok(found) => Ok(Some(found.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn read_checked(
        &self,
        name: &Path,
        digest: Digest,
    ) -> Result<Option<Bytes>, ContentError> {
        let read = self.read(name).await?;
        if let Some(bytes) = &read {
            check(digest, bytes)?;
        }
        Ok(read)
    }

    async fn has(&self, name: &Path) -> Result<bool, ContentError> {
        match self.objects.head(name).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn delete(&self, name: &Path) -> Result<(), ContentError> {
        match self.objects.delete(name).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn check(digest: Digest, bytes: &[u8]) -> Result<(), ContentError> {
    let is = Digest::of(bytes);
    if is == digest {
        return Ok(());
    }
    Err(ContentError::NotWhatItSays { digest, is })
}

fn count(many: usize) -> u64 {
    u64::try_from(many).unwrap_or(u64::MAX)
}

fn spread(kind: &str, digest: Digest) -> Path {
    let name = digest.to_string();
    Path::from_iter([kind, name.split_at(2).0, &name])
}

pub(crate) fn chunk_name(digest: Digest) -> Path {
    spread("chunks", digest)
}

pub(crate) fn manifest_name(id: Digest) -> Path {
    spread("manifests", id)
}

pub(crate) fn about_name(id: Digest) -> Path {
    spread("about", id)
}

pub(crate) fn owner_name(account: &str, id: Digest) -> Path {
    Path::from_iter(["owners", account, &id.to_string()])
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;
    use crate::{Chunk, Entry, Kind};

    fn store() -> ContentStore {
        ContentStore::over(Arc::new(InMemory::new()), None)
    }

    fn manifest_of(bytes: &[u8]) -> Bytes {
        let kind = Kind::File {
            executable: false,
            size: u64::try_from(bytes.len()).unwrap(),
            digest: Digest::of(bytes),
            chunks: vec![Chunk::of(bytes)],
        };
        let path = "a".to_owned();
        let manifest = Manifest::new(vec![Entry { path, kind }]).unwrap();
        manifest.encode().unwrap().into()
    }

    #[tokio::test]
    async fn a_manifest_comes_after_its_chunks() {
        let store = store();
        let (bytes, digest) = (Bytes::from_static(b"abc"), Digest::of(b"abc"));
        let manifest = manifest_of(&bytes);
        let refused = store.put_manifest(manifest.clone()).await;
        assert!(
            matches!(refused, Err(ContentError::ChunksMissing { count: 1, .. })),
            "{refused:?}"
        );
        assert_eq!(store.missing(&[digest, digest]).await.unwrap(), [digest]);
        let wrong = store.put_chunk(Digest::of(b"x"), bytes.clone()).await;
        assert!(
            matches!(wrong, Err(ContentError::NotWhatItSays { .. })),
            "{wrong:?}"
        );
        store.put_chunk(digest, bytes.clone()).await.unwrap();
        assert_eq!(store.missing(&[digest]).await.unwrap(), []);
        let (id, about) = store.put_manifest(manifest.clone()).await.unwrap();
        assert_eq!((about.files, about.bytes, about.chunks), (1, 3, 1));
        assert_eq!(store.manifest(id).await.unwrap(), Some(manifest));
        assert_eq!(store.chunk(digest).await.unwrap(), Some(bytes));
        assert_eq!(store.about(id).await.unwrap(), Some(about.clone()));
        store.delete(&about_name(id)).await.unwrap();
        assert_eq!(store.about(id).await.unwrap(), Some(about));
        assert_eq!(store.about(digest).await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_account_has_what_it_put() {
        let store = store();
        let mut ids: Vec<Digest> = (0..5_u8).map(|n| Digest::of(&[n])).collect();
        ids.sort_unstable();
        for id in &ids {
            let owned = Owned {
                put_ms: 7,
                ..Owned::default()
            };
            store.own("a b", *id, &owned).await.unwrap();
        }
        assert_eq!(store.ids_of("a b", None, 2).await.unwrap(), ids[..2]);
        assert_eq!(
            store.ids_of("a b", Some(ids[1]), 9).await.unwrap(),
            ids[2..]
        );
        assert_eq!(store.ids_of("a", None, 9).await.unwrap(), []);
        store.disown("a b", ids[0]).await.unwrap();
        assert_eq!(store.owned("a b", ids[0]).await.unwrap(), None);
        assert_eq!(
            store
                .owned("a b", ids[1])
                .await
                .unwrap()
                .map(|owned| owned.put_ms),
            Some(7)
        );
    }
}
