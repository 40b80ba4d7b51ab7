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

/// Number of places of chunks that are requested at a time.
const PLACES_AHEAD: usize = 1_024;
/// Maximum number of received chunks that wait for their write, besides those under way.
const WRITES_AHEAD: usize = 4;

/// Options of a get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetOptions {
    /// Number of chunks that are read at a time, 1 to [`PARALLEL_MAX`]. Each is in memory, at most 2 MiB. The number
    /// of small ones is larger, as in a put.
    pub parallel: usize,
}

impl Default for GetOptions {
    fn default() -> Self {
        Self { parallel: PARALLEL }
    }
}

/// Result of a get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Got {
    /// Number of files, links and empty folders.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes received from the other side: less than `bytes` if files are equal.
    pub fetched_bytes: u64,
}

/// Progress of a get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GetProgress {
    /// Number of files, links and empty folders.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes to receive from the other side.
    pub to_fetch_bytes: u64,
    /// Received bytes.
    pub fetched_bytes: u64,
}

/// Chunk to receive, and its file.
#[derive(Debug, Clone, Copy)]
struct Need {
    chunk: Chunk,
    entry: usize,
}

/// Writes all files of `id` into a new or empty folder. Each chunk and each file is verified before it gets its name.
/// If an error occurs, all files written so far are removed.
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

/// Writes the verified bytes of one file, from the present position of `file`. Returns the number of bytes received
/// from the other side.
///
/// # Errors
/// Fails as [`get`]; the caller must discard the written bytes. [`TransferError::Bug`]: the entry is no file.
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

/// Returns the manifest of these bytes. Blocks while it reads a large one.
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

/// Returns the error that came first. If fetching failed, the writer only saw the end of the input.
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

/// Returns the chunks to receive, in the order in which they are written.
fn needs_of_all(manifest: &Manifest) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut files = std::collections::HashSet::new();
    for (nth, entry) in manifest.entries().iter().enumerate() {
        // Of equal files, only the first is received.
        if let Kind::File { digest, chunks, .. } = &entry.kind
            && files.insert(*digest)
        {
            needs_of(chunks, nth, &mut needs);
        }
    }
    needs
}

/// Adds the chunks of one file. A chunk that repeats the one before it, as in a run of zeros, is received once.
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
    /// Passes on the bytes of all these chunks, in order and verified. Ends early, without an error, when the
    /// receiver is gone.
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

    /// Returns one chunk, verified.
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

/// Writes all entries. Removes them after an error. Blocks.
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

/// Writes the bytes of one file as they arrive, and verifies the whole. Blocks.
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
