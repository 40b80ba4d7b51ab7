//! The other side of a transfer: where chunks and manifests are put and got.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

use super::error::TransferError;
use crate::{Chunk, Digest};

/// Default number of simultaneous chunks.
pub const PARALLEL: usize = 8;
/// Maximum number of simultaneous chunks: each is in memory.
pub const PARALLEL_MAX: usize = 64;

/// A chunk up to this size is a small one, bytes. It takes the time of an answer, and hardly any memory.
const SMALL_BYTES: u32 = 64 * 1024;
/// Number of small chunks that count as one large one.
const LARGE_WEIGHT: usize = 8;

/// Room for chunks that are under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room(usize);

impl Room {
    /// Returns room for this many large chunks.
    pub(super) const fn of(parallel: usize) -> Self {
        Self(parallel.saturating_mul(LARGE_WEIGHT))
    }

    /// Returns true if one more chunk has room beside those under way, whatever its size.
    pub(super) const fn is_left(self, under_way: usize) -> bool {
        self.0 >= LARGE_WEIGHT && under_way < PARALLEL_MAX
    }

    pub(super) const fn take(&mut self, chunk: Chunk) {
        self.0 = self.0.saturating_sub(weight(chunk));
    }

    pub(super) const fn give_back(&mut self, chunk: Chunk) {
        self.0 = self.0.saturating_add(weight(chunk));
    }
}

const fn weight(chunk: Chunk) -> usize {
    if chunk.size <= SMALL_BYTES {
        1
    } else {
        LARGE_WEIGHT
    }
}

/// Place that a chunk goes to, or comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The chunk.
    pub digest: Digest,
    /// Address for plain PUT or GET without credentials. `None`: the remote itself.
    pub url: Option<String>,
    /// Headers that a PUT must have.
    pub headers: Vec<(String, String)>,
}

impl Place {
    /// A chunk that goes through the remote itself.
    pub const fn through_remote(digest: Digest) -> Self {
        Self {
            digest,
            url: None,
            headers: Vec::new(),
        }
    }
}

/// The other side of a transfer. Each call may be repeated without harm.
#[async_trait]
pub trait Remote: Debug + Send + Sync {
    /// Keeps chunks for a put, at most [`crate::PIN_CHUNKS_MAX`], then returns those that must be sent, without
    /// repeats.
    ///
    /// `put`: names the put, 1 to 64 letters, digits, `-` and `_`.
    async fn pin(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError>;

    /// Sends a chunk to a place that [`Remote::pin`] named.
    async fn put_chunk(&self, put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError>;

    /// Ends a put. All chunks of the manifest are there. Returns its id.
    async fn put_manifest(
        &self,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError>;

    /// The bytes of a manifest. The caller checks them.
    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError>;

    /// Returns the places of chunks of a manifest, at most [`crate::PIN_CHUNKS_MAX`], one place each, in order.
    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError>;

    /// The bytes of a chunk of a manifest. The caller checks them.
    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError>;
}
