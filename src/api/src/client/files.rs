//! Result files: upload and download.
//!
//! A file is read as it is sent, never whole in memory. An upload may take as long as it must, as long
//! as bytes move.

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

use super::{
    ByteStream, Client, ClientError,
    error::Failure,
    transport::{Call, Payload, segment},
};

/// How much of a file is read at a time.
const READ_BYTES: usize = 64 * 1024;

/// What to upload.
#[derive(Debug, Clone)]
pub enum UploadBody {
    /// A local file, as long as it is when the upload begins.
    File(PathBuf),
    /// These bytes.
    Bytes(Bytes),
}

/// What became of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadOutcome {
    /// It is stored.
    Stored,
    /// The server had a file of that name already and kept it: so it is after an upload whose answer
    /// was lost.
    Existed,
}

impl Client {
    /// Uploads one result file. `path` is the job's `result_root` without `/result/`, a slash, and the
    /// file's path in it, unescaped. Sent again until it is there.
    pub async fn upload(
        &self,
        path: &str,
        job_id: &str,
        job_token: &str,
        body: UploadBody,
    ) -> Result<UploadOutcome, ClientError> {
        let mut call = Call::post(result_path(path)?)
            .query(vec![("job_id", job_id.to_owned())])
            .job_token(Some(job_token));
        call.payload = match body {
            UploadBody::File(path) => Payload::File(FileBody { path }),
            UploadBody::Bytes(bytes) => Payload::Bytes {
                content_type: "application/octet-stream",
                bytes,
            },
        };
        let reply = self.run(&call).await?;
        if reply.status == 409 {
            return Ok(UploadOutcome::Existed);
        }
        reply.checked().map(|_| UploadOutcome::Stored)
    }

    /// Downloads one result file, or a folder's listing. `path` as in [`Client::upload`].
    pub async fn download(&self, path: &str) -> Result<ByteStream, ClientError> {
        let mut call = Call::get(result_path(path)?);
        call.stream = true;
        self.run(&call).await?.stream(Some(self.request_timeout()))
    }
}

/// `/result/` and the escaped segments. A whole `/result/…` is forgiven, and a slash at the end.
fn result_path(path: &str) -> Result<String, ClientError> {
    let path = path.strip_prefix("/result/").unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<_> = path.split('/').map(segment).collect::<Result<_, _>>()?;
    Ok(format!("/result/{}", segments.join("/")))
}

/// A file that becomes a body, anew for each try.
#[derive(Debug)]
pub(super) struct FileBody {
    path: PathBuf,
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
