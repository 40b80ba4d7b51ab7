//! Files that have a name of their own, such as results of jobs: chunks, and a note under the name.
//!
//! A note is written after its chunks, in one step, and only if there is none: a file appears whole or not at all, and is
//! never replaced. Notes are roots, as manifests are: a collection leaves what they name.

use std::{ops::Range, pin::pin, sync::Arc};

use bytes::{Buf, Bytes, BytesMut};
use fastcdc::v2020::{FastCDC, Normalization};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::{
    CHUNK_BYTES_AVG, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, Chunk, ContentError, ContentStore, Digest,
    Pin,
    json::json,
    names::{NOTE, folder_name, note_name, unescaped},
};

/// Number of chunks of a file that are read ahead of the reader.
const READ_AHEAD: usize = 2;
/// Number of chunks of an upload that are pinned and queried together. All of them are in memory.
const TOGETHER: usize = 4;
/// The form of notes.
const FORMAT: u16 = 1;

/// File under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Size, bytes.
    pub size: u64,
    /// The hash of all of its bytes.
    pub digest: Digest,
    /// Pieces in order; empty for an empty file.
    pub chunks: Arc<[Chunk]>,
}

#[derive(Serialize, Deserialize)]
struct Note {
    format: u16,
    size: u64,
    digest: Digest,
    chunks: Vec<(Digest, u32)>,
}

/// Object at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A file.
    File(NamedFile),
    /// Names below it, sorted; folders end with `/`.
    Folder(Vec<String>),
}

/// Cuts bytes as they come. Holds at most two chunks of the largest size.
#[derive(Debug, Default)]
struct Cutter {
    held: BytesMut,
    whole: blake3::Hasher,
    size: u64,
}

impl Cutter {
    fn take(&mut self, mut more: impl Buf) {
        let bytes = more.copy_to_bytes(more.remaining());
        self.whole.update(&bytes);
        self.size = self
            .size
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.held.extend_from_slice(&bytes);
    }

    /// Returns the next chunk whose end is certain. `is_end`: no more bytes come.
    fn cut(&mut self, is_end: bool) -> Option<Bytes> {
        let is_certain = is_end || self.held.len() >= CHUNK_BYTES_MAX;
        if self.held.is_empty() || !is_certain {
            return None;
        }
        let (min, avg, max) = (CHUNK_BYTES_MIN, CHUNK_BYTES_AVG, CHUNK_BYTES_MAX);
        let mut cuts = FastCDC::with_level(&self.held, min, avg, max, Normalization::Level2);
        let length = cuts.next().map_or(self.held.len(), |cut| cut.length);
        Some(self.held.split_to(length).freeze())
    }
}

impl ContentStore {
    /// Stores a file under this name as it arrives, if the name is free. The name has been checked: it is relative
    /// and stays below the folder of all names. `pin` keeps its chunks until the note is written: its `digests` do
    /// not count. `may_end` is called when all bytes have arrived; its error keeps the name free.
    ///
    /// # Errors
    /// Fails with [`ContentError::Exists`], and with errors of `body`, of `may_end` and of the store.
    pub async fn put_named<B, E>(
        &self,
        name: &str,
        pin: Pin,
        body: impl Stream<Item = Result<B, E>>,
        may_end: impl AsyncFnOnce() -> Result<(), E>,
    ) -> Result<NamedFile, E>
    where
        B: Buf,
        E: From<ContentError>,
    {
        let note = note_name(name);
        if self.read(&note).await?.is_some() {
            return Err(ContentError::Exists(name.to_owned()).into());
        }
        let (mut cutter, mut chunks, mut held) = (Cutter::default(), Vec::new(), Vec::new());
        let mut body = pin!(body);
        loop {
            let more = body.next().await.transpose()?;
            let is_end = more.is_none();
            if let Some(more) = more {
                cutter.take(more);
            }
            while let Some(bytes) = cutter.cut(is_end) {
                let chunk = Chunk::of(&bytes);
                chunks.push(chunk);
                held.push((chunk.digest, bytes));
                if held.len() >= TOGETHER {
                    self.put_held(&pin, std::mem::take(&mut held)).await?;
                }
            }
            if is_end {
                break;
            }
        }
        self.put_held(&pin, held).await?;
        let file = NamedFile {
            size: cutter.size,
            digest: cutter.whole.finalize().into(),
            chunks: chunks.into(),
        };
        may_end().await?;
        self.name(name, &file).await?;
        self.unpin(&pin.put).await?;
        Ok(file)
    }

    /// Stores those of some chunks that are missing.
    async fn put_held(&self, pin: &Pin, held: Vec<(Digest, Bytes)>) -> Result<(), ContentError> {
        if held.is_empty() {
            return Ok(());
        }
        let digests: Vec<Digest> = held.iter().map(|(digest, _)| *digest).collect();
        let pin = Pin {
            digests: digests.iter().copied().collect(),
            ..pin.clone()
        };
        self.pin(&pin).await?;
        let missing = self.missing(&digests).await?;
        let held = held.into_iter();
        let wanted = held.filter(|(digest, _)| missing.contains(digest));
        let puts = stream::iter(wanted).map(|(digest, bytes)| self.put_chunk(digest, bytes));
        puts.buffer_unordered(TOGETHER).try_collect().await
    }

    /// Gives a file whose chunks all exist a name, if the name is free.
    ///
    /// # Errors
    /// Fails with [`ContentError::Exists`], [`ContentError::ChunksMissing`], and with errors of the store.
    pub async fn name(&self, name: &str, file: &NamedFile) -> Result<(), ContentError> {
        let chunks = file.chunks.iter().map(|chunk| chunk.digest).collect();
        let id = Digest::of(name.as_bytes());
        let begun = self.begin_root(id, chunks).await?;
        let note = Note {
            format: FORMAT,
            size: file.size,
            digest: file.digest,
            chunks: file
                .chunks
                .iter()
                .map(|chunk| (chunk.digest, chunk.size))
                .collect(),
        };
        let json = json(&note)?;
        self.check_in_time(begun)?;
        if self.create(&note_name(name), json).await? {
            return Ok(());
        }
        Err(ContentError::Exists(name.to_owned()))
    }

    /// Returns the object at a name; `None`: there is none. A large folder is cut after its first names.
    pub async fn named(&self, name: &str) -> Result<Option<Named>, ContentError> {
        if let Some(json) = self.read(&note_name(name)).await? {
            return Ok(Some(Named::File(read_note(name, &json)?)));
        }
        let listed = self.list_folder(&folder_name(name)).await?;
        let files = listed
            .objects
            .iter()
            .filter_map(|meta| unescaped(&meta.location));
        let files = files.filter_map(|name| name.strip_suffix(NOTE).map(str::to_owned));
        let folders = listed.common_prefixes.iter().filter_map(unescaped);
        let mut names: Vec<String> = files.chain(folders.map(|name| name + "/")).collect();
        names.sort_unstable();
        Ok((!names.is_empty()).then_some(Named::Folder(names)))
    }

    /// Returns the bytes of a file from `range`, chunk by chunk, each verified.
    pub fn read_named(
        &self,
        file: &NamedFile,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, ContentError>> + Send + use<> {
        let (store, chunks) = (self.clone(), Arc::clone(&file.chunks));
        let mut wanted = Vec::new();
        let mut at = 0_u64;
        for (n, chunk) in chunks.iter().enumerate() {
            let end = at.saturating_add(u64::from(chunk.size));
            if at < range.end && end > range.start {
                let cut = |to: u64| usize::try_from(to.saturating_sub(at)).unwrap_or(usize::MAX);
                wanted.push((n, cut(range.start.max(at))..cut(range.end.min(end))));
            }
            at = end;
        }
        let reads = wanted
            .into_iter()
            .filter_map(move |(n, part)| Some((*chunks.get(n)?, part)));
        stream::iter(reads)
            .map(move |(chunk, part)| {
                let store = store.clone();
                async move {
                    let digest = chunk.digest;
                    let bytes = store.chunk(digest).await?;
                    let bytes = bytes.ok_or(ContentError::ChunksMissing {
                        first: digest,
                        count: 1,
                    })?;
                    let part = part.start..part.end.min(bytes.len());
                    Ok(bytes.slice(part))
                }
            })
            .buffered(READ_AHEAD)
    }

    /// Removes all names below a folder. The next collection removes their chunks.
    pub async fn remove_named(&self, folder: &str) -> Result<u64, ContentError> {
        let found = self.list(&folder_name(folder));
        let paths: Vec<Path> = found.map_ok(|meta| meta.location).try_collect().await?;
        let count = u64::try_from(paths.len()).unwrap_or(u64::MAX);
        for path in paths {
            self.delete(&path).await?;
        }
        Ok(count)
    }
}

/// Reads a note.
pub(crate) fn read_note(name: &str, json: &[u8]) -> Result<NamedFile, ContentError> {
    let damaged = |problem: String| ContentError::Damaged {
        what: format!("the note of file {name}"),
        problem,
    };
    let note: Note = serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))?;
    if note.format != FORMAT {
        return Err(damaged(format!("it has format {}", note.format)));
    }
    let chunks = note
        .chunks
        .into_iter()
        .map(|(digest, size)| Chunk { digest, size });
    Ok(NamedFile {
        size: note.size,
        digest: note.digest,
        chunks: chunks.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chunks, CollectOptions, Marks};

    fn bytes(many: usize) -> Vec<u8> {
        let mut out = vec![0; many];
        blake3::Hasher::new_derive_key("fairlead named")
            .finalize_xof()
            .fill(&mut out);
        out
    }

    fn pin() -> Pin {
        Pin {
            put: "p".to_owned(),
            until_ms: 1,
            ..Pin::default()
        }
    }

    async fn put(store: &ContentStore, name: &str, all: &[u8]) -> Result<NamedFile, ContentError> {
        let pieces = all
            .chunks(70_000)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)));
        store
            .put_named(name, pin(), stream::iter(pieces), async || Ok(()))
            .await
    }

    async fn read(store: &ContentStore, file: &NamedFile, range: Range<u64>) -> Vec<u8> {
        let pieces: Vec<Bytes> = store.read_named(file, range).try_collect().await.unwrap();
        pieces.concat()
    }

    #[tokio::test]
    async fn a_file_is_cut_as_it_comes_as_it_would_be_cut_at_once() {
        let store = ContentStore::in_memory();
        for many in [0, 1, CHUNK_BYTES_MIN, 6_000_000] {
            let all = bytes(many);
            let name = format!("a/b/{many}");
            let file = put(&store, &name, &all).await.unwrap();
            let at_once: Vec<Chunk> = Chunks::of(all.as_slice())
                .map(|cut| cut.unwrap().0)
                .collect();
            assert_eq!(*file.chunks, at_once, "{many}");
            assert_eq!(
                (file.size, file.digest),
                (u64::try_from(many).unwrap(), Digest::of(&all))
            );
            assert_eq!(
                store.named(&name).await.unwrap(),
                Some(Named::File(file.clone()))
            );
            assert!(read(&store, &file, 0..file.size).await == all);
            if many > 3_000_000 {
                assert!(read(&store, &file, 500_000..3_000_001).await == all[500_000..3_000_001]);
            }
        }
    }

    #[tokio::test]
    async fn a_name_is_given_once_and_only_if_the_end_is_allowed() {
        let store = ContentStore::in_memory();
        let refused = store
            .put_named(
                "a/x",
                pin(),
                stream::iter([Ok(Bytes::from_static(b"1"))]),
                async || Err(ContentError::Bug("no".to_owned())),
            )
            .await;
        assert!(refused.is_err());
        assert_eq!(store.named("a").await.unwrap(), None);
        put(&store, "a/x", b"1").await.unwrap();
        let again = put(&store, "a/x", b"2").await;
        assert!(matches!(again, Err(ContentError::Exists(_))), "{again:?}");
        put(&store, "a/x.d/y~#", b"3").await.unwrap();
        let inner = Named::Folder(vec!["y~#".to_owned()]);
        assert_eq!(store.named("a/x.d").await.unwrap(), Some(inner));
        let names = ["x", "x.d/"].map(str::to_owned).to_vec();
        assert_eq!(store.named("a").await.unwrap(), Some(Named::Folder(names)));
        assert_eq!(store.remove_named("a").await.unwrap(), 2);
        assert_eq!(store.named("a/x").await.unwrap(), None);
    }

    /// Marks without any name.
    struct Nobody;

    #[async_trait::async_trait]
    impl Marks for Nobody {
        async fn named(&self, ids: &[Digest]) -> Result<Vec<bool>, ContentError> {
            Ok(vec![false; ids.len()])
        }
    }

    #[tokio::test]
    async fn a_collection_leaves_what_a_name_needs_and_takes_it_when_the_name_is_gone() {
        let store = ContentStore::in_memory();
        let all = bytes(3_000_000);
        let file = put(&store, "s/d/x", &all).await.unwrap();
        let later = |days: u64| CollectOptions {
            grace: std::time::Duration::from_hours(24),
            dry_run: false,
            now_ms: store.clock.wall_ms() + days * 86_400_000,
            holder: "h".to_owned(),
        };
        let told = store.collect(&later(9), &Nobody).await.unwrap();
        assert_eq!(
            (told.chunks_removed, told.chunks > 2),
            (0, true),
            "{told:?}"
        );
        assert!(read(&store, &file, 0..file.size).await == all);
        assert_eq!(store.check().await.unwrap().broken, 0);
        store.remove_named("s").await.unwrap();
        let told = store.collect(&later(9), &Nobody).await.unwrap();
        assert_eq!(told.chunks_removed, told.chunks, "{told:?}");
    }

    #[tokio::test]
    async fn a_check_tells_of_names_that_cannot_be_read_and_moves_damaged_notes_aside() {
        let store = ContentStore::in_memory();
        let file = put(&store, "a/x", b"1").await.unwrap();
        put(&store, "a/y", b"2").await.unwrap();
        let chunk = file.chunks.first().unwrap().digest;
        store
            .delete(&crate::names::chunk_name(chunk))
            .await
            .unwrap();
        store
            .write(&note_name("a/y"), Bytes::from_static(b"no note"))
            .await
            .unwrap();
        let told = store.check().await.unwrap();
        assert_eq!((told.damaged, told.broken), (1, 1), "{told:?}");
        assert_eq!(told.damaged_first, ["files/a/y.note"]);
        assert_eq!(store.named("a/y").await.unwrap(), None);
        assert_eq!(store.check().await.unwrap().damaged, 0);
    }
}
