//! Reads the bytes of a chunk again, from its place in a file.

use std::{fs::File, io, os::unix::fs::FileExt};

use bytes::Bytes;

use crate::{Chunk, Digest};

/// Reads a chunk again; `None`: the file has other bytes now. Blocks.
pub(super) fn read_again(file: &File, offset: u64, chunk: Chunk) -> io::Result<Option<Bytes>> {
    let size = usize::try_from(chunk.size).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size.min(crate::CHUNK_BYTES_MAX)];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok((Digest::of(&bytes) == chunk.digest).then(|| Bytes::from(bytes)))
}
