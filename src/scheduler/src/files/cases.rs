//! Reads how many test cases of a job had which outcome, from its `results.json`.

use fairlead_cases::{Run, Summary};
use fairlead_job::JobId;
use fairlead_store::CaseCounts;

use crate::{
    base::{errors::Refusal, text::cut},
    core::Core,
    files::read::{Found, Wanted},
    lifecycle::result_paths::attempt_root,
};

/// The file that testboxes make of all forms of test results.
const FILE: &str = "results.json";
/// Largest file that is read, bytes: what 20,000 cases take at most.
const BYTES_MAX: u64 = 64 << 20;

impl Core {
    /// The cases of an attempt of a job whose results are in. `None`: it has none, or they are not on this machine.
    pub(crate) async fn count_cases(
        &self,
        id: JobId,
        attempt: Option<u16>,
    ) -> Result<Option<(CaseCounts, Vec<Run>)>, Refusal> {
        let state = self.job(id).await?.state;
        let attempt = attempt.unwrap_or(state.attempt);
        let root = attempt_root(&state.result_root, state.attempt, attempt);
        let path = format!("{}/{FILE}", root.trim_start_matches("/result/"));
        let Ok(Found::File(file)) = self.open_result(&path, Wanted::default()).await else {
            return Ok(None);
        };
        let size = file.size;
        if size > BYTES_MAX {
            tracing::warn!(job_id = %id, size, "results.json is too large to be counted");
            return Ok(None);
        }
        let Ok(bytes) = file.read_all().await else {
            return Ok(None);
        };
        let read = move || Summary::of_json(&bytes, CaseCounts::FAILURES_MAX);
        let summary = match tokio::task::spawn_blocking(read).await {
            Ok(Ok(summary)) => summary,
            Ok(Err(error)) => {
                tracing::debug!(job_id = %id, %error, "results.json holds no test results");
                return Ok(None);
            }
            Err(_) => return Ok(None),
        };
        let counts = counts_of(&summary);
        Ok((!counts.is_empty()).then_some((counts, summary.runs)))
    }
}

fn counts_of(summary: &Summary) -> CaseCounts {
    let number = |many: u64| u32::try_from(many).unwrap_or(u32::MAX);
    let short = |name: &String| cut(name, CaseCounts::FAILURE_BYTES_MAX).to_owned();
    let counts = summary.counts;
    CaseCounts {
        passed: number(counts.passed),
        failed: number(counts.failed.saturating_add(counts.error)),
        skipped: number(counts.skipped),
        first_failures: summary.first_failures.iter().map(short).collect(),
    }
}
