//! Sends the chunks of a put that the other side does not have, while others are still being cut.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{
    bytes_read::read_again,
    cutting::Cut,
    error::TransferError,
    remote::{PARALLEL_MAX, Place, Remote, Room},
    scan::Scan,
};
use crate::{Chunk, Digest, PIN_CHUNKS_MAX};

/// Maximum number of cut chunks that are not queried yet: names only, no bytes.
const CUTS_AHEAD: usize = 4_096;
/// Bytes of chunks that are queried at a time: enough to keep senders busy while the next ones are cut.
const ASK_BYTES: u64 = 64 << 20;

/// Progress of a put. Each number only grows. `bytes` is known from the start only if no file is written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PutProgress {
    /// Number of files, links and empty folders.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes that were read and hashed.
    pub read_bytes: u64,
    /// Chunks that are known to be missing.
    pub missing_chunks: u64,
    /// Their bytes.
    pub missing_bytes: u64,
    /// Chunks that were sent.
    pub sent_chunks: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// Counters of the progress.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) hashed: AtomicU64,
    missing_chunks: AtomicU64,
    missing_bytes: AtomicU64,
    sent_chunks: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Meter {
    pub(super) fn read(&self, scan: &Scan) -> PutProgress {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        PutProgress {
            files: u64::try_from(scan.found.len()).unwrap_or(u64::MAX),
            bytes: scan.bytes,
            read_bytes: read(&self.hashed),
            missing_chunks: read(&self.missing_chunks),
            missing_bytes: read(&self.missing_bytes),
            sent_chunks: read(&self.sent_chunks),
            sent_bytes: read(&self.sent_bytes),
        }
    }
}

/// One put.
pub(super) struct Sender<'a> {
    pub(super) remote: &'a dyn Remote,
    pub(super) put: &'a str,
    pub(super) scan: Arc<Scan>,
    pub(super) meter: Arc<Meter>,
    pub(super) parallel: usize,
    pub(super) progress: &'a (dyn Fn(PutProgress) + Send + Sync),
}

/// A chunk that must be sent.
struct Wanted {
    place: Place,
    cut: Cut,
}

pub(super) fn cuts() -> (mpsc::Sender<Cut>, mpsc::Receiver<Cut>) {
    mpsc::channel(CUTS_AHEAD)
}

impl Sender<'_> {
    /// Sends the missing ones of all incoming chunks. Returns the number of different chunks.
    pub(super) async fn run(&self, cuts: mpsc::Receiver<Cut>) -> Result<u64, TransferError> {
        let (wanted, wants) = mpsc::channel(PARALLEL_MAX);
        let (chunks, ()) = tokio::try_join!(self.ask(cuts, wanted), self.send_all(wants))?;
        Ok(chunks)
    }

    async fn ask(
        &self,
        mut cuts: mpsc::Receiver<Cut>,
        wanted: mpsc::Sender<Wanted>,
    ) -> Result<u64, TransferError> {
        let mut seen = HashSet::new();
        while let Some(batch) = next_batch(&mut cuts, &mut seen).await {
            let digests: Vec<Digest> = batch.iter().map(|cut| cut.chunk.digest).collect();
            let missing = self.remote.pin(self.put, &digests).await?;
            let mut at = batch.into_iter();
            for place in missing {
                // They come in the order of the request.
                let Some(cut) = at.find(|cut| cut.chunk.digest == place.digest) else {
                    return Err(TransferError::Bug(format!(
                        "chunk {} is missed out of order",
                        place.digest
                    )));
                };
                self.meter.missing_chunks.fetch_add(1, Ordering::Relaxed);
                let size = u64::from(cut.chunk.size);
                self.meter.missing_bytes.fetch_add(size, Ordering::Relaxed);
                if wanted.send(Wanted { place, cut }).await.is_err() {
                    break;
                }
            }
            self.tell();
        }
        Ok(u64::try_from(seen.len()).unwrap_or(u64::MAX))
    }

    async fn send_all(&self, mut wants: mpsc::Receiver<Wanted>) -> Result<(), TransferError> {
        let mut under_way = FuturesUnordered::new();
        let (mut room, mut is_open) = (Room::of(self.parallel), true);
        while is_open || !under_way.is_empty() {
            let may_take = is_open && room.is_left(under_way.len());
            tokio::select! {
                wanted = wants.recv(), if may_take => match wanted {
                    Some(wanted) => {
                        room.take(wanted.cut.chunk);
                        under_way.push(self.send(wanted));
                    }
                    None => is_open = false,
                },
                Some(sent) = under_way.next(), if !under_way.is_empty() => {
                    room.give_back(sent?);
                }
            }
        }
        Ok(())
    }

    async fn send(&self, wanted: Wanted) -> Result<Chunk, TransferError> {
        let Wanted { place, cut } = wanted;
        let scan = Arc::clone(&self.scan);
        let bytes = spawn_blocking(move || read(&scan, cut)).await??;
        self.remote.put_chunk(self.put, &place, bytes).await?;
        self.meter.sent_chunks.fetch_add(1, Ordering::Relaxed);
        let size = u64::from(cut.chunk.size);
        self.meter.sent_bytes.fetch_add(size, Ordering::Relaxed);
        self.tell();
        Ok(cut.chunk)
    }

    pub(super) fn tell(&self) {
        (self.progress)(self.meter.read(&self.scan));
    }
}

/// Returns chunks that were not queried before. `None`: there are no more.
async fn next_batch(
    cuts: &mut mpsc::Receiver<Cut>,
    seen: &mut HashSet<Digest>,
) -> Option<Vec<Cut>> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < PIN_CHUNKS_MAX && bytes < ASK_BYTES {
        let Some(cut) = cuts.recv().await else {
            break;
        };
        if seen.insert(cut.chunk.digest) {
            bytes += u64::from(cut.chunk.size);
            batch.push(cut);
        }
    }
    (!batch.is_empty()).then_some(batch)
}

/// Returns the bytes of a chunk, as they were when it was cut.
fn read(scan: &Scan, cut: Cut) -> Result<bytes::Bytes, TransferError> {
    let found = scan.found.get(cut.file);
    let found = found.ok_or_else(|| TransferError::Bug("a cut of no file".to_owned()))?;
    let changed = || TransferError::Changed {
        path: found.path.clone(),
    };
    let failed = |error| TransferError::file(scan.place(found), error);
    let file = match scan.folder.file(&found.at) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(changed()),
        Err(error) => return Err(failed(error)),
    };
    read_again(&file, cut.offset, cut.chunk)
        .map_err(failed)?
        .ok_or_else(changed)
}
