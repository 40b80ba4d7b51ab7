//! Handlers of timers.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::ErrorCode;
use fairlead_job::Spec;
use warp::reply::Response;

use crate::http::{
    reply::{done, ok},
    routes::jobs::read_items,
};
use crate::{flows::Flows, http::request::Request};
use fairlead_base::{budget::Charge, errors::Refusal};
use fairlead_known::accounts::Who;

/// Most timers on a page.
const PAGE_MAX: u64 = 1_000;

/// The one job of a body.
async fn read_job(
    flows: &Flows,
    request: &Request,
    body: Bytes,
) -> Result<(Spec, Charge), Refusal> {
    let (items, charge) = read_items(flows, request, body).await?;
    match <[_; 1]>::try_from(items) {
        Ok([item]) => Ok((item?, charge)),
        Err(items) => Err(Refusal::new(
            ErrorCode::BadBody,
            format!("the body holds {} jobs; a timer runs one", items.len()),
            "create a timer for each job, with its own name",
        )),
    }
}

/// Whose timers are meant: the account that the query names, else the one that asks.
fn account<'r>(request: &'r Request, who: &'r Who) -> &'r str {
    request.query.get("account").unwrap_or(&who.name)
}

pub(super) async fn submit(
    flows: Arc<Flows>,
    request: Request,
    body: Bytes,
) -> Result<Response, Refusal> {
    let (spec, _charge) = read_job(&flows, &request, body).await?;
    let said = request.credentials(None);
    Ok(ok(&flows.timers.submit_timer(spec, &said).await?))
}

pub(super) async fn list(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let limit = request.query.number("limit", 0..=PAGE_MAX, 100)?;
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let after = request.query.get("after").unwrap_or_default();
    let views = flows
        .timers
        .timer_views(account(&request, &who), after, limit);
    Ok(ok(&views.await?))
}

pub(super) async fn show(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    Ok(ok(&flows
        .timers
        .timer_view(account(&request, &who), name)
        .await?))
}

pub(super) async fn update(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let body = request
        .read_body(flows.ctx.config.limits.body_bytes_max)
        .await?;
    let (spec, _charge) = read_job(&flows, &request, body).await?;
    let named = (account(&request, &who), name);
    Ok(ok(&flows.timers.update_timer(&who, named, spec).await?))
}

pub(super) async fn pause(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    name: &str,
    paused: bool,
) -> Result<Response, Refusal> {
    let named = (account(&request, &who), name);
    Ok(ok(&flows.timers.pause_timer(&who, named, paused).await?))
}

pub(super) async fn delete(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let named = (account(&request, &who), name);
    flows.timers.delete_timer(&who, named).await?;
    Ok(done())
}
