//! Hashes bytes beside the tasks, on threads that may block. So other bytes move meanwhile.

use std::{fs::File, io::Read};

use bytes::Bytes;
use object_store::{GetResult, GetResultPayload};

use tokio::task::{JoinError, spawn_blocking};

use crate::Digest;

/// From this size on, bytes are hashed beside the task and not in it.
const HASH_HERE_BYTES: usize = 32 * 1024;

/// The digest of some bytes.
pub(crate) async fn hash(bytes: &Bytes) -> Result<Digest, JoinError> {
    if bytes.len() < HASH_HERE_BYTES {
        return Ok(Digest::of(bytes));
    }
    let hashed = bytes.clone();
    spawn_blocking(move || Digest::of(&hashed)).await
}

/// All bytes of an object, and their digest. One thread reads a file and hashes it, while its bytes are near.
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
