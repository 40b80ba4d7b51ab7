//! Changes a parent, and makes sure of what was read of its shards.

use std::sync::Arc;

use fairlead_store::{JobState, StoredJob};

use crate::shards::ShardFlow;
use fairlead_base::errors::Refusal;

impl ShardFlow {
    /// The parent goes on as this, if it is still as it was read.
    pub(super) async fn set_parent(
        self: &Arc<Self>,
        parent: StoredJob,
        wanted: JobState,
    ) -> Result<(), Refusal> {
        let before = parent.state.clone();
        self.jobs
            .change_known(parent, |state| {
                Ok((*state == before).then(|| wanted.clone()))
            })
            .await?;
        Ok(())
    }

    /// Whether the ends of all shards are the store's for sure. What is only read may vanish, so it is written once more,
    /// all together. `false`: some of them changed meanwhile.
    pub(super) async fn are_sure(
        self: &Arc<Self>,
        shards: Vec<Option<StoredJob>>,
    ) -> Result<bool, Refusal> {
        let read = shards.into_iter().flatten();
        let unsure = read.filter(|shard| !self.jobs.parents.is_sure(shard));
        self.jobs.are_proven(unsure.collect()).await
    }
}
