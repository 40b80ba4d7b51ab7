//! A remote that can be told to stop. From then on its calls fail, so that a transfer ends in order: a get removes what
//! it wrote.

use std::pin::pin;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use super::{
    error::TransferError,
    remote::{Place, Remote},
};
use crate::Digest;

/// Remote that can be stopped.
#[derive(Debug)]
pub struct Stoppable<'a> {
    remote: &'a dyn Remote,
    stopped: watch::Receiver<bool>,
}

impl<'a> Stoppable<'a> {
    /// Creates it. `stopped`: all calls fail with [`TransferError::Stopped`] once it is true.
    pub const fn new(remote: &'a dyn Remote, stopped: watch::Receiver<bool>) -> Self {
        Self { remote, stopped }
    }

    async fn unless_stopped<T>(
        &self,
        call: impl Future<Output = Result<T, TransferError>> + Send,
    ) -> Result<T, TransferError> {
        let mut stopped = self.stopped.clone();
        let mut call = pin!(call);
        tokio::select! {
            biased;
            // If nobody can say stop any more, the call goes on.
            Ok(_) = stopped.wait_for(|is_stopped| *is_stopped) => Err(TransferError::Stopped),
            done = &mut call => done,
        }
    }
}

#[async_trait]
impl Remote for Stoppable<'_> {
    async fn pin(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        self.unless_stopped(self.remote.pin(put, chunks)).await
    }

    async fn put_chunk(&self, put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError> {
        self.unless_stopped(self.remote.put_chunk(put, to, bytes))
            .await
    }

    async fn put_manifest(
        &self,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError> {
        self.unless_stopped(self.remote.put_manifest(put, name, manifest))
            .await
    }

    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError> {
        self.unless_stopped(self.remote.manifest(id)).await
    }

    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        self.unless_stopped(self.remote.places(id, chunks)).await
    }

    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        self.unless_stopped(self.remote.chunk(id, from)).await
    }
}
