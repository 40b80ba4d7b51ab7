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
use crate::core::Core;
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
    request.is_for_people = found.is_ok_and(|route| is_for_people(&request, route));
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
    match answer_by(core, request, route).await {
        // A submit is always answered by an array, as compass-ci's clients expect.
        Err(refusal) if matches!(route, R::Submit | R::OldSubmit) => Ok(jobs::refused(&refusal)),
        answered => answered,
    }
}

/// The answer of the handler, once all that its row says holds of the request.
async fn answer_by(
    core: Arc<Core>,
    mut request: Request,
    route: Route<'_>,
) -> Result<Response, Refusal> {
    refuse_unknown(&route, &request.query)?;
    let by = called(&core, &mut request, route).await?;
    handler(core, request, by, route)?.await
}

/// Who answers: one line a route, so that the compiler misses none.
fn handler(
    core: Arc<Core>,
    request: Request,
    mut by: Called,
    route: Route<'_>,
) -> Result<Answer<'_>, Refusal> {
    let answer = match route {
        R::Alive if request.accepts_pages() => ready(Ok(pages::home())).boxed(),
        R::Alive | R::Health => ready(Ok(admin::health(&core, &request))).boxed(),
        R::Version => ready(Ok(admin::version(&core))).boxed(),
        R::OpenApi => ready(Ok(admin::openapi(&request))).boxed(),
        R::Metrics => async move { Ok(admin::metrics(&core, &request).await) }.boxed(),
        R::Submit | R::OldSubmit => jobs::submit(core, request, by.jobs).boxed(),
        R::Jobs => jobs::list(core, request).boxed(),
        R::Dispatch => testboxes::dispatch(core, request, by.account()?, None).boxed(),
        R::OldDispatch { boot_type, .. } => {
            testboxes::dispatch(core, request, by.account()?, Some(boot_type)).boxed()
        }
        R::Wait => jobs::wait(core, request, by.body()?).boxed(),
        R::CancelMany => jobs::cancel_many(core, by.account()?, by.body()?).boxed(),
        R::ChangeJobs => changes::change(core, by.account()?, by.body()?).boxed(),
        R::RerunMany => jobs::rerun_many(core, request, by.account()?, by.body()?).boxed(),
        R::Job { id } => jobs::show(core, request, id).boxed(),
        R::Explain { id } => jobs::explain(core, id).boxed(),
        R::ExplainReuse { id } => reuse::explain(core, id).boxed(),
        R::ForgetReuse { id } => reuse::forget(core, by.account()?, id).boxed(),
        R::Answer { id } => jobs::answer(core, request, id).boxed(),
        R::ReadLog { id } => files::read_log(core, request, by.account()?, id).boxed(),
        R::AppendLog { id } => files::append_log(core, request, by.who, id).boxed(),
        R::Update { id } => testboxes::update(core, request, by.who, id).boxed(),
        R::WaitPeer { id } => testboxes::wait_peer(core, request, id).boxed(),
        R::OldPostRun | R::OldWtmp => ready(Ok(done())).boxed(),
        R::OldReport { report: _ } => testboxes::old_report(core, request, by.who).boxed(),
        R::Cancel { id } => jobs::cancel(core, by.account()?, id).boxed(),
        R::Rerun { id } => jobs::rerun(core, request, by.account()?, by.body()?, id).boxed(),
        R::Terminate { id } => jobs::terminate(core, by.account()?, by.body()?, id).boxed(),
        R::SubmitEvents { submit } => submits::events(core, request, submit).boxed(),
        R::SubmitTimer => timers::submit(core, request, by.jobs).boxed(),
        R::Timers => timers::list(core, request, by.account()?).boxed(),
        R::Timer { timer } => timers::show(core, request, by.account()?, timer).boxed(),
        R::UpdateTimer { timer } => timers::update(core, request, by.account()?, timer).boxed(),
        R::DeleteTimer { timer } => timers::delete(core, request, by.account()?, timer).boxed(),
        R::PauseTimer { timer } => timers::pause(core, request, by.account()?, timer, true).boxed(),
        R::ResumeTimer { timer } => {
            timers::pause(core, request, by.account()?, timer, false).boxed()
        }
        R::Group { group } => groups::show(core, request, by.account()?, group).boxed(),
        R::CloseGroup { group } => groups::close(core, request, by.account()?, group).boxed(),
        R::Tests => jobs::tests(core, request).boxed(),
        R::Webhooks => webhooks::list(core, request, by.account()?).boxed(),
        R::TestWebhook => webhooks::test(core, by.account()?, by.body()?).boxed(),
        R::RedeliverWebhook { webhook } => {
            webhooks::redeliver(core, by.account()?, webhook).boxed()
        }
        R::Contents => content::list(core, request, by.account()?).boxed(),
        R::PinChunks => content::pin(core, request, by.who).boxed(),
        R::PutChunk { digest } => content::put_chunk(core, request, by.who, digest).boxed(),
        R::Chunk { digest } => content::chunk(core, request, by.who, digest).boxed(),
        R::ChunkUrls => content::urls(core, request, by.who).boxed(),
        R::PutManifest => content::put_manifest(core, request, by.who).boxed(),
        R::Manifest { content } => content::manifest(core, request, by.who, content).boxed(),
        R::CollectContent => content::collect(core, request, by.account()?).boxed(),
        R::CheckContent => content::check(core, request, by.account()?).boxed(),
        R::ContentOf { content } => content::show(core, request, by.account()?, content).boxed(),
        R::KeepContent { content } => content::keep(core, request, by.account()?, content).boxed(),
        R::ForgetContent { content } => {
            content::forget(core, request, by.account()?, content).boxed()
        }
        R::Usage => admin::usage(core, request).boxed(),
        R::Queues => admin::queues(core, request).boxed(),
        R::SetQueue { name } => admin::set_queue(core, request, by.account()?, name).boxed(),
        R::DeleteQueue { name } => admin::delete_queue(core, by.account()?, name).boxed(),
        R::Pools => pools::list(core, request).boxed(),
        R::Pool { name } => pools::show(core, name).boxed(),
        R::SetPool { name } => pools::set(core, request, by.account()?, name).boxed(),
        R::DeletePool { name } => pools::delete(core, by.account()?, name).boxed(),
        R::PoolDecisions { name } => pools::decisions(core, request, name).boxed(),
        R::Scaling => ready(Ok(pools::scaling(&core))).boxed(),
        R::SetScaling => pools::set_scaling(core, request, by.account()?).boxed(),
        R::Retention => admin::retention(core).boxed(),
        R::SetRetention => admin::set_retention(core, request, by.account()?).boxed(),
        R::ReuseRules => reuse::settings(core).boxed(),
        R::SetReuseRules => reuse::set(core, request, by.account()?).boxed(),
        R::Rules => admin::rules(core).boxed(),
        R::SetRules => admin::set_rules(core, request, by.account()?).boxed(),
        R::Hosts => hosts::hosts(core, request).boxed(),
        R::UnknownMachines => ready(hosts::unknown_machines(&core, &request)).boxed(),
        R::Host { hostname } => hosts::host(core, hostname).boxed(),
        R::RegisterHost { hostname } => {
            hosts::register_host(core, request, by.account()?, hostname).boxed()
        }
        R::ForgetHost { hostname } => hosts::forget(core, by.account()?, hostname).boxed(),
        R::Cordon { hostname } => hosts::cordon(core, request, by.account()?, hostname).boxed(),
        R::Uncordon { hostname } => hosts::uncordon(core, by.account()?, hostname).boxed(),
        R::Reserve { hostname } => hosts::reserve(core, request, by.account()?, hostname).boxed(),
        R::Unreserve { hostname } => hosts::unreserve(core, by.account()?, hostname).boxed(),
        R::ResetHost { hostname } => hosts::reset_host(core, by.account()?, hostname).boxed(),
        R::Consume { hostname } => {
            testboxes::consume(core, request, by.account()?, hostname).boxed()
        }
        R::Heartbeat { hostname } => testboxes::heartbeat(core, request, hostname).boxed(),
        R::Whoami => ready(Ok(admin::whoami(&core, &by.account()?))).boxed(),
        R::Login => pages::login(core, request).boxed(),
        R::Logout => pages::logout(core, request).boxed(),
        R::Overview => dashboard::overview(core, request).boxed(),
        R::Live => ready(dashboard::live(&core, &request)).boxed(),
        R::Series => dashboard::series(core, request).boxed(),
        R::Audit => dashboard::audit(core, request, by.account()?).boxed(),
        R::MakePreview => dashboard::make_preview(core, request, by.account()?).boxed(),
        R::Preview { preview } => dashboard::preview_of(core, by.account()?, preview).boxed(),
        R::RunPreview { preview } => dashboard::run_preview(core, by.account()?, preview).boxed(),
        R::Page => ready(pages::show(&request, &[])).boxed(),
        R::PageOrFile { path } => ready(pages::show(&request, path)).boxed(),
        R::Accounts => admin::accounts(core, request).boxed(),
        R::SetAccount { my_account: name } => {
            admin::set_account(core, request, by.account()?, name).boxed()
        }
        R::DeleteAccount { my_account: name } => {
            admin::delete_account(core, by.account()?, name).boxed()
        }
        R::Notify { my_account: name } => admin::notify(core, by.account()?, name).boxed(),
        R::SetNotify { my_account: name } => {
            admin::set_notify(core, by.account()?, by.body()?, name).boxed()
        }
        R::ForgetNotify { my_account: name } => {
            admin::forget_notify(core, by.account()?, name).boxed()
        }
        R::Hints => admin::hints(core, request).boxed(),
        R::JobInitrd { id } => files::job_initrd(core, request, id).boxed(),
        R::BootFile { path } => files::boot_file(core, request, path).boxed(),
        R::Upload { path } => files::upload(core, request, by.who, path).boxed(),
        R::Download { path } => files::download(core, request, by.account()?, path).boxed(),
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
