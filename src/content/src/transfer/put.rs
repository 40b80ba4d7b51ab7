//! Puts a folder, a file, or some paths of a folder. A put that was interrupted is resumed by another one: only what is
//! missing is sent.

use std::{path::PathBuf, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::task::spawn_blocking;

use super::{
    cutting::cut_all,
    error::{Problem, TransferError},
    remote::{PARALLEL, PARALLEL_MAX, Remote},
    scan::{Scan, scan, scan_paths},
    sending::{Meter, PutProgress, Sender, cuts},
};
use crate::{ContentError, Digest, Entry, Manifest};

/// Options of a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutOptions {
    /// Name that its owner gives it; empty: none.
    pub name: String,
    /// Number of chunks that are sent at a time, 1 to [`PARALLEL_MAX`]. Each is in memory, at most 2 MiB. Eight
    /// chunks of at most 64 KiB count as one, but never more than [`PARALLEL_MAX`] are sent together.
    pub parallel: usize,
    /// [`put_paths`] only: owner whose files are put, since a hard link may lead to any file. `None`: all files are
    /// put.
    pub owner: Option<u32>,
    /// Maximum size of all files together, bytes.
    pub bytes_max: u64,
}

impl Default for PutOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            parallel: PARALLEL,
            owner: None,
            bytes_max: u64::MAX,
        }
    }
}

/// Result of a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The id of its manifest.
    pub id: Digest,
    /// Number of files, links and empty folders.
    pub files: u64,
    /// Bytes of all files together.
    pub bytes: u64,
    /// Number of different chunks.
    pub chunks: u64,
    /// Number of chunks that had to be sent.
    pub sent_chunks: u64,
    /// Bytes that had to be sent.
    pub sent_bytes: u64,
    /// [`put_paths`] only: requested paths that do not exist.
    pub missing: Vec<String>,
    /// [`put_paths`] only: the first objects that cannot be put.
    pub left_out: Vec<Problem>,
}

/// Puts all of a folder, or one file under its name. If `path` itself is a link, it is followed; no link below it is.
///
/// `progress` is called often, from the task that polls this.
///
/// # Errors
/// [`TransferError::Unfit`] names devices, sockets, pipes and names that are not UTF-8; then nothing was put.
/// [`TransferError::Changed`]: somebody wrote to a file meanwhile.
pub fn put<'a>(
    remote: &'a dyn Remote,
    path: PathBuf,
    options: &'a PutOptions,
    progress: &'a (dyn Fn(PutProgress) + Send + Sync),
) -> BoxFuture<'a, Result<Put, TransferError>> {
    Box::pin(async move {
        let mut scan = spawn_blocking(move || scan(&path)).await??;
        if !scan.problems.is_empty() {
            return Err(TransferError::Unfit {
                problems: std::mem::take(&mut scan.problems),
                more: scan.more,
            });
        }
        put_found(remote, scan, options, progress).await
    })
}

/// Puts these paths below a folder, each with everything below it; `.` is all. They keep their paths. No link is
/// followed, not even `root`.
///
/// Reports, and does not refuse, missing paths and objects that cannot be put.
///
/// # Errors
/// [`TransferError::TooLarge`]: more than [`PutOptions::bytes_max`]; nothing was put.
pub fn put_paths<'a>(
    remote: &'a dyn Remote,
    root: PathBuf,
    paths: &'a [String],
    options: &'a PutOptions,
    progress: &'a (dyn Fn(PutProgress) + Send + Sync),
) -> BoxFuture<'a, Result<Put, TransferError>> {
    Box::pin(async move {
        let (paths, owner) = (paths.to_vec(), options.owner);
        let scan = spawn_blocking(move || scan_paths(&root, &paths, owner)).await??;
        put_found(remote, scan, options, progress).await
    })
}

async fn put_found(
    remote: &dyn Remote,
    mut scan: Scan,
    options: &PutOptions,
    progress: &(dyn Fn(PutProgress) + Send + Sync),
) -> Result<Put, TransferError> {
    if scan.bytes > options.bytes_max {
        return Err(TransferError::TooLarge {
            max: options.bytes_max,
        });
    }
    let missing = std::mem::take(&mut scan.missing);
    let left_out = std::mem::take(&mut scan.problems);
    let put = uuid::Uuid::new_v4().simple().to_string();
    let sender = Sender {
        remote,
        put: &put,
        scan: Arc::new(scan),
        meter: Arc::default(),
        parallel: options.parallel.clamp(1, PARALLEL_MAX),
        progress,
    };
    let mut tries = 0;
    loop {
        let (manifest, chunks) = send_chunks(&sender).await?;
        let (files, bytes) = (manifest.entries().len(), manifest.bytes());
        let encoded = spawn_blocking(move || manifest.encode()).await??;
        let sent = remote.put_manifest(&put, &options.name, encoded.into());
        let id = match sent.await {
            // Somebody removed chunks that were there when they were pinned: they are sent, too.
            Err(error) if tries == 0 && misses_chunks(&error) => {
                tries += 1;
                continue;
            }
            other => other?,
        };
        let end = sender.meter.read(&sender.scan);
        return Ok(Put {
            id,
            files: u64::try_from(files).unwrap_or(u64::MAX),
            bytes,
            chunks,
            sent_chunks: end.sent_chunks,
            sent_bytes: end.sent_bytes,
            missing,
            left_out,
        });
    }
}

/// Cuts all files and sends missing chunks, both at a time. Returns the manifest, and the number of its chunks.
async fn send_chunks(sender: &Sender<'_>) -> Result<(Manifest, u64), TransferError> {
    let (sends, cuts) = cuts();
    let (scan, meter) = (Arc::clone(&sender.scan), Arc::<Meter>::clone(&sender.meter));
    let cutter = spawn_blocking(move || cut_all(&scan, &sends, &meter.hashed));
    let (entries, sent) = tokio::join!(cutter, sender.run(cuts));
    // If sending failed, cutting only stopped.
    let chunks = sent?;
    let entries: Vec<Entry> = entries??;
    sender.tell();
    let manifest = spawn_blocking(move || Manifest::new(entries)).await??;
    Ok((manifest, chunks))
}

/// Returns true if chunks of the manifest are missing on the other side.
fn misses_chunks(error: &TransferError) -> bool {
    match error {
        TransferError::Content(error) => matches!(error, ContentError::ChunksMissing { .. }),
        TransferError::Lab(error) => error.code() == Some(fairlead_api::ErrorCode::Conflict),
        _ => false,
    }
}
