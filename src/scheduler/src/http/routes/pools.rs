//! Handlers of pools of machines that come and go.

use std::sync::Arc;

use fairlead_api::{PoolChange, Route, ScalingSettings};
use futures_util::{FutureExt, future::ready};
use serde_json::{Value, json};
use warp::reply::Response;

use super::admin::{BODY_MAX, admin};
use crate::{
    base::errors::Refusal,
    core::Core,
    http::{
        reply::{Answer, done, ok, paged},
        request::Request,
        signed::parsed,
    },
};

/// Decisions of one page, and most of one.
const DECISIONS: u64 = 50;
const DECISIONS_MAX: u64 = 1_000;

/// Who answers.
pub(super) fn handler(core: Arc<Core>, request: Request, route: Route<'_>) -> Answer<'_> {
    match route {
        Route::Pools => list(core, request).boxed(),
        Route::Pool { name } => show(core, request, name).boxed(),
        Route::SetPool { name } => set(core, request, name).boxed(),
        Route::DeletePool { name } => delete(core, request, name).boxed(),
        Route::PoolDecisions { name } => decisions(core, request, name).boxed(),
        Route::Scaling => scaling(core, request).boxed(),
        Route::SetScaling => set_scaling(core, request).boxed(),
        _ => ready(Err(Refusal::Bug)).boxed(),
    }
}

async fn list(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    paged(&request, core.pool_views().await?, |pool| pool.name.clone())
}

async fn show(core: Arc<Core>, request: Request, name: &str) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    Ok(ok(&core.pool_view(name).await?))
}

async fn set(core: Arc<Core>, mut request: Request, name: &str) -> Result<Response, Refusal> {
    let who = admin(&core, &request)?;
    let body = request.read_object(BODY_MAX).await?;
    let change: PoolChange = parsed(body, "provider, machine, min, max, and others")?;
    let view = core.set_pool(name, &change).await?;
    core.audit(&who.name, "pool.set", name, json!(change));
    Ok(ok(&view))
}

async fn delete(core: Arc<Core>, request: Request, name: &str) -> Result<Response, Refusal> {
    let who = admin(&core, &request)?;
    core.delete_pool(name).await?;
    core.audit(&who.name, "pool.delete", name, Value::Null);
    Ok(done())
}

async fn decisions(core: Arc<Core>, request: Request, name: &str) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    let before = request.query.number("before", 0..=u64::MAX, 0)?;
    let limit = request
        .query
        .number("limit", 1..=DECISIONS_MAX, DECISIONS)?;
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    Ok(ok(&core.pool_decisions(name, before, limit).await?))
}

async fn scaling(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    Ok(ok(&core.scaling_settings()))
}

async fn set_scaling(core: Arc<Core>, mut request: Request) -> Result<Response, Refusal> {
    let who = admin(&core, &request)?;
    let body = request.read_object(BODY_MAX).await?;
    let said: ScalingSettings = parsed(body, "quota: a number, or absent")?;
    let settings = core.set_scaling(&said).await?;
    core.audit(&who.name, "scaling.set", "scaling", json!(settings));
    Ok(ok(&settings))
}
