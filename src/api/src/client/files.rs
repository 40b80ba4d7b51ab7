//! Result files: upload and download.
//!
//! A file is read as it is sent, never whole in memory. An upload may take as long as it must, as long
//! as bytes move.

use std::path::PathBuf;

use bytes::Bytes;

use super::{
    call::{Call, Payload},
    error::ClientError,
    file_body::FileBody,
    reply::ByteStream,
    transport::Client,
};
use crate::Route;

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
        let mut call = Call::to(Route::Upload {
            path: &segments_of(path),
        })?
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
        let mut call = Call::to(Route::Download {
            path: &segments_of(path),
        })?;
        call.stream = true;
        self.run(&call).await?.stream(Some(self.request_timeout()))
    }
}

/// What stands below `/result/`. A whole `/result/…` is forgiven, and a slash at the end.
fn segments_of(path: &str) -> Vec<&str> {
    let path = path.strip_prefix("/result/").unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').collect()
}
