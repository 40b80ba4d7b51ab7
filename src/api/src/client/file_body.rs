//! Bodies that are sent in pieces: a file is read as it is sent, never whole in memory. A slow line may take long, as
//! long as something moves.

use std::{
    path::PathBuf,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use reqwest::header;
use tokio::io::AsyncReadExt;

use super::error::{ClientError, Failure};

/// How much of a file is read at a time.
const READ_BYTES: usize = 64 * 1024;

/// A file that becomes a body, anew for each try.
#[derive(Debug)]
pub(super) struct FileBody {
    pub(super) path: PathBuf,
}

/// How much of a body was taken by the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

impl FileBody {
    pub(super) async fn attach(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<(reqwest::RequestBuilder, Progress), Failure> {
        let failed = |source| {
            Failure::Stop(ClientError::File {
                path: self.path.clone(),
                source,
            })
        };
        let file = tokio::fs::File::open(&self.path).await.map_err(failed)?;
        let length = file.metadata().await.map_err(failed)?.len();
        let progress = Progress::default();
        let counter = progress.clone();
        // Not more than it was long at the start: the length is promised in the header.
        let pieces = futures_util::stream::try_unfold(file.take(length), move |mut file| {
            let counter = counter.clone();
            async move {
                let mut piece = vec![0; READ_BYTES];
                let read = file.read(&mut piece).await?;
                piece.truncate(read);
                counter.0.fetch_add(read as u64, Ordering::Relaxed);
                Ok::<_, std::io::Error>((read > 0).then_some((Bytes::from(piece), file)))
            }
        });
        let request = request
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, length)
            .body(reqwest::Body::wrap_stream(pieces));
        Ok((request, progress))
    }
}

impl Progress {
    /// Whether bytes are worth pieces: a smaller body is sent at once.
    pub(super) const fn is_for(bytes: &Bytes) -> bool {
        bytes.len() > READ_BYTES
    }

    /// Makes bytes the body, in pieces that are counted.
    pub(super) fn of_bytes(
        request: reqwest::RequestBuilder,
        bytes: &Bytes,
    ) -> (reqwest::RequestBuilder, Self) {
        let progress = Self::default();
        let counter = progress.clone();
        let request = request.header(header::CONTENT_LENGTH, bytes.len());
        let pieces = futures_util::stream::unfold(bytes.clone(), move |mut rest| {
            let counter = counter.clone();
            async move {
                let piece = rest.split_to(rest.len().min(READ_BYTES));
                counter.0.fetch_add(piece.len() as u64, Ordering::Relaxed);
                let piece = (!piece.is_empty()).then_some(piece);
                piece.map(|piece| (Ok::<_, std::io::Error>(piece), rest))
            }
        });
        (request.body(reqwest::Body::wrap_stream(pieces)), progress)
    }

    /// Sends, and gives up only when nothing has moved for `limit`.
    pub(super) async fn send(
        &self,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<reqwest::Response, Failure> {
        let mut sending = pin!(request.send());
        let mut seen = 0;
        loop {
            match tokio::time::timeout(limit, &mut sending).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => return Err(Failure::of(&error, limit)),
                Err(_) => {
                    let moved = self.0.load(Ordering::Relaxed);
                    if moved == seen {
                        return Err(Failure::Sent(format!(
                            "the upload stopped for {} ms",
                            limit.as_millis()
                        )));
                    }
                    seen = moved;
                }
            }
        }
    }
}
