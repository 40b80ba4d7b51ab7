//! The lab's keys. The newest one seals and signs, and all open and verify. A retired key does neither, wherever it was
//! known.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Field of the newest key. Versions before rings read only this key.
const NEWEST: &str = "key";
/// All keys, the oldest first.
const KEYS: &str = "keys";
/// Field of the retired keys.
const RETIRED: &str = "retired";
/// Layout of the document: 2 has a ring, 1 one key.
const FORMAT: u16 = 2;
/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes of a key's fingerprint.
const ID_BYTES: usize = 8;
/// Most retired keys that are remembered.
const RETIRED_MAX: usize = 1_000;

/// One key.
#[derive(Clone, PartialEq, Eq)]
pub struct LabKey {
    pub bytes: [u8; KEY_BYTES],
    /// Time from which it seals and signs, UTC epoch ms.
    pub from_ms: u64,
}

/// The key itself is never printed.
impl fmt::Debug for LabKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "LabKey({})", self.id())
    }
}

impl LabKey {
    /// Returns the fingerprint, for people. It does not reveal the key.
    pub fn id(&self) -> String {
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

/// Reads a key: 64 hexadecimal digits.
fn read_key(value: &Value) -> Option<[u8; KEY_BYTES]> {
    from_hex(value.as_str()?)?.try_into().ok()
}

/// Retired key, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredKey {
    /// Its fingerprint.
    pub id: String,
    /// Time of its retirement, UTC epoch ms.
    pub at_ms: u64,
}

/// The keys of a lab.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Ring {
    /// Keys, the oldest first; never empty in a working lab.
    keys: Vec<LabKey>,
    /// Retired keys, which never come back, the oldest first.
    retired: Vec<RetiredKey>,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.keys.iter().map(LabKey::id);
        f.debug_list().entries(ids).finish()
    }
}

impl Ring {
    /// Creates a ring of one key without a start time.
    pub fn of_one(bytes: [u8; KEY_BYTES]) -> Self {
        Self {
            keys: vec![LabKey { bytes, from_ms: 0 }],
            retired: Vec::new(),
        }
    }

    /// Reads a document of this version, or of one before rings; `None`: some value is no key.
    pub fn read(body: &Value) -> Option<Self> {
        let list = |name: &str| {
            body.get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let retired = list(RETIRED).map(RetiredKey::deserialize);
        let mut ring = Self {
            keys: Vec::new(),
            retired: retired.collect::<Result<_, _>>().ok()?,
        };
        for value in list(KEYS) {
            let key = LabKey::read(value)?;
            if !ring.is_retired(&key) {
                ring.keys.push(key);
            }
        }
        if let Some(newest) = body.get(NEWEST) {
            ring.add(LabKey {
                bytes: read_key(newest)?,
                from_ms: 0,
            });
        }
        (!ring.keys.is_empty()).then_some(ring)
    }

    /// Reads an imported text: an exported ring, the settings document of a backup, or a key per line.
    pub fn read_text(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('{') {
            return Self::read(&serde_json::from_str(text).ok()?);
        }
        let mut ring = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let bytes = read_key(&json!(line))?;
            ring.keys.push(LabKey { bytes, from_ms: 0 });
        }
        (!ring.keys.is_empty()).then_some(ring)
    }

    /// Writes the ring into a document, whose other fields stay.
    pub fn write(&self, fields: &mut Map<String, Value>) {
        if let Some(newest) = self.keys.last() {
            fields.insert(NEWEST.to_owned(), json!(to_hex(&newest.bytes)));
        }
        let keys: Vec<Value> = self.keys.iter().map(LabKey::to_value).collect();
        fields.insert(KEYS.to_owned(), json!(keys));
        if !self.retired.is_empty() {
            fields.insert(RETIRED.to_owned(), json!(self.retired));
        }
        fields.insert("format".to_owned(), json!(FORMAT));
    }

    /// Adds a key behind those that begin before it; `false`: it is known or retired.
    pub fn add(&mut self, key: LabKey) -> bool {
        let is_known = self.keys.iter().any(|known| known.bytes == key.bytes);
        if is_known || self.is_retired(&key) {
            return false;
        }
        let at = self
            .keys
            .partition_point(|known| known.from_ms < key.from_ms);
        self.keys.insert(at, key);
        true
    }

    /// Adds the keys of another ring; `false`: there was no new one.
    pub fn add_all(&mut self, other: &Self) -> bool {
        let mut is_new = false;
        for key in &other.keys {
            is_new |= self.add(key.clone());
        }
        is_new
    }

    /// Takes over the keys and the retired keys of another ring of this lab; `false`: there was nothing new.
    pub fn merge(&mut self, other: &Self) -> bool {
        let mut is_new = false;
        for retired in &other.retired {
            is_new |= self.retire(&retired.id, retired.at_ms);
        }
        self.add_all(other) || is_new
    }

    /// Adds a new key behind all others. It is used from `from_ms` at the earliest; in an empty ring at once.
    pub fn renew(&mut self, bytes: [u8; KEY_BYTES], from_ms: u64) {
        let newest = self.keys.last();
        let from_ms = newest.map_or(0, |newest| newest.from_ms.max(from_ms));
        // Not by `add`, which puts it before one of the same moment.
        self.keys.push(LabKey { bytes, from_ms });
    }

    /// Retires a key permanently; `false`: it was retired before.
    pub fn retire(&mut self, id: &str, at_ms: u64) -> bool {
        self.keys.retain(|key| key.id() != id);
        if self.retired.iter().any(|known| known.id == id) {
            return false;
        }
        let id = id.to_owned();
        self.retired.push(RetiredKey { id, at_ms });
        let too_many = self.retired.len().saturating_sub(RETIRED_MAX);
        self.retired.drain(..too_many);
        true
    }

    fn is_retired(&self, key: &LabKey) -> bool {
        !self.retired.is_empty() && {
            let id = key.id();
            self.retired.iter().any(|known| known.id == id)
        }
    }

    /// Returns the ring with keys that begin at this time at the latest.
    #[must_use]
    pub fn at_latest(mut self, ms: u64) -> Self {
        for key in &mut self.keys {
            key.from_ms = key.from_ms.min(ms);
        }
        self
    }

    /// Returns the time from which the next key is used; `None`: this is the newest.
    pub fn next_ms(&self, id: &str) -> Option<u64> {
        let mut behind = self.keys.iter().skip_while(|key| key.id() != id);
        behind.nth(1).map(|next| next.from_ms)
    }

    /// Returns the number of keys.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Returns the retired keys.
    pub fn retired(&self) -> &[RetiredKey] {
        &self.retired
    }

    /// Returns the key that seals and signs now.
    pub fn active(&self, now_ms: u64) -> Option<&LabKey> {
        let mut acting = self.newest_first().filter(|key| key.from_ms <= now_ms);
        acting.next().or_else(|| self.keys.first())
    }

    /// Returns all keys, the newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &LabKey> {
        self.keys.iter().rev()
    }

    /// Returns the exported form.
    pub fn export(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(LabKey::to_value).collect();
        json!({ KEYS: keys, RETIRED: self.retired })
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
            text
        })
}

pub fn from_hex(text: &str) -> Option<Vec<u8>> {
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

    const OLD: [u8; KEY_BYTES] = [1; KEY_BYTES];
    const NEW: [u8; KEY_BYTES] = [2; KEY_BYTES];

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
