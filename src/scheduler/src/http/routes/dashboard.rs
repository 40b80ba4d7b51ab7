//! Handlers of what the dashboard shows: snapshots, their stream, plots, and the audit log.

use std::{io, sync::Arc};

use fairlead_api::{ErrorCode, PreviewRequest};
use fairlead_store::EventFind;
use futures_util::stream;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use warp::reply::Response;

use super::search::read_search;
use crate::{
    dashboard::audit_log::{AuditFind, INCIDENTS, NIGHT_MS},
    flows::Flows,
    http::{
        reply::{ok, packed, tagged},
        request::Request,
        streams::event_stream,
    },
    samples::usage::Kind,
};
use fairlead_base::{
    errors::{Refusal, excerpt},
    query::Query,
};
use fairlead_known::{accounts::Who, samples::By, usage::HOUR_MS};

/// Largest body of an action: 10,000 ids and more, bytes.
const PREVIEW_MAX: usize = 1 << 20;
/// By what jobs of an action are found.
const FILTERS: [&str; 18] = [
    "stage",
    "health",
    "account",
    "queue",
    "host",
    "suite",
    "submit_id",
    "sequence",
    "group_id",
    "tbox_group",
    "kv",
    "signature",
    "parts",
    "since_ms",
    "until_ms",
    "job_stage",
    "job_health",
    "host_machine",
];
/// Most hours of a plot: 60 days.
const HOURS_MAX: u64 = 60 * 24;

pub(super) async fn overview(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    Ok(tagged(&request, &*flows.dashboard.overview().await?))
}

pub(super) fn live(flows: &Arc<Flows>, request: &Request) -> Result<Response, Refusal> {
    let is_packed = request.takes_gzip();
    let watcher =
        flows
            .dashboard
            .watch(request.whose(), request.header("last-event-id"), is_packed)?;
    let pieces = stream::try_unfold(watcher, |mut watcher| async move {
        let piece = watcher.next().await.map_err(io::Error::other)?;
        Ok::<_, io::Error>(piece.map(|piece| (piece, watcher)))
    });
    let stream = event_stream(pieces);
    Ok(if is_packed { packed(stream) } else { stream })
}

pub(super) async fn series(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let by = kind(&request)?;
    let name = request.query.get("name").filter(|name| !name.is_empty());
    let now_ms = flows.ctx.clock.wall_ms();
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
    Ok(ok(&flows.dashboard.series(of, since_ms, until_ms).await?))
}

/// The kind of names that `by` says.
pub(super) fn kind(request: &Request) -> Result<Kind, Refusal> {
    match request.query.get("by") {
        None | Some("" | "account") => Ok(Kind::Of(By::Account)),
        Some("queue") => Ok(Kind::Of(By::Queue)),
        Some("host") => Ok(Kind::Of(By::Host)),
        Some("suite") => Ok(Kind::Of(By::Suite)),
        Some("class") => Ok(Kind::Class),
        Some(other) => {
            let message = format!("by: '{}' is none", excerpt(other));
            let hint = "account, queue, host, suite or class";
            Err(Refusal::new(ErrorCode::BadQuery, message, hint))
        }
    }
}

pub(super) async fn make_preview(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let asked: PreviewRequest = request.read_json(PREVIEW_MAX).await?;
    let filter = if asked.filter.is_empty() {
        None
    } else {
        Some(read_search(&as_query(&asked.filter)?)?)
    };
    Ok(ok(&flows.bulk.make_preview(&who, asked, filter).await?))
}

/// A filter as the query of a list of jobs.
fn as_query(filter: &Map<String, Value>) -> Result<Query, Refusal> {
    let mut query = String::new();
    let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    for (name, value) in filter {
        let bad = || {
            let message = format!("filter.{}: no name, number or list of names", excerpt(name));
            Refusal::new(
                ErrorCode::BadField,
                message,
                "as in the query of a list of jobs",
            )
        };
        if !FILTERS.contains(&name.as_str()) {
            let message = format!("filter.{}: jobs are not found by it", excerpt(name));
            return Err(Refusal::new(
                ErrorCode::BadField,
                message,
                FILTERS.join(", "),
            ));
        }
        let values = match value {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        let words = values.iter().map(|value| match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(bad()),
        });
        let words = words.collect::<Result<Vec<String>, _>>()?;
        // A parameter of jobs is said once for each value, others are one list.
        let words = if name == "kv" {
            words
        } else {
            vec![words.join(",")]
        };
        for word in words {
            query.extend(["&", name, "=", &escaped(&word)]);
        }
    }
    Ok(Query::parse(query.trim_start_matches('&'))?)
}

pub(super) async fn preview_of(flows: Arc<Flows>, who: Who, id: &str) -> Result<Response, Refusal> {
    Ok(ok(&flows.bulk.preview(&who, id).await?))
}

pub(super) async fn run_preview(
    flows: Arc<Flows>,
    who: Who,
    id: &str,
) -> Result<Response, Refusal> {
    Ok(ok(&flows.bulk.run_preview(&who, id).await?))
}

pub(super) async fn audit(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let latest = u64::MAX >> 1;
    let limit = request.query.number("limit", 0..=1_000, 100)?;
    let (mut what, mut since_ms) = (request.query.list("what"), 0);
    if request.query.switch("incidents")? {
        if !what.is_empty() {
            let message = "incidents: they are acts of certain kinds, and what names kinds, too";
            let hint = "send either incidents or what";
            return Err(Refusal::new(ErrorCode::BadQuery, message, hint));
        }
        what = INCIDENTS.map(str::to_owned).to_vec();
        since_ms = flows.ctx.clock.wall_ms().saturating_sub(NIGHT_MS);
    }
    let find = EventFind {
        since_ms: request.query.number("since_ms", 0..=latest, since_ms)?,
        until_ms: request.query.number("until_ms", 0..=latest, latest)?,
        who: request.query.list("who"),
        what,
        subjects: request.query.list("subject"),
        skip: 0,
        limit: u32::try_from(limit).unwrap_or(1),
    };
    let after = request.query.get("after").unwrap_or_default().to_owned();
    Ok(ok(&flows
        .dashboard
        .audit_log(&who, AuditFind { find, after })
        .await?))
}
