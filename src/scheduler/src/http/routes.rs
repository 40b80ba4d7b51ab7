//! Routes: finds the handler of a method and path.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Buf;
use fairlead_api::{ACCEPTS_HEADER, ENDPOINTS, ErrorCode, JOB_TOKEN_HEADER, REQUEST_ID_HEADER};
use futures_util::{FutureExt, Stream, future::ready};
use tracing::Instrument;
use warp::{
    Filter,
    filters::BoxedFilter,
    http::{HeaderMap, HeaderValue, Method},
    path::FullPath,
    reply::Response,
};

use super::{
    cross_site::refuse_pages,
    reply::{Answer, refuse},
    request::{Came, Request},
    traced,
};
use crate::{base::errors::Refusal, core::Core};

mod admin;
mod files;
mod jobs;
mod parameters;
mod testboxes;
mod timers;

use parameters::matches;

/// How long a body that no handler wants may take.
const READ_OUT: Duration = Duration::from_secs(1);

/// Everything that the replica answers.
pub(crate) fn filter(core: Arc<Core>) -> BoxedFilter<(Response,)> {
    warp::any()
        .map(move || Arc::clone(&core))
        .and(warp::method())
        .and(warp::path::full())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional())
        .and(warp::body::stream())
        .then(answer)
        .boxed()
}

async fn answer<S, B>(
    core: Arc<Core>,
    method: Method,
    path: FullPath,
    query: String,
    headers: HeaderMap,
    came: Option<Came>,
    body: S,
) -> Response
where
    S: Stream<Item = Result<B, warp::Error>> + Send + 'static,
    B: Buf,
{
    let id = traced::request_id(&headers);
    let span = traced::span(&id, &method, path.as_str());
    let request = Request::new(&core, method, path.as_str(), &query, headers, body);
    let request = request.map(|request| request.by(came));
    let mut response = answer_to(core, request, path.as_str())
        .instrument(span)
        .await;
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID_HEADER, id);
    headers.insert(ACCEPTS_HEADER, HeaderValue::from_static(JOB_TOKEN_HEADER));
    response
}

/// The answer, whatever happens.
async fn answer_to(core: Arc<Core>, request: Result<Request, Refusal>, path: &str) -> Response {
    let request = match request {
        Ok(request) => request,
        Err(refusal) => return refuse(refusal),
    };
    let (unread, clock) = (request.unread(), core.clock.clone());
    let began = clock.now();
    let answered = AssertUnwindSafe(route(core, request)).catch_unwind().await;
    tokio::select! {
        () = unread.read_out() => {}
        () = clock.sleep(READ_OUT) => {}
    }
    let response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => refuse(refusal),
        Err(_) => {
            tracing::error!(path, "a handler panicked");
            refuse(Refusal::new(
                ErrorCode::Internal,
                "a bug of ours",
                "please report it, with the replica's log",
            ))
        }
    };
    let (status, took_ms) = (response.status(), clock.now().0.saturating_sub(began.0));
    tracing::debug!(status = status.as_u16(), took_ms, "answered");
    response
}

async fn route(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    refuse_pages(&core, &request)?;
    if core.people.accounts.knows(&request.credentials(None)) {
        request.identified();
    }
    let path = request.path.clone();
    let segments: Vec<&str> = path.iter().map(String::as_str).collect();
    traced::name_in_span(&segments);
    let method = request.method.as_str().to_owned();
    // What is answered here draws its sender here again: all but a look at this replica goes elsewhere.
    let is_look = matches!(
        segments.as_slice(),
        [] | ["metrics"] | ["scheduler", "v1", "health" | "version"]
    );
    if core.draining.is_cancelled() && !is_look {
        return Err(Refusal::stopping());
    }
    if let Err(refusal) = parameters::refuse_unknown(&method, &segments, &request.query) {
        return match segments.as_slice() {
            ["submit_job"] | ["scheduler", "v1", "jobs", "submit"] => Ok(jobs::refused(refusal)),
            _ => Err(refusal),
        };
    }
    match handler(core, request, &method, &segments) {
        Some(answer) => answer.await,
        None => Err(no_route(&method, &segments)),
    }
}

/// Who answers; `None`: nobody.
fn handler<'a>(
    core: Arc<Core>,
    request: Request,
    method: &str,
    segments: &'a [&'a str],
) -> Option<Answer<'a>> {
    Some(match (method, segments) {
        (_, ["scheduler", "v1", "jobs", rest @ ..]) => {
            return route_jobs(core, request, method, rest);
        }
        (_, ["scheduler", "v1", rest @ ..]) => return route_v1(core, request, method, rest),
        ("GET" | "HEAD", []) => ready(Ok(admin::health(&core))).boxed(),
        ("GET", ["metrics"]) => async move { Ok(admin::metrics(&core).await) }.boxed(),
        ("POST", ["submit_job"]) => jobs::submit(core, request).boxed(),
        ("GET", [boot, parameter, value]) if boot.starts_with("boot.") => {
            testboxes::dispatch(core, request, Some((boot, parameter, value))).boxed()
        }
        ("GET" | "POST", ["~lkp", "cgi-bin", name]) => {
            testboxes::old_report(core, request, name).boxed()
        }
        ("GET", ["srv", "scheduler", "pending-jobs", id, "job.cgz"]) => {
            files::job_initrd(core, request, id).boxed()
        }
        ("GET", ["srv", "boot", ..]) => files::boot_file(core, segments).boxed(),
        ("GET", ["result", ..]) => files::download(core, request).boxed(),
        ("POST" | "PUT", ["result", ..]) => files::upload(core, request).boxed(),
        _ => return None,
    })
}

/// Below `/scheduler/v1/jobs`; `None`: nothing there.
fn route_jobs<'a>(
    core: Arc<Core>,
    request: Request,
    method: &str,
    rest: &'a [&'a str],
) -> Option<Answer<'a>> {
    Some(match (method, rest) {
        ("GET", []) => jobs::list(core, request).boxed(),
        ("POST", ["submit"]) => jobs::submit(core, request).boxed(),
        ("GET", ["dispatch"]) => testboxes::dispatch(core, request, None).boxed(),
        ("POST", ["wait"]) => jobs::wait(core, request).boxed(),
        ("POST", ["cancel"]) => jobs::cancel_many(core, request).boxed(),
        ("GET", [id]) if !is_verb(id) => jobs::show(core, request, id).boxed(),
        ("GET", [id, "explain"]) => jobs::explain(core, request, id).boxed(),
        ("GET", [id, "log"]) => files::read_log(core, request, id).boxed(),
        ("POST", [id, "log"]) => files::append_log(core, request, id).boxed(),
        ("POST", [id, "update"]) => testboxes::update(core, request, id).boxed(),
        ("POST", [id, "wait_peer"]) => testboxes::wait_peer(core, request, id).boxed(),
        ("POST", [id, "cancel"]) => jobs::cancel(core, request, id).boxed(),
        ("POST", [id, "terminate"]) => jobs::terminate(core, request, id).boxed(),
        _ => return None,
    })
}

/// Everything else below `/scheduler/v1`; `None`: nothing there.
fn route_v1<'a>(
    core: Arc<Core>,
    request: Request,
    method: &str,
    rest: &'a [&'a str],
) -> Option<Answer<'a>> {
    Some(match (method, rest) {
        ("GET" | "HEAD", ["health"]) => ready(Ok(admin::health(&core))).boxed(),
        ("GET", ["version"]) => ready(Ok(admin::version(&core))).boxed(),
        (_, ["timers", rest @ ..]) => return timers::route(core, request, method, rest),
        ("GET", ["queues"]) => admin::queues(core, request).boxed(),
        ("POST" | "PUT", ["queues", name]) => admin::set_queue(core, request, name).boxed(),
        ("DELETE", ["queues", name]) => admin::delete_queue(core, request, name).boxed(),
        ("GET", ["hosts"]) => admin::hosts(core, request).boxed(),
        ("GET", ["hosts", name]) => admin::host(core, request, name).boxed(),
        ("POST", ["hosts", name, "cordon"]) => admin::cordon(core, request, name).boxed(),
        ("POST", ["hosts", name, "uncordon"]) => admin::uncordon(core, request, name).boxed(),
        ("POST", ["hosts", name, "reserve"]) => admin::reserve(core, request, name).boxed(),
        ("POST", ["hosts", name, "unreserve"]) => admin::unreserve(core, request, name).boxed(),
        ("POST", ["hosts", name]) => admin::register_host(core, request, name).boxed(),
        ("POST", ["testboxes", host, "consume"]) => testboxes::consume(core, request, host).boxed(),
        ("POST", ["testboxes", host, "heartbeat"]) => {
            testboxes::heartbeat(core, request, host).boxed()
        }
        ("POST", ["peers", "hints"]) => admin::hints(core, request).boxed(),
        ("GET", ["whoami"]) => ready(admin::whoami(&core, &request)).boxed(),
        ("GET", ["accounts"]) => admin::accounts(core, request).boxed(),
        ("POST", ["accounts", name]) => admin::set_account(core, request, name).boxed(),
        _ => return None,
    })
}

/// Words that stand where ids do.
fn is_verb(segment: &str) -> bool {
    ["submit", "wait", "cancel", "dispatch"].contains(&segment)
}

/// 405 where the path exists with another method, else 404.
fn no_route(method: &str, segments: &[&str]) -> Refusal {
    let others: Vec<&str> = ENDPOINTS
        .iter()
        .filter(|row| matches(row.path, segments))
        .map(|row| row.method)
        .collect();
    let path: String = format!("/{}", segments.join("/"))
        .chars()
        .take(80)
        .collect();
    if others.is_empty() {
        let message = format!("there is no {}", path.escape_default());
        return Refusal::new(
            ErrorCode::NotFound,
            message,
            "see docs/api.md for all paths",
        );
    }
    let message = format!("{method} is not for {}", path.escape_default());
    Refusal::new(
        ErrorCode::MethodNotAllowed,
        message,
        format!("use {}", others.join(" or ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_path_with_a_wrong_method_is_405_and_an_unknown_one_404() {
        assert_eq!(no_route("PUT", &["scheduler", "v1", "jobs"]).status, 405);
        assert_eq!(
            no_route("GET", &["scheduler", "v1", "jobs", "1", "update"]).status,
            405
        );
        assert_eq!(no_route("DELETE", &["result", "a", "b"]).status, 405);
        assert_eq!(no_route("POST", &["boot.ipxe", "mac", "x"]).status, 405);
        assert_eq!(no_route("GET", &["scheduler", "v2"]).status, 404);
    }
}
