//! Handlers of inputs and outputs by content.

use std::sync::Arc;

use fairlead_api::{ErrorCode, Route};
use fairlead_content::{CHUNK_BYTES_MAX, MANIFEST_BYTES_MAX, PIN_CHUNKS_MAX};
use futures_util::FutureExt;
use serde_json::json;
use warp::reply::Response;

use crate::{
    base::{budget::Purse, errors::Refusal},
    content::puts::Holder,
    core::Core,
    http::{
        content_type::BYTES,
        reply::{Answer, ok, typed},
        request::{Request, job_id},
    },
};

/// Largest body that names chunks, bytes: each digest takes 67 in JSON.
const DIGESTS_BYTES_MAX: usize = PIN_CHUNKS_MAX * 80 + 4_096;
/// Whose content it is that an open lab's operator puts without a name.
const NOBODY: &str = "open";

/// Who answers.
pub(super) fn handler(core: Arc<Core>, request: Request, route: Route<'_>) -> Answer<'_> {
    match route {
        Route::PinChunks => pin(core, request).boxed(),
        Route::PutChunk { digest } => put_chunk(core, request, digest).boxed(),
        Route::Chunk { digest } => chunk(core, request, digest).boxed(),
        Route::ChunkUrls => urls(core, request).boxed(),
        Route::PutManifest => put_manifest(core, request).boxed(),
        Route::Manifest { content } => manifest(core, request, content).boxed(),
        Route::ContentOf { content } => show(core, request, content).boxed(),
        _ => list(core, request).boxed(),
    }
}

/// For whom the request speaks: a job by its token, or an account.
async fn holder(core: &Core, request: &Request) -> Result<Holder, Refusal> {
    if let Some(id) = request.query.get("job_id") {
        let id = job_id(id)?;
        let token = request.job_token();
        let job = core.job_of_token(id, token).await?;
        let who = match token {
            Some(_) => None,
            None => Some(core.people.accounts.identify(&request.credentials(None))?),
        };
        core.speaker(&job.state, token, None, who.as_ref())?;
        return Ok(Holder {
            account: job.state.account,
            job_id: id.to_string(),
        });
    }
    let who = core.people.accounts.identify(&request.credentials(None))?;
    let account = if who.name.is_empty() {
        NOBODY.to_owned()
    } else {
        who.name
    };
    Ok(Holder {
        account,
        job_id: String::new(),
    })
}

async fn pin(core: Arc<Core>, mut request: Request) -> Result<Response, Refusal> {
    holder(&core, &request).await?;
    let body = request.read_json(DIGESTS_BYTES_MAX).await?;
    Ok(ok(&core.pin_chunks(&body).await?))
}

async fn put_chunk(
    core: Arc<Core>,
    mut request: Request,
    digest: &str,
) -> Result<Response, Refusal> {
    holder(&core, &request).await?;
    request.belongs_to(Purse::Agent);
    let bytes = request.read_body(CHUNK_BYTES_MAX).await?;
    let size = bytes.len();
    core.put_chunk(digest, bytes).await?;
    Ok(ok(&json!({ "size": size })))
}

async fn put_manifest(core: Arc<Core>, mut request: Request) -> Result<Response, Refusal> {
    let holder = holder(&core, &request).await?;
    let name = request.query.get("name").unwrap_or_default().to_owned();
    let bytes = request.read_body(MANIFEST_BYTES_MAX).await?;
    Ok(ok(&core.put_manifest(&holder, &name, bytes).await?))
}

async fn manifest(core: Arc<Core>, request: Request, id: &str) -> Result<Response, Refusal> {
    let holder = holder(&core, &request).await?;
    let bytes = core.manifest_of(&holder, id).await?;
    Ok(typed(200, BYTES, bytes.to_vec()))
}

async fn chunk(core: Arc<Core>, request: Request, digest: &str) -> Result<Response, Refusal> {
    let holder = holder(&core, &request).await?;
    let Some(id) = request.query.get("id") else {
        return Err(Refusal::new(
            ErrorCode::BadQuery,
            "id: missing",
            "say which input or output the chunk is of",
        ));
    };
    let bytes = core.chunk_of(&holder, id, digest).await?;
    Ok(typed(200, BYTES, bytes.to_vec()))
}

async fn urls(core: Arc<Core>, mut request: Request) -> Result<Response, Refusal> {
    let holder = holder(&core, &request).await?;
    let body = request.read_json(DIGESTS_BYTES_MAX).await?;
    Ok(ok(&core.chunk_urls(&holder, &body).await?))
}

async fn show(core: Arc<Core>, request: Request, id: &str) -> Result<Response, Refusal> {
    let holder = holder(&core, &request).await?;
    Ok(ok(&core.content_view(&holder.account, id).await?))
}

async fn list(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    let holder = holder(&core, &request).await?;
    let limit = request.query.number("limit", 0..=1_000, 100)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let after = request.query.get("after");
    Ok(ok(&core.contents_of(&holder.account, after, limit).await?))
}
