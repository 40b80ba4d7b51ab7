//! Handlers of accounts' requests about jobs.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use fairlead_api::{
    CancelItem, CancelRequest, ErrorBody, ErrorCode, JobList, JobSummary, RerunRequest, TestHistory,
};
use fairlead_job::{JobId, Stage};
use fairlead_store::{Parts, Search, SearchOrder, StoredJob};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value};
use warp::reply::Response;

use crate::{
    flows::Flows,
    http::{
        reply::{done, html, json, ok, paged, say_when, tagged},
        request::{Request, job_id},
        routes::{
            counted::{counted, group_by},
            search::read_search,
        },
        signed::Signed,
    },
    shards::rerun::Again,
    submission::{
        idempotency::KEY,
        intake::{Item, is_quick, read_within},
        queue_use::search_in,
        submit::{SubmitOptions, refused_item},
    },
    views::{
        answer::answer_of,
        answer_page::page,
        explain::explain_job,
        job::{flat, summary},
        outlook::add_outlooks,
    },
    waiting::conditions::Wait,
};
use fairlead_base::{
    budget::Charge,
    errors::{Refusal, excerpt},
};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::attempt::STOP_GRACE_MAX_S;

/// Most jobs in one cancel.
const CANCEL_MAX: usize = 10_000;
/// Most jobs that run again in one request: as many as a submit may have by default.
const RERUN_MAX: usize = 10_000;
/// Those that are cancelled side by side.
const CANCEL_ABREAST: usize = 256;

pub(super) async fn submit(
    flows: Arc<Flows>,
    request: Request,
    body: Bytes,
) -> Result<Response, Refusal> {
    let (items, _charge) = read_items(&flows, &request, body).await?;
    let how = SubmitOptions {
        strict: request.query.switch("strict")?,
        dry_run: request.query.switch("dry_run")?,
        key: request.query.get(KEY),
    };
    let is_dry = how.dry_run;
    let mut submitted = flows
        .submission
        .submit(items, &request.credentials(None), how)
        .await?;
    if is_dry {
        add_outlooks(&flows.views, &mut submitted).await?;
    }
    for item in submitted.items.iter().filter(|item| !item.code.is_empty()) {
        flows.ctx.metrics.times.refused_item(&item.code);
    }
    Ok(json(submitted.status, &submitted.items))
}

/// A submit that is refused as a whole.
pub(super) fn refused(refusal: &Refusal) -> Response {
    let body = refusal.body();
    say_when(body.code, json(refusal.status(), &[refused_item(body)]))
}

/// Reads the body of a submit, and charges what is built of it; what may take long is read beside the runtime.
pub(super) async fn read_items(
    flows: &Flows,
    request: &Request,
    body: Bytes,
) -> Result<(Vec<Item>, Charge), Refusal> {
    let (limits, content_type) = (flows.ctx.config.limits, request.content_type());
    let mut charge = request.another_charge();
    let is_quick = is_quick(content_type.as_deref(), &body);
    let read = move || {
        let spend = &mut |bytes| charge.grow(bytes);
        let items = read_within(content_type.as_deref(), &body, &limits, spend)?;
        Ok::<_, ErrorBody>((items, charge))
    };
    if is_quick {
        return Ok(read()?);
    }
    let Ok(turn) = Arc::clone(&flows.submission.readers).acquire_owned().await else {
        return Err(Refusal::Stopping);
    };
    // The turn ends with the work, not with a client that hangs up.
    let read = move || {
        let read = read();
        drop(turn);
        read
    };
    let outcome = tokio::task::spawn_blocking(read).await;
    let read = outcome.map_err(|error| {
        tracing::error!(%error, "the body of a submit could not be read");
        Refusal::Bug
    })?;
    Ok(read?)
}

pub(super) async fn list(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let mut search = read_search(&request.query)?;
    if let Some(by) = group_by(&request.query)? {
        if request.query.get("parts").is_none() {
            search.parts = Parts::NoParents;
        }
        return Ok(ok(&counted(&flows, search, by).await?));
    }
    let page = flows.ctx.store.search(&search).await?;
    let next = page
        .jobs
        .last()
        .filter(|_| page.more)
        .map(|job| job.state.job_id.to_string());
    let has_parents = page.jobs.iter().any(|job| job.state.shards.is_some());
    let running = if has_parents {
        flows.jobs.running_shards()
    } else {
        BTreeMap::new()
    };
    let with_kv = request.query.switch("with_kv")?;
    let line = |mut job: StoredJob| {
        let shards = flows.jobs.shard_counts(&job.state, &running);
        let kv = std::mem::take(&mut job.state.kv);
        JobSummary {
            kv: if with_kv { kv } else { Vec::new() },
            ..summary(job.state, shards)
        }
    };
    let jobs = page.jobs.into_iter().map(line).collect();
    Ok(ok(&JobList {
        jobs,
        groups: Vec::new(),
        total: page.total,
        unsearched: (page.wordless > 0).then_some(page.wordless),
        next,
    }))
}

pub(super) async fn show(
    flows: Arc<Flows>,
    request: Request,
    id: &str,
) -> Result<Response, Refusal> {
    let id = job_id(id)?;
    let job = flows.jobs.shown_job(id).await?;
    let spec = flows.jobs.shown_spec(&job.state).await?;
    let mut view = flat(&flows.jobs.as_shown(job.state), spec);
    let fields = request.query.list("fields");
    if !fields.is_empty() {
        view.retain(|name, _| fields.contains(name));
    }
    Ok(tagged(&request, &view))
}

/// The answer of a job: JSON where that is asked for, else a page.
pub(super) async fn answer(
    flows: Arc<Flows>,
    request: Request,
    id: &str,
) -> Result<Response, Refusal> {
    let answer = answer_of(&flows.views, job_id(id)?).await?;
    match request.query.get("format") {
        Some("json") => return Ok(ok(&answer)),
        None | Some("" | "html") => {}
        Some(other) => {
            let message = format!("format: '{}' is none", excerpt(other));
            return Err(Refusal::new(ErrorCode::BadQuery, message, "html or json"));
        }
    }
    if !request.accepts_pages() {
        return Ok(ok(&answer));
    }
    Ok(html(page(&answer)))
}

/// The history of the tests of a suite.
pub(super) async fn tests(flows: Arc<Flows>, request: Request) -> Result<Response, Refusal> {
    let Some(suite) = request.query.get("suite").filter(|suite| !suite.is_empty()) else {
        let hint = "suite=NAME in the query";
        return Err(Refusal::new(ErrorCode::BadQuery, "suite: missing", hint));
    };
    let wanted = request.query.get("test");
    let mut history = Vec::new();
    for times in flows.shards.test_times_of(suite).await? {
        let tests = times.tests.into_iter();
        let tests = tests.filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
        history.extend(tests.map(|(test, record)| TestHistory {
            test,
            group: times.group.clone(),
            passed: record.passed,
            failed: record.failed,
            seconds: record.seconds,
            last_ms: record.last_ms,
        }));
    }
    paged(&request, history, |one| {
        format!("{} {}", one.group, one.test)
    })
}

pub(super) async fn explain(flows: Arc<Flows>, id: &str) -> Result<Response, Refusal> {
    Ok(ok(&explain_job(&flows.views, job_id(id)?).await?))
}

pub(super) async fn wait(
    flows: Arc<Flows>,
    request: Request,
    body: Signed,
) -> Result<Response, Refusal> {
    let wait = Wait::of(body.object())?;
    let _place = flows.ctx.wait_place(request.whose())?;
    Ok(ok(&flows.waiting.wait_for(&wait).await?))
}

/// A body of a request to run jobs again.
const AGAIN: &str = r#"{"job_ids": ["…"], "failed": true, "set": {"nr_threads": 4}}"#;

/// How jobs run again, as a request says it.
fn again_of(wanted: RerunRequest) -> Again {
    Again {
        only_failed: wanted.failed,
        set: wanted.set,
        submit_id: wanted.submit_id,
        key: wanted.idempotency_key,
    }
}

pub(super) async fn rerun(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    mut body: Signed,
    id: &str,
) -> Result<Response, Refusal> {
    let said = request.credentials(None);
    let wanted = body.take_as(AGAIN)?;
    let again = again_of(wanted);
    let submitted = flows.shards.rerun(job_id(id)?, &again, &who, &said).await?;
    Ok(json(submitted.status, &submitted.items))
}

pub(super) async fn rerun_many(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    mut body: Signed,
) -> Result<Response, Refusal> {
    let said = request.credentials(None);
    let wanted: RerunRequest = body.take_as(AGAIN)?;
    let many = wanted.job_ids.len();
    if !(1..=RERUN_MAX).contains(&many) {
        let message = format!("job_ids: {many} ids; 1 to {RERUN_MAX} can be run again at once");
        return Err(Refusal::new(ErrorCode::BadField, message, "split the list"));
    }
    let ids = wanted.job_ids.iter().map(|id| job_id(id));
    let ids = ids.collect::<Result<Vec<JobId>, _>>()?;
    let again = again_of(wanted);
    let submitted = flows.shards.rerun_many(&ids, &again, &who, &said).await?;
    Ok(json(submitted.status, &submitted.items))
}

pub(super) async fn cancel(flows: Arc<Flows>, who: Who, id: &str) -> Result<Response, Refusal> {
    flows.jobs.cancel_job(&who, job_id(id)?).await?;
    Ok(done())
}

pub(super) async fn cancel_many(
    flows: Arc<Flows>,
    who: Who,
    mut body: Signed,
) -> Result<Response, Refusal> {
    let hint = r#"{"job_ids": ["…"]}, or {"filter": {"submit_id": "…"}}"#;
    let mut wanted: CancelRequest = body.take_as(hint)?;
    if !wanted.filter.is_empty() {
        let search = read_filter(&wanted.filter, &who)?;
        wanted.job_ids = waiting_jobs(&flows, search, wanted.job_ids).await?;
    } else if wanted.job_ids.is_empty() || wanted.job_ids.len() > CANCEL_MAX {
        let message = format!(
            "job_ids: {} ids; 1 to {CANCEL_MAX} can be cancelled at once",
            wanted.job_ids.len()
        );
        return Err(Refusal::new(ErrorCode::BadField, message, "split the list"));
    }
    let cancelling = stream::iter(wanted.job_ids).map(|text| cancel_named(&flows, &who, text));
    let items: Vec<CancelItem> = cancelling.buffered(CANCEL_ABREAST).collect().await;
    Ok(ok(&serde_json::json!({ "results": items })))
}

async fn cancel_named(flows: &Arc<Flows>, who: &Who, text: String) -> CancelItem {
    let outcome = match job_id(&text) {
        Ok(id) => flows.jobs.cancel_job(who, id).await,
        Err(refusal) => Err(refusal),
    };
    let (result, message) = match outcome {
        Ok(()) => ("success", String::new()),
        Err(refusal) => (refusal.body().code.as_str(), refusal.to_string()),
    };
    CancelItem {
        job_id: text,
        result: result.to_owned(),
        message,
    }
}

/// What a filter means to who asks: of own jobs only, unless it is an admin's.
fn read_filter(filter: &Map<String, Value>, who: &Who) -> Result<Search, Refusal> {
    let mut search = Search {
        stages: vec![Stage::Submit],
        // A shard is cancelled with its parent.
        parts: Parts::NoShards,
        order: SearchOrder::OldestFirst,
        limit: 1_000,
        ..Search::default()
    };
    for (name, value) in filter {
        let bad = || {
            Refusal::new(
                ErrorCode::BadField,
                format!("filter.{}: not a name or a list of names", excerpt(name)),
                "submit_id, group_id, sequence, account, queue, suite, tbox_group",
            )
        };
        let names: Vec<String> = match value {
            Value::String(name) => vec![name.clone()],
            list => serde_json::from_value(list.clone()).map_err(|_| bad())?,
        };
        if names.iter().any(String::is_empty) || names.is_empty() {
            return Err(bad());
        }
        match name.as_str() {
            "submit_id" => search.submit_ids = names,
            "group_id" => search.group_ids = names,
            "sequence" => search.sequences = names,
            "account" | "my_account" => search.accounts = names,
            "queue" => search_in(&mut search, &names),
            "suite" => search.suites = names,
            "tbox_group" => search.tbox_groups = names,
            _ => return Err(bad()),
        }
    }
    if search.accounts.is_empty() && !who.is_admin() {
        search.accounts = vec![who.name.clone()];
    }
    Ok(search)
}

/// Jobs that a filter finds, oldest first, beside those that were named.
async fn waiting_jobs(
    flows: &Flows,
    mut search: Search,
    mut ids: Vec<String>,
) -> Result<Vec<String>, Refusal> {
    // What was just submitted is to be found, too.
    flows.ctx.store.refresh().await?;
    loop {
        let page = flows.ctx.store.search(&search).await?;
        search.after = page.jobs.last().map(|job| job.state.job_id);
        ids.extend(page.jobs.iter().map(|job| job.state.job_id.to_string()));
        if ids.len() > CANCEL_MAX {
            let message = format!(
                "the filter matches {} jobs; the limit is {CANCEL_MAX}",
                page.total
            );
            return Err(Refusal::new(
                ErrorCode::BadField,
                message,
                "narrow the filter, for example by submit_id",
            ));
        }
        if !page.more {
            return Ok(ids);
        }
    }
}

/// How long the script may take after the polite signal, seconds: a number or a time as job files have it.
fn grace_s(body: &Map<String, Value>) -> Result<Option<u32>, Refusal> {
    let Some(said) = body.get("grace_s").filter(|said| !said.is_null()) else {
        return Ok(None);
    };
    let seconds = fairlead_job::units::duration_s(said).ok().flatten();
    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    match seconds.filter(|seconds| *seconds <= STOP_GRACE_MAX_S) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(Refusal::new(
            ErrorCode::BadField,
            format!("grace_s: {} is no such time", excerpt(&said.to_string())),
            format!(
                "seconds, 0 to {STOP_GRACE_MAX_S}, or a time such as 5m; without it the usual 10 s"
            ),
        )),
    }
}

pub(super) async fn terminate(
    flows: Arc<Flows>,
    who: Who,
    body: Signed,
    id: &str,
) -> Result<Response, Refusal> {
    let id = job_id(id)?;
    let grace_s = grace_s(body.object())?;
    flows.jobs.terminate_job(&who, id, grace_s).await?;
    Ok(done())
}
