//! Secrets of jobs are sealed before they are stored, and job tokens are derived, never stored.
//!
//! Both come from one key that all replicas of a lab share (a small document, made once). A job token is
//! a keyed hash of job, attempt and claim token, so any replica can check it and repeat it.

use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce, aead::Aead};
use fairlead_job::{JobId, Spec};
use fairlead_store::{DocKind, DocWrite, Expect, JobStore, StoreError};
use serde_json::{Value, json};

/// The field that authors write.
const PLAIN: &str = "secrets";
/// The field that is stored instead.
const SEALED: &str = "secrets_sealed";
/// The settings document that holds the key.
const KEY_DOC: &str = "sealing-key";
/// Tries to find or make it: as many replicas may begin at the same moment.
const OPEN_TRIES_MAX: usize = 8;
/// Bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// Seals, opens and signs.
pub(crate) struct Sealer {
    key: [u8; 32],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// A sealer with this key.
    pub(crate) fn with_key(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// Reads the lab's key from the store, or makes it when there is none yet.
    pub(crate) async fn open(store: &dyn JobStore) -> Result<Self, StoreError> {
        for _ in 0..OPEN_TRIES_MAX {
            let known = store.get_doc(DocKind::Setting, KEY_DOC).await?;
            let (expect, body) = match known {
                Some(doc) => (Expect::Version(doc.version), doc.body),
                None => (
                    Expect::Absent,
                    json!({ "key": to_hex(&random_bytes::<32>()) }),
                ),
            };
            let text = body.get("key").and_then(Value::as_str).unwrap_or_default();
            let key = from_hex(text).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            let key = key.ok_or_else(|| StoreError::Unusable {
                reason: "the sealing key in the store is not 64 hexadecimal digits".to_owned(),
                hint: "restore the settings document 'sealing-key' from a backup".to_owned(),
            })?;
            // A key that was only read may vanish with the node that showed it, and this replica would refuse
            // every other one's tokens. Whoever comes second finds the first one's key in the next round.
            let write = DocWrite {
                id: KEY_DOC.to_owned(),
                expect,
                body: Some(body),
            };
            let written = store.put_docs(DocKind::Setting, vec![write]).await;
            if matches!(written.first(), Some(Ok(_))) {
                return Ok(Self::with_key(key));
            }
        }
        Err(StoreError::Unavailable {
            reason: "the sealing key could not be written".to_owned(),
        })
    }

    /// Replaces `secrets` by its sealed form.
    pub(crate) fn seal(&self, spec: &mut Spec) {
        spec.shift_remove(SEALED);
        let Some(secrets) = spec.shift_remove(PLAIN) else {
            return;
        };
        let nonce = random_bytes::<NONCE_BYTES>();
        let text = secrets.to_string();
        if let Ok(sealed) = self
            .cipher()
            .encrypt(XNonce::from_slice(&nonce), text.as_bytes())
        {
            let mut bytes = nonce.to_vec();
            bytes.extend(sealed);
            spec.insert(SEALED.to_owned(), Value::String(to_hex(&bytes)));
        }
    }

    /// Puts `secrets` back in the clear, for the testbox that runs the job. Not openable: left out.
    pub(crate) fn open_secrets(&self, spec: &mut Spec) {
        let Some(Value::String(text)) = spec.shift_remove(SEALED) else {
            return;
        };
        let opened = from_hex(&text).and_then(|bytes| {
            let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
            let plain = self
                .cipher()
                .decrypt(XNonce::from_slice(nonce), sealed)
                .ok()?;
            serde_json::from_slice(&plain).ok()
        });
        match opened {
            Some(secrets) => {
                spec.insert(PLAIN.to_owned(), secrets);
            }
            None => {
                tracing::error!("the secrets of a job cannot be opened: sealed with another key");
            }
        }
    }

    /// Takes secrets out altogether, for people.
    pub(crate) fn strip(spec: &mut Spec) {
        spec.shift_remove(SEALED);
        spec.shift_remove(PLAIN);
    }

    /// The token that allows what the holder of this attempt may do.
    pub(crate) fn job_token(&self, id: JobId, attempt: u16, claim_token: &str) -> String {
        let what = format!("{id}/{attempt}/{claim_token}");
        blake3::keyed_hash(&self.key, what.as_bytes())
            .to_hex()
            .to_string()
    }

    /// The token by which replicas of one lab know each other.
    pub(crate) fn peer_token(&self) -> String {
        blake3::keyed_hash(&self.key, b"peer").to_hex().to_string()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(Key::from_slice(&self.key))
    }
}

/// Random bytes from the system's source, as version 4 uuids give them.
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for chunk in bytes.chunks_mut(32) {
        let (a, b) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
        // A uuid fixes six of its bits: hash two of them for full bytes.
        let mut mixed = blake3::Hasher::new();
        mixed.update(a.as_bytes()).update(b.as_bytes());
        let hash = mixed.finalize();
        for (to, from) in chunk.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
    }
    bytes
}

/// A new token for an account: 64 hexadecimal digits.
pub(crate) fn new_token() -> String {
    to_hex(&random_bytes::<32>())
}

/// What is stored of a token.
pub(crate) fn token_hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
            text
        })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_secrets_hide_and_come_back() {
        let sealer = Sealer::with_key([7; 32]);
        let Value::Object(spec) = json!({"suite": "x", "secrets": {"password": "hush"}}) else {
            unreachable!()
        };
        let mut sealed = spec.clone();
        sealer.seal(&mut sealed);
        assert!(!serde_json::to_string(&sealed).unwrap().contains("hush"));
        let mut opened = sealed.clone();
        sealer.open_secrets(&mut opened);
        assert_eq!(opened, spec);
        Sealer::with_key([8; 32]).open_secrets(&mut sealed);
        assert!(sealed.get(PLAIN).is_none());
    }

    #[test]
    fn a_job_token_belongs_to_one_attempt() {
        let sealer = Sealer::with_key([7; 32]);
        let id = JobId::new(2_611_210_236_110_700_000);
        assert_eq!(sealer.job_token(id, 1, "t"), sealer.job_token(id, 1, "t"));
        assert_ne!(sealer.job_token(id, 1, "t"), sealer.job_token(id, 2, "t"));
        assert_ne!(new_token(), new_token());
    }
}
