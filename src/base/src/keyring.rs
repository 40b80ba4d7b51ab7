//! The lab's keys in the store: one settings document that all replicas share.
//!
//! No key is dropped but by who retires it. A new key acts only some time after it was added, when every replica has
//! read it. No key is created in a store that has jobs: they were sealed with a key that is lost, and a second one would
//! split the lab.

use std::ops::Range;

use fairlead_store::{Doc, DocKind, DocWrite, Expect, JobStore, Search, StoreError};
use serde_json::json;

use crate::ring::{KEY_BYTES, Ring};

/// The settings document that holds the keys.
const KEY_DOC: &str = "sealing-key";
/// Maximum number of tries to write it: many replicas may begin at the same moment.
const TRIES_MAX: usize = 8;
/// Time after which a new key is used, ms. Replicas read the ring every ten seconds.
pub const SETTLES_MS: u64 = 60_000;
/// Most keys of a lab.
const KEYS_MAX: usize = 64;
/// Time after which a key may be retired once another one seals, ms. Everything that it sealed is stored by then.
const RETIRES_AFTER_MS: u64 = 10_000;

/// Returns the document, and the ring that it holds.
async fn find(store: &dyn JobStore) -> Result<Option<(Doc, Ring)>, StoreError> {
    let Some(doc) = store.get_doc(DocKind::Setting, KEY_DOC).await? else {
        return Ok(None);
    };
    let ring = Ring::read(&doc.body).ok_or_else(|| StoreError::Unusable {
        reason: "the settings document 'sealing-key' holds something that is no key".to_owned(),
        hint: "restore that document from a backup".to_owned(),
    })?;
    Ok(Some((doc, ring)))
}

/// Writes a ring over the found document; `false`: another replica wrote meanwhile, or the result is unknown.
async fn put(store: &dyn JobStore, found: Option<Doc>, ring: &Ring) -> bool {
    let (expect, mut body) = match found {
        Some(doc) => (Expect::Version(doc.version), doc.body),
        None => (Expect::Absent, json!({})),
    };
    if let Some(fields) = body.as_object_mut() {
        ring.write(fields);
    }
    let write = DocWrite {
        id: KEY_DOC.to_owned(),
        expect,
        body: Some(body),
    };
    let written = store.put_docs(DocKind::Setting, vec![write]).await;
    matches!(written.first(), Some(Ok(_)))
}

/// Returns true if the lab ever had a job, so that something may be sealed or signed.
async fn has_jobs(store: &dyn JobStore) -> Result<bool, StoreError> {
    store.refresh().await?;
    let any = Search {
        limit: 1,
        ..Search::default()
    };
    if !store.search(&any).await?.jobs.is_empty() {
        return Ok(true);
    }
    Ok(!store.list_docs(DocKind::Timer).await?.is_empty())
}

/// Returns the ring of a lab whose replica begins. Creates that of a new lab.
pub async fn begin(
    store: &dyn JobStore,
    new_key: fn() -> [u8; KEY_BYTES],
) -> Result<Ring, StoreError> {
    for _ in 0..TRIES_MAX {
        let (doc, ring) = match find(store).await? {
            Some((doc, ring)) => (Some(doc), ring),
            None if !has_jobs(store).await? => (None, Ring::of_one(new_key())),
            // Another replica may have made both between the two looks.
            None if find(store).await?.is_some() => continue,
            None => {
                return Err(StoreError::Unusable {
                    reason: "the lab's sealing key is lost: the store has jobs, but no settings document 'sealing-key'"
                        .to_owned(),
                    hint: "import it from a backup: fairlead key import FILE; if there is none, fairlead key rotate makes \
                           another, and what is sealed stays closed: waiting jobs with secrets end with abort_invalid"
                        .to_owned(),
                });
            }
        };
        // A key that was only read may vanish with the node that showed it. This replica would then refuse the tokens
        // of all others. The second replica finds the first one's key in the next round.
        if put(store, doc, &ring).await {
            return Ok(ring);
        }
    }
    Err(StoreError::Unavailable {
        reason: "the sealing key could not be written".to_owned(),
    })
}

/// Returns the present ring, including all keys of `own`. Restores those that the store lost.
pub async fn renew(store: &dyn JobStore, own: &Ring) -> Result<Ring, StoreError> {
    let (doc, mut ring) = match find(store).await? {
        Some((doc, ring)) => (Some(doc), ring),
        None => (None, Ring::default()),
    };
    if ring.merge(own) {
        let back = put(store, doc, &ring).await;
        tracing::error!(
            back,
            "keys of this lab were missing in the settings document 'sealing-key' (hint: compare: fairlead key show)"
        );
    }
    Ok(ring)
}

/// Reason why a change of the ring was refused.
#[derive(Debug)]
pub enum Refused {
    /// The text contains no key.
    NoKeys,
    /// The ring is full.
    TooMany,
    /// There is no such key.
    Unknown(String),
    /// No other key seals yet, or none has sealed for long enough. The key may be retired from this time, UTC epoch
    /// ms; `None`: there is no newer key.
    Seals(String, Option<u64>),
    /// Unfinished jobs need the key: some wait with secrets that it sealed, some run with its tokens.
    Needed { waiting: u64, running: u64 },
    /// The store cannot be used.
    Store(StoreError),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Returns the keys of the lab in this store; empty: it is new, or lost them.
pub async fn show(store: &dyn JobStore) -> Result<Ring, StoreError> {
    Ok(find(store).await?.map(|(_, ring)| ring).unwrap_or_default())
}

/// Adds imported keys.
pub async fn import(store: &dyn JobStore, text: &str, now_ms: u64) -> Result<Ring, Refused> {
    let given = Ring::read_text(text).ok_or(Refused::NoKeys)?;
    // A clock that was wrong elsewhere must not put a key off for ever.
    let given = given.at_latest(now_ms.saturating_add(SETTLES_MS));
    change(store, |ring| {
        ring.add_all(&given);
        Ok(())
    })
    .await
}

/// Adds a new key that becomes the newest.
pub async fn rotate(
    store: &dyn JobStore,
    bytes: [u8; KEY_BYTES],
    now_ms: u64,
) -> Result<Ring, Refused> {
    change(store, |ring| {
        ring.renew(bytes, now_ms.saturating_add(SETTLES_MS));
        Ok(())
    })
    .await
}

/// Retires a key permanently.
pub async fn retire(store: &dyn JobStore, id: &str, now_ms: u64) -> Result<Ring, Refused> {
    change(store, |ring| {
        signed_by(ring, id, now_ms)?;
        ring.retire(id, now_ms);
        Ok(())
    })
    .await
}

/// Returns the time in which a key that may be retired signed, UTC epoch ms. Fails if no other key has sealed for
/// long enough.
pub fn signed_by(ring: &Ring, id: &str, now_ms: u64) -> Result<Range<u64>, Refused> {
    let mut keys = ring.newest_first();
    let key = keys.find(|key| key.id() == id);
    let key = key.ok_or_else(|| Refused::Unknown(id.to_owned()))?;
    let next_ms = ring.next_ms(id);
    let until_ms = next_ms.map(|ms| ms.saturating_add(RETIRES_AFTER_MS));
    match until_ms.filter(|ms| *ms <= now_ms) {
        Some(until_ms) => Ok(key.from_ms.saturating_sub(RETIRES_AFTER_MS)..until_ms),
        None => Err(Refused::Seals(id.to_owned(), until_ms)),
    }
}

async fn change(
    store: &dyn JobStore,
    work: impl Fn(&mut Ring) -> Result<(), Refused>,
) -> Result<Ring, Refused> {
    for _ in 0..TRIES_MAX {
        let (doc, mut ring) = match find(store).await? {
            Some((doc, ring)) => (Some(doc), ring),
            None => (None, Ring::default()),
        };
        work(&mut ring)?;
        if ring.count() > KEYS_MAX {
            return Err(Refused::TooMany);
        }
        if put(store, doc, &ring).await {
            return Ok(ring);
        }
    }
    Err(Refused::Store(StoreError::Unavailable {
        reason: "the sealing key could not be written".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ring::to_hex;
    use fairlead_fixtures::{embedded, state};

    const OLD: [u8; KEY_BYTES] = [1; KEY_BYTES];
    const NEW: [u8; KEY_BYTES] = [2; KEY_BYTES];

    async fn put_body(store: &dyn JobStore, body: Option<Value>) {
        let write = DocWrite {
            id: KEY_DOC.to_owned(),
            expect: Expect::Any,
            body,
        };
        store.put_docs(DocKind::Setting, vec![write]).await[0]
            .as_ref()
            .unwrap();
    }

    async fn body_of(store: &dyn JobStore) -> Value {
        let doc = store.get_doc(DocKind::Setting, KEY_DOC).await.unwrap();
        doc.unwrap().body
    }

    async fn submit_one(store: &dyn JobStore) {
        let job = fairlead_store::NewJob {
            state: state(1),
            body: fairlead_job::Spec::new().into(),
        };
        store.submit(vec![job]).await.remove(0).unwrap();
    }

    #[tokio::test]
    async fn a_lost_key_is_not_made_anew_where_there_are_jobs() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        begin(store.as_ref(), || OLD).await.unwrap();
        submit_one(store.as_ref()).await;
        put_body(store.as_ref(), None).await;
        let error = begin(store.as_ref(), || NEW).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("key is lost") && text.contains("fairlead key import"),
            "{text}"
        );
        let exported = Ring::of_one(OLD).export().to_string();
        import(store.as_ref(), &exported, 5).await.unwrap();
        let ring = begin(store.as_ref(), || NEW).await.unwrap();
        assert_eq!(ring, Ring::of_one(OLD));
    }

    #[tokio::test]
    async fn a_replica_puts_back_the_key_that_the_store_lost() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        let own = begin(store.as_ref(), || OLD).await.unwrap();
        put_body(store.as_ref(), None).await;
        renew(store.as_ref(), &own).await.unwrap();
        assert_eq!(show(store.as_ref()).await.unwrap(), own);
        // Another lab's document came in its place.
        put_body(store.as_ref(), Some(json!({"key": to_hex(&NEW)}))).await;
        let both = renew(store.as_ref(), &own).await.unwrap();
        assert_eq!(both.count(), 2);
        assert_eq!(show(store.as_ref()).await.unwrap(), both);
    }

    #[tokio::test]
    async fn a_document_of_one_key_is_read_and_old_versions_read_the_newest() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        let of_before = json!({"key": to_hex(&OLD), "other": "kept"});
        put_body(store.as_ref(), Some(of_before)).await;
        let ring = begin(store.as_ref(), || NEW).await.unwrap();
        assert_eq!(ring, Ring::of_one(OLD));
        let ring = rotate(store.as_ref(), NEW, 1_000).await.unwrap();
        let body = body_of(store.as_ref()).await;
        assert_eq!(
            (&body["key"], &body["other"]),
            (&json!(to_hex(&NEW)), &json!("kept"))
        );
        assert_eq!(Ring::read(&body), Some(ring));
    }

    #[tokio::test]
    async fn a_retired_key_stays_away_from_replicas_that_knew_it() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        let knows = begin(store.as_ref(), || OLD).await.unwrap();
        let old = knows.newest_first().next().unwrap().id();
        let alone = retire(store.as_ref(), &old, 1_000).await.unwrap_err();
        assert!(matches!(alone, Refused::Seals(_, None)), "{alone:?}");
        rotate(store.as_ref(), NEW, 1_000).await.unwrap();
        let seals_ms = 1_000 + SETTLES_MS + RETIRES_AFTER_MS;
        let early = retire(store.as_ref(), &old, seals_ms - 1).await;
        let early = early.unwrap_err();
        assert!(
            matches!(early, Refused::Seals(_, Some(from)) if from == seals_ms),
            "{early:?}"
        );
        let ring = retire(store.as_ref(), &old, seals_ms).await.unwrap();
        assert_eq!(ring.count(), 1);
        let text = body_of(store.as_ref()).await.to_string();
        assert!(!text.contains(&to_hex(&OLD)), "{text}");

        let learned = renew(store.as_ref(), &knows).await.unwrap();
        assert_eq!(learned, ring);
        // Nor does it come back by a backup, or by a version that does not know of it.
        let backup = knows.export().to_string();
        let imported = import(store.as_ref(), &backup, seals_ms).await.unwrap();
        assert_eq!(imported, ring);
        let mut body = body_of(store.as_ref()).await;
        body["keys"] = json!([{"key": to_hex(&OLD)}, {"key": to_hex(&NEW)}]);
        put_body(store.as_ref(), Some(body)).await;
        assert_eq!(show(store.as_ref()).await.unwrap().count(), 1);
        // A restored document of before is corrected by who knows better.
        let older =
            json!({"key": to_hex(&NEW), "keys": [{"key": to_hex(&OLD)}, {"key": to_hex(&NEW)}]});
        put_body(store.as_ref(), Some(older)).await;
        assert_eq!(renew(store.as_ref(), &ring).await.unwrap().count(), 1);
        assert_eq!(show(store.as_ref()).await.unwrap().count(), 1);
    }
}
