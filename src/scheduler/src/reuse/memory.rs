//! Results that others may take, and that are not written yet.

use std::sync::Arc;

use fairlead_store::JobState;

use crate::jobs::listener::Listener;
use fairlead_known::reuse::{PendingResults, note_end};

/// Ends of jobs whose results are to be learned.
#[derive(Debug)]
pub(crate) struct EndsToLearn(pub(crate) Arc<PendingResults>);

impl Listener for EndsToLearn {
    fn changed(&self, _before: &JobState, after: &JobState) {
        note_end(&self.0, after);
    }
}
