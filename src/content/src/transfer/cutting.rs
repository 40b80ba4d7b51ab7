//! Reads the files of a put once: cuts and hashes them, and names their chunks to the sender as they come.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::sync::mpsc;

use super::{
    error::TransferError,
    scan::{Found, FoundKind, Scan},
};
use crate::{CHUNK_BYTES_MIN, Chunk, Chunks, Digest, Entry, Kind};

/// Chunk that was found in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Number of the file in the scan.
    pub(super) file: usize,
    /// Offset in the file.
    pub(super) offset: u64,
    pub(super) chunk: Chunk,
}

/// Metadata that show a write to a file.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: i64,
    mtime_nsec: i64,
}

/// Cuts all files, one after the other. Ends early, without an error, when the receiver is gone. Blocks.
pub(super) fn cut_all(
    scan: &Scan,
    cuts: &mpsc::Sender<Cut>,
    hashed: &AtomicU64,
) -> Result<Vec<Entry>, TransferError> {
    let mut entries = Vec::with_capacity(scan.found.len());
    for (nth, found) in scan.found.iter().enumerate() {
        let kind = match &found.kind {
            FoundKind::EmptyFolder => Kind::EmptyFolder,
            FoundKind::Link { target } => Kind::Link {
                target: target.clone(),
            },
            FoundKind::File => match cut_one(scan, nth, found, cuts, hashed)? {
                Some(kind) => kind,
                None => break,
            },
        };
        entries.push(Entry {
            path: found.path.clone(),
            kind,
        });
    }
    Ok(entries)
}

fn cut_one(
    scan: &Scan,
    nth: usize,
    found: &Found,
    cuts: &mpsc::Sender<Cut>,
    hashed: &AtomicU64,
) -> Result<Option<Kind>, TransferError> {
    let failed = |error| TransferError::file(scan.place(found), error);
    let changed = || TransferError::Changed {
        path: found.path.clone(),
    };
    let file = scan.folder.file(&found.at).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    // The name may lead to another file than it did at the scan.
    if scan.owner.is_some_and(|owner| owner != about.uid()) {
        return Err(changed());
    }
    let before = stamp(&file).map_err(failed)?;
    let mut whole = (before.size > small()).then(blake3::Hasher::new);
    let mut chunks = Vec::new();
    let mut offset = 0;
    for cut in pieces(&file, before.size) {
        let (chunk, bytes) = cut.map_err(failed)?;
        if let Some(whole) = &mut whole {
            whole.update(&bytes);
        }
        chunks.push(chunk);
        let cut = Cut {
            file: nth,
            offset,
            chunk,
        };
        offset += u64::from(chunk.size);
        hashed.fetch_add(u64::from(chunk.size), Ordering::Relaxed);
        if cuts.blocking_send(cut).is_err() {
            return Ok(None);
        }
    }
    if offset != before.size || stamp(&file).map_err(failed)? != before {
        return Err(changed());
    }
    let digest = match (whole, chunks.as_slice()) {
        (_, [one]) => one.digest,
        (Some(whole), _) => whole.finalize().into(),
        (None, _) => Digest::of(b""),
    };
    Ok(Some(Kind::File {
        executable: about.mode() & 0o111 != 0,
        size: offset,
        digest,
        chunks,
    }))
}

/// Returns the size up to which a file is always one chunk.
fn small() -> u64 {
    u64::try_from(CHUNK_BYTES_MIN).unwrap_or(u64::MAX)
}

type Pieces<'a> = Box<dyn Iterator<Item = std::io::Result<(Chunk, Vec<u8>)>> + 'a>;

/// The chunks of a file. A small file needs none of the buffers that cutting does.
fn pieces(file: &File, size: u64) -> Pieces<'_> {
    if size > small() {
        return Box::new(Chunks::of(file));
    }
    let mut bytes = Vec::new();
    // One more, so that a file that grows is seen.
    let read = file.take(size.saturating_add(1)).read_to_end(&mut bytes);
    match read {
        Ok(0) => Box::new(std::iter::empty()),
        Ok(_) => Box::new(std::iter::once(Ok((Chunk::of(&bytes), bytes)))),
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

fn stamp(file: &File) -> std::io::Result<Stamp> {
    let about = file.metadata()?;
    Ok(Stamp {
        dev: about.dev(),
        ino: about.ino(),
        size: about.size(),
        mtime: about.mtime(),
        mtime_nsec: about.mtime_nsec(),
    })
}
