//! Handlers of logs, results and initrds.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::ErrorCode;
use fairlead_job::JobId;
use futures_util::{Stream, StreamExt};
use serde_json::json;
use warp::reply::Response;

use crate::http::{reply::ok, request::job_id};
use crate::{
    files::{
        read::{Found, Part},
        results::LOG_APPEND_MAX,
    },
    flows::Flows,
    hosts::network_boot::Came,
    http::{
        content_type::{BYTES, TEXT, type_of},
        reply::typed,
        request::Request,
        streams,
    },
};
use fairlead_base::{budget::Identity, errors::Refusal};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::after_report::Speaker;

pub(super) async fn read_log(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    id: &str,
) -> Result<Response, Refusal> {
    let id = job_id(id)?;
    let job = flows.jobs.shown_job(id).await?;
    may_read(&flows, &who, &job.state.account)?;
    let attempt = request.query.number(
        "attempt",
        1..=u64::from(u16::MAX),
        u64::from(job.state.attempt),
    )?;
    let attempt = u16::try_from(attempt).unwrap_or(u16::MAX);
    // The output of a result that it took is that of the job that ran.
    let id = job.state.reused_from.unwrap_or(id);
    let offset = request.query.number("offset", 0..=u64::MAX, 0)?;
    let follow = request.query.switch("follow")?;
    if follow {
        let place = flows.ctx.wait_place(request.whose())?;
        return Ok(streams::follow(flows, (id, attempt), offset, place));
    }
    let mut wanted = request.wanted();
    if offset > 0 {
        wanted.part = Part::Behind(offset);
    }
    Ok(match flows.files.open_log(id, attempt, wanted).await? {
        Some(file) => streams::file(file, TEXT),
        None => typed(200, TEXT, Vec::new()),
    })
}

/// With tokens, output and results are the owner's and the admins'; an open replica keeps nothing from anybody.
fn may_read(flows: &Flows, who: &Who, account: &str) -> Result<(), Refusal> {
    if !flows.people.accounts.tokens_needed() || who.may_act_for(account) {
        return Ok(());
    }
    let message = format!("it belongs to account '{account}', not to '{}'", who.name);
    Err(Refusal::new(
        ErrorCode::Forbidden,
        message,
        "its owner or an admin can read it",
    ))
}

pub(super) async fn append_log(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
    id: &str,
) -> Result<Response, Refusal> {
    let id = job_id(id)?;
    let (state, speaker) = speaker(&flows, &mut request, who, id).await?;
    flows.files.check_open(&state, speaker)?;
    let attempt = match speaker {
        Speaker::Present => state.attempt,
        Speaker::Earlier(attempt) => attempt,
    };
    let offset = request.query.number("offset", 0..=u64::MAX, 0)?;
    let bytes = request.read_body(LOG_APPEND_MAX).await?;
    let size = flows.files.append_log(id, attempt, offset, bytes).await?;
    flows.jobs.live.renew(id, flows.ctx.clock.now());
    Ok(ok(&json!({ "size": size })))
}

/// Which attempt the request may write for.
async fn speaker(
    flows: &Flows,
    request: &mut Request,
    who: Option<Who>,
    id: JobId,
) -> Result<(fairlead_store::JobState, Speaker), Refusal> {
    let attempt = request
        .query
        .number("attempt", 1..=u64::from(u16::MAX), 0)?;
    let attempt = u16::try_from(attempt).ok().filter(|attempt| *attempt > 0);
    let token = request.job_token();
    let job = flows.jobs.job_of_token(id, token).await?;
    let speaker = flows
        .jobs
        .speaker(&job.state, token, attempt, who.as_ref())?;
    request.belongs_to(Identity::Account(job.state.account.clone()));
    Ok((job.state, speaker))
}

pub(super) async fn upload(
    flows: Arc<Flows>,
    mut request: Request,
    who: Option<Who>,
    path: &[&str],
) -> Result<Response, Refusal> {
    let Some(id) = request.query.get("job_id") else {
        return Err(Refusal::new(
            ErrorCode::BadQuery,
            "job_id: missing",
            "job_id and job_token of the grant",
        ));
    };
    let id = job_id(id)?;
    let (state, speaker) = speaker(&flows, &mut request, who, id).await?;
    let _place = flows.ctx.budget.uploads.take(Identity::Job(id), 1)?;
    let Some(mut body) = request.take_body() else {
        return Err(Refusal::new(
            ErrorCode::BadBody,
            "no body",
            "send the file's bytes",
        ));
    };
    let stored = flows
        .files
        .upload((&state, speaker), &path.join("/"), &mut body)
        .await;
    if stored.is_err() {
        read_rest(&flows, body).await;
    }
    let size = stored?;
    flows.jobs.live.renew(id, flows.ctx.clock.now());
    Ok(ok(&json!({ "size": size })))
}

/// Reads the rest of a file that was not stored: its client sees the answer then, not a broken connection that it would
/// take for a lost one.
async fn read_rest(flows: &Flows, mut body: impl Stream<Item = Result<Bytes, Refusal>> + Unpin) {
    let mut left = flows.ctx.config.limits.upload_bytes_max;
    while let Some(Ok(piece)) = body.next().await {
        let size = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        left = left.saturating_sub(size);
        if left == 0 {
            return;
        }
    }
}

pub(super) async fn download(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    segments: &[&str],
) -> Result<Response, Refusal> {
    if flows.people.accounts.tokens_needed() && !who.is_admin() {
        let mut ids = segments
            .iter()
            .filter_map(|segment| segment.split('.').next()?.parse::<JobId>().ok());
        let Some(id) = ids.next_back() else {
            let message = "folders above a job's own are for admins";
            return Err(Refusal::new(
                ErrorCode::Forbidden,
                message,
                "list the result_root of one of your jobs",
            ));
        };
        let job = flows.jobs.shown_job(id).await?;
        // Whoever may take results of an account may read them.
        if !flows.people.accounts.shares_results(&job.state.account) {
            may_read(&flows, &who, &job.state.account)?;
        }
        let path = format!("/result/{}", segments.join("/"));
        let root = fairlead_lifecycle::result_paths::attempt_root(
            &job.state.result_root,
            job.state.attempt,
            1,
        );
        if !path.starts_with(&root) {
            return Err(Refusal::new(
                ErrorCode::NotFound,
                "no such file",
                "look below the job's result_root",
            ));
        }
    }
    let path = segments.join("/");
    Ok(
        match flows.files.open_result(&path, request.wanted()).await? {
            Found::File(file) => {
                let kind = type_of(&path, &file.first);
                streams::file(file, kind)
            }
            Found::Folder(names) => ok(&names),
        },
    )
}

pub(super) async fn job_initrd(
    flows: Arc<Flows>,
    mut request: Request,
    id: &str,
) -> Result<Response, Refusal> {
    let Some(token) = request.job_token() else {
        return Err(Refusal::new(
            ErrorCode::Unauthorized,
            "no job_token was sent",
            "use the address of the boot script",
        ));
    };
    let host = request.host();
    let came = Came {
        host: &host,
        address: request.address(),
    };
    let (id, key) = (job_id(id)?, request.query.get("secrets_key"));
    let archive = flows.hosts.job_initrd(id, token, key, &came).await?;
    let account = flows.jobs.job(id).await?.state.account;
    request.belongs_to(Identity::Account(account));
    Ok(typed(200, "application/octet-stream", archive))
}

/// Kernels that the operator put below `srv/boot` in the data folder.
pub(super) async fn boot_file(
    flows: Arc<Flows>,
    request: Request,
    path: &[&str],
) -> Result<Response, Refusal> {
    let wanted = request.wanted();
    match flows.files.open_boot_file(&path.join("/"), wanted).await? {
        Found::File(file) => Ok(streams::file(file, BYTES)),
        Found::Folder(_) => Err(Refusal::new(
            ErrorCode::NotFound,
            "no such file",
            "put kernels below srv/boot of the data folder",
        )),
    }
}
