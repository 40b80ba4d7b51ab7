//! Inputs and outputs by content. Each request is idempotent and sent again. A job asks with its token, a person as an
//! account.

use bytes::Bytes;

use super::{call::Call, error::ClientError, reply::ByteStream, transport::Client};
use crate::{
    ContentCareRequest, ContentChecked, ContentCollected, ContentKeep, ContentList, ContentMissing,
    ContentPin, ContentUrls, ContentUrlsRequest, ContentView, Route,
};

/// A job that asks for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsJob {
    /// The job.
    pub job_id: String,
    /// Which try.
    pub attempt: u16,
    /// From its grant.
    pub job_token: String,
}

impl Call {
    fn of(self, job: Option<&AsJob>, mut query: Vec<(&'static str, String)>) -> Self {
        let Some(job) = job else {
            return self.query(query);
        };
        query.push(("job_id", job.job_id.clone()));
        query.push(("attempt", job.attempt.to_string()));
        self.query(query).job_token(Some(&job.job_token))
    }
}

impl Client {
    /// Keeps chunks for a put, and asks which are missing.
    pub async fn pin_chunks(
        &self,
        job: Option<&AsJob>,
        pin: &ContentPin,
    ) -> Result<ContentMissing, ClientError> {
        let call = Call::to(Route::PinChunks)?.json(pin)?.of(job, Vec::new());
        self.run(&call).await?.json()
    }

    /// Sends a chunk through a scheduler.
    pub async fn put_chunk(
        &self,
        job: Option<&AsJob>,
        put: &str,
        digest: &str,
        bytes: Bytes,
    ) -> Result<(), ClientError> {
        let call = Call::to(Route::PutChunk { digest })?
            .bytes("application/octet-stream", bytes)
            .of(job, vec![("put", put.to_owned())]);
        self.run(&call).await?.checked().map(drop)
    }

    /// Ends a put. `name`: what its owner calls it; empty: nothing.
    pub async fn put_manifest(
        &self,
        job: Option<&AsJob>,
        put: &str,
        name: &str,
        manifest: Bytes,
    ) -> Result<ContentView, ClientError> {
        let mut query = vec![("put", put.to_owned())];
        if !name.is_empty() {
            query.push(("name", name.to_owned()));
        }
        let call = Call::to(Route::PutManifest)?
            .bytes("application/octet-stream", manifest)
            .of(job, query);
        self.run(&call).await?.json()
    }

    /// The list of the files of an input or output.
    pub async fn manifest(&self, job: Option<&AsJob>, id: &str) -> Result<ByteStream, ClientError> {
        let mut call = Call::to(Route::Manifest { content: id })?.of(job, Vec::new());
        call.stream = true;
        self.run(&call).await?.stream(Some(self.request_timeout()))
    }

    /// From where to read chunks.
    pub async fn chunk_urls(
        &self,
        job: Option<&AsJob>,
        request: &ContentUrlsRequest,
    ) -> Result<ContentUrls, ClientError> {
        let call = Call::to(Route::ChunkUrls)?
            .json(request)?
            .of(job, Vec::new());
        self.run(&call).await?.json()
    }

    /// Reads a chunk of an input or output through a scheduler.
    pub async fn chunk(
        &self,
        job: Option<&AsJob>,
        id: &str,
        digest: &str,
    ) -> Result<ByteStream, ClientError> {
        let mut call = Call::to(Route::Chunk { digest })?.of(job, vec![("id", id.to_owned())]);
        call.stream = true;
        self.run(&call).await?.stream(Some(self.request_timeout()))
    }

    /// A page of inputs and outputs. `account`: whose; empty: one's own, an admin's of all.
    pub async fn contents(
        &self,
        account: &str,
        after: Option<&str>,
        limit: Option<u64>,
    ) -> Result<ContentList, ClientError> {
        let mut query = Vec::new();
        if !account.is_empty() {
            query.push(("account", account.to_owned()));
        }
        query.extend(after.map(|after| ("after", after.to_owned())));
        query.extend(limit.map(|limit| ("limit", limit.to_string())));
        let call = Call::to(Route::Contents)?.query(query);
        self.run(&call).await?.json()
    }

    /// One input or output.
    pub async fn content(&self, id: &str) -> Result<ContentView, ClientError> {
        let call = Call::to(Route::ContentOf { content: id })?;
        self.run(&call).await?.json()
    }

    /// Keeps one until a time.
    pub async fn keep_content(
        &self,
        id: &str,
        keep: &ContentKeep,
    ) -> Result<ContentView, ClientError> {
        let call = Call::to(Route::KeepContent { content: id })?.json(keep)?;
        self.run(&call).await?.json()
    }

    /// Gives one up.
    pub async fn forget_content(&self, id: &str) -> Result<(), ClientError> {
        let mut call = Call::to(Route::ForgetContent { content: id })?;
        call.method = reqwest::Method::DELETE;
        self.run(&call).await?.checked().map(drop)
    }

    /// Removes what nobody needs. May take minutes.
    pub async fn collect_content(
        &self,
        request: &ContentCareRequest,
    ) -> Result<ContentCollected, ClientError> {
        let call = Call::to(Route::CollectContent)?
            .json(request)?
            .wait(CARE_WAIT);
        self.run(&call).await?.json()
    }

    /// Reads all that is stored. May take hours.
    pub async fn check_content(
        &self,
        request: &ContentCareRequest,
    ) -> Result<ContentChecked, ClientError> {
        let call = Call::to(Route::CheckContent)?
            .json(request)?
            .wait(CARE_WAIT);
        self.run(&call).await?.json()
    }
}

/// How long a server may look after all content.
const CARE_WAIT: std::time::Duration = std::time::Duration::from_hours(24);
