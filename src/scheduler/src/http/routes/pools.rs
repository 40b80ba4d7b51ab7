//! Handlers of pools of machines that come and go.

use std::sync::Arc;

use fairlead_api::{PoolChange, ScalingSettings};
use serde_json::{Value, json};
use warp::reply::Response;

use super::admin::BODY_MAX;
use crate::{
    flows::Flows,
    http::{
        reply::{done, ok, paged},
        request::Request,
        signed::parsed,
    },
};
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Who;

/// Decisions of one page, and most of one.
const DECISIONS: u64 = 50;
const DECISIONS_MAX: u64 = 1_000;

pub(super) async fn list(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    paged(&request, flows.scaling.pool_views().await?, |pool| {
        pool.name.clone()
    })
}

pub(super) async fn show(flows: Arc<Flows>, name: &str) -> Result<Response, Refusal> {
    Ok(ok(&flows.scaling.pool_view(name).await?))
}

pub(super) async fn set(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let change: PoolChange = parsed(body, "provider, machine, min, max, and others")?;
    let view = flows.scaling.set_pool(name, &change).await?;
    flows.ctx.audit(&who.name, "pool.set", name, json!(change));
    Ok(ok(&view))
}

pub(super) async fn delete(flows: Arc<Flows>, who: Who, name: &str) -> Result<Response, Refusal> {
    flows.scaling.delete_pool(name).await?;
    flows.ctx.audit(&who.name, "pool.delete", name, Value::Null);
    Ok(done())
}

pub(super) async fn decisions(
    flows: Arc<Flows>,
    request: Request,
    name: &str,
) -> Result<Response, Refusal> {
    let before = request.query.number("before", 0..=u64::MAX, 0)?;
    let limit = request
        .query
        .number("limit", 1..=DECISIONS_MAX, DECISIONS)?;
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    Ok(ok(&flows
        .scaling
        .pool_decisions(name, before, limit)
        .await?))
}

pub(super) fn scaling(flows: &Flows) -> Response {
    ok(&flows.scaling.scaling_settings())
}

pub(super) async fn set_scaling(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let said: ScalingSettings = parsed(body, "quota: a number, or absent")?;
    let settings = flows.scaling.set_scaling(&said).await?;
    flows
        .ctx
        .audit(&who.name, "scaling.set", "scaling", json!(settings));
    Ok(ok(&settings))
}
