//! Handlers of timers.

use std::sync::Arc;

use fairlead_api::{ErrorCode, Route, Route as R};
use fairlead_job::Spec;
use futures_util::{FutureExt, future::ready};
use warp::reply::Response;

use crate::http::{
    reply::{Answer, done, ok},
    routes::jobs::read_items,
};
use crate::{
    base::{
        budget::Charge,
        errors::{PeopleError, Refusal},
    },
    core::Core,
    http::{request::Request, signed::read_signed},
    known::accounts::Who,
};

/// Most timers on a page.
const PAGE_MAX: u64 = 1_000;

/// Who answers a request about timers.
pub(super) fn handler(core: Arc<Core>, request: Request, route: Route<'_>) -> Answer<'_> {
    match route {
        R::SubmitTimer => submit(core, request).boxed(),
        R::Timers => list(core, request).boxed(),
        R::Timer { timer } => show(core, request, timer).boxed(),
        R::UpdateTimer { timer } => update(core, request, timer).boxed(),
        R::DeleteTimer { timer } => delete(core, request, timer).boxed(),
        R::PauseTimer { timer } => pause(core, request, timer, true).boxed(),
        R::ResumeTimer { timer } => pause(core, request, timer, false).boxed(),
        _ => ready(Err(Refusal::Bug)).boxed(),
    }
}

/// The one job of a body.
async fn read_job(core: &Core, request: &mut Request) -> Result<(Spec, Charge), Refusal> {
    let content_type = request.content_type();
    let body = read_signed(core, request, core.config.limits.body_bytes_max).await?;
    let (items, charge) = read_items(core, request, content_type, body).await?;
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

fn actor(core: &Core, request: &Request) -> Result<Who, PeopleError> {
    core.people.accounts.identify(&request.credentials(None))
}

async fn submit(core: Arc<Core>, mut request: Request) -> Result<Response, Refusal> {
    let said = request.credentials(None);
    let (spec, _charge) = read_job(&core, &mut request).await?;
    Ok(ok(&core.submit_timer(spec, &said).await?))
}

async fn list(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    let who = actor(&core, &request)?;
    let limit = request.query.number("limit", 0..=PAGE_MAX, 100)?;
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let after = request.query.get("after").unwrap_or_default();
    let views = core.timer_views(account(&request, &who), after, limit);
    Ok(ok(&views.await?))
}

async fn show(core: Arc<Core>, request: Request, name: &str) -> Result<Response, Refusal> {
    let who = actor(&core, &request)?;
    Ok(ok(&core.timer_view(account(&request, &who), name).await?))
}

async fn update(core: Arc<Core>, mut request: Request, name: &str) -> Result<Response, Refusal> {
    let who = actor(&core, &request)?;
    let (spec, _charge) = read_job(&core, &mut request).await?;
    let named = (account(&request, &who), name);
    Ok(ok(&core.update_timer(&who, named, spec).await?))
}

async fn pause(
    core: Arc<Core>,
    request: Request,
    name: &str,
    paused: bool,
) -> Result<Response, Refusal> {
    let who = actor(&core, &request)?;
    let named = (account(&request, &who), name);
    Ok(ok(&core.pause_timer(&who, named, paused).await?))
}

async fn delete(core: Arc<Core>, request: Request, name: &str) -> Result<Response, Refusal> {
    let who = actor(&core, &request)?;
    let named = (account(&request, &who), name);
    core.delete_timer(&who, named).await?;
    Ok(done())
}
