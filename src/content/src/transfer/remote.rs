//! The other side of a transfer: where chunks and manifests are put and got.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

use super::error::TransferError;
use crate::Digest;

/// Chunks that are under way at a time, where nothing else is said.
pub const PARALLEL: usize = 8;
/// Most chunks that may be under way at a time: each is in memory.
pub const PARALLEL_MAX: usize = 64;

/// Where a chunk goes to, or comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The chunk.
    pub digest: Digest,
    /// An address for plain PUT or GET without credentials. `None`: the remote itself.
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
    /// Keeps chunks for a put, at most [`crate::PIN_CHUNKS_MAX`], then says which of them must be sent, without repeats.
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

    /// Where to get chunks of a manifest, at most [`crate::PIN_CHUNKS_MAX`], one place each, in order.
    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError>;

    /// The bytes of a chunk of a manifest. The caller checks them.
    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError>;
}
