//! Handlers of testboxes' requests and reports.

use std::sync::Arc;

use fairlead_api::{ConsumeRequest, ErrorCode, HeartbeatRequest};
use warp::reply::Response;

use crate::http::{reply::ok, request::job_id};
use crate::{
    flows::Flows,
    hosts::{boot_script::BootType, network_boot::Came},
    http::{
        reply::{text, typed},
        request::Request,
    },
};
use fairlead_base::{budget::Identity, errors::Refusal};
use fairlead_known::{accounts::Who, work_request::WorkRequest};
use fairlead_lifecycle::report::Report;

/// Largest body of a testbox's request, bytes: some thousand jobs and cache folders are named in it at most.
const BODY_MAX: usize = 1 << 20;

pub(super) async fn consume(
    flows: Arc<Flows>,
    mut request: Request,
    who: Who,
    host: &str,
) -> Result<Response, Refusal> {
    request.belongs_to(Identity::Reserve);
    let body: ConsumeRequest = request.read_json(BODY_MAX).await?;
    let ask = WorkRequest::of(host, body)?.by(&who.name);
    flows.hosts.check_group(&who, host, &ask.offerer.group)?;
    // What it was read into is not kept while the host waits.
    drop(request);
    let _presence = flows.hosts.presence(host, &ask.offerer.session)?;
    Ok(ok(&flows.hosts.consume(ask).await?))
}

pub(super) async fn heartbeat(
    flows: Arc<Flows>,
    mut request: Request,
    host: &str,
) -> Result<Response, Refusal> {
    request.belongs_to(Identity::Reserve);
    let beat: HeartbeatRequest = request.read_json(BODY_MAX).await?;
    let _presence = flows.hosts.presence(host, &beat.session)?;
    Ok(ok(&flows.hosts.heartbeat(host, beat).await?))
}

pub(super) async fn dispatch(
    flows: Arc<Flows>,
    request: Request,
    who: Who,
    old_type: Option<&str>,
) -> Result<Response, Refusal> {
    let query = &request.query;
    let old_type = old_type.map(|kind| kind.strip_prefix("boot.").unwrap_or(kind));
    let boot_type = old_type.or_else(|| query.get("boot_type"));
    let boot_type = BootType::parse(boot_type.unwrap_or("ipxe"))?;
    let host = request.host();
    let came = Came {
        host: &host,
        address: request.address(),
    };
    let answer = flows.hosts.boot(boot_type, query, &came, &who).await?;
    let kind = if answer.json {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    Ok(typed(200, kind, answer.text.into_bytes()))
}

/// The same under old names, which name the job in the query.
pub(super) async fn old_report(
    flows: Arc<Flows>,
    request: Request,
    who: Option<Who>,
) -> Result<Response, Refusal> {
    let Some(id) = request.query.get("job_id").map(str::to_owned) else {
        let hint = "job_id=ID in the query";
        return Err(Refusal::new(ErrorCode::BadQuery, "job_id: missing", hint));
    };
    update(flows, request, who, &id).await
}

pub(super) async fn update(
    flows: Arc<Flows>,
    request: Request,
    who: Option<Who>,
    id: &str,
) -> Result<Response, Refusal> {
    let id = job_id(id)?;
    let mut report = report_of(&request)?;
    let mut runs = None;
    if report.outputs.is_some() || report.brings_cases() {
        // Nothing is read for a token before it is judged.
        let token = report.token.as_deref();
        let job = flows.jobs.job_of_token(id, token).await?.state;
        flows
            .jobs
            .speaker(&job, token, report.attempt, who.as_ref())?;
        if let Some(outputs) = report.outputs {
            flows.content.check_outputs(&job, outputs).await?;
        }
        if report.brings_cases() {
            let counted = flows.files.count_cases(&job, report.attempt).await?;
            (report.cases, runs) = counted.unzip();
        }
    }
    if report.ends() {
        flows.files.know_uploads(id).await?;
    }
    let changed = flows.jobs.report(id, &report, who.as_ref()).await?;
    if let Some(runs) = runs.filter(|_| changed.is_change()) {
        flows.shards.learn_tests(&changed.before.state, runs);
    }
    let answer = match report.renew_s {
        Some(_) => fairlead_base::clock::utc_text(changed.after.state.deadline_ms),
        None => "Success".to_owned(),
    };
    Ok(text(200, answer))
}

fn report_of(request: &Request) -> Result<Report, Refusal> {
    let report = Report::of(request.query.pairs())?;
    Ok(Report {
        token: request.job_token().map(str::to_owned),
        ..report
    })
}

/// A node of a cluster waits for the others.
pub(super) async fn wait_peer(
    flows: Arc<Flows>,
    request: Request,
    id: &str,
) -> Result<Response, Refusal> {
    let id = job_id(id)?;
    let report = report_of(&request)?;
    Ok(ok(&flows.waiting.wait_for_peers(id, &report).await?))
}
