//! The lab's keys: a ring in one settings document that all replicas share.
//!
//! The newest key seals and signs. All keys open and verify, and no key is ever dropped. A new key acts only some time
//! after it was added, when every replica has read it. No key is created in a store that has jobs: they were sealed
//! with a key that is lost, and a second one would split the lab.

use fairlead_store::{Doc, DocKind, DocWrite, Expect, JobStore, Search, StoreError};
use serde_json::{Map, Value, json};

/// The settings document that holds the keys.
const KEY_DOC: &str = "sealing-key";
/// The newest key: all that a version before rings reads.
const NEWEST: &str = "key";
/// All keys, the oldest first.
const KEYS: &str = "keys";
/// Layout of the document: 2 has a ring, 1 one key.
const FORMAT: u16 = 2;
/// Tries to write it: many replicas may begin at the same moment.
const TRIES_MAX: usize = 8;
/// A new key acts so long after it was added, ms: replicas read the ring every ten seconds.
pub(crate) const SETTLES_MS: u64 = 60_000;
/// Most keys of a lab.
const KEYS_MAX: usize = 64;
/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;
/// Bytes of a key's fingerprint.
const ID_BYTES: usize = 8;

/// One key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LabKey {
    pub(crate) bytes: [u8; KEY_BYTES],
    /// It seals and signs from then on, UTC epoch ms.
    pub(crate) from_ms: u64,
}

impl LabKey {
    /// The fingerprint, for people: it says nothing of the key.
    pub(crate) fn id(&self) -> String {
        let hash = blake3::keyed_hash(&self.bytes, b"id");
        to_hex(hash.as_bytes().get(..ID_BYTES).unwrap_or_default())
    }

    fn to_value(&self) -> Value {
        json!({ "key": to_hex(&self.bytes), "from_ms": self.from_ms })
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            bytes: read_key(value.get(NEWEST)?)?,
            from_ms: value.get("from_ms").and_then(Value::as_u64).unwrap_or(0),
        })
    }
}

/// A key as it is written down: 64 hexadecimal digits.
fn read_key(value: &Value) -> Option<[u8; KEY_BYTES]> {
    from_hex(value.as_str()?)?.try_into().ok()
}

/// The keys of a lab, the oldest first; never empty in a lab that works.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Ring(Vec<LabKey>);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = self.0.iter().map(LabKey::id);
        f.debug_list().entries(ids).finish()
    }
}

impl Ring {
    /// A ring of one key that has always been.
    pub(crate) fn of_one(bytes: [u8; KEY_BYTES]) -> Self {
        Self(vec![LabKey { bytes, from_ms: 0 }])
    }

    /// Reads a document of this version, or of one before rings; `None`: something in it is no key.
    pub(crate) fn read(body: &Value) -> Option<Self> {
        let mut ring = Self::default();
        for value in body
            .get(KEYS)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            ring.0.push(LabKey::read(value)?);
        }
        if let Some(newest) = body.get(NEWEST) {
            ring.add(LabKey {
                bytes: read_key(newest)?,
                from_ms: 0,
            });
        }
        (!ring.0.is_empty()).then_some(ring)
    }

    /// Reads what people import: an exported ring, the settings document of a backup, or a key a line.
    fn read_text(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('{') {
            return Self::read(&serde_json::from_str(text).ok()?);
        }
        let mut ring = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let bytes = read_key(&json!(line))?;
            ring.0.push(LabKey { bytes, from_ms: 0 });
        }
        (!ring.0.is_empty()).then_some(ring)
    }

    /// Writes it into a document, whose other fields stay.
    fn write(&self, fields: &mut Map<String, Value>) {
        if let Some(newest) = self.0.last() {
            fields.insert(NEWEST.to_owned(), json!(to_hex(&newest.bytes)));
        }
        let keys: Vec<Value> = self.0.iter().map(LabKey::to_value).collect();
        fields.insert(KEYS.to_owned(), json!(keys));
        fields.insert("format".to_owned(), json!(FORMAT));
    }

    /// Adds a key behind those that act before it; `false`: it was there.
    pub(crate) fn add(&mut self, key: LabKey) -> bool {
        if self.0.iter().any(|known| known.bytes == key.bytes) {
            return false;
        }
        let at = self.0.partition_point(|known| known.from_ms < key.from_ms);
        self.0.insert(at, key);
        true
    }

    /// Adds what another ring has; `false`: there was nothing new.
    pub(crate) fn merge(&mut self, other: &Self) -> bool {
        let mut is_new = false;
        for key in &other.0 {
            is_new |= self.add(key.clone());
        }
        is_new
    }

    /// The key that seals and signs now.
    pub(crate) fn active(&self, now_ms: u64) -> Option<&LabKey> {
        let mut acting = self.newest_first().filter(|key| key.from_ms <= now_ms);
        acting.next().or_else(|| self.0.first())
    }

    /// All of them.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &LabKey> {
        self.0.iter().rev()
    }

    /// As it is exported.
    pub(crate) fn export(&self) -> Value {
        let keys: Vec<Value> = self.0.iter().map(LabKey::to_value).collect();
        json!({ KEYS: keys })
    }
}

/// The document, and the ring that it holds.
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

/// Writes a ring over what was found; `false`: somebody else wrote meanwhile, or nobody knows.
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

/// Whether anything was ever sealed or signed here.
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

/// The ring of a lab whose replica begins; a new lab's is made.
pub(crate) async fn begin(
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
        // A key that was only read may vanish with the node that showed it, and this replica would refuse
        // every other one's tokens. Whoever comes second finds the first one's key in the next round.
        if put(store, doc, &ring).await {
            return Ok(ring);
        }
    }
    Err(StoreError::Unavailable {
        reason: "the sealing key could not be written".to_owned(),
    })
}

/// The ring as it is now, with all that `own` has. What the store lost of it is put back.
pub(crate) async fn renew(store: &dyn JobStore, own: &Ring) -> Result<Ring, StoreError> {
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

/// What a change of the ring came to.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Nothing to read in it.
    NoKeys,
    /// The ring is full.
    TooMany,
    /// The store cannot be used.
    Store(StoreError),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The keys of the lab in this store; none: it is new, or lost them.
pub(crate) async fn show(store: &dyn JobStore) -> Result<Ring, StoreError> {
    Ok(find(store).await?.map(|(_, ring)| ring).unwrap_or_default())
}

/// Adds keys that people give.
pub(crate) async fn import(store: &dyn JobStore, text: &str, now_ms: u64) -> Result<Ring, Refused> {
    let mut given = Ring::read_text(text).ok_or(Refused::NoKeys)?;
    for key in &mut given.0 {
        // A clock that was wrong elsewhere must not put a key off for ever.
        key.from_ms = key.from_ms.min(now_ms.saturating_add(SETTLES_MS));
    }
    change(store, |ring| {
        ring.merge(&given);
    })
    .await
}

/// Adds a new key that becomes the newest.
pub(crate) async fn rotate(
    store: &dyn JobStore,
    bytes: [u8; KEY_BYTES],
    now_ms: u64,
) -> Result<Ring, Refused> {
    change(store, |ring| {
        let from_ms = ring.0.last().map_or(0, |newest| {
            newest.from_ms.max(now_ms.saturating_add(SETTLES_MS))
        });
        // Not by `add`, which puts it before one of the same moment.
        ring.0.push(LabKey { bytes, from_ms });
    })
    .await
}

async fn change(store: &dyn JobStore, work: impl Fn(&mut Ring)) -> Result<Ring, Refused> {
    for _ in 0..TRIES_MAX {
        let (doc, mut ring) = match find(store).await? {
            Some((doc, ring)) => (Some(doc), ring),
            None => (None, Ring::default()),
        };
        work(&mut ring);
        if ring.0.len() > KEYS_MAX {
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

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
            text
        })
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{embedded, state};

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
        assert_eq!(both.0.len(), 2);
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

    #[test]
    fn a_new_key_acts_once_all_have_read_it() {
        let mut ring = Ring::of_one(OLD);
        ring.add(LabKey {
            bytes: NEW,
            from_ms: 500,
        });
        assert_eq!(ring.active(499).unwrap().bytes, OLD);
        assert_eq!(ring.active(500).unwrap().bytes, NEW);
        let mut ahead = Ring::default();
        ahead.add(LabKey {
            bytes: NEW,
            from_ms: 500,
        });
        assert_eq!(ahead.active(0).unwrap().bytes, NEW, "there is no other");
    }

    #[test]
    fn an_imported_key_that_says_no_time_is_older_than_those_that_are_there() {
        let mut ring = Ring::of_one(OLD);
        let line = format!("\n  {}\n", to_hex(&NEW));
        assert!(ring.merge(&Ring::read_text(&line).unwrap()));
        assert_eq!(ring.active(9).unwrap().bytes, OLD);
        assert!(!ring.merge(&Ring::read_text(&ring.export().to_string()).unwrap()));
        for bad in [
            "",
            "{}",
            "x",
            "{\"keys\": [{\"key\": \"00\"}]}",
            &"g".repeat(64),
        ] {
            assert_eq!(Ring::read_text(bad), None, "{bad}");
        }
        assert!(!format!("{ring:?}").contains(&to_hex(&OLD)));
    }
}
