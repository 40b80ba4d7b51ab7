//! Requests about the lab as a whole: how it is, who did what, and actions that are shown first.

use super::{call::Call, error::ClientError, transport::Client};
use crate::{AuditList, Preview, PreviewRequest, Route, Snapshot};

impl Client {
    /// The lab as it is, at most a second old.
    pub async fn overview(&self) -> Result<Snapshot, ClientError> {
        self.run(&Call::to(Route::Overview)?).await?.json()
    }

    /// A page of the audit log, the newest first. `filters`: `who`, `what`, `subject`, `since_ms`, `until_ms`, `limit` and
    /// `after`, with their values.
    pub async fn audit(
        &self,
        filters: Vec<(&'static str, String)>,
    ) -> Result<AuditList, ClientError> {
        let call = Call::to(Route::Audit)?.query(filters);
        self.run(&call).await?.json()
    }

    /// Shows what an action on many jobs, hosts or queues will touch.
    pub async fn make_preview(&self, asked: &PreviewRequest) -> Result<Preview, ClientError> {
        let call = Call::to(Route::MakePreview)?.json(asked)?;
        self.run(&call).await?.json()
    }

    /// A preview, and how far it is done.
    pub async fn preview(&self, id: &str) -> Result<Preview, ClientError> {
        let call = Call::to(Route::Preview { preview: id })?;
        self.run(&call).await?.json()
    }

    /// Does what a preview shows. It goes on after the answer.
    pub async fn run_preview(&self, id: &str) -> Result<Preview, ClientError> {
        let call = Call::to(Route::RunPreview { preview: id })?;
        self.run(&call).await?.json()
    }
}
