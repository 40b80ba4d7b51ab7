//! Works on bytes beside the tasks, on threads that may block. So other bytes move meanwhile.

use std::{fs::File, io::Read};

use bytes::Bytes;
use object_store::{GetResult, GetResultPayload};

use tokio::task::{JoinError, spawn_blocking};

use crate::Digest;

/// Number of bytes below which work is done in the task itself.
const HERE_BYTES: usize = 32 * 1024;

/// Does work whose time grows with the number of bytes.
pub(crate) async fn work_on<T: Send + 'static>(
    bytes: &Bytes,
    work: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> Result<T, JoinError> {
    if bytes.len() < HERE_BYTES {
        return Ok(work(bytes));
    }
    let bytes = bytes.clone();
    spawn_blocking(move || work(&bytes)).await
}

/// The digest of some bytes.
pub(crate) async fn hash(bytes: &Bytes) -> Result<Digest, JoinError> {
    work_on(bytes, Digest::of).await
}

/// Returns all bytes of an object, and their digest. One thread reads and hashes a file, while its bytes are in the
/// cache.
pub(crate) async fn read_and_hash(got: GetResult) -> object_store::Result<(Bytes, Digest)> {
    match got.payload {
        GetResultPayload::File(file, _) => {
            let size = got.meta.size;
            spawn_blocking(move || read_file(file, size)).await?
        }
        GetResultPayload::Stream(_) => {
            let bytes = got.bytes().await?;
            let digest = hash(&bytes).await?;
            Ok((bytes, digest))
        }
    }
}

/// Blocks.
fn read_file(file: File, size: u64) -> object_store::Result<(Bytes, Digest)> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let read = file.take(size).read_to_end(&mut bytes);
    read.map_err(|error| object_store::Error::Generic {
        store: "folder",
        source: error.into(),
    })?;
    let digest = Digest::of(&bytes);
    Ok((bytes.into(), digest))
}
