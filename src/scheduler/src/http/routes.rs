//! Routes: finds the handler of a method and path.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Buf;
use fairlead_api::{
    ACCEPTS_HEADER, ErrorCode, JOB_TOKEN_HEADER, REQUEST_ID_HEADER, Route, Route as R,
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
    reply::{Answer, done, refuse},
    request::{Came, Request, Sender},
    sessions,
    streams::PIECE,
    traced,
};
use crate::flows::Flows;
use fairlead_base::{budget::Identity, clock::Stopwatch, errors::Refusal};

mod admin;
mod callers;
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

use callers::{Called, called, is_for_people, is_judged_first};
use parameters::refuse_unknown;

/// Shorter answers are charged to nobody, bytes.
const CHARGED_MIN: u64 = 4 << 10;
/// How long a body that no handler wants may take.
const READ_OUT: Duration = Duration::from_secs(1);

/// Everything that the replica answers.
pub(crate) fn filter(flows: Arc<Flows>) -> BoxedFilter<(Response,)> {
    warp::any()
        .map(move || Arc::clone(&flows))
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
    flows: Arc<Flows>,
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
    let request = Request::new(&flows, method, path.as_str(), &query, headers, body);
    let is_h2 = came.as_ref().is_some_and(|came| came.is_h2);
    let request = request.map(|request| request.by(came));
    let sender = request.as_ref().ok().map(Request::sender);
    let (mut response, is_read) = answer_to(Arc::clone(&flows), request, path.as_str())
        .instrument(span)
        .await;
    if let Some(sender) = sender {
        response = under_way(&flows, &sender, response);
    }
    if let Some(code) = response.extensions().get::<ErrorCode>() {
        flows.ctx.metrics.times.refused(*code);
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
fn under_way(flows: &Flows, sender: &Sender, response: Response) -> Response {
    let length = response.body().size_hint().exact();
    // Of a file, a piece is there at a time; streams of events share theirs.
    let piece = || {
        let length = response.headers().get(CONTENT_LENGTH)?.to_str().ok()?;
        Some(length.parse::<u64>().ok()?.min(PIECE))
    };
    let bytes = length.or_else(piece);
    // What is short is bounded by the number of streams, and always told.
    let bytes = bytes.filter(|bytes| *bytes >= CHARGED_MIN).unwrap_or(0);
    match sender.answered(&flows.ctx.budget, bytes) {
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
    flows: Arc<Flows>,
    request: Result<Request, Refusal>,
    path: &str,
) -> (Response, bool) {
    let request = match request {
        Ok(request) => request,
        Err(refusal) => return (refuse(&refusal), false),
    };
    let (unread, clock) = (request.unread(), flows.ctx.clock.clone());
    let began = clock.now();
    let answered = AssertUnwindSafe(route(flows, request)).catch_unwind().await;
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

async fn route(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let path = request.path.clone();
    let segments: Vec<&str> = path.iter().map(String::as_str).collect();
    let found = Route::find(request.method.as_str(), &segments);
    let endpoint = found.ok().map(|route| route.endpoint());
    let (watch, of) = (Stopwatch::start(), Arc::clone(&flows));
    let answered = answer_on(flows, request, &segments, found).await;
    let status = match &answered {
        Ok(response) => response.status().as_u16(),
        Err(refusal) => {
            of.files.note_refused_file(refusal);
            refusal.status()
        }
    };
    of.ctx
        .metrics
        .times
        .answered(endpoint, status, watch.elapsed());
    answered
}

/// The answer to a request on a path; `found`: its route, or the methods that the path has.
async fn answer_on(
    flows: Arc<Flows>,
    mut request: Request,
    segments: &[&str],
    found: Result<Route<'_>, &'static [&'static str]>,
) -> Result<Response, Refusal> {
    refuse_pages(&flows, &request, found.ok())?;
    // What is answered here draws its sender here again: all but a look at this replica goes elsewhere.
    let is_look = matches!(
        found,
        Ok(Route::Alive | Route::Health | Route::Version | Route::OpenApi | Route::Metrics)
    );
    let off = flows.ctx.clock.off_ms().filter(|_| !is_look);
    if let Some(by_ms) = off {
        return Err(Refusal::ClockOff { by_ms });
    }
    request.is_for_people = found.is_ok_and(|route| is_for_people(&request, route));
    request.session = sessions::credentials(&flows, &request, found.ok())?;
    let said = request.credentials(None);
    match flows.people.accounts.known(&said) {
        Some(who) => {
            request.identified();
            request.belongs_to(Identity::Account(who.name));
        }
        None if !is_judged_first(&request, found.ok()) => request.take_strangers_place()?,
        None => {}
    }
    if flows.ctx.tasks.draining.is_cancelled() && !is_look {
        return Err(Refusal::Stopping);
    }
    let route = match found {
        Ok(route) => route,
        Err(methods) => return Ok(no_route(&request.method, segments, methods)),
    };
    traced::name_in_span(&route);
    match answer_by(flows, request, route).await {
        // A submit is always answered by an array, as compass-ci's clients expect.
        Err(refusal) if matches!(route, R::Submit | R::OldSubmit) => Ok(jobs::refused(&refusal)),
        answered => answered,
    }
}

/// The answer of the handler, once all that its row says holds of the request.
async fn answer_by(
    flows: Arc<Flows>,
    mut request: Request,
    route: Route<'_>,
) -> Result<Response, Refusal> {
    refuse_unknown(&route, &request.query)?;
    let by = called(&flows, &mut request, route).await?;
    handler(flows, request, by, route)?.await
}

/// Who answers: one line a route, so that the compiler misses none.
fn handler(
    flows: Arc<Flows>,
    request: Request,
    mut by: Called,
    route: Route<'_>,
) -> Result<Answer<'_>, Refusal> {
    let answer = match route {
        R::Alive if request.accepts_pages() => ready(Ok(pages::home())).boxed(),
        R::Alive | R::Health => ready(Ok(admin::health(&flows, &request))).boxed(),
        R::Version => ready(Ok(admin::version(&flows))).boxed(),
        R::OpenApi => ready(Ok(admin::openapi(&request))).boxed(),
        R::Metrics => async move { Ok(admin::metrics(&flows, &request).await) }.boxed(),
        R::Submit | R::OldSubmit => jobs::submit(flows, request, by.jobs).boxed(),
        R::Jobs => jobs::list(flows, request).boxed(),
        R::Dispatch => testboxes::dispatch(flows, request, by.account()?, None).boxed(),
        R::OldDispatch { boot_type, .. } => {
            testboxes::dispatch(flows, request, by.account()?, Some(boot_type)).boxed()
        }
        R::Wait => jobs::wait(flows, request, by.body()?).boxed(),
        R::CancelMany => jobs::cancel_many(flows, by.account()?, by.body()?).boxed(),
        R::ChangeJobs => changes::change(flows, by.account()?, by.body()?).boxed(),
        R::RerunMany => jobs::rerun_many(flows, request, by.account()?, by.body()?).boxed(),
        R::Job { id } => jobs::show(flows, request, id).boxed(),
        R::Explain { id } => jobs::explain(flows, id).boxed(),
        R::ExplainReuse { id } => reuse::explain(flows, id).boxed(),
        R::ForgetReuse { id } => reuse::forget(flows, by.account()?, id).boxed(),
        R::Answer { id } => jobs::answer(flows, request, id).boxed(),
        R::ReadLog { id } => files::read_log(flows, request, by.account()?, id).boxed(),
        R::AppendLog { id } => files::append_log(flows, request, by.who, id).boxed(),
        R::Update { id } => testboxes::update(flows, request, by.who, id).boxed(),
        R::WaitPeer { id } => testboxes::wait_peer(flows, request, id).boxed(),
        R::OldPostRun | R::OldWtmp => ready(Ok(done())).boxed(),
        R::OldReport { report: _ } => testboxes::old_report(flows, request, by.who).boxed(),
        R::Cancel { id } => jobs::cancel(flows, by.account()?, id).boxed(),
        R::Rerun { id } => jobs::rerun(flows, request, by.account()?, by.body()?, id).boxed(),
        R::Terminate { id } => jobs::terminate(flows, by.account()?, by.body()?, id).boxed(),
        R::SubmitEvents { submit } => submits::events(flows, request, submit).boxed(),
        R::SubmitTimer => timers::submit(flows, request, by.jobs).boxed(),
        R::Timers => timers::list(flows, request, by.account()?).boxed(),
        R::Timer { timer } => timers::show(flows, request, by.account()?, timer).boxed(),
        R::UpdateTimer { timer } => timers::update(flows, request, by.account()?, timer).boxed(),
        R::DeleteTimer { timer } => timers::delete(flows, request, by.account()?, timer).boxed(),
        R::PauseTimer { timer } => {
            timers::pause(flows, request, by.account()?, timer, true).boxed()
        }
        R::ResumeTimer { timer } => {
            timers::pause(flows, request, by.account()?, timer, false).boxed()
        }
        R::Group { group } => groups::show(flows, request, by.account()?, group).boxed(),
        R::CloseGroup { group } => groups::close(flows, request, by.account()?, group).boxed(),
        R::Tests => jobs::tests(flows, request).boxed(),
        R::Webhooks => webhooks::list(flows, request, by.account()?).boxed(),
        R::TestWebhook => webhooks::test(flows, by.account()?, by.body()?).boxed(),
        R::RedeliverWebhook { webhook } => {
            webhooks::redeliver(flows, by.account()?, webhook).boxed()
        }
        R::Contents => content::list(flows, request, by.account()?).boxed(),
        R::PinChunks => content::pin(flows, request, by.who).boxed(),
        R::PutChunk { digest } => content::put_chunk(flows, request, by.who, digest).boxed(),
        R::Chunk { digest } => content::chunk(flows, request, by.who, digest).boxed(),
        R::ChunkUrls => content::urls(flows, request, by.who).boxed(),
        R::PutManifest => content::put_manifest(flows, request, by.who).boxed(),
        R::Manifest { content } => content::manifest(flows, request, by.who, content).boxed(),
        R::CollectContent => content::collect(flows, request, by.account()?).boxed(),
        R::CheckContent => content::check(flows, request, by.account()?).boxed(),
        R::ContentOf { content } => content::show(flows, request, by.account()?, content).boxed(),
        R::KeepContent { content } => content::keep(flows, request, by.account()?, content).boxed(),
        R::ForgetContent { content } => {
            content::forget(flows, request, by.account()?, content).boxed()
        }
        R::Usage => admin::usage(flows, request).boxed(),
        R::Queues => admin::queues(flows, request).boxed(),
        R::SetQueue { name } => admin::set_queue(flows, request, by.account()?, name).boxed(),
        R::DeleteQueue { name } => admin::delete_queue(flows, by.account()?, name).boxed(),
        R::Pools => pools::list(flows, request).boxed(),
        R::Pool { name } => pools::show(flows, name).boxed(),
        R::SetPool { name } => pools::set(flows, request, by.account()?, name).boxed(),
        R::DeletePool { name } => pools::delete(flows, by.account()?, name).boxed(),
        R::PoolDecisions { name } => pools::decisions(flows, request, name).boxed(),
        R::Scaling => ready(Ok(pools::scaling(&flows))).boxed(),
        R::SetScaling => pools::set_scaling(flows, request, by.account()?).boxed(),
        R::Retention => admin::retention(flows).boxed(),
        R::SetRetention => admin::set_retention(flows, request, by.account()?).boxed(),
        R::ReuseRules => reuse::settings(flows).boxed(),
        R::SetReuseRules => reuse::set(flows, request, by.account()?).boxed(),
        R::Rules => admin::rules(flows).boxed(),
        R::SetRules => admin::set_rules(flows, request, by.account()?).boxed(),
        R::Hosts => hosts::hosts(flows, request).boxed(),
        R::UnknownMachines => ready(hosts::unknown_machines(&flows, &request)).boxed(),
        R::Host { hostname } => hosts::host(flows, hostname).boxed(),
        R::RegisterHost { hostname } => {
            hosts::register_host(flows, request, by.account()?, hostname).boxed()
        }
        R::ForgetHost { hostname } => hosts::forget(flows, by.account()?, hostname).boxed(),
        R::Cordon { hostname } => hosts::cordon(flows, request, by.account()?, hostname).boxed(),
        R::Uncordon { hostname } => hosts::uncordon(flows, by.account()?, hostname).boxed(),
        R::Reserve { hostname } => hosts::reserve(flows, request, by.account()?, hostname).boxed(),
        R::Unreserve { hostname } => hosts::unreserve(flows, by.account()?, hostname).boxed(),
        R::ResetHost { hostname } => hosts::reset_host(flows, by.account()?, hostname).boxed(),
        R::Consume { hostname } => {
            testboxes::consume(flows, request, by.account()?, hostname).boxed()
        }
        R::Heartbeat { hostname } => testboxes::heartbeat(flows, request, hostname).boxed(),
        R::Whoami => ready(Ok(admin::whoami(&flows, &by.account()?))).boxed(),
        R::Login => pages::login(flows, request).boxed(),
        R::Logout => pages::logout(flows, request).boxed(),
        R::Overview => dashboard::overview(flows, request).boxed(),
        R::Live => ready(dashboard::live(&flows, &request)).boxed(),
        R::Series => dashboard::series(flows, request).boxed(),
        R::Audit => dashboard::audit(flows, request, by.account()?).boxed(),
        R::MakePreview => dashboard::make_preview(flows, request, by.account()?).boxed(),
        R::Preview { preview } => dashboard::preview_of(flows, by.account()?, preview).boxed(),
        R::RunPreview { preview } => dashboard::run_preview(flows, by.account()?, preview).boxed(),
        R::Page => ready(pages::show(&request, &[])).boxed(),
        R::PageOrFile { path } => ready(pages::show(&request, path)).boxed(),
        R::Accounts => admin::accounts(flows, request).boxed(),
        R::SetAccount { my_account: name } => {
            admin::set_account(flows, request, by.account()?, name).boxed()
        }
        R::DeleteAccount { my_account: name } => {
            admin::delete_account(flows, by.account()?, name).boxed()
        }
        R::Notify { my_account: name } => admin::notify(flows, by.account()?, name).boxed(),
        R::SetNotify { my_account: name } => {
            admin::set_notify(flows, by.account()?, by.body()?, name).boxed()
        }
        R::ForgetNotify { my_account: name } => {
            admin::forget_notify(flows, by.account()?, name).boxed()
        }
        R::Hints => admin::hints(flows, request).boxed(),
        R::JobInitrd { id } => files::job_initrd(flows, request, id).boxed(),
        R::BootFile { path } => files::boot_file(flows, request, path).boxed(),
        R::Upload { path } => files::upload(flows, request, by.who, path).boxed(),
        R::Download { path } => files::download(flows, request, by.account()?, path).boxed(),
    };
    Ok(answer)
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
