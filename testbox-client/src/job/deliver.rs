//! Delivers the end of a job: the rest of its log, its files, its outputs, and then one last update with stage, health and data
//! readiness. So no job looks finished while its results are missing. Each step may be repeated from the start, also by
//! a restarted agent.

use fairlead_api::{ErrorCode, JobUpdate, UploadBody};
use fairlead_job::DataReadiness;

use super::{
    cases::{CASES, convert},
    context::Context,
    folder::JobFolder,
    journal::{End, Journal},
    log::LogShipper,
    outputs,
    results::{Results, collect},
    retry::{Patience, until_stored},
};
use crate::{JobLine, protocol::Failure};

/// Maximum length of a reported reason, characters.
const REASON_CHARS_MAX: usize = 1000;
/// Number of refused files after which no other file is tried.
const REFUSED_MAX: u32 = 100;

/// Delivers an end. Returns once the scheduler has confirmed or refused it; the refusal is the error.
pub(crate) async fn deliver(
    context: &Context,
    folder: &JobFolder,
    journal: &mut Journal,
    end: End,
    shipper: &mut LogShipper,
    line: &mut JobLine,
) -> Result<(), Failure> {
    let mut readiness = DataReadiness::Norun;
    let mut has_cases = false;
    let mut left_out = Vec::new();
    let mut patience = Patience::new(context.config.store_wait);
    if end.ran {
        let lost = shipper.rest(&mut patience).await;
        (left_out, has_cases) = upload_all(context, folder, journal, &mut patience).await;
        left_out.extend(lost);
        readiness = DataReadiness::Uploaded;
    }
    let (end, outputs) = outputs::put(context, folder, journal, end, &mut patience).await;
    let mut reason = end.reason.clone();
    if end.ran {
        let left_out = (!left_out.is_empty())
            .then(|| format!("results were left out: {}", left_out.join("; ")));
        for missing in end.lost.iter().chain(&left_out) {
            readiness = DataReadiness::Incomplete;
            let separator = if reason.is_empty() { "" } else { "; " };
            reason = format!("{reason}{separator}{missing}");
        }
    }
    let reason = (!reason.is_empty()).then(|| reason.chars().take(REASON_CHARS_MAX).collect());
    line.end(JobUpdate {
        job_health: Some(end.health.clone()),
        exit_code: end.exit_code,
        job_data_readiness: Some(readiness.as_str().to_owned()),
        reason,
        avoid_host: end.avoid_host,
        has_cases,
        outputs,
        image_digest: journal.image_digest.clone(),
        crash_signature: end.crash_signature.clone(),
        peak_memory_mb: end.used.as_ref().and_then(|used| used.peak_memory_mb),
        cpu_ms: end.used.as_ref().and_then(|used| used.cpu_ms),
        ..JobUpdate::default()
    })
    .await
}

/// Uploads all results. Returns the missing ones with reasons, and true if test cases are among the results.
async fn upload_all(
    context: &Context,
    folder: &JobFolder,
    journal: &Journal,
    patience: &mut Patience,
) -> (Vec<String>, bool) {
    let root = folder.result();
    let (files_max, bytes_max) = (
        context.config.result_files_max,
        context.config.result_bytes_max,
    );
    let owner = journal.owner();
    let made = folder.path().join("results.json");
    let collecting = move || {
        let mut results = collect(&root, owner, files_max, bytes_max);
        match convert(&results, &made) {
            Ok(made) => results.files.extend(made),
            Err(error) => results.leave_out(format!("the test results: {error}")),
        }
        results
    };
    let collected = tokio::task::spawn_blocking(collecting).await;
    let mut results = collected.unwrap_or_else(|error| Results {
        files: Vec::new(),
        left_out: vec![error.to_string()],
    });
    let has_cases = results.files.iter().any(|(_, name)| name == CASES);
    let (job_id, token) = (&journal.job_id, &journal.job_token);
    let result_root = journal.result_root.trim_end_matches('/');
    let mut refused = 0;
    for (path, name) in std::mem::take(&mut results.files) {
        let remote = format!("{result_root}/{name}");
        let upload = || {
            let body = UploadBody::File(path.clone());
            context.client.upload(&remote, job_id, token, body)
        };
        if let Err(error) = until_stored(job_id, "upload", patience, upload).await {
            if error.code() == Some(ErrorCode::Closed) {
                // Everything was delivered before, and the answer was lost. The results are sealed.
                tracing::info!(job_id, %error, "the scheduler has the results already");
                break;
            }
            results.leave_out(format!("'{name}': {error}"));
            refused += 1;
            // No further file of this job will be accepted, unless a smaller one fits.
            let is_quota = error.code() == Some(ErrorCode::Quota);
            let is_closed = matches!(error.status(), Some(401 | 403 | 404)) && !is_quota;
            if is_closed || refused >= REFUSED_MAX {
                break;
            }
        }
    }
    (results.left_out, has_cases)
}
