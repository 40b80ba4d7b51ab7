//! When the results of a job are sealed: nothing more is taken then.

use fairlead_store::JobState;

use crate::files::FileFlow;
use fairlead_base::errors::FileError;
use fairlead_lifecycle::after_report::Speaker;

/// What comes later than this after a job's end is not taken, ms: a testbox may have been cut off for hours.
const LATE_MS: u64 = 24 * 3_600_000;

impl FileFlow {
    /// Refuses what comes too late: the job has ended, and its results are in, or will not come any more.
    pub(crate) fn check_open(&self, state: &JobState, speaker: Speaker) -> Result<(), FileError> {
        use fairlead_job::DataReadiness::{Complete, Uploaded};
        let are_in = matches!(state.data_readiness, Uploaded | Complete);
        let is_late = self.ctx.clock.wall_ms() > state.end_ms.saturating_add(LATE_MS);
        // What an earlier attempt left is kept beside the present one's results.
        let sealed = is_late || (are_in && speaker == Speaker::Present);
        if !state.stage.is_terminal() || !sealed {
            return Ok(());
        }
        Err(FileError::Sealed {
            id: state.job_id,
            readiness: state.data_readiness,
        })
    }
}
