//! Reads how many test cases of a job had which outcome, from its `results.json`.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use fairlead_cases::{Run, Summary};
use fairlead_store::{CaseCounts, JobState};

use tokio::runtime::Handle;

use crate::{
    files::FileFlow,
    files::read::{Found, OpenFile, Wanted},
};
use fairlead_base::{budget::Identity, errors::Refusal, text::cut};
use fairlead_lifecycle::result_paths::attempt_root;

/// The file that testboxes make of all forms of test results.
const FILE: &str = "results.json";
/// Largest file that is read, bytes: what 20,000 cases take at most.
const BYTES_MAX: u64 = 64 << 20;

impl FileFlow {
    /// The cases of an attempt of a job whose results are in, whose reporter was believed. `None`: it has none, or they
    /// are not on this machine. Refused while its account has its share of memory.
    pub(crate) async fn count_cases(
        &self,
        state: &JobState,
        attempt: Option<u16>,
    ) -> Result<Option<(CaseCounts, Vec<Run>)>, Refusal> {
        let id = state.job_id;
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
        // One text of it may be as long as all of it.
        let memory = &self.ctx.budget.memory;
        let _charge = memory.take(Identity::Account(state.account.clone()), size)?;
        let pieces = Pieces {
            file,
            piece: Bytes::new(),
            runtime: Handle::current(),
        };
        let read = move || Summary::of_json(pieces, CaseCounts::FAILURES_MAX);
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

/// A file as a reader, for a thread that may wait.
struct Pieces {
    file: OpenFile,
    piece: Bytes,
    runtime: Handle,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let next = self.runtime.block_on(self.file.next());
            self.piece = next.map_err(io::Error::other)?.unwrap_or_default();
        }
        let many = self.piece.len().min(into.len());
        if let Some(part) = into.get_mut(..many) {
            self.piece.copy_to_slice(part);
        }
        Ok(many)
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
