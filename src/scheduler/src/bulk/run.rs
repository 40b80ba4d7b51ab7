//! Runs previews, piece by piece, and goes on with those whose replica is gone.

use std::sync::Arc;

use fairlead_api::{BulkAction, ErrorCode, Preview, PreviewFailure, PreviewState};
use fairlead_store::StoreError;
use futures_util::{StreamExt, stream};

use super::{
    preview::{LIVES_MS, is_for_admins, unknown},
    targets::TARGETS_MAX,
};
use crate::bulk::BulkFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::{accounts::Who, previews::PreviewDoc};

/// Acts of one piece: then it is noted how far it is.
const PIECE: usize = 200;
/// Acts side by side.
const ABREAST: usize = 32;
/// A replica that does not note anything for so long is taken to be gone, ms.
const SILENT_MS: u64 = 15_000;
/// Previews that are looked at in one round.
const DUE_MAX: u32 = 20;

impl BulkFlow {
    /// Begins to do what a preview shows. Whoever asks again is told how far it is.
    pub(crate) async fn run_preview(
        self: &Arc<Self>,
        who: &Who,
        id: &str,
    ) -> Result<Preview, Refusal> {
        let (now_ms, runner) = (self.ctx.clock.wall_ms(), self.new_runner());
        // Rights are looked at here; those of each job again when it is touched.
        self.preview(who, id).await?;
        let next = async |known: Option<PreviewDoc>| -> Result<PreviewDoc, Refusal> {
            let doc = known.ok_or_else(|| unknown(id))?;
            if doc.state != PreviewState::Previewed {
                return Ok(doc);
            }
            if doc.made_ms.saturating_add(LIVES_MS) <= now_ms {
                return Err(Refusal::new(
                    ErrorCode::Conflict,
                    format!("preview '{id}' is older than 10 minutes: the lab may have changed"),
                    "make a new preview, and look at it",
                ));
            }
            Ok(taken_by(&runner, doc, now_ms))
        };
        let stored = self.ctx.docs.change(id, next).await?;
        if stored.doc.runner == runner {
            self.begin_preview(id, runner.clone());
        }
        Ok(self.shown(id, &stored.doc))
    }

    /// Names one who does an action: each begin has a name of its own, so no two of them go on beside each other.
    fn new_runner(&self) -> String {
        format!(
            "{}/{}",
            self.ctx.replicas.run,
            uuid::Uuid::new_v4().simple()
        )
    }

    fn begin_preview(self: &Arc<Self>, id: &str, runner: String) {
        let (flow, id) = (Arc::clone(self), id.to_owned());
        self.ctx.tasks.spawn(async move {
            if let Err(error) = flow.carry_on(&id, &runner).await {
                tracing::warn!(preview = id, %error, "an action was interrupted; a replica goes on with it soon");
            }
        });
    }

    /// Goes on with actions whose replica has not been heard of.
    pub(crate) async fn take_over_previews(self: &Arc<Self>) -> Result<(), StoreError> {
        let now_ms = self.ctx.clock.wall_ms();
        let kind = fairlead_store::DocKind::Preview;
        for due in self.ctx.store.due_docs(kind, now_ms, DUE_MAX).await? {
            let runner = self.new_runner();
            let next = async |known: Option<PreviewDoc>| -> Result<PreviewDoc, Refusal> {
                let doc = known.ok_or_else(|| unknown(&due.id))?;
                if doc.state != PreviewState::Running || doc.at_ms > now_ms {
                    return Ok(doc);
                }
                Ok(taken_by(&runner, doc, now_ms))
            };
            match self.ctx.docs.change(&due.id, next).await {
                Ok(stored) if stored.doc.runner == runner => {
                    self.begin_preview(&due.id, runner.clone());
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(preview = due.id, %error, "another replica goes on with this action");
                }
            }
        }
        Ok(())
    }

    /// Does piece after piece, as long as this is the runner.
    async fn carry_on(self: &Arc<Self>, id: &str, runner: &str) -> Result<(), Refusal> {
        loop {
            let stored = self.ctx.docs.read::<PreviewDoc>(id).await?;
            let doc = stored.ok_or_else(|| unknown(id))?.doc;
            if doc.state != PreviewState::Running || doc.runner != runner {
                return Ok(());
            }
            if self.ctx.tasks.draining.is_cancelled() {
                return Err(Refusal::Stopping);
            }
            let tried = usize::try_from(doc.tried).unwrap_or(usize::MAX);
            let piece = doc.ids.iter().skip(tried).take(piece_of(doc.action()));
            let piece: Vec<String> = piece.cloned().collect();
            let failed = self.do_piece(id, &doc, &piece).await;
            let now_ms = self.ctx.clock.wall_ms();
            let next = async |known: Option<PreviewDoc>| -> Result<PreviewDoc, Refusal> {
                let mut doc = known.ok_or_else(|| unknown(id))?;
                if doc.runner != runner {
                    return Ok(doc);
                }
                doc.tried = u64::try_from(tried.saturating_add(piece.len())).unwrap_or(u64::MAX);
                doc.failed.extend(failed.iter().cloned());
                let is_done = tried.saturating_add(piece.len()) >= doc.ids.len();
                (doc.state, doc.at_ms) = if is_done {
                    (PreviewState::Done, 0)
                } else {
                    (PreviewState::Running, now_ms.saturating_add(SILENT_MS))
                };
                Ok(doc)
            };
            self.ctx.docs.change(id, next).await?;
        }
    }

    /// Does it to each of these; answers those that were not changed, and why.
    async fn do_piece(
        self: &Arc<Self>,
        preview: &str,
        doc: &PreviewDoc,
        piece: &[String],
    ) -> Vec<PreviewFailure> {
        let Some(who) = self.people.accounts.named(&doc.by) else {
            return all_failed(piece, &format!("account '{}' is gone", doc.by));
        };
        let may = if is_for_admins(doc.action()) {
            who.require_admin()
        } else {
            Ok(())
        };
        if let Err(refusal) = may {
            return all_failed(piece, &refusal.to_string());
        }
        let who = &who;
        if doc.action() == BulkAction::Rerun {
            let ran = Box::pin(self.run_again(preview, doc, who, piece)).await;
            return ran.unwrap_or_else(|refusal| all_failed(piece, &refusal.to_string()));
        }
        let acts = stream::iter(piece.to_vec()).map(|id| async move {
            let outcome = Box::pin(self.act(doc, who, &id)).await;
            outcome.err().map(|refusal| PreviewFailure {
                id,
                why: refusal.to_string(),
            })
        });
        let outcomes = acts.buffered(ABREAST).collect::<Vec<_>>().await;
        outcomes.into_iter().flatten().collect()
    }

    /// Forgets previews of yesterday.
    pub(crate) async fn forget_previews(&self) -> Result<(), StoreError> {
        let old_ms = self.ctx.clock.wall_ms().saturating_sub(24 * 3_600_000);
        for (id, stored) in self.ctx.docs.list::<PreviewDoc>().await? {
            let is_open = stored.doc.state == PreviewState::Running;
            if stored.doc.made_ms < old_ms
                && !is_open
                && let Err(error) = self.ctx.docs.put(&id, Some(&stored), None).await
            {
                tracing::debug!(preview = id, %error, "an old preview was not forgotten here");
            }
        }
        Ok(())
    }
}

/// How many are done in one piece. All that run again are one submit.
fn piece_of(action: BulkAction) -> usize {
    if action == BulkAction::Rerun {
        TARGETS_MAX
    } else {
        PIECE
    }
}

/// The preview, done by this runner from now on.
fn taken_by(runner: &str, doc: PreviewDoc, now_ms: u64) -> PreviewDoc {
    PreviewDoc {
        state: PreviewState::Running,
        runner: runner.to_owned(),
        at_ms: now_ms.saturating_add(SILENT_MS),
        ..doc
    }
}

fn all_failed(piece: &[String], why: &str) -> Vec<PreviewFailure> {
    let failed = piece.iter().map(|id| PreviewFailure {
        id: id.clone(),
        why: why.to_owned(),
    });
    failed.collect()
}
