//! Small documents: how each is read, decoded, and changed by compare-and-set.
//!
//! A stored document has its `format`, the fields that this version knows, and perhaps fields of newer versions. A
//! rewrite keeps the latter, so that replicas of two versions can work side by side. A document with a newer `format`
//! is refused. So is one that is malformed: no default takes the place of either. Each is told once in the log, and
//! counted.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use dashmap::DashMap;
use fairlead_api::ErrorCode;
use fairlead_store::{
    Doc, DocFind, DocKind, DocWrite, Expect, ItemError, JobStore, StoreError, Version,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    errors::Refusal,
    metrics::Counters,
    storage::group_commit::{Writer, only},
};

/// Maximum number of tries of a change if another writer was faster or the store did not answer.
const TRIES_MAX: usize = 8;
/// Maximum number of remembered unreadable documents that were logged.
const TOLD_MAX: usize = 10_000;

/// Content of the documents of a kind.
pub trait SmallDoc: Serialize + DeserializeOwned {
    /// Kind of the documents.
    const KIND: DocKind;
    /// Newest layout that this version reads, and the layout that it writes. Documents without a format have the
    /// first.
    const FORMAT: u32 = 1;

    /// Returns the value that a list shows in place of an unreadable document; `None`: none.
    fn stand_in() -> Option<Self> {
        None
    }
}

/// Layout of a stored document. Writers borrow its parts.
#[derive(Serialize, Deserialize)]
struct Body<T, K> {
    #[serde(default)]
    format: u32,
    #[serde(flatten)]
    doc: T,
    #[serde(flatten)]
    kept: K,
}

/// A document as it was read or written.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    pub version: Version,
    pub doc: T,
    /// Fields of newer versions.
    pub(super) kept: Map<String, Value>,
}

impl<T: SmallDoc> Stored<T> {
    /// Returns the document after a write that made it this one.
    #[must_use]
    pub fn written(self, version: Version, doc: T) -> Self {
        Self {
            version,
            doc,
            ..self
        }
    }

    fn of(doc: Doc) -> Result<Self, DocError> {
        let Doc { id, version, body } = doc;
        let format = body.get("format").and_then(Value::as_u64).unwrap_or(0);
        let (kind, known) = (T::KIND, T::FORMAT);
        if format > u64::from(known) {
            return Err(DocError::Newer {
                kind,
                id,
                format,
                known,
            });
        }
        match Body::deserialize(body) {
            Ok(Body { doc, kept, .. }) => Ok(Self { version, doc, kept }),
            Err(error) => Err(DocError::Malformed {
                kind,
                id,
                version,
                reason: error.to_string(),
            }),
        }
    }
}

/// Error of a small document.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DocError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Item(#[from] ItemError),
    /// A newer version wrote it.
    #[error("document '{id}' of '{}' has format {format}; this replica reads formats up to {known}", .kind.as_str())]
    Newer {
        kind: DocKind,
        id: String,
        format: u64,
        known: u32,
    },
    /// It is no object, or a field has a wrong type.
    #[error("document '{id}' of '{}' is malformed: {reason}", .kind.as_str())]
    Malformed {
        kind: DocKind,
        id: String,
        version: Version,
        reason: String,
    },
}

/// Returns the way in which people repair a malformed document.
fn repair_of(kind: DocKind, id: &str) -> String {
    match kind {
        DocKind::Host | DocKind::Session | DocKind::Lease => {
            format!("an admin can repair it: fairlead hosts reset {id}")
        }
        DocKind::Account => {
            format!("an admin can replace it: fairlead account add {id} --role ROLE")
        }
        DocKind::Queue => format!("an admin can delete it: fairlead queues delete {id}"),
        DocKind::Closure => format!("an admin can delete it: fairlead hosts uncordon {id}"),
        DocKind::Reservation => format!("an admin can delete it: fairlead hosts unreserve {id}"),
        _ => "restore the document from a backup of the store".to_owned(),
    }
}

impl From<DocError> for Refusal {
    fn from(error: DocError) -> Self {
        let (message, hint) = match error {
            DocError::Store(error) => return error.into(),
            DocError::Item(error) => return error.into(),
            DocError::Newer { .. } => (error.to_string(), "upgrade this replica".to_owned()),
            // The log has the reason: it may show what the document holds.
            DocError::Malformed { kind, ref id, .. } => (
                format!("document '{id}' of '{}' is malformed", kind.as_str()),
                repair_of(kind, id),
            ),
        };
        Self::new(ErrorCode::UnreadableDocument, message, hint)
    }
}

/// Documents that this replica read or wrote last, by id.
pub type Memory<T> = DashMap<String, Stored<T>>;

/// The small documents of a lab.
#[derive(Debug)]
pub struct SmallDocs {
    pub(super) store: Arc<dyn JobStore>,
    /// Writer; `None` in a command that opened the store itself.
    writer: Option<Writer>,
    /// Versions that were logged as unreadable.
    told: Mutex<BTreeMap<(DocKind, String), Version>>,
    unreadable: Counters,
}

impl SmallDocs {
    pub fn new(store: Arc<dyn JobStore>, writer: Option<Writer>, unreadable: Counters) -> Self {
        Self {
            store,
            writer,
            told: Mutex::default(),
            unreadable,
        }
    }

    /// Reads a document in real time.
    pub async fn read<T: SmallDoc>(&self, id: &str) -> Result<Option<Stored<T>>, DocError> {
        let doc = self.store.get_doc(T::KIND, id).await?;
        doc.map(|doc| self.decode(doc)).transpose()
    }

    /// Reads all of a kind, with their ids. Lags like a search. Unreadable ones have a stand-in, or are left out.
    pub async fn list<T: SmallDoc>(&self) -> Result<Vec<(String, Stored<T>)>, StoreError> {
        let docs = self.store.list_docs(T::KIND).await?;
        Ok(self.decode_all(docs))
    }

    /// Reads a part of a kind, as [`SmallDocs::list`] reads all.
    pub async fn page<T: SmallDoc>(
        &self,
        find: &DocFind,
    ) -> Result<Vec<(String, Stored<T>)>, StoreError> {
        let page = self.store.page_docs(T::KIND, find).await?;
        Ok(self.decode_all(page.docs))
    }

    /// Reads some in real time. Missing and unreadable ones are treated as in a list.
    pub async fn read_some<T: SmallDoc>(
        &self,
        ids: &[String],
    ) -> Result<Vec<(String, Stored<T>)>, StoreError> {
        let docs = self.store.get_docs(T::KIND, ids).await?;
        Ok(self.decode_all(docs.into_iter().flatten()))
    }

    fn decode_all<T: SmallDoc>(
        &self,
        docs: impl IntoIterator<Item = Doc>,
    ) -> Vec<(String, Stored<T>)> {
        let read = docs.into_iter().filter_map(|doc| {
            let (id, version) = (doc.id.clone(), doc.version);
            let stand_in = |_| {
                let kept = Map::new();
                T::stand_in().map(|doc| Stored { version, doc, kept })
            };
            let read = self.decode(doc).map_or_else(stand_in, Some)?;
            Some((id, read))
        });
        read.collect()
    }

    fn decode<T: SmallDoc>(&self, doc: Doc) -> Result<Stored<T>, DocError> {
        let version = doc.version;
        Stored::of(doc).inspect_err(|error| self.tell(error, version))
    }

    fn tell(&self, error: &DocError, version: Version) {
        let (DocError::Newer { kind, id, .. } | DocError::Malformed { kind, id, .. }) = error
        else {
            return;
        };
        let mut told = self.told.lock();
        if told.len() >= TOLD_MAX {
            told.clear();
        }
        if told.insert((*kind, id.clone()), version) != Some(version) {
            self.unreadable
                .get_or_create(&[("kind", kind.as_str())])
                .inc();
            tracing::error!(%error, "a stored document cannot be read");
        }
    }

    /// Deletes a document, also a malformed one. `None`: there is none.
    pub async fn delete<T: SmallDoc>(&self, id: &str) -> Result<Option<Version>, DocError> {
        let version = match self.read::<T>(id).await {
            Ok(None) => return Ok(None),
            Ok(Some(found)) => found.version,
            Err(DocError::Malformed { version, .. }) => version,
            Err(error) => return Err(error),
        };
        let none = Map::new();
        let write = self.write::<T>(id, Expect::Version(version), None, &none);
        Ok(Some(write.await?))
    }

    /// Replaces or deletes a malformed document. `false`: it is not malformed.
    pub async fn repair<T: SmallDoc>(&self, id: &str, by: Option<T>) -> Result<bool, DocError> {
        let Err(error) = self.read::<T>(id).await else {
            return Ok(false);
        };
        let DocError::Malformed { version, .. } = error else {
            return Err(error);
        };
        let none = Map::new();
        let write = self.write(id, Expect::Version(version), by.as_ref(), &none);
        write.await?;
        Ok(true)
    }

    /// Writes a document once, over `over` or where there is none. `doc`: `None` deletes it.
    pub async fn put<T: SmallDoc>(
        &self,
        id: &str,
        over: Option<&Stored<T>>,
        doc: Option<&T>,
    ) -> Result<Version, ItemError> {
        match over {
            None => self.write(id, Expect::Absent, doc, &Map::new()).await,
            Some(Stored { version, kept, .. }) => {
                self.write(id, Expect::Version(*version), doc, kept).await
            }
        }
    }

    async fn write<T: SmallDoc>(
        &self,
        id: &str,
        expect: Expect,
        doc: Option<&T>,
        kept: &Map<String, Value>,
    ) -> Result<Version, ItemError> {
        let format = T::FORMAT;
        let body = doc.map(|doc| serde_json::to_value(Body { format, doc, kept }));
        let write = DocWrite {
            id: id.to_owned(),
            expect,
            body: body.transpose().map_err(|error| ItemError::Refused {
                reason: error.to_string(),
            })?,
        };
        match (T::KIND, &self.writer) {
            (DocKind::Session, Some(writer)) => writer.session(write).await,
            (DocKind::Lease, Some(writer)) => writer.lease(write).await,
            _ => only(self.store.put_docs(T::KIND, vec![write]).await),
        }
    }

    /// Changes a document by compare-and-set. `next` gets the present document and returns the new one. Begins anew
    /// if the write failed.
    pub async fn change<T, E, F>(
        &self,
        id: &str,
        next: impl FnMut(Option<T>) -> F,
    ) -> Result<Stored<T>, E>
    where
        T: SmallDoc + Clone,
        E: From<DocError>,
        F: Future<Output = Result<T, E>>,
    {
        self.change_known(id, None, None, next).await
    }

    /// Same as [`Self::change`], from a document that is believed to be present. It is read in real time only if the
    /// belief is wrong, or if `next` refuses the known one. `memory` is updated.
    pub async fn change_known<T, E, F>(
        &self,
        id: &str,
        mut known: Option<Stored<T>>,
        memory: Option<&Memory<T>>,
        mut next: impl FnMut(Option<T>) -> F,
    ) -> Result<Stored<T>, E>
    where
        T: SmallDoc + Clone,
        E: From<DocError>,
        F: Future<Output = Result<T, E>>,
    {
        let (mut tries, mut may_be_in) = (0, false);
        loop {
            let is_believed = known.is_some();
            let present = match known.take() {
                None => self.read::<T>(id).await?,
                believed => believed,
            };
            let (expect, doc, kept) = match present {
                None => (Expect::Absent, None, Map::new()),
                Some(Stored { version, doc, kept }) => (Expect::Version(version), Some(doc), kept),
            };
            let doc = match next(doc).await {
                Err(_) if is_believed => continue,
                doc => doc?,
            };
            let error = match self.write(id, expect, Some(&doc), &kept).await {
                Ok(version) => {
                    let stored = Stored { version, doc, kept };
                    memory.map(|memory| memory.insert(id.to_owned(), stored.clone()));
                    return Ok(stored);
                }
                Err(error) => error,
            };
            memory.map(|memory| memory.remove(id));
            tries += 1;
            let is_unknown = matches!(error, ItemError::Unknown { .. });
            let may_pass =
                is_unknown || matches!(error, ItemError::Conflict { .. } | ItemError::Missing);
            if !may_pass || tries == TRIES_MAX {
                let error = if may_be_in {
                    error.after_unknown()
                } else {
                    error
                };
                return Err(DocError::from(error).into());
            }
            may_be_in |= is_unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;
    use fairlead_fixtures::embedded;
    use prometheus_client::metrics::family::Family;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Count {
        count: u64,
    }

    impl SmallDoc for Count {
        const KIND: DocKind = DocKind::Setting;
        const FORMAT: u32 = 2;
    }

    fn docs() -> (tempfile::TempDir, SmallDocs) {
        let data = tempfile::tempdir().unwrap();
        let docs = SmallDocs::new(embedded(&data), None, Family::default());
        (data, docs)
    }

    /// Counts up. Another writer disturbs the change this often.
    async fn count_up(docs: &SmallDocs, mut disturbed: usize) -> Result<u64, DocError> {
        let next = |present: Option<Count>| {
            let count = present.map_or(0, |present| present.count);
            let is_disturbed = disturbed > 0;
            disturbed = disturbed.saturating_sub(1);
            async move {
                if is_disturbed {
                    let over = docs.read("c").await?;
                    let other = Count { count: count + 10 };
                    docs.put("c", over.as_ref(), Some(&other)).await?;
                }
                Ok(Count { count: count + 1 })
            }
        };
        let stored = docs.change("c", next).await;
        stored.map(|stored: Stored<Count>| stored.doc.count)
    }

    #[tokio::test]
    async fn a_change_begins_anew_when_somebody_was_faster_and_gives_up_in_the_end() {
        let (_data, docs) = docs();
        assert_eq!(count_up(&docs, 0).await.unwrap(), 1);
        assert_eq!(count_up(&docs, 2).await.unwrap(), 22);
        let error = count_up(&docs, TRIES_MAX).await.unwrap_err();
        assert!(
            matches!(error, DocError::Item(ItemError::Conflict { .. })),
            "{error}"
        );
    }

    #[tokio::test]
    async fn what_is_believed_is_read_when_it_is_refused_or_wrong() {
        let (_data, docs) = docs();
        count_up(&docs, 0).await.unwrap();
        let old = docs.read::<Count>("c").await.unwrap();
        count_up(&docs, 0).await.unwrap();
        let memory = Memory::default();
        let mut seen = Vec::new();
        let next = |present: Option<Count>| {
            let count = present.unwrap().count;
            seen.push(count);
            ready(if count > 2 {
                Err(None)
            } else {
                Ok(Count { count: 3 })
            })
        };
        let written = docs
            .change_known("c", old.clone(), Some(&memory), next)
            .await;
        assert!(seen == [1, 2] && written.is_ok(), "it was wrong: {seen:?}");
        let known = memory.get("c").map(|known| known.clone());
        assert_eq!(known, written.ok());
        let mut seen = Vec::new();
        let refuse = |present: Option<Count>| {
            seen.push(present.unwrap().count);
            ready(Err::<Count, Option<DocError>>(None))
        };
        let written = docs.change_known("c", old, Some(&memory), refuse).await;
        assert!(matches!(written, Err(None)), "{written:?}");
        assert_eq!(seen, [1, 3], "it was refused");
        assert_eq!(memory.len(), 1, "nothing was written");
    }

    #[test]
    fn what_is_no_object_is_malformed() {
        for body in [
            serde_json::json!([]),
            serde_json::json!("x"),
            serde_json::json!({"count": 1, "format": "x"}),
        ] {
            let doc = Doc {
                id: "c".to_owned(),
                version: Version::default(),
                body,
            };
            let read = Stored::<Count>::of(doc);
            assert!(matches!(read, Err(DocError::Malformed { .. })), "{read:?}");
        }
    }
}
