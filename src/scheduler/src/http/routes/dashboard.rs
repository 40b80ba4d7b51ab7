//! Handlers of what the dashboard shows: snapshots, their stream, plots, and the audit log.

use std::{io, sync::Arc};

use fairlead_api::{ErrorCode, Route};
use fairlead_store::EventFind;
use futures_util::{FutureExt, stream};
use warp::reply::Response;

use super::pages;
use crate::{
    base::errors::{Refusal, excerpt},
    core::Core,
    dashboard::audit_log::AuditFind,
    http::{
        reply::{Answer, ok, tagged},
        request::Request,
        streams::event_stream,
    },
    known::samples::By,
};

/// An hour, ms.
const HOUR_MS: u64 = 3_600_000;
/// Most hours of a plot: 60 days.
const HOURS_MAX: u64 = 60 * 24;

/// Who answers.
pub(super) fn handler(core: Arc<Core>, request: Request, route: Route<'_>) -> Answer<'_> {
    match route {
        Route::Overview => overview(core, request).boxed(),
        Route::Live => live(core, request).boxed(),
        Route::Series => series(core, request).boxed(),
        Route::Audit => audit(core, request).boxed(),
        Route::Login => pages::login(core, request).boxed(),
        Route::Logout => async move { pages::logout(&request) }.boxed(),
        Route::PageOrFile { path } => async move { pages::show(&request, path) }.boxed(),
        _ => async move { pages::show(&request, &[]) }.boxed(),
    }
}

async fn overview(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    Ok(tagged(&request, &*core.overview().await?))
}

async fn live(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    let watcher = core.watch(request.header("last-event-id"))?;
    let pieces = stream::try_unfold(watcher, |mut watcher| async move {
        let piece = watcher.next().await.map_err(io::Error::other)?;
        Ok::<_, io::Error>(piece.map(|piece| (piece, watcher)))
    });
    Ok(event_stream(pieces))
}

async fn series(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    core.people.accounts.identify(&request.credentials(None))?;
    let by = kind(&request)?;
    let name = request.query.get("name").filter(|name| !name.is_empty());
    let now_ms = core.clock.wall_ms();
    let until_ms = request.query.number("until_ms", 0..=u64::MAX, now_ms)?;
    let until_ms = until_ms.min(now_ms);
    let usual = until_ms.saturating_sub(HOUR_MS);
    let since_ms = request.query.number("since_ms", 0..=u64::MAX, usual)?;
    let hours = until_ms.saturating_sub(since_ms) / HOUR_MS;
    if hours > HOURS_MAX {
        let message = format!(
            "since_ms: {since_ms} is {hours} hours before until_ms; the limit is {HOURS_MAX}"
        );
        return Err(Refusal::new(
            ErrorCode::BadQuery,
            message,
            "ask for less at once",
        ));
    }
    let of = name.map(|name| (by, name));
    Ok(ok(&core.series(of, since_ms, until_ms).await?))
}

/// The kind of names that `by` says.
pub(super) fn kind(request: &Request) -> Result<By, Refusal> {
    match request.query.get("by") {
        None | Some("" | "account") => Ok(By::Account),
        Some("queue") => Ok(By::Queue),
        Some("host") => Ok(By::Host),
        Some("suite") => Ok(By::Suite),
        Some(other) => {
            let message = format!("by: '{}' is none", excerpt(other));
            let hint = "account, queue, host or suite";
            Err(Refusal::new(ErrorCode::BadQuery, message, hint))
        }
    }
}

async fn audit(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    let who = core.people.accounts.identify(&request.credentials(None))?;
    let words = |name: &str| {
        let said = request.query.get(name).unwrap_or_default().split(',');
        let words = said.filter(|word| !word.is_empty()).map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    let latest = u64::MAX >> 1;
    let limit = request.query.number("limit", 0..=1_000, 100)?;
    let find = EventFind {
        since_ms: request.query.number("since_ms", 0..=latest, 0)?,
        until_ms: request.query.number("until_ms", 0..=latest, latest)?,
        who: words("who"),
        what: words("what"),
        subjects: words("subject"),
        skip: 0,
        limit: u32::try_from(limit).unwrap_or(1),
    };
    let after = request.query.get("after").unwrap_or_default().to_owned();
    Ok(ok(&core.audit_log(&who, AuditFind { find, after }).await?))
}
