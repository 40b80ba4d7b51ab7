//! Handlers of health, queues and accounts.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use fairlead_api::{
    AccountChange, AccountView, HealthView, NotifyChange, OPENAPI_GZIP, QueueChange,
    RetentionChange, StoreProblem, SubmitRules, Version,
};
use serde_json::{Value, json};
use warp::reply::Response;

use crate::http::reply::{done, json, ok, paged, tagged_by, text, typed};
use crate::{
    dashboard::snapshot::problem_of,
    flows::Flows,
    http::{
        request::Request,
        signed::{Signed, parsed},
    },
    peers::hints::BODY_MAX as HINTS_MAX,
};
use fairlead_base::{
    errors::Refusal,
    gzip,
    metrics::{CLASSIC, OPEN_METRICS},
};
use fairlead_known::accounts::Who;

/// Largest body of an admin's request, bytes.
pub(super) const BODY_MAX: usize = 1 << 20;

/// A week, ms.
const WEEK_MS: u64 = 7 * 24 * 3_600_000;

/// How a replica is: JSON where that is accepted, else text.
pub(super) fn health(flows: &Flows, request: &Request) -> Response {
    let (store, clock_off_ms) = (flows.ctx.store.health(), flows.ctx.clock.off_ms());
    let stopping = flows.ctx.tasks.draining.is_cancelled();
    let view = HealthView {
        well: store.is_well() && !stopping && clock_off_ms.is_none(),
        replica: flows.ctx.config.replica.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: flows.ctx.clock.wall_ms(),
        reads: problem_of(&store.reads),
        writes: problem_of(&store.writes),
        store: store.name,
        content: flows.content.content_problem(),
        clock_off_ms,
        undeletable: flows.people.undeletable.lock().clone(),
        data: flows.files.room.view(flows.ctx.clock.now()),
        peers: peers_of(flows),
        stopping,
    };
    let status = if view.well { 200 } else { 503 };
    if request.accepts("application/json") {
        return json(status, &view);
    }
    text(status, words_of(&view))
}

/// The same as text.
fn words_of(view: &HealthView) -> String {
    let mut lines = format!(
        "fairlead scheduler is alive. Time: {}. Version: {}. Replica: {}. Store: {}.\n",
        fairlead_base::clock::utc_text(view.time_ms),
        view.version,
        view.replica,
        view.store,
    );
    let data = view.data.as_ref().and_then(|data| data.problem.as_ref());
    let problems = [
        ("The store answers no reads", view.reads.as_ref()),
        ("The store takes no writes", view.writes.as_ref()),
        ("The content store", view.content.as_ref()),
        ("The data folder", data),
    ];
    for (what, problem) in problems {
        if let Some(StoreProblem { problem, seconds }) = problem {
            let line = format!("{what}, for {seconds} s by now: {problem}\n");
            lines.push_str(&line);
        }
    }
    if let Some(by_ms) = view.clock_off_ms {
        lines.extend(["Wrong: ", &Refusal::ClockOff { by_ms }.to_string(), ".\n"]);
    }
    if let Some(lacks) = &view.undeletable {
        let says = [
            "Old jobs are not deleted: the login of the store lacks ",
            lacks,
            "\n",
        ];
        lines.extend(says);
    }
    if !view.peers.is_empty() {
        lines.extend(["Other replicas: ", &view.peers.join(", "), ".\n"]);
    }
    if view.stopping {
        lines.push_str("This replica is stopping.\n");
    }
    lines
}

fn peers_of(flows: &Flows) -> Vec<String> {
    let peers = flows.ctx.replicas.peers(flows.ctx.clock.now()).into_iter();
    peers.map(|peer| peer.name).collect()
}

/// The description of the interface.
pub(super) fn openapi(request: &Request) -> Response {
    // One copy for all who read it.
    static PLAIN: LazyLock<Bytes> = LazyLock::new(|| gzip::unpacked(OPENAPI_GZIP).into());
    let packed = || Some(Bytes::from_static(OPENAPI_GZIP));
    tagged_by(request, OPENAPI_GZIP, packed, || PLAIN.clone())
}

/// All metrics. Strangers see sums instead of the names of queues and groups where accounts are checked.
pub(super) async fn metrics(flows: &Flows, request: &Request) -> Response {
    let is_open = request.accepts("application/openmetrics-text");
    let is_named = flows.people.accounts.sees_names(&request.credentials(None));
    let body = flows.dashboard.metrics_text(is_open, is_named).await;
    let content_type = if is_open { OPEN_METRICS } else { CLASSIC };
    typed(200, content_type, body.into_bytes())
}

pub(super) fn version(flows: &Flows) -> Response {
    let capabilities = [
        "submit",
        "consume",
        "dispatch",
        "explain",
        "queues",
        "wait",
        "log-follow",
        "results",
        "start-at",
        "needs",
        "idempotency-key",
        "strict",
        "cordon",
        "timers",
        "reserve",
        "grace",
        "retry-elsewhere",
        "limits",
        "max-run",
        "submit-rules",
    ];
    ok(&Version {
        name: "fairlead".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: capabilities.map(str::to_owned).to_vec(),
        replica: flows.ctx.config.replica.clone(),
        store: flows.ctx.store.health().name,
        time_ms: Some(flows.ctx.clock.wall_ms()),
        files_max: Some(files_max()),
    })
}

/// How many files this process may open; any number counts as the largest.
fn files_max() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}

pub(super) async fn hints(flows: Arc<Flows>, mut request: Request) -> Result<Response, Refusal> {
    let token = request.credentials(None).token;
    let body = request.read_body(HINTS_MAX).await?;
    flows.upkeep.take_hints(token.as_deref(), &body).await?;
    Ok(done())
}

pub(super) async fn queues(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let views = flows
        .samples
        .with_shares_got(flows.people.queue_views().await?)
        .await;
    paged(&request, views, |queue| queue.name.clone())
}

/// Who used the lab: an account sees all, as in lists of jobs.
pub(super) async fn usage(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let by = super::dashboard::kind(&request)?;
    let now_ms = flows.ctx.clock.wall_ms();
    let usual = now_ms.saturating_sub(WEEK_MS);
    let since_ms = request.query.number("since_ms", 0..=u64::MAX, usual)?;
    let until_ms = request.query.number("until_ms", 0..=u64::MAX, now_ms)?;
    Ok(ok(&flows
        .samples
        .usage(by, since_ms, until_ms.min(now_ms))
        .await?))
}

pub(super) async fn set_queue(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let change: QueueChange = request.read_json(BODY_MAX).await?;
    let view = flows.people.set_queue(name, &change).await?;
    flows.ctx.audit(&who.name, "queue.set", name, json!(change));
    Ok(ok(&view))
}

pub(super) async fn delete_queue(
    flows: Arc<Flows>,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    flows.people.delete_queue(name).await?;
    flows
        .ctx
        .audit(&who.name, "queue.delete", name, Value::Null);
    Ok(done())
}

pub(super) async fn retention(flows: Arc<Flows>) -> Result<Response, Refusal> {
    Ok(ok(&flows.people.retention().await?))
}

pub(super) async fn set_retention(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let change: RetentionChange = parsed(body, "keep_months: a number, or null")?;
    let view = flows.people.set_retention(&change).await?;
    flows
        .ctx
        .audit(&who.name, "retention.set", "jobs", json!(change));
    Ok(ok(&view))
}

pub(super) async fn rules(flows: Arc<Flows>) -> Result<Response, Refusal> {
    Ok(ok(&flows.people.submit_rules().await?))
}

pub(super) async fn set_rules(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let rules: SubmitRules = parsed(body, "rules: a list of {name, if, then}")?;
    let rules = flows.people.set_submit_rules(rules).await?;
    flows
        .ctx
        .audit(&who.name, "rules.set", "submit_rules", json!(rules));
    Ok(ok(&rules))
}

pub(super) fn whoami(flows: &Flows, who: &Who) -> Response {
    let mut view = flows.people.accounts.view_of(who);
    tell_uploads(flows, &mut view);
    ok(&view)
}

/// Tells beside a limit of results how much there is of them.
fn tell_uploads(flows: &Flows, view: &mut AccountView) {
    let is_limited = view.limits.results_mb.hard.is_some();
    let used = flows.files.uploaded_by(&view.my_account).div_ceil(1 << 20);
    view.results_used_mb = is_limited.then_some(used);
}

pub(super) async fn accounts(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    // An account that was just added, here or at another replica, is to be found, too.
    flows.ctx.store.refresh().await?;
    let mut accounts = flows.people.account_views().await?;
    for view in &mut accounts {
        tell_uploads(&flows, view);
    }
    paged(&request, accounts, |account| account.my_account.clone())
}

pub(super) async fn set_account(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    let body = request.read_object(BODY_MAX).await?;
    let change: AccountChange = parsed(
        body,
        "role, hosts, vip, limits, new_token, overlap_s, expires_s",
    )?;
    let view = flows.people.set_account(name, &change).await?;
    flows.ctx.audit(
        &who.name,
        "account.set",
        name,
        json!({ "role": view.role, "hosts": view.hosts, "vip": view.vip, "limits": view.limits }),
    );
    Ok(ok(&view))
}

pub(super) async fn delete_account(
    flows: Arc<Flows>,
    who: Who,
    name: &str,
) -> Result<Response, Refusal> {
    flows.people.delete_account(name, &who).await?;
    flows
        .ctx
        .audit(&who.name, "account.delete", name, Value::Null);
    Ok(done())
}

pub(super) async fn notify(
    flows: Arc<Flows>,
    who: Who,
    account: &str,
) -> Result<Response, Refusal> {
    Ok(ok(&flows.people.notify_view(&who, account).await?))
}

pub(super) async fn set_notify(
    flows: Arc<Flows>,
    who: Who,
    mut body: Signed,
    account: &str,
) -> Result<Response, Refusal> {
    let hint = r#"{"url": "https://chat.example.com/hooks/x", "on": ["failed", "passed_again"]}"#;
    let change: NotifyChange = body.take_as(hint)?;
    Ok(ok(&flows.people.set_notify(&who, account, &change).await?))
}

pub(super) async fn forget_notify(
    flows: Arc<Flows>,
    who: Who,
    account: &str,
) -> Result<Response, Refusal> {
    flows.people.forget_notify(&who, account).await?;
    Ok(done())
}
