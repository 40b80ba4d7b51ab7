//! Group reads: what people read of single jobs goes to the store in batches, as writes do.
//!
//! Each read is in real time: a batch is sent after all of its reads began.

use std::sync::Arc;

use fairlead_job::{JobId, Spec};
use fairlead_store::{ItemError, JobStore, StoreError, StoredJob};
use tokio_util::sync::CancellationToken;

use super::group_commit::{GroupCommit, only};
use crate::{clock::Clock, tasks::Tasks};

/// The readers of a replica.
#[derive(Debug, Clone)]
pub struct Reader {
    states: Arc<GroupCommit<JobId, Option<StoredJob>>>,
    bodies: Arc<GroupCommit<JobId, Option<Spec>>>,
}

impl Reader {
    /// Starts the readers. They end when `stop` is cancelled and no read waits.
    pub fn start(
        store: &Arc<dyn JobStore>,
        clock: &Clock,
        stop: &CancellationToken,
        tasks: &Tasks,
    ) -> Self {
        let (for_states, for_bodies) = (Arc::clone(store), Arc::clone(store));
        let states = GroupCommit::new(
            clock,
            Box::new(move |ids: Vec<JobId>| {
                let store = Arc::clone(&for_states);
                Box::pin(async move { each(ids.len(), store.get(&ids).await) })
            }),
        );
        let bodies = GroupCommit::new(
            clock,
            Box::new(move |ids: Vec<JobId>| {
                let store = Arc::clone(&for_bodies);
                Box::pin(async move { each(ids.len(), store.get_bodies(&ids).await) })
            }),
        );
        states.start("read_states", stop, tasks);
        bodies.start("read_bodies", stop, tasks);
        Self { states, bodies }
    }

    /// Returns a job; `None`: it is not in the store.
    pub async fn job(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        only(self.states.write(vec![id]).await).map_err(|error| unread(&error))
    }

    /// Returns the body of a job; `None`: it is not in the store.
    pub async fn body(&self, id: JobId) -> Result<Option<Spec>, StoreError> {
        only(self.bodies.write(vec![id]).await).map_err(|error| unread(&error))
    }
}

/// Returns the result of each of `many` reads of one batch.
fn each<T>(many: usize, read: Result<Vec<T>, StoreError>) -> Vec<Result<T, ItemError>> {
    match read {
        Ok(found) => found.into_iter().map(Ok).collect(),
        Err(error) => {
            let reason = error.to_string();
            let refused = || {
                let reason = reason.clone();
                Err(ItemError::Refused { reason })
            };
            std::iter::repeat_with(refused).take(many).collect()
        }
    }
}

fn unread(error: &ItemError) -> StoreError {
    StoreError::Unavailable {
        reason: error.to_string(),
    }
}
