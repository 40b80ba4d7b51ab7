//! The traces of one key of the lab: seals documents anew with another key, and counts the jobs that need this one.

use std::ops::Range;

use fairlead_job::Stage;
use fairlead_store::{
    Doc, DocKind, DocWrite, Expect, JobStore, Search, SearchOrder, StoreError, StoredJob,
};
use serde_json::Value;

use fairlead_base::{
    ring::Ring,
    sealing::{SEALED, SECRETS, Sealer},
};
use fairlead_known::{account_notify::AccountNotify, previews::PreviewDoc};

/// Jobs that are read together.
const READ_JOBS: u32 = 500;
/// How often a document is written when somebody else was faster.
const TRIES_MAX: usize = 8;
/// Kinds of documents that hold something sealed for longer than a login lasts.
const KINDS: [DocKind; 3] = [DocKind::Account, DocKind::Preview, DocKind::Timer];

/// Jobs that have not ended and need the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needed {
    /// They wait with secrets that it sealed.
    pub(super) waiting: u64,
    /// They run with tokens that it signed, or with secrets that it sealed.
    pub(super) running: u64,
}

/// One key, and all others.
#[derive(Debug)]
pub(super) struct OfKey<'s> {
    pub(super) store: &'s dyn JobStore,
    /// Of all keys.
    pub(super) all: Sealer,
    /// Of all but this one.
    pub(super) others: Sealer,
    /// When it signed tokens, UTC epoch ms.
    pub(super) signed: Range<u64>,
}

impl<'s> OfKey<'s> {
    /// `sealer`: of a ring.
    pub(super) fn new(
        store: &'s dyn JobStore,
        ring: &Ring,
        id: &str,
        signed: Range<u64>,
        sealer: impl Fn(Ring) -> Sealer,
    ) -> Self {
        let mut others = ring.clone();
        others.retire(id, 0);
        Self {
            store,
            all: sealer(ring.clone()),
            others: sealer(others),
            signed,
        }
    }

    /// What this key alone opens.
    fn opened(&self, purpose: &str, sealed: &str) -> Option<String> {
        if self.others.open_text(purpose, sealed).is_some() {
            return None;
        }
        self.all.open_text(purpose, sealed)
    }

    /// Counts the jobs that have not ended and need it.
    pub(super) async fn count(&self) -> Result<Needed, StoreError> {
        self.store.refresh().await?;
        let stages = Stage::ALL.iter().filter(|stage| !stage.is_terminal());
        let mut search = Search {
            stages: stages.copied().collect(),
            order: SearchOrder::OldestFirst,
            limit: READ_JOBS,
            ..Search::default()
        };
        let mut needed = Needed::default();
        loop {
            let page = self.store.search(&search).await?;
            search.after = page.jobs.last().map(|job| job.state.job_id);
            let ids: Vec<_> = page.jobs.iter().map(|job| job.state.job_id).collect();
            let bodies = self.store.get_bodies(&ids).await?;
            for (job, body) in page.jobs.iter().zip(bodies) {
                let sealed = body.and_then(|body| Some(body.get(SEALED)?.as_str()?.to_owned()));
                let is_sealed = sealed.is_some_and(|text| self.opened(SECRETS, &text).is_some());
                if job.state.stage.is_held() {
                    needed.running += u64::from(is_sealed || self.has_signed(job));
                } else {
                    needed.waiting += u64::from(is_sealed);
                }
            }
            if !page.more {
                return Ok(needed);
            }
        }
    }

    /// Whether it signed the token of the job's present attempt.
    fn has_signed(&self, job: &StoredJob) -> bool {
        self.signed.contains(&job.state.dispatch_ms)
    }

    /// Seals with another key what documents hold. Answers how many those were.
    pub(super) async fn seal_anew(&self) -> Result<u64, StoreError> {
        let mut changed = 0;
        for kind in KINDS {
            for doc in self.store.list_docs(kind).await? {
                changed += u64::from(self.seal_doc_anew(kind, doc).await?);
            }
        }
        Ok(changed)
    }

    async fn seal_doc_anew(&self, kind: DocKind, listed: Doc) -> Result<bool, StoreError> {
        let mut found = Some(listed);
        for _ in 0..TRIES_MAX {
            let Some(mut doc) = found else {
                return Ok(false);
            };
            let Some(text) = self.anew(kind, &mut doc) else {
                return Ok(false);
            };
            let write = DocWrite {
                id: doc.id.clone(),
                expect: Expect::Version(doc.version),
                body: Some(text),
            };
            let written = self.store.put_docs(kind, vec![write]).await;
            if matches!(written.first(), Some(Ok(_))) {
                return Ok(true);
            }
            found = self.store.get_doc(kind, &doc.id).await?;
        }
        Err(StoreError::Unavailable {
            reason: "a document could not be sealed with another key".to_owned(),
        })
    }

    /// The body of a document with what this key alone opens sealed by another one; `None`: there is nothing.
    fn anew(&self, kind: DocKind, doc: &mut Doc) -> Option<Value> {
        let text = |body: &Value, at: &str| body.pointer(at)?.as_str().map(str::to_owned);
        let (purpose, at) = match kind {
            DocKind::Account => (AccountNotify::purpose(&doc.id), "/notify/sealed"),
            DocKind::Preview => {
                let by = text(&doc.body, "/by").unwrap_or_default();
                (PreviewDoc::purpose(&by), "/set_sealed")
            }
            _ => (SECRETS.to_owned(), "/job/secrets_sealed"),
        };
        let opened = self.opened(&purpose, &text(&doc.body, at)?)?;
        let sealed = self.others.seal_text(&purpose, &opened)?;
        *doc.body.pointer_mut(at)? = Value::String(sealed);
        Some(doc.body.take())
    }
}
