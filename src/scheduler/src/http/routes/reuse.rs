//! Handlers of reused results: the lab's settings, and what is known of the key of a job.

use std::sync::Arc;

use fairlead_api::ReuseSettings;
use serde_json::json;
use warp::reply::Response;

use super::admin::BODY_MAX;
use crate::{
    core::Core,
    http::{
        reply::ok,
        request::{Request, job_id},
        signed::parsed,
    },
};
use fairlead_base::errors::Refusal;
use fairlead_known::accounts::Who;

pub(super) async fn settings(core: Arc<Core>) -> Result<Response, Refusal> {
    Ok(ok(&core.reuse_settings().await?))
}

pub(super) async fn set(
    core: Arc<Core>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let said: ReuseSettings = parsed(body, "suites: a list of {suite, within}")?;
    let settings = core.set_reuse_settings(said).await?;
    core.audit(&who.name, "reuse.set", "reuse", json!(settings));
    Ok(ok(&settings))
}

pub(super) async fn explain(core: Arc<Core>, id: &str) -> Result<Response, Refusal> {
    Ok(ok(&core.explain_reuse(job_id(id)?).await?))
}

pub(super) async fn forget(core: Arc<Core>, who: Who, id: &str) -> Result<Response, Refusal> {
    let forgotten = core.forget_results(&who, job_id(id)?).await?;
    core.audit(&who.name, "reuse.forget", id, json!(forgotten));
    Ok(ok(&forgotten))
}
