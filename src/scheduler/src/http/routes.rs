//! Routes: finds the handler of a method and path.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Buf;
use fairlead_api::{
    ACCEPTS_HEADER, Caller, ErrorCode, JOB_TOKEN_HEADER, REQUEST_ID_HEADER, Route, Route as R,
};
use futures_util::{FutureExt, Stream, future::ready};
use hyper::body::Body as _;
use tracing::Instrument;
use warp::{
    Filter,
    filters::BoxedFilter,
    http::{
        HeaderMap, HeaderValue, Method,
        header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, ETAG, X_CONTENT_TYPE_OPTIONS},
    },
    path::FullPath,
    reply::Response,
};

use super::{
    connections::UnderWay,
    cross_site::refuse_pages,
    reply::{Answer, refuse},
    request::{Came, Request, Sender},
    sessions,
    streams::PIECE,
    traced,
};
use crate::{
    base::{budget::Identity, clock::Stopwatch, errors::Refusal, sealing::is_boot_token},
    core::Core,
};

mod admin;
mod changes;
mod content;
mod counted;
mod dashboard;
mod files;
mod groups;
mod hosts;
mod jobs;
mod pages;
mod parameters;
mod pools;
mod reuse;
mod search;
mod submits;
mod testboxes;
mod timers;
mod webhooks;

use parameters::refuse_unknown;

/// Shorter answers are charged to nobody, bytes.
const CHARGED_MIN: u64 = 4 << 10;
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
    let is_h2 = came.as_ref().is_some_and(|came| came.is_h2);
    let request = request.map(|request| request.by(came));
    let sender = request.as_ref().ok().map(Request::sender);
    let (mut response, is_read) = answer_to(Arc::clone(&core), request, path.as_str())
        .instrument(span)
        .await;
    if let Some(sender) = sender {
        response = under_way(&core, &sender, response);
    }
    if let Some(code) = response.extensions().get::<ErrorCode>() {
        core.metrics.times.refused(*code);
    }
    let headers = response.headers_mut();
    if !is_read && !is_h2 {
        // The connection ends with this answer: the client must not send another request into it.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    keep_private(headers);
    headers.insert(REQUEST_ID_HEADER, id);
    headers.insert(ACCEPTS_HEADER, HeaderValue::from_static(JOB_TOKEN_HEADER));
    response
}

/// A browser takes an answer for nothing but what it says it is, and nobody keeps it for others. Who has a tag asks again.
fn keep_private(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) {
        let has_tag = headers.contains_key(ETAG);
        let how = if has_tag {
            "private, no-cache"
        } else {
            "no-store"
        };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(how));
    }
}

/// Charges the bytes of an answer to its sender. A refusal instead, if that one has its share.
fn under_way(core: &Core, sender: &Sender, response: Response) -> Response {
    let length = response.body().size_hint().exact();
    // Of a file, a piece is there at a time; streams of events share theirs.
    let piece = || {
        let length = response.headers().get(CONTENT_LENGTH)?.to_str().ok()?;
        Some(length.parse::<u64>().ok()?.min(PIECE))
    };
    let bytes = length.or_else(piece);
    // What is short is bounded by the number of streams, and always told.
    let bytes = bytes.filter(|bytes| *bytes >= CHARGED_MIN).unwrap_or(0);
    match sender.answered(&core.requests.budget, bytes) {
        Ok(under_way) => with_extension(response, under_way),
        Err(refusal) => refuse(&refusal),
    }
}

fn with_extension(mut response: Response, under_way: UnderWay) -> Response {
    response.extensions_mut().insert(under_way);
    response
}

/// The answer, whatever happens, and whether the request's body was read to its end.
async fn answer_to(
    core: Arc<Core>,
    request: Result<Request, Refusal>,
    path: &str,
) -> (Response, bool) {
    let request = match request {
        Ok(request) => request,
        Err(refusal) => return (refuse(&refusal), false),
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
        Ok(Err(refusal)) => refuse(&refusal),
        Err(_) => {
            tracing::error!(path, "a handler panicked");
            refuse(&Refusal::Bug)
        }
    };
    let (status, took_ms) = (response.status(), clock.now().0.saturating_sub(began.0));
    tracing::debug!(status = status.as_u16(), took_ms, "answered");
    (response, unread.is_read())
}

async fn route(core: Arc<Core>, request: Request) -> Result<Response, Refusal> {
    let path = request.path.clone();
    let segments: Vec<&str> = path.iter().map(String::as_str).collect();
    let found = Route::find(request.method.as_str(), &segments);
    let endpoint = found.ok().map(|route| route.endpoint());
    let (watch, of) = (Stopwatch::start(), Arc::clone(&core));
    let answered = answer_on(core, request, &segments, found).await;
    let status = match &answered {
        Ok(response) => response.status().as_u16(),
        Err(refusal) => {
            of.note_refused_file(refusal);
            refusal.status()
        }
    };
    of.metrics.times.answered(endpoint, status, watch.elapsed());
    answered
}

/// The answer to a request on a path; `found`: its route, or the methods that the path has.
async fn answer_on(
    core: Arc<Core>,
    mut request: Request,
    segments: &[&str],
    found: Result<Route<'_>, &'static [&'static str]>,
) -> Result<Response, Refusal> {
    refuse_pages(&core, &request, found.ok())?;
    // What is answered here draws its sender here again: all but a look at this replica goes elsewhere.
    let is_look = matches!(
        found,
        Ok(Route::Alive | Route::Health | Route::Version | Route::OpenApi | Route::Metrics)
    );
    let off = core.clock.off_ms().filter(|_| !is_look);
    if let Some(by_ms) = off {
        return Err(Refusal::ClockOff { by_ms });
    }
    request.is_for_people = found.is_ok_and(|route| match route.endpoint().caller {
        Caller::Account => route != Route::Whoami,
        Caller::AccountOrJob => request.job_token().is_none(),
        _ => false,
    });
    request.session = sessions::credentials(&core, &request, found.ok())?;
    let said = request.credentials(None);
    match core.people.accounts.known(&said) {
        Some(who) => {
            request.identified();
            request.belongs_to(Identity::Account(who.name));
        }
        None if !is_judged_first(&request, found.ok()) => request.take_strangers_place()?,
        None => {}
    }
    if core.draining.is_cancelled() && !is_look {
        return Err(Refusal::Stopping);
    }
    let route = match found {
        Ok(route) => route,
        Err(methods) => return Ok(no_route(&request.method, segments, methods)),
    };
    traced::name_in_span(&route);
    if let Err(refusal) = refuse_unknown(&route, &request.query) {
        return match route {
            Route::Submit | Route::OldSubmit => Ok(jobs::refused(&refusal)),
            _ => Err(refusal),
        };
    }
    handler(core, request, route).await
}

/// Whether a token of another kind is judged before anything else is done: of a job, of a replica, or of a boot.
fn is_judged_first(request: &Request, route: Option<Route<'_>>) -> bool {
    let is_boot = || request.query.get("token").is_some_and(is_boot_token);
    match route {
        Some(Route::Hints) => true,
        Some(Route::Dispatch | Route::OldDispatch { .. }) => is_boot(),
        _ => request.job_token().is_some(),
    }
}

/// Who answers.
fn handler(core: Arc<Core>, request: Request, route: Route<'_>) -> Answer<'_> {
    match route {
        R::Alive if request.accepts_pages() => ready(Ok(pages::home())).boxed(),
        R::Alive | R::Health => ready(Ok(admin::health(&core, &request))).boxed(),
        R::Version => ready(Ok(admin::version(&core))).boxed(),
        R::OpenApi => ready(Ok(admin::openapi(&request))).boxed(),
        R::Metrics => async move { Ok(admin::metrics(&core, &request).await) }.boxed(),
        R::Submit | R::OldSubmit => jobs::submit(core, request).boxed(),
        R::Jobs => jobs::list(core, request).boxed(),
        R::Dispatch => testboxes::dispatch(core, request, None).boxed(),
        R::OldDispatch {
            boot_type,
            parameter,
            value,
        } => testboxes::dispatch(core, request, Some((boot_type, parameter, value))).boxed(),
        R::Wait => jobs::wait(core, request).boxed(),
        R::CancelMany => jobs::cancel_many(core, request).boxed(),
        R::ChangeJobs => changes::change(core, request).boxed(),
        R::RerunMany => jobs::rerun_many(core, request).boxed(),
        R::Job { id } => jobs::show(core, request, id).boxed(),
        R::Explain { id } => jobs::explain(core, request, id).boxed(),
        R::ExplainReuse { id } => reuse::explain(core, request, id).boxed(),
        R::ForgetReuse { id } => reuse::forget(core, request, id).boxed(),
        R::SubmitEvents { submit } => submits::events(core, request, submit).boxed(),
        R::Group { group } => groups::show(core, request, group).boxed(),
        R::CloseGroup { group } => groups::close(core, request, group).boxed(),
        R::Rerun { id } => jobs::rerun(core, request, id).boxed(),
        R::Answer { id } => jobs::answer(core, request, id).boxed(),
        R::ReadLog { id } => files::read_log(core, request, id).boxed(),
        R::AppendLog { id } => files::append_log(core, request, id).boxed(),
        R::Update { id } => testboxes::update(core, request, id).boxed(),
        R::WaitPeer { id } => testboxes::wait_peer(core, request, id).boxed(),
        R::OldReport { report } => testboxes::old_report(core, request, report).boxed(),
        R::Cancel { id } => jobs::cancel(core, request, id).boxed(),
        R::Terminate { id } => jobs::terminate(core, request, id).boxed(),
        R::Tests => jobs::tests(core, request).boxed(),
        R::Webhooks => webhooks::list(core, request).boxed(),
        R::TestWebhook => webhooks::test(core, request).boxed(),
        R::RedeliverWebhook { webhook: id } => webhooks::redeliver(core, request, id).boxed(),
        R::Consume { hostname } => testboxes::consume(core, request, hostname).boxed(),
        R::Heartbeat { hostname } => testboxes::heartbeat(core, request, hostname).boxed(),
        R::JobInitrd { id } => files::job_initrd(core, request, id).boxed(),
        R::BootFile { path } => files::boot_file(core, request, path).boxed(),
        R::Upload { path } => files::upload(core, request, path).boxed(),
        R::Download { path } => files::download(core, request, path).boxed(),
        // All others are about the site, content, timers or hosts.
        _ if route.endpoint().path.contains("content") => content::handler(core, request, route),
        _ if route.endpoint().path.contains("timers") => timers::handler(core, request, route),
        _ => of_the_site(core, request, route),
    }
}

/// Who answers about accounts, queues, rules and hosts.
fn of_the_site(core: Arc<Core>, request: Request, route: Route<'_>) -> Answer<'_> {
    match route {
        R::ReuseRules => reuse::settings(core, request).boxed(),
        R::SetReuseRules => reuse::set(core, request).boxed(),
        R::Usage => admin::usage(core, request).boxed(),
        R::Queues => admin::queues(core, request).boxed(),
        R::SetQueue { name } => admin::set_queue(core, request, name).boxed(),
        R::DeleteQueue { name } => admin::delete_queue(core, request, name).boxed(),
        R::Retention => admin::retention(core, request).boxed(),
        R::SetRetention => admin::set_retention(core, request).boxed(),
        R::Rules => admin::rules(core, request).boxed(),
        R::SetRules => admin::set_rules(core, request).boxed(),
        R::Whoami => ready(admin::whoami(&core, &request)).boxed(),
        R::Accounts => admin::accounts(core, request).boxed(),
        R::SetAccount { my_account } => admin::set_account(core, request, my_account).boxed(),
        R::DeleteAccount { my_account } => admin::delete_account(core, request, my_account).boxed(),
        R::Notify { my_account } => admin::notify(core, request, my_account).boxed(),
        R::SetNotify { my_account } => admin::set_notify(core, request, my_account).boxed(),
        R::ForgetNotify { my_account } => admin::forget_notify(core, request, my_account).boxed(),
        R::Hints => admin::hints(core, request).boxed(),
        R::Login | R::Logout | R::Page | R::PageOrFile { .. } => {
            pages::handler(core, request, route)
        }
        R::Overview | R::Live | R::Series | R::Audit => dashboard::handler(core, request, route),
        _ if route.endpoint().path.contains("/previews") => {
            dashboard::handler(core, request, route)
        }
        _ if route.endpoint().path.contains("/pools") => pools::handler(core, request, route),
        R::Scaling | R::SetScaling => pools::handler(core, request, route),
        _ => hosts::handler(core, request, route),
    }
}

/// 405 where the path exists with other methods, else 404.
fn no_route(method: &Method, segments: &[&str], methods: &[&str]) -> Response {
    let mut response = refuse(&no_such(method, segments, methods));
    if let Ok(allowed) = HeaderValue::from_str(&methods.join(", "))
        && !methods.is_empty()
    {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

fn no_such(method: &Method, segments: &[&str], methods: &[&str]) -> Refusal {
    let path = format!("/{}", segments.join("/"));
    let path: String = path.chars().take(80).collect();
    let path = path.escape_default();
    if methods.is_empty() {
        return Refusal::new(
            ErrorCode::NotFound,
            format!("there is no {path}"),
            "see docs/api.md for all paths",
        );
    }
    Refusal::new(
        ErrorCode::MethodNotAllowed,
        format!("{method} is not for {path}"),
        format!("use {}", methods.join(" or ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_path_with_a_wrong_method_is_405_and_an_unknown_one_404() {
        let answered = |method: Method, segments: &[&str]| {
            let methods = Route::find(method.as_str(), segments).unwrap_err();
            no_route(&method, segments, methods)
        };
        let status = |method, segments: &[&str]| answered(method, segments).status().as_u16();
        let of_v1 = |path: &[&'static str]| [&["scheduler", "v1"], path].concat();
        assert_eq!(status(Method::PUT, &of_v1(&["jobs"])), 405);
        assert_eq!(status(Method::GET, &of_v1(&["jobs", "1", "update"])), 405);
        assert_eq!(status(Method::DELETE, &["result", "a", "b"]), 405);
        assert_eq!(status(Method::POST, &["boot.ipxe", "mac", "x"]), 405);
        assert_eq!(status(Method::GET, &["scheduler", "v2"]), 404);
        let refused = answered(Method::TRACE, &["result", "a"]);
        assert_eq!(refused.headers()[ALLOW], "POST, PUT, GET");
    }
}
