//! The check: reads everything that is stored, and moves aside what is damaged, so that the next put sends it again.

use std::collections::HashSet;

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use crate::{
    ContentError, ContentStore, Digest, Manifest, ManifestError,
    named::read_note,
    names::{
        CHUNKS, DAMAGED, FILES, MANIFESTS, chunk_name, damaged_name, digest_of, manifest_name,
    },
    store::{ABREAST, count},
};

/// Most manifests and objects that a report names.
pub const CHECK_NAMED_MAX: usize = 1_000;
/// Maximum number of manifests in memory: each may have 64 MiB.
const MANIFESTS_ABREAST: usize = 4;
/// Maximum number of digests in memory. A store with more chunks is checked in several passes, each of which reads
/// all manifests.
const GOOD_MAX: usize = 4_000_000;
/// Number of values of a digest's first byte.
const BYTES: u16 = 256;

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Manifests that were read.
    pub manifests: u64,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Damaged objects, which now lie below `damaged/`.
    pub damaged: u64,
    /// The first of them, at most [`CHECK_NAMED_MAX`]: `chunks/DIGEST` or `manifests/DIGEST`.
    pub damaged_first: Vec<String>,
    /// Manifests and named files that cannot be delivered: they name a chunk that is missing now.
    pub broken: u64,
    /// The first manifests among them, at most [`CHECK_NAMED_MAX`].
    pub broken_first: Vec<Digest>,
    /// The first named files among them, at most [`CHECK_NAMED_MAX`].
    pub broken_files: Vec<String>,
}

impl ContentStore {
    /// Reads everything. Moves damaged objects aside. Takes as long as the store needs to deliver all of it.
    ///
    /// # Errors
    /// Fails if the object store does not answer.
    pub fn check(&self) -> BoxFuture<'_, Result<Checked, ContentError>> {
        Box::pin(async move {
            let (mut told, mut broken) = (Checked::default(), HashSet::new());
            let chunks = Path::from(CHUNKS);
            let folders = self.objects.list_with_delimiter(Some(&chunks)).await;
            self.health.answered(&folders);
            let folders = folders?.common_prefixes;
            let mut from = 0;
            while from < BYTES {
                let (mut good, mut until) = (HashSet::new(), from);
                while until < BYTES && good.len() < GOOD_MAX {
                    let folder = Path::from_iter([CHUNKS, &format!("{until:02x}")]);
                    if folders.contains(&folder) {
                        self.check_folder(&folder, &mut good, &mut told).await?;
                    }
                    until += 1;
                }
                let is_first = from == 0;
                self.check_manifests(from..until, &good, is_first, &mut broken, &mut told)
                    .await?;
                from = until;
            }
            self.check_notes(&mut told).await?;
            Ok(told)
        })
    }

    /// Reads the notes of named files, and checks that their chunks exist. Damaged chunks were moved aside before.
    async fn check_notes(&self, told: &mut Checked) -> Result<(), ContentError> {
        let found = self.list(&Path::from(FILES));
        let looks = found.map(async |meta| {
            let name = meta?.location;
            let Some(json) = self.read(&name).await? else {
                return Ok((name, Ok(true)));
            };
            let file = match read_note(name.as_ref(), &json) {
                Ok(file) => file,
                Err(error) => return Ok((name, Err(error))),
            };
            let chunks: Vec<Digest> = file.chunks.iter().map(|chunk| chunk.digest).collect();
            let is_whole = self.missing(&chunks).await?.is_empty();
            Ok::<_, ContentError>((name, Ok(is_whole)))
        });
        let mut looks = std::pin::pin!(looks.buffer_unordered(MANIFESTS_ABREAST));
        while let Some((name, looked)) = looks.try_next().await? {
            match looked {
                Ok(true) => {}
                Ok(false) => {
                    told.broken += 1;
                    if told.broken_files.len() < CHECK_NAMED_MAX {
                        told.broken_files.push(name.to_string());
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "a note of the content store was moved aside");
                    self.health.damaged();
                    let aside = Path::from_iter([
                        DAMAGED,
                        FILES,
                        &Digest::of(name.as_ref().as_bytes()).to_string(),
                    ]);
                    self.move_aside(&name, &aside).await?;
                    told.damaged += 1;
                    if told.damaged_first.len() < CHECK_NAMED_MAX {
                        told.damaged_first.push(name.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    async fn move_aside(&self, name: &Path, aside: &Path) -> Result<(), ContentError> {
        let moved = self.objects.copy(name, aside).await;
        self.health.answered(&moved);
        moved?;
        self.delete(name).await
    }

    async fn check_folder(
        &self,
        folder: &Path,
        good: &mut HashSet<Digest>,
        told: &mut Checked,
    ) -> Result<(), ContentError> {
        let found = self.list(folder);
        let found: Vec<Path> = found.map_ok(|meta| meta.location).try_collect().await?;
        let digests = found.iter().filter_map(digest_of);
        let reads = stream::iter(digests).map(async |digest| {
            let bytes = self.sound(CHUNKS, digest, &chunk_name(digest)).await?;
            Ok::<_, ContentError>((digest, bytes))
        });
        let mut reads = reads.buffer_unordered(ABREAST);
        while let Some((digest, read)) = reads.try_next().await? {
            told.chunks += 1;
            match read {
                Sound::Good(bytes) => {
                    told.bytes += count(bytes.len());
                    good.insert(digest);
                }
                Sound::Gone => {}
                Sound::Damaged => told.note_damaged(CHUNKS, digest),
            }
        }
        Ok(())
    }

    async fn check_manifests(
        &self,
        range: std::ops::Range<u16>,
        good: &HashSet<Digest>,
        is_first: bool,
        broken: &mut HashSet<Digest>,
        told: &mut Checked,
    ) -> Result<(), ContentError> {
        let found = self.list(&Path::from(MANIFESTS));
        let found: Vec<Path> = found.map_ok(|meta| meta.location).try_collect().await?;
        let ids = found.iter().filter_map(digest_of);
        let reads = stream::iter(ids).map(async |id| {
            let read = self.sound(MANIFESTS, id, &manifest_name(id)).await?;
            let Sound::Good(bytes) = &read else {
                return Ok((id, read, false));
            };
            let is_whole = self.is_whole(bytes, &range, good).await?;
            Ok::<_, ContentError>((id, read, is_whole))
        });
        let mut reads = reads.buffer_unordered(MANIFESTS_ABREAST);
        while let Some((id, read, is_whole)) = reads.try_next().await? {
            told.manifests += u64::from(is_first);
            match read {
                Sound::Gone => {}
                Sound::Damaged => told.note_damaged(MANIFESTS, id),
                Sound::Good(bytes) => {
                    told.bytes += if is_first { count(bytes.len()) } else { 0 };
                    if !is_whole && broken.insert(id) {
                        told.broken += 1;
                        if told.broken_first.len() < CHECK_NAMED_MAX {
                            told.broken_first.push(id);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns true if all chunks of this range that a manifest names exist. A chunk that came during the check is
    /// looked up.
    async fn is_whole(
        &self,
        manifest: &[u8],
        range: &std::ops::Range<u16>,
        good: &HashSet<Digest>,
    ) -> Result<bool, ContentError> {
        let manifest = Manifest::decode(manifest)?;
        let unseen = manifest
            .chunks()
            .map(|chunk| chunk.digest)
            .filter(|digest| {
                let [first, ..] = digest.as_bytes();
                range.contains(&u16::from(*first)) && !good.contains(digest)
            });
        let unseen: HashSet<Digest> = unseen.collect();
        let unseen: Vec<Digest> = unseen.into_iter().collect();
        Ok(self.missing(&unseen).await?.is_empty())
    }

    /// Returns a chunk's verified bytes; `None`: it does not exist. A damaged one is moved aside, so that the next
    /// put sends it again.
    pub async fn chunk(&self, digest: Digest) -> Result<Option<bytes::Bytes>, ContentError> {
        match self.sound(CHUNKS, digest, &chunk_name(digest)).await? {
            Sound::Good(bytes) => Ok(Some(bytes)),
            Sound::Gone => Ok(None),
            Sound::Damaged => Err(ContentError::Damaged {
                what: "a chunk".to_owned(),
                problem: "its bytes have another digest; it was moved aside".to_owned(),
            }),
        }
    }

    /// Reads an object twice before it moves it aside. The network may have damaged it, or a put may have brought a
    /// good one.
    async fn sound(&self, kind: &str, digest: Digest, name: &Path) -> Result<Sound, ContentError> {
        for _ in 0..2 {
            match self.read_hashed(name).await? {
                None => return Ok(Sound::Gone),
                Some((bytes, is)) if is == digest && is_readable(kind, &bytes) => {
                    return Ok(Sound::Good(bytes));
                }
                Some(_) => {}
            }
        }
        self.health.damaged();
        tracing::error!(kind, %digest, "an object of the content store is damaged, and was moved aside");
        self.move_aside(name, &damaged_name(kind, digest)).await?;
        Ok(Sound::Damaged)
    }
}

#[derive(Debug)]
enum Sound {
    Good(bytes::Bytes),
    Gone,
    Damaged,
}

/// Returns true if this version or a newer one can read it.
fn is_readable(kind: &str, bytes: &[u8]) -> bool {
    // A manifest of another version is not damaged.
    kind != MANIFESTS
        || matches!(
            Manifest::decode(bytes),
            Ok(_) | Err(ManifestError::Format(_))
        )
}

impl Checked {
    fn note_damaged(&mut self, kind: &str, digest: Digest) {
        self.damaged += 1;
        if self.damaged_first.len() < CHECK_NAMED_MAX {
            self.damaged_first.push(format!("{kind}/{digest}"));
        }
    }
}
