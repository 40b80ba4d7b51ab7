//! Notifies waiting requests when a job changes.

use fairlead_job::JobId;
use tokio::sync::broadcast;

/// Tells whoever waits that a job changed.
#[derive(Debug)]
pub struct Changes(broadcast::Sender<JobId>);

/// A slow listener that falls this far behind looks at everything again.
const CHANGES_KEPT: usize = 4096;

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(CHANGES_KEPT))
    }
}

impl Changes {
    pub fn announce(&self, id: JobId) {
        // Nobody listening is fine.
        let _ = self.0.send(id);
    }

    pub fn listen(&self) -> broadcast::Receiver<JobId> {
        self.0.subscribe()
    }
}
