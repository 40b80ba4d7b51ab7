//! A content store as the other side of a transfer, without a lab between.

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    error::TransferError,
    remote::{Place, Remote},
};
use crate::{ContentStore, Digest};

/// Pins nothing: the user of a store without a lab decides when it is collected.
#[async_trait]
impl Remote for ContentStore {
    async fn pin(&self, _put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        let missing = self.missing(chunks).await?;
        Ok(missing.into_iter().map(Place::through_remote).collect())
    }

    async fn put_chunk(&self, _put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError> {
        Ok(Self::put_chunk(self, to.digest, bytes).await?)
    }

    async fn put_manifest(
        &self,
        _put: &str,
        _name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError> {
        let (id, _) = Self::put_manifest(self, manifest).await?;
        Ok(id)
    }

    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError> {
        let found = Self::manifest(self, id).await?;
        found.ok_or(TransferError::Unknown(id))
    }

    async fn places(&self, _id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        Ok(chunks.iter().copied().map(Place::through_remote).collect())
    }

    async fn chunk(&self, _id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        let found = Self::chunk(self, from.digest).await?;
        found.ok_or(TransferError::ChunkGone(from.digest))
    }
}
