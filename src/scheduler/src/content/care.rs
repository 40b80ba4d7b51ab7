//! Collection and checks of the content store, and how it is.
//!
//! Each replica looks once an hour whether anybody collected within a day. The content store's own lock lets one of them
//! at it, and a document of the job store says when it was done. A repeat does no harm.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use fairlead_api::{ContentChecked, ContentCollected, StoreProblem};
use fairlead_content::{
    Checked, CollectOptions, Collected, ContentError, ContentState, Digest, Marks,
};
use fairlead_job::Input;
use fairlead_store::{DocKind, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::content::ContentFlow;
use fairlead_base::{
    errors::{ContentFault, Refusal},
    storage::small_doc::SmallDoc,
};

/// The id of the one document.
const COLLECTED_DOC: &str = "content_collected";
/// How often a replica looks.
const LOOK_EVERY: Duration = Duration::from_hours(1);
/// How often it is done, ms: a day.
const EVERY_MS: u64 = 24 * 3_600_000;
/// Most problems that a check tells.
const PROBLEMS_MAX: usize = 100;

/// When content was last collected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct LastCollected {
    /// UTC epoch ms. Not called `at_ms`: nobody must look at it then.
    ended_ms: u64,
}

impl SmallDoc for LastCollected {
    const KIND: DocKind = DocKind::Setting;
}

/// What kept jobs and timers name.
pub(super) struct JobMarks<'c>(pub(super) &'c ContentFlow);

#[async_trait]
impl Marks for JobMarks<'_> {
    async fn named(&self, ids: &[Digest]) -> Result<Vec<bool>, ContentError> {
        let ids: Vec<String> = ids.iter().map(Digest::to_string).collect();
        let unread = |error: StoreError| ContentError::Marks(error.to_string());
        let mut named = self.0.ctx.store.named(&ids).await.map_err(unread)?;
        let by_timers = self.by_timers().await.map_err(unread)?;
        for (named, id) in named.iter_mut().zip(&ids) {
            *named |= by_timers.contains(id);
        }
        Ok(named)
    }
}

impl JobMarks<'_> {
    /// What timers name: their next run needs it, whenever that is.
    async fn by_timers(&self) -> Result<BTreeSet<String>, StoreError> {
        let timers = self.0.ctx.store.list_docs(DocKind::Timer).await?;
        let jobs = timers
            .iter()
            .filter_map(|doc| doc.body.get("job")?.as_object());
        Ok(jobs.flat_map(Input::ids).collect())
    }
}

impl ContentFlow {
    /// Collects once a day, until the replica stops.
    pub(crate) async fn collect_daily(self: Arc<Self>) {
        // Not at the start: a replica has enough to do then.
        let pause = || {
            self.ctx
                .tasks
                .until_draining(self.ctx.clock.rest(LOOK_EVERY))
        };
        while pause().await.is_some() {
            match self.collect_if_due().await {
                Ok(()) | Err(Refusal::Content(ContentFault::CollectedByAnother(_))) => {}
                Err(refusal) => {
                    tracing::error!(error = %refusal, "inputs and outputs could not be collected; tried again in an hour");
                }
            }
        }
    }

    async fn collect_if_due(self: &Arc<Self>) -> Result<(), Refusal> {
        let last = self.ctx.docs.read::<LastCollected>(COLLECTED_DOC).await?;
        let last_ms = last.map_or(0, |last| last.doc.ended_ms);
        let now_ms = self.ctx.clock.wall_ms();
        // After a clock step backwards it is due, too.
        if (last_ms..last_ms.saturating_add(EVERY_MS)).contains(&now_ms) {
            return Ok(());
        }
        let collected = self.collect_content(false).await?;
        if collected.manifests_removed > 0 || collected.chunks_removed > 0 {
            let replica = &self.ctx.config.replica;
            self.ctx
                .audit(replica, "content.collect", "content", json!(collected));
        }
        Ok(())
    }

    /// Removes what no job names and nobody keeps. It goes on when its caller hangs up, and ends when the replica stops.
    pub(crate) async fn collect_content(
        self: &Arc<Self>,
        dry_run: bool,
    ) -> Result<ContentCollected, Refusal> {
        let flow = Arc::clone(self);
        let work = self.ctx.tasks.spawn(async move {
            let collected = flow.ctx.tasks.until_draining(flow.collect_now(dry_run));
            collected.await.unwrap_or(Err(Refusal::Stopping))
        });
        work.await.map_err(|error| broke(&error))?
    }

    async fn collect_now(&self, dry_run: bool) -> Result<ContentCollected, Refusal> {
        let options = CollectOptions {
            grace: Duration::from_millis(self.ctx.config.content_grace_ms),
            dry_run,
            now_ms: self.ctx.clock.wall_ms(),
            holder: self.ctx.config.replica.clone(),
        };
        let collected = self.ctx.content.collect(&options, &JobMarks(self)).await?;
        if !dry_run {
            self.ctx.metrics.collections.inc();
            self.ctx.metrics.states.content_collected(&collected);
            let doc = LastCollected {
                ended_ms: self.ctx.clock.wall_ms(),
            };
            let next = async |_| -> Result<LastCollected, Refusal> { Ok(doc.clone()) };
            self.ctx.docs.change(COLLECTED_DOC, next).await?;
        }
        Ok(told(collected))
    }

    /// Reads all that is stored, and sets aside what is damaged. It goes on when its caller hangs up, and ends when the
    /// replica stops.
    pub(crate) async fn check_content(self: &Arc<Self>) -> Result<ContentChecked, Refusal> {
        let flow = Arc::clone(self);
        let work = self.ctx.tasks.spawn(async move {
            let checked = flow
                .ctx
                .tasks
                .until_draining(flow.ctx.content.check())
                .await;
            Ok(problems_of(&checked.ok_or(Refusal::Stopping)??))
        });
        work.await.map_err(|error| broke(&error))?
    }

    /// What is wrong with the content store, as this replica sees it.
    pub(crate) fn content_problem(&self) -> Option<StoreProblem> {
        let health = self.ctx.content.health();
        let (since_ms, problem) = match health.state {
            ContentState::Well => return None,
            ContentState::Throttled { since_ms, times } => {
                let problem = format!("it asks for fewer requests, {times} times by now");
                (since_ms, problem)
            }
            ContentState::Unreachable { since_ms, problem } => (since_ms, problem),
        };
        let seconds = self.ctx.clock.wall_ms().saturating_sub(since_ms) / 1_000;
        Some(StoreProblem { problem, seconds })
    }
}

fn broke(error: &tokio::task::JoinError) -> Refusal {
    tracing::error!(%error, "the care for inputs and outputs failed in its task");
    Refusal::Bug
}

fn told(collected: Collected) -> ContentCollected {
    ContentCollected {
        manifests: collected.manifests,
        manifests_removed: collected.manifests_removed,
        chunks: collected.chunks,
        chunks_removed: collected.chunks_removed,
        bytes_removed: collected.bytes_removed,
        bytes_kept: collected.bytes_kept,
    }
}

fn problems_of(checked: &Checked) -> ContentChecked {
    let damaged = checked.damaged_first.iter();
    let damaged = damaged.map(|name| format!("{name} is damaged, and was set aside"));
    let broken = checked.broken_first.iter();
    let broken = broken.map(|id| format!("{id} cannot be read: a chunk of it is missing"));
    let files = checked.broken_files.iter();
    let files = files.map(|name| format!("{name} cannot be read: a chunk of it is missing"));
    ContentChecked {
        manifests: checked.manifests,
        chunks: checked.chunks,
        bytes: checked.bytes,
        problems: damaged
            .chain(broken)
            .chain(files)
            .take(PROBLEMS_MAX)
            .collect(),
        problems_total: checked.damaged.saturating_add(checked.broken),
    }
}
