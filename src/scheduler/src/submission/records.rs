//! Records of submits: small documents that hold the ids of jobs under a key, so that a repetition finds them at any
//! replica.

use fairlead_job::JobId;
use fairlead_store::{DocKind, DocWrite, Expect, ItemError, StoreError, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::submission::SubmissionFlow;
use fairlead_base::{errors::Refusal, storage::group_commit::only};

/// How often a write is tried that nobody acknowledges.
const TRIES_MAX: usize = 4;
/// How long a key is remembered at least, ms: a day.
const KEPT_MS: u64 = 86_400_000;

/// What was submitted first under a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The jobs' ids, in order; none: that one was refused.
    pub(super) ids: Vec<Option<JobId>>,
    /// What was asked for.
    pub(super) print: String,
    pub(super) at_ms: u64,
}

impl Record {
    /// The first of the ids, if it is of a job that was not refused.
    pub(super) fn first(&self) -> Option<JobId> {
        self.ids.first().copied().flatten()
    }
}

impl SubmissionFlow {
    /// Writes down which ids the jobs under this key have. Answers what somebody wrote down before; `None`: nobody did.
    pub(super) async fn write_down(
        &self,
        id: &str,
        own: &Record,
    ) -> Result<Option<Record>, Refusal> {
        let mut expect = Expect::Absent;
        for _ in 0..TRIES_MAX {
            let write = DocWrite {
                id: id.to_owned(),
                expect,
                body: Some(json!(own)),
            };
            match only(self.ctx.store.put_docs(DocKind::Submit, vec![write]).await) {
                Ok(_) => return Ok(None),
                Err(error @ ItemError::NotTaken { .. }) => return Err(error.into()),
                Err(_) => {}
            }
            let Some((version, record)) = self.written_down(id).await? else {
                continue;
            };
            if record.ids == own.ids {
                // Ours, and not acknowledged: only an acknowledged write stays.
                expect = Expect::Version(version);
                continue;
            }
            return Ok(Some(record));
        }
        Err(ItemError::Unknown {
            reason: "the idempotency record was not acknowledged".to_owned(),
        }
        .into())
    }

    /// What is written down under this key, and its version.
    pub(super) async fn written_down(
        &self,
        id: &str,
    ) -> Result<Option<(Version, Record)>, Refusal> {
        let Some(doc) = self.ctx.store.get_doc(DocKind::Submit, id).await? else {
            return Ok(None);
        };
        let record: Record = serde_json::from_value(doc.body).map_err(|error| {
            tracing::error!(%error, "the stored idempotency record is malformed");
            Refusal::Bug
        })?;
        Ok(Some((doc.version, record)))
    }

    /// Forgets keys that are older than a day.
    pub(crate) async fn sweep_submits(&self) -> Result<(), StoreError> {
        let before_ms = self.ctx.clock.wall_ms().saturating_sub(KEPT_MS);
        let docs = self.ctx.store.list_docs(DocKind::Submit).await?;
        let old = docs.into_iter().filter(|doc| {
            let at_ms = doc.body.get("at_ms").and_then(Value::as_u64);
            at_ms.is_none_or(|at_ms| at_ms < before_ms)
        });
        let deletes = old.map(|doc| DocWrite {
            id: doc.id,
            expect: Expect::Version(doc.version),
            body: None,
        });
        let deletes: Vec<DocWrite> = deletes.collect();
        if !deletes.is_empty() {
            // Another replica may have been faster.
            drop(self.ctx.store.put_docs(DocKind::Submit, deletes).await);
        }
        Ok(())
    }
}
