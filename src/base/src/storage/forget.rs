//! Forgets small documents whose time is over.

use fairlead_store::{DocWrite, Expect, StoreError};

use crate::storage::small_doc::{SmallDoc, SmallDocs};

/// Maximum number of documents that are forgotten at a time.
const FORGOTTEN_MAX: u32 = 1_000;

impl SmallDocs {
    /// Forgets documents of a kind whose time ended before `before_ms`, UTC epoch ms, at most 1,000 at a time.
    pub async fn forget_due<T: SmallDoc>(&self, before_ms: u64) -> Result<(), StoreError> {
        let due = self
            .store
            .due_docs(T::KIND, before_ms, FORGOTTEN_MAX)
            .await?;
        let deletes = due.into_iter().map(|doc| DocWrite {
            id: doc.id,
            expect: Expect::Version(doc.version),
            body: None,
        });
        let deletes: Vec<DocWrite> = deletes.collect();
        if !deletes.is_empty() {
            // Another replica may have been faster.
            drop(self.store.put_docs(T::KIND, deletes).await);
        }
        Ok(())
    }
}
