//! Handlers of reused results: the lab's settings, and what is known of the key of a job.

use std::sync::Arc;

use fairlead_api::ReuseSettings;
use serde_json::json;
use warp::reply::Response;

use super::admin::BODY_MAX;
use crate::{
    flows::Flows,
    http::{
        reply::ok,
        request::{Request, job_id},
        signed::parsed,
    },
};
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Who;

pub(super) async fn settings(flows: Arc<Flows>) -> Result<Response, Refusal> {
    Ok(ok(&flows.reuse.reuse_settings().await?))
}

pub(super) async fn set(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let said: ReuseSettings = parsed(body, "suites: a list of {suite, within}")?;
    let settings = flows.reuse.set_reuse_settings(said).await?;
    flows
        .ctx
        .audit(&who.name, "reuse.set", "reuse", json!(settings));
    Ok(ok(&settings))
}

pub(super) async fn explain(flows: Arc<Flows>, id: &str) -> Result<Response, Refusal> {
    Ok(ok(&flows.reuse.explain_reuse(job_id(id)?).await?))
}

pub(super) async fn forget(flows: Arc<Flows>, who: Who, id: &str) -> Result<Response, Refusal> {
    let forgotten = flows.reuse.forget_results(&who, job_id(id)?).await?;
    flows
        .ctx
        .audit(&who.name, "reuse.forget", id, json!(forgotten));
    Ok(ok(&forgotten))
}
