//! Notifies waiting requests when a job changes.

use fairlead_job::JobId;
use tokio::sync::broadcast;

/// Broadcasts the ids of changed jobs to waiting requests.
#[derive(Debug)]
pub struct Changes(broadcast::Sender<JobId>);

/// Number of changes that a listener may lag behind before it must check everything again.
const CHANGES_KEPT: usize = 4096;

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(CHANGES_KEPT))
    }
}

impl Changes {
    pub fn announce(&self, id: JobId) {
        // A send without receivers is fine.
        let _ = self.0.send(id);
    }

    pub fn listen(&self) -> broadcast::Receiver<JobId> {
        self.0.subscribe()
    }
}
