//! Gets the files of a manifest, or one of them: chunks are asked for in order, some at a time, and written as they come.

use std::{collections::VecDeque, fs::File, io::Write, path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture, stream::FuturesOrdered};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{
    error::TransferError,
    remote::{PARALLEL, PARALLEL_MAX, Place, Remote, Room},
    writing::Target,
};
use crate::{Chunk, Digest, Entry, Kind, Manifest, beside::hash};

/// Places of chunks that are asked for at a time.
const PLACES_AHEAD: usize = 1_024;
/// Chunks that came and are not written yet, besides those under way.
const WRITES_AHEAD: usize = 4;

/// How to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetOptions {
    /// Chunks that are read at a time, 1 to [`PARALLEL_MAX`]. Each is in memory, at most 2 MiB. Of small ones there are more,
    /// as in a put.
    pub parallel: usize,
}

impl Default for GetOptions {
    fn default() -> Self {
        Self { parallel: PARALLEL }
    }
}

/// What was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Got {
    /// How many files, links and empty folders.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes that came from the other side: less than `bytes` if files are alike.
    pub fetched_bytes: u64,
}

/// How far a get is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GetProgress {
    /// How many files, links and empty folders.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes that have to come from the other side.
    pub to_fetch_bytes: u64,
    /// Bytes that came.
    pub fetched_bytes: u64,
}

/// A chunk that must come, and for which file.
#[derive(Debug, Clone, Copy)]
struct Need {
    chunk: Chunk,
    entry: usize,
}

/// Writes all files of `id` into a folder that is not there, or is empty. Each chunk and each file is checked before it
/// has its name. After an error, nothing is left that was not there before.
///
/// # Errors
/// [`TransferError::NotEmpty`]; [`TransferError::Unknown`]; [`TransferError::FileOf`] names the file whose chunk is missing
/// or damaged.
pub fn get<'a>(
    remote: &'a dyn Remote,
    id: Digest,
    into: PathBuf,
    options: &'a GetOptions,
    progress: &'a (dyn Fn(GetProgress) + Send + Sync),
) -> BoxFuture<'a, Result<Got, TransferError>> {
    Box::pin(async move {
        let bytes = remote.manifest(id).await?;
        let manifest = Arc::new(spawn_blocking(move || decoded(id, &bytes)).await??);
        let target = spawn_blocking(move || Target::prepare(&into)).await??;
        let needs = needs_of_all(&manifest);
        let to_fetch_bytes = bytes_of(&needs);
        let all = GetProgress {
            files: u64::try_from(manifest.entries().len()).unwrap_or(u64::MAX),
            bytes: manifest.bytes(),
            to_fetch_bytes,
            fetched_bytes: 0,
        };
        let fetch = Fetch {
            remote,
            id,
            entries: manifest.entries(),
            parallel: options.parallel.clamp(1, PARALLEL_MAX),
            progress: Some((progress, all)),
        };
        let (pieces, arriving) = mpsc::channel(WRITES_AHEAD);
        let listed = Arc::clone(&manifest);
        let writer = spawn_blocking(move || write_all(target, &listed, arriving));
        let (fetched, written) = tokio::join!(fetch.run(needs, pieces), writer);
        first_error(fetched, written?)?;
        Ok(Got {
            files: all.files,
            bytes: all.bytes,
            fetched_bytes: to_fetch_bytes,
        })
    })
}

/// Writes the checked bytes of one file, from where `file` stands. Returns how many bytes came from the other side.
///
/// # Errors
/// As [`get`]; what was written until then is to be thrown away. [`TransferError::Bug`]: the entry is no file.
pub fn fetch_file<'a>(
    remote: &'a dyn Remote,
    id: Digest,
    entry: &'a Entry,
    file: &'a mut File,
    options: &'a GetOptions,
) -> BoxFuture<'a, Result<u64, TransferError>> {
    Box::pin(async move {
        let Kind::File { chunks, .. } = &entry.kind else {
            return Err(TransferError::Bug(format!("'{}' is no file", entry.path)));
        };
        let mut needs = Vec::new();
        needs_of(chunks, 0, &mut needs);
        let fetched_bytes = bytes_of(&needs);
        let fetch = Fetch {
            remote,
            id,
            entries: std::slice::from_ref(entry),
            parallel: options.parallel.clamp(1, PARALLEL_MAX),
            progress: None,
        };
        let (pieces, mut arriving) = mpsc::channel(WRITES_AHEAD);
        let failed = |error| TransferError::file(&entry.path, error);
        let mut own = file.try_clone().map_err(failed)?;
        let wanted = entry.clone();
        let writer = spawn_blocking(move || fill(&wanted, &mut arriving, &mut own));
        let (fetched, written) = tokio::join!(fetch.run(needs, pieces), writer);
        first_error(fetched, written?)?;
        Ok(fetched_bytes)
    })
}

/// The manifest of these bytes. Blocks while it reads a large one.
///
/// # Errors
/// [`TransferError::Damaged`]: the bytes have another digest. Those of [`Manifest::decode`].
pub fn decoded(id: Digest, bytes: &[u8]) -> Result<Manifest, TransferError> {
    let is = Digest::of(bytes);
    if is != id {
        return Err(TransferError::Damaged { digest: id, is });
    }
    Ok(Manifest::decode(bytes)?)
}

/// The error that came first: if fetching failed, the writer only saw that nothing came any more.
fn first_error(
    fetched: Result<(), TransferError>,
    written: Result<(), TransferError>,
) -> Result<(), TransferError> {
    match (fetched, written) {
        (Err(error), _) | (Ok(()), Err(error)) => Err(error),
        (Ok(()), Ok(())) => Ok(()),
    }
}

fn bytes_of(needs: &[Need]) -> u64 {
    let sizes = needs.iter().map(|need| u64::from(need.chunk.size));
    sizes.fold(0, u64::saturating_add)
}

/// Chunks that must come, in the order in which they are written.
fn needs_of_all(manifest: &Manifest) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut files = std::collections::HashSet::new();
    for (nth, entry) in manifest.entries().iter().enumerate() {
        // Of files that are alike, only the first comes from afar.
        if let Kind::File { digest, chunks, .. } = &entry.kind
            && files.insert(*digest)
        {
            needs_of(chunks, nth, &mut needs);
        }
    }
    needs
}

/// Those of one file. A chunk that repeats the one before it, as in a run of zeros, comes once.
fn needs_of(chunks: &[Chunk], entry: usize, needs: &mut Vec<Need>) {
    let mut before = None;
    for chunk in chunks {
        if before != Some(chunk.digest) {
            needs.push(Need {
                chunk: *chunk,
                entry,
            });
        }
        before = Some(chunk.digest);
    }
}

/// Chunks on their way.
struct Fetch<'a> {
    remote: &'a dyn Remote,
    id: Digest,
    entries: &'a [Entry],
    parallel: usize,
    progress: Option<(&'a (dyn Fn(GetProgress) + Send + Sync), GetProgress)>,
}

impl Fetch<'_> {
    /// Hands on the bytes of all these chunks, in order and checked. Ends early, without an error, when nobody takes them.
    async fn run(
        &self,
        needs: Vec<Need>,
        pieces: mpsc::Sender<Bytes>,
    ) -> Result<(), TransferError> {
        let mut rest = needs.chunks(PLACES_AHEAD);
        let mut placed: VecDeque<(Need, Place)> = VecDeque::new();
        let mut under_way = FuturesOrdered::new();
        let (mut room, mut fetched_bytes) = (Room::of(self.parallel), 0);
        loop {
            if placed.is_empty()
                && let Some(some) = rest.next()
            {
                placed.extend(self.places(some).await?);
            }
            while room.is_left(under_way.len())
                && let Some((need, place)) = placed.pop_front()
            {
                room.take(need.chunk);
                under_way.push_back(self.one(need, place));
            }
            let Some(piece) = under_way.next().await else {
                return Ok(());
            };
            let (chunk, piece): (Chunk, Bytes) = piece?;
            room.give_back(chunk);
            fetched_bytes += u64::try_from(piece.len()).unwrap_or(0);
            if pieces.send(piece).await.is_err() {
                return Ok(());
            }
            if let Some((progress, all)) = &self.progress {
                progress(GetProgress {
                    fetched_bytes,
                    ..*all
                });
            }
        }
    }

    async fn places(&self, needs: &[Need]) -> Result<Vec<(Need, Place)>, TransferError> {
        let digests: Vec<Digest> = needs.iter().map(|need| need.chunk.digest).collect();
        let places = self.remote.places(self.id, &digests).await?;
        if places.len() != needs.len() {
            let many = places.len();
            return Err(TransferError::Bug(format!(
                "{many} places for {} chunks",
                needs.len()
            )));
        }
        Ok(needs.iter().copied().zip(places).collect())
    }

    /// One chunk, checked.
    async fn one(&self, need: Need, place: Place) -> Result<(Chunk, Bytes), TransferError> {
        let got = self.remote.chunk(self.id, &place).await;
        let checked = match got {
            Ok(bytes) => check(need.chunk, bytes).await,
            Err(error) => Err(error),
        };
        checked.map_err(|error| match self.entries.get(need.entry) {
            Some(entry) => error.in_file(&entry.path),
            None => error,
        })
    }
}

async fn check(chunk: Chunk, bytes: Bytes) -> Result<(Chunk, Bytes), TransferError> {
    let is = hash(&bytes).await?;
    if is == chunk.digest {
        return Ok((chunk, bytes));
    }
    let digest = chunk.digest;
    Err(TransferError::Damaged { digest, is })
}

/// Writes all entries. On an error, what was written goes again. Blocks.
fn write_all(
    mut target: Target,
    manifest: &Manifest,
    mut arriving: mpsc::Receiver<Bytes>,
) -> Result<(), TransferError> {
    let mut written = Ok(());
    for entry in manifest.entries() {
        written = target.write(entry, &mut |file| fill(entry, &mut arriving, file));
        if written.is_err() {
            break;
        }
    }
    if written.is_err() {
        target.undo();
    }
    written
}

/// Writes the bytes of one file as they arrive, and checks the whole. Blocks.
fn fill(
    entry: &Entry,
    arriving: &mut mpsc::Receiver<Bytes>,
    file: &mut File,
) -> Result<(), TransferError> {
    let Kind::File { digest, chunks, .. } = &entry.kind else {
        return Ok(());
    };
    let failed = |error| TransferError::file(&entry.path, error);
    let mut whole = blake3::Hasher::new();
    let mut before: Option<(Digest, Bytes)> = None;
    for chunk in chunks {
        let bytes = match before.take() {
            Some((digest, bytes)) if digest == chunk.digest => bytes,
            _ => arriving
                .blocking_recv()
                .ok_or_else(|| TransferError::Bug("a chunk did not come".to_owned()))?,
        };
        if chunks.len() > 1 {
            whole.update(&bytes);
        }
        file.write_all(&bytes).map_err(failed)?;
        before = Some((chunk.digest, bytes));
    }
    // The only chunk was checked, and the manifest says that it is the file.
    if chunks.len() < 2 {
        return Ok(());
    }
    let is = Digest::from(whole.finalize());
    if is == *digest {
        return Ok(());
    }
    Err(TransferError::Damaged {
        digest: *digest,
        is,
    }
    .in_file(&entry.path))
}
