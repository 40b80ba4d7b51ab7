//! Handlers of inputs and outputs by content.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::{ContentCareRequest, ContentKeep, ErrorCode};
use fairlead_content::{CHUNK_BYTES_MAX, MANIFEST_BYTES_MAX, PIN_CHUNKS_MAX};
use serde_json::json;
use warp::reply::Response;

use super::{admin::BODY_MAX, callers::promised};
use crate::{
    content::{holder::Holder, wire::check_put},
    flows::Flows,
    http::{
        content_type::BYTES,
        reply::{bytes, done, ok},
        request::{Request, job_id},
    },
};
use fairlead_base::{budget::Identity, errors::Refusal};
use fairlead_known::accounts::Who;

/// Largest body that names chunks, bytes: each digest takes 67 in JSON. More of them than may be named are still read,
/// and refused by their count.
const DIGESTS_BYTES_MAX: usize = PIN_CHUNKS_MAX * 80 + 4_096;
/// What a manifest takes while it is checked: so many times its bytes, beside them.
const MANIFEST_COPIES: u64 = 2;

/// For whom the request speaks: a job by its token, or an account.
async fn holder(flows: &Flows, request: &mut Request, who: Option<Who>) -> Result<Holder, Refusal> {
    let Some(id) = request.query.get("job_id") else {
        return promised(who).map(Holder::of_account);
    };
    let (id, token) = (job_id(id)?, request.job_token());
    let job = flows.jobs.job_of_token(id, token).await?;
    flows.jobs.speaker(&job.state, token, None, who.as_ref())?;
    request.belongs_to(Identity::Account(job.state.account.clone()));
    Ok(Holder::of_job(&job.state))
}

/// The same for a put: a job that has ended leaves nothing more.
async fn putter(flows: &Flows, request: &mut Request, who: Option<Who>) -> Result<Holder, Refusal> {
    let holder = holder(flows, request, who).await?;
    if let Some(ended) = holder.ended() {
        return Err(ended.clone().into());
    }
    Ok(holder)
}

/// The word of the put that it belongs to.
fn put_of(request: &Request) -> Result<String, Refusal> {
    let put = request.query.get("put").unwrap_or_default();
    check_put(put)?;
    Ok(put.to_owned())
}

pub(super) async fn pin(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
) -> Result<Response, Refusal> {
    let holder = putter(&flows, &mut request, who).await?;
    let body = request.read_json(DIGESTS_BYTES_MAX).await?;
    Ok(ok(&flows.content.pin_chunks(&holder, &body).await?))
}

pub(super) async fn put_chunk(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
    digest: &str,
) -> Result<Response, Refusal> {
    let holder = putter(&flows, &mut request, who).await?;
    let put = put_of(&request)?;
    let bytes = request.read_body(CHUNK_BYTES_MAX).await?;
    let size = bytes.len();
    flows
        .content
        .put_chunk(&holder, &put, digest, bytes)
        .await?;
    Ok(ok(&json!({ "size": size })))
}

pub(super) async fn put_manifest(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
) -> Result<Response, Refusal> {
    let holder = putter(&flows, &mut request, who).await?;
    let put = put_of(&request)?;
    let name = request.query.get("name").unwrap_or_default().to_owned();
    let bytes = request.read_body(MANIFEST_BYTES_MAX).await?;
    let mut charge = request.another_charge();
    charge.grow(size_of_body(&bytes).saturating_mul(MANIFEST_COPIES))?;
    let view = flows
        .content
        .put_manifest(&holder, (&put, &name), bytes)
        .await?;
    drop(charge);
    Ok(ok(&view))
}

pub(super) async fn manifest(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
    id: &str,
) -> Result<Response, Refusal> {
    let holder = holder(&flows, &mut request, who).await?;
    let manifest = flows.content.manifest_of(&holder, id).await?;
    Ok(bytes(200, BYTES, manifest))
}

pub(super) async fn chunk(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
    digest: &str,
) -> Result<Response, Refusal> {
    let holder = holder(&flows, &mut request, who).await?;
    let Some(id) = request.query.get("id") else {
        return Err(Refusal::new(
            ErrorCode::BadQuery,
            "id: missing",
            "say which input or output the chunk is of",
        ));
    };
    let id = id.to_owned();
    // Before it is read; its answer is charged when this charge is gone.
    request.charge_bytes(u64::try_from(CHUNK_BYTES_MAX).unwrap_or(u64::MAX))?;
    let chunk = flows.content.chunk_of(&holder, &id, digest).await?;
    Ok(bytes(200, BYTES, chunk))
}

fn size_of_body(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

pub(super) async fn urls(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
) -> Result<Response, Refusal> {
    let holder = holder(&flows, &mut request, who).await?;
    let body = request.read_json(DIGESTS_BYTES_MAX).await?;
    Ok(ok(&flows.content.chunk_urls(&holder, &body).await?))
}

pub(super) async fn show(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    id: &str,
) -> Result<Response, Refusal> {
    let holder = Holder::of_account(who);
    let account = flows
        .content
        .looks_at(&holder, request.query.get("account"))?;
    Ok(ok(&flows.content.content_view(&account, id).await?))
}

pub(super) async fn keep(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    id: &str,
) -> Result<Response, Refusal> {
    let holder = Holder::of_account(who);
    let account = holder.acts_for(request.query.get("account"))?;
    let keep: ContentKeep = request.read_json(BODY_MAX).await?;
    Ok(ok(&flows.content.keep_content(&account, id, &keep).await?))
}

pub(super) async fn forget(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    id: &str,
) -> Result<Response, Refusal> {
    let holder = Holder::of_account(who);
    let account = holder.acts_for(request.query.get("account"))?;
    flows.content.forget_content(&account, id).await?;
    Ok(done())
}

pub(super) async fn list(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let holder = Holder::of_account(who);
    let named = request.query.get("account").filter(|name| !name.is_empty());
    let limit = request.query.number("limit", 0..=1_000, 100)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let after = request.query.get("after");
    let list = if named.is_none() && holder.acts_for_all() {
        flows.content.contents_of_all(after, limit).await?
    } else {
        let account = flows.content.looks_at(&holder, named)?;
        flows.content.contents_of(&account, after, limit).await?
    };
    Ok(ok(&list))
}

pub(super) async fn collect(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let asked: ContentCareRequest = request.read_json(BODY_MAX).await?;
    let collected = flows.content.collect_content(asked.dry_run).await?;
    if !asked.dry_run {
        flows
            .ctx
            .audit(&who.name, "content.collect", "content", json!(collected));
    }
    Ok(ok(&collected))
}

pub(super) async fn check(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let asked: ContentCareRequest = request.read_json(BODY_MAX).await?;
    if asked.dry_run {
        return Err(Refusal::new(
            ErrorCode::BadField,
            "dry_run: true, but a check always sets aside what is damaged",
            "omit dry_run",
        ));
    }
    let checked = flows.content.check_content().await?;
    flows
        .ctx
        .audit(&who.name, "content.check", "content", json!(checked));
    Ok(ok(&checked))
}
