//! A lab as the other side of a transfer. Chunks go past its schedulers where it names addresses, else through them.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use fairlead_api::{
    AsJob, ByteStream, Client, ClientError, ContentPin, ContentUrlsRequest, ErrorCode,
};

use super::{
    direct::{Direct, Pauses},
    error::TransferError,
    remote::{Place, Remote},
};
use crate::{CHUNK_BYTES_MAX, Digest, MANIFEST_BYTES_MAX};

/// The content of a lab. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LabRemote {
    client: Client,
    job: Option<AsJob>,
    direct: Direct,
    /// True if the lab gave no addresses: its content is in a folder.
    has_no_addresses: Arc<AtomicBool>,
}

impl LabRemote {
    /// Creates a remote. `job`: asks for a job and not for an account.
    ///
    /// # Errors
    /// Fails if this machine cannot make HTTPS requests.
    pub fn new(client: Client, job: Option<AsJob>) -> Result<Self, TransferError> {
        Ok(Self {
            client,
            job,
            direct: Direct::new()?,
            has_no_addresses: Arc::default(),
        })
    }

    fn job(&self) -> Option<&AsJob> {
        self.job.as_ref()
    }

    async fn pin_chunks(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        let pin = ContentPin {
            put: put.to_owned(),
            chunks: chunks.iter().map(Digest::to_string).collect(),
        };
        let answer = self.client.pin_chunks(self.job(), &pin).await?;
        let missing = answer.missing.into_iter().map(|chunk| {
            Ok(Place {
                digest: digest(&chunk.digest)?,
                url: chunk.url,
                headers: chunk.headers,
            })
        });
        missing.collect()
    }

    async fn chunk_places(
        &self,
        id: Digest,
        chunks: &[Digest],
    ) -> Result<Vec<Place>, TransferError> {
        let through_it = || chunks.iter().copied().map(Place::through_remote).collect();
        if chunks.is_empty() || self.has_no_addresses.load(Ordering::Relaxed) {
            return Ok(through_it());
        }
        let request = ContentUrlsRequest {
            id: id.to_string(),
            chunks: chunks.iter().map(Digest::to_string).collect(),
        };
        let answer = self.client.chunk_urls(self.job(), &request).await?;
        if answer.urls.is_empty() {
            self.has_no_addresses.store(true, Ordering::Relaxed);
            return Ok(through_it());
        }
        let urls = answer.urls.into_iter().zip(chunks);
        let places = urls.map(|(url, digest)| Place {
            digest: *digest,
            url: Some(url),
            headers: Vec::new(),
        });
        Ok(places.collect())
    }

    /// Reads a whole body. A stream that breaks is requested again.
    async fn whole<F>(&self, most: usize, ask: impl Fn() -> F) -> Result<Bytes, TransferError>
    where
        F: Future<Output = Result<ByteStream, ClientError>> + Send,
    {
        let mut pauses = Pauses::default();
        loop {
            let broke = match read_all(ask().await?, most).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            if !broke.may_pass() || !pauses.rest(None).await {
                return Err(broke);
            }
        }
    }
}

#[async_trait]
impl Remote for LabRemote {
    async fn pin(&self, put: &str, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        self.pin_chunks(put, chunks).await
    }

    async fn put_chunk(&self, put: &str, to: &Place, bytes: Bytes) -> Result<(), TransferError> {
        let Some(url) = &to.url else {
            let digest = to.digest.to_string();
            return Ok(self
                .client
                .put_chunk(self.job(), put, &digest, bytes)
                .await?);
        };
        if self.direct.put(url, &to.headers, bytes.clone()).await? {
            return Ok(());
        }
        // The address is too old. A chunk that is there by now needs none.
        for place in self.pin_chunks(put, &[to.digest]).await? {
            let url = place.url.as_deref().unwrap_or_default();
            if !self.direct.put(url, &place.headers, bytes.clone()).await? {
                return Err(Direct::forbidden(url));
            }
        }
        Ok(())
    }

    async fn put_manifest(
        &self,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<Digest, TransferError> {
        let sent = self.client.put_manifest(self.job(), put, name, manifest);
        digest(&sent.await?.id)
    }

    async fn manifest(&self, id: Digest) -> Result<Bytes, TransferError> {
        let text = id.to_string();
        let read = self.whole(MANIFEST_BYTES_MAX, || {
            self.client.manifest(self.job(), &text)
        });
        read.await.map_err(|error| match error {
            TransferError::Lab(error) if error.code() == Some(ErrorCode::NotFound) => {
                TransferError::Unknown(id)
            }
            other => other,
        })
    }

    async fn places(&self, id: Digest, chunks: &[Digest]) -> Result<Vec<Place>, TransferError> {
        self.chunk_places(id, chunks).await
    }

    async fn chunk(&self, id: Digest, from: &Place) -> Result<Bytes, TransferError> {
        let Some(url) = &from.url else {
            let (id, digest) = (id.to_string(), from.digest.to_string());
            let read = self.whole(CHUNK_BYTES_MAX, || {
                self.client.chunk(self.job(), &id, &digest)
            });
            return read.await.map_err(|error| match error {
                TransferError::Lab(error) if error.code() == Some(ErrorCode::NotFound) => {
                    TransferError::ChunkGone(from.digest)
                }
                other => other,
            });
        };
        let gone = || TransferError::ChunkGone(from.digest);
        if let Some(found) = self.direct.get(url).await? {
            return found.ok_or_else(gone);
        }
        // The address is too old.
        let places = self.chunk_places(id, &[from.digest]).await?;
        let url = places.first().and_then(|place| place.url.as_deref());
        let url = url.unwrap_or_default();
        match self.direct.get(url).await? {
            Some(found) => found.ok_or_else(gone),
            None => Err(Direct::forbidden(url)),
        }
    }
}

async fn read_all(mut stream: ByteStream, most: usize) -> Result<Bytes, TransferError> {
    let mut all = BytesMut::new();
    while let Some(piece) = stream.chunk().await? {
        if all.len() + piece.len() > most {
            return Err(TransferError::TooLong { max: most });
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

/// Reads a digest from a lab.
fn digest(text: &str) -> Result<Digest, TransferError> {
    text.parse()
        .map_err(|error: crate::BadDigest| TransferError::Bug(error.to_string()))
}
