//! Acts on one job, host or queue of an action. Each may be repeated.

use std::sync::Arc;

use fairlead_api::{BulkAction, HostReserve, PausedView, PreviewFailure, QueueChange};
use fairlead_job::{JobId, Spec};
use serde_json::json;

use crate::{bulk::BulkFlow, shards::rerun::Again, submission::edits::Edit};
use fairlead_base::errors::{HostError, Refusal};
use fairlead_known::{
    accounts::{Credentials, Who},
    cordons::CordonKind,
    previews::PreviewDoc,
};

impl BulkFlow {
    /// Does it to one of a preview's ids.
    pub(super) async fn act(
        self: &Arc<Self>,
        doc: &PreviewDoc,
        who: &Who,
        id: &str,
    ) -> Result<(), Refusal> {
        use BulkAction as A;
        match doc.action() {
            A::Cancel | A::Terminate | A::Change | A::Hold | A::Release => {
                let job = id.parse::<JobId>().map_err(|_| Refusal::Bug)?;
                self.act_on_job(doc, who, job).await
            }
            // Those of a piece run again together.
            A::Rerun => Err(Refusal::Bug),
            A::Cordon | A::Drain | A::Uncordon | A::Reserve | A::Unreserve => {
                self.act_on_host(doc, who, id).await
            }
            A::PauseQueue | A::PauseLab => {
                let pause = PausedView {
                    by: who.shown().to_owned(),
                    reason: doc.asked.reason.clone(),
                    at_ms: self.ctx.clock.wall_ms(),
                };
                let detail = json!({ "reason": pause.reason });
                self.people.pause_queue(id, Some(pause)).await?;
                self.ctx.audit(&who.name, pausing(doc.action()), id, detail);
                Ok(())
            }
            A::ResumeQueue | A::ResumeLab => {
                self.people.pause_queue(id, None).await?;
                self.ctx
                    .audit(&who.name, pausing(doc.action()), id, json!({}));
                Ok(())
            }
            A::Weights => {
                let change = QueueChange {
                    weight: doc.asked.weights.get(id).copied(),
                    ..QueueChange::default()
                };
                self.people.change_queue(id, &change).await?;
                self.ctx.audit(&who.name, "queue.set", id, json!(change));
                Ok(())
            }
        }
    }

    async fn act_on_job(
        self: &Arc<Self>,
        doc: &PreviewDoc,
        who: &Who,
        job: JobId,
    ) -> Result<(), Refusal> {
        let edit = |hold| Edit::new(hold, Spec::new());
        match doc.action() {
            BulkAction::Cancel => self.jobs.cancel_job(who, job).await,
            BulkAction::Terminate => self.jobs.terminate_job(who, job, None).await,
            BulkAction::Hold => self
                .submission
                .edit_job(who, job, &edit(Some(true))?)
                .await
                .map(drop),
            BulkAction::Release => self
                .submission
                .edit_job(who, job, &edit(Some(false))?)
                .await
                .map(drop),
            _ => {
                let edit = Edit::new(None, doc.set(&self.ctx.sealer)?)?;
                self.submission.edit_job(who, job, &edit).await.map(drop)
            }
        }
    }

    /// Submits jobs of a preview again, as one submit: they keep what they say of each other.
    pub(super) async fn run_again(
        self: &Arc<Self>,
        preview: &str,
        doc: &PreviewDoc,
        who: &Who,
        ids: &[String],
    ) -> Result<Vec<PreviewFailure>, Refusal> {
        let jobs = ids.iter().filter_map(|id| id.parse().ok());
        let jobs: Vec<JobId> = jobs.collect();
        let again = Again {
            set: doc.set(&self.ctx.sealer)?,
            // The same key makes each job once, however often this is repeated.
            key: Some(format!("preview-{preview}")),
            ..Again::default()
        };
        let said = Credentials::vouched(&who.name);
        let submitted = self.shards.rerun_many(&jobs, &again, who, &said).await?;
        let refused = submitted.items.into_iter();
        let refused = refused.filter(|item| !item.code.is_empty());
        let failed = refused.map(|item| PreviewFailure {
            id: item.rerun_of,
            why: item.message,
        });
        Ok(failed.collect())
    }

    async fn act_on_host(&self, doc: &PreviewDoc, who: &Who, host: &str) -> Result<(), Refusal> {
        let reason = &doc.asked.reason;
        self.hosts.know_host(host).await?;
        let (what, detail) = match doc.action() {
            BulkAction::Cordon | BulkAction::Drain => {
                let is_drain = doc.action() == BulkAction::Drain;
                let how = if is_drain {
                    CordonKind::Drain
                } else {
                    CordonKind::Cordon
                };
                self.hosts
                    .close_host(host, how, reason, who.shown())
                    .await?;
                (
                    "host.cordon",
                    json!({ "reason": reason, "drain": is_drain }),
                )
            }
            BulkAction::Reserve => {
                let asked = HostReserve {
                    accounts: doc.asked.accounts.clone(),
                    until: format!("+{}h", doc.asked.hours),
                    reason: reason.clone(),
                };
                self.hosts.reserve_host(host, &asked, who.shown()).await?;
                ("host.reserve", json!(asked))
            }
            BulkAction::Unreserve => {
                match self.hosts.unreserve_host(host).await {
                    Err(Refusal::Host(HostError::NotReserved(_))) => return Ok(()),
                    outcome => outcome?,
                }
                ("host.unreserve", json!({}))
            }
            _ => {
                match self.hosts.open_host(host).await {
                    Err(Refusal::Host(HostError::NotClosed(_))) => return Ok(()),
                    outcome => outcome?,
                }
                ("host.uncordon", json!({}))
            }
        };
        self.ctx.audit(&who.name, what, host, detail);
        Ok(())
    }
}

/// What the audit log calls it.
fn pausing(action: BulkAction) -> &'static str {
    match action {
        BulkAction::PauseQueue => "queue.pause",
        BulkAction::ResumeQueue => "queue.resume",
        BulkAction::PauseLab => "lab.pause",
        _ => "lab.resume",
    }
}
