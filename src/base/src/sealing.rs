//! Seals the secrets of jobs before they are stored, and derives job tokens, which are never stored.
//!
//! Both use the keys that all replicas of a lab share (`keyring`). A job token is a keyed hash of job, attempt and
//! claim token. So any replica can check it and repeat it. Tokens are compared in constant time.

use std::{net::IpAddr, sync::Arc};

use blake3::Hash;
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use fairlead_job::{JobId, Spec};
use fairlead_store::{JobStore, StoreError};
use parking_lot::RwLock;
use serde_json::Value;

use crate::{
    Clock, keyring,
    ring::{KEY_BYTES, LabKey, Ring, from_hex, to_hex},
};

/// Field that authors write.
const PLAIN: &str = "secrets";
/// Field that is stored instead.
pub const SEALED: &str = "secrets_sealed";
/// Field that replaces secrets for a machine that does not get them.
const WITHHELD: &str = "secrets_withheld";
/// Purpose of sealed secrets. It is empty, as in all stored secrets.
pub const SECRETS: &str = "";
/// Bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// The secrets of a job are sealed with a key that this lab does not have, or has retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secrets cannot be opened: they are sealed with a key that this lab does not have, or has retired"
)]
pub struct NoKey;

/// Seals, opens and signs.
#[derive(Debug)]
pub struct Sealer {
    ring: RwLock<Arc<Ring>>,
    clock: Clock,
}

impl Sealer {
    /// Creates a sealer with these keys.
    pub fn with_ring(ring: Ring, clock: Clock) -> Self {
        Self {
            ring: RwLock::new(Arc::new(ring)),
            clock,
        }
    }

    /// Reads the lab's keys from the store, or creates the first key of a new lab.
    pub async fn open(store: &dyn JobStore, clock: Clock) -> Result<Self, StoreError> {
        let ring = keyring::begin(store, random_bytes::<KEY_BYTES>).await?;
        Ok(Self::with_ring(ring, clock))
    }

    /// Reads the keys again: another replica's operator may have added one.
    pub async fn reload(&self, store: &dyn JobStore) -> Result<(), StoreError> {
        let ring = match keyring::renew(store, &self.ring()).await {
            // The keys that are known here are good all the same.
            Err(StoreError::Unusable { reason, .. }) => {
                tracing::error!(reason, "the lab's keys cannot be read");
                return Ok(());
            }
            ring => ring?,
        };
        *self.ring.write() = Arc::new(ring);
        Ok(())
    }

    fn ring(&self) -> Arc<Ring> {
        Arc::clone(&self.ring.read())
    }

    /// Replaces `secrets` by its sealed form.
    pub fn seal(&self, spec: &mut Spec) {
        spec.shift_remove(SEALED);
        let Some(secrets) = spec.shift_remove(PLAIN) else {
            return;
        };
        if let Some(sealed) = self.seal_text(SECRETS, &secrets.to_string()) {
            spec.insert(SEALED.to_owned(), Value::String(sealed));
        }
    }

    /// Restores `secrets` as plain text, for the testbox that runs the job.
    pub fn open_secrets(&self, spec: &mut Spec) -> Result<(), NoKey> {
        let Some(sealed) = spec.get(SEALED) else {
            return Ok(());
        };
        let plain = sealed.as_str().and_then(|it| self.open_text(SECRETS, it));
        let plain = plain.ok_or(NoKey)?;
        let secrets: Value = serde_json::from_str(&plain).map_err(|_| NoKey)?;
        spec.shift_remove(SEALED);
        spec.insert(PLAIN.to_owned(), secrets);
        Ok(())
    }

    /// Seals a text for one purpose; `None`: the lab has no key yet.
    pub fn seal_text(&self, purpose: &str, text: &str) -> Option<String> {
        let nonce = random_bytes::<NONCE_BYTES>();
        let ring = self.ring();
        let key = ring.active(self.clock.wall_ms())?;
        let text = Payload {
            msg: text.as_bytes(),
            aad: purpose.as_bytes(),
        };
        let sealed = cipher(key).encrypt(XNonce::from_slice(&nonce), text).ok()?;
        Some(to_hex(&[nonce.as_slice(), &sealed].concat()))
    }

    /// Opens a text that was sealed for this purpose; `None`: this lab did not seal it.
    pub fn open_text(&self, purpose: &str, sealed: &str) -> Option<String> {
        let bytes = from_hex(sealed)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        let ring = self.ring();
        let mut opened = ring.newest_first().filter_map(|key| {
            let sealed = Payload {
                msg: sealed,
                aad: purpose.as_bytes(),
            };
            let plain = cipher(key)
                .decrypt(XNonce::from_slice(nonce), sealed)
                .ok()?;
            String::from_utf8(plain).ok()
        });
        opened.next()
    }

    /// Removes secrets for a machine that does not get them, and marks the spec if there were any.
    pub fn withhold(spec: &mut Spec) {
        if has_secrets(spec) {
            Self::strip(spec);
            spec.insert(WITHHELD.to_owned(), Value::Bool(true));
        }
    }

    /// Removes secrets without a mark, for people.
    pub fn strip(spec: &mut Spec) {
        spec.shift_remove(SEALED);
        spec.shift_remove(PLAIN);
    }

    /// Returns the token of the holder of this attempt.
    pub fn job_token(&self, id: JobId, attempt: u16, claim_token: &str) -> String {
        self.sign(&of_claim(id, attempt, claim_token))
    }

    /// Returns true if a token belongs to this attempt.
    pub fn is_job_token(&self, token: &str, id: JobId, attempt: u16, claim: &str) -> bool {
        self.is_signed(token, &of_claim(id, attempt, claim))
    }

    /// Returns the key that opens the secrets of an attempt to a box at one address.
    pub fn secrets_key(&self, job_token: &str, address: IpAddr) -> String {
        self.sign(&of_box(job_token, address))
    }

    /// Returns true if a key opens the secrets of an attempt to a box at this address.
    pub fn is_secrets_key(&self, key: &str, job_token: &str, address: IpAddr) -> bool {
        self.is_signed(key, &of_box(job_token, address))
    }

    /// Returns a token with which a box asks for its boot again, on behalf of an account. It is valid only for the
    /// box `whose`.
    pub fn boot_token(&self, account: &str, whose: &str) -> String {
        format!("{BOOT}{account}.{}", self.sign(&of_boot(account, whose)))
    }

    /// Returns the account of a boot token, if it belongs to this box.
    pub fn account_of_boot<'a>(&self, token: &'a str, whose: &str) -> Option<&'a str> {
        let (account, signature) = boot_parts(token)?;
        self.is_signed(signature, &of_boot(account, whose))
            .then_some(account)
    }

    /// Returns the token by which replicas of one lab recognize each other.
    pub fn peer_token(&self) -> String {
        self.sign(PEER)
    }

    /// Returns true if a token is that of a replica of this lab.
    pub fn is_peer_token(&self, token: &str) -> bool {
        self.is_signed(token, PEER)
    }

    fn sign(&self, what: &str) -> String {
        let ring = self.ring();
        let key = ring.active(self.clock.wall_ms());
        key.map_or_else(String::new, |key| signed(key, what).to_hex().to_string())
    }

    fn is_signed(&self, token: &str, what: &str) -> bool {
        let Ok(token) = Hash::from_hex(token) else {
            return false;
        };
        // Hashes compare in constant time.
        let ring = self.ring();
        ring.newest_first().any(|key| signed(key, what) == token)
    }
}

/// Text that replicas sign for each other.
const PEER: &str = "peer";
/// Prefix of a boot token.
const BOOT: &str = "boot.";

fn of_claim(id: JobId, attempt: u16, claim_token: &str) -> String {
    format!("{id}/{attempt}/{claim_token}")
}

fn of_boot(account: &str, whose: &str) -> String {
    format!("boot/{whose}/{account}")
}

fn boot_parts(token: &str) -> Option<(&str, &str)> {
    token.strip_prefix(BOOT)?.rsplit_once('.')
}

/// Returns true if a text has the form of a boot token.
pub fn is_boot_token(token: &str) -> bool {
    boot_parts(token).is_some()
}

fn of_box(job_token: &str, address: IpAddr) -> String {
    format!("secrets/{job_token}/{}", address.to_canonical())
}

/// Returns true if a spec has secrets, sealed or not.
fn has_secrets(spec: &Spec) -> bool {
    spec.contains_key(SEALED) || spec.contains_key(PLAIN)
}

fn signed(key: &LabKey, what: &str) -> Hash {
    blake3::keyed_hash(&key.bytes, what.as_bytes())
}

fn cipher(key: &LabKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(Key::from_slice(&key.bytes))
}

/// Returns random bytes from the system's source, as version 4 uuids give them.
pub fn random_bytes<const N: usize>() -> [u8; N] {
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

/// Returns a new token for an account: 64 hexadecimal digits.
pub fn new_token() -> String {
    to_hex(&random_bytes::<32>())
}

/// Returns the stored form of a token.
pub fn token_hash(token: &str) -> Hash {
    blake3::hash(token.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::keyring::SETTLES_MS;
    use fairlead_fixtures::embedded;

    fn sealer(key: u8) -> Sealer {
        Sealer::with_ring(Ring::of_one([key; KEY_BYTES]), Clock::system())
    }

    fn spec() -> Spec {
        let Value::Object(spec) = json!({"suite": "x", "secrets": {"password": "hush"}}) else {
            unreachable!()
        };
        spec
    }

    #[test]
    fn sealed_secrets_hide_and_come_back() {
        let mut sealed = spec();
        sealer(7).seal(&mut sealed);
        assert!(!serde_json::to_string(&sealed).unwrap().contains("hush"));
        let mut opened = sealed.clone();
        sealer(7).open_secrets(&mut opened).unwrap();
        assert_eq!(opened, spec());
        assert_eq!(sealer(8).open_secrets(&mut sealed), Err(NoKey));
        assert!(sealed.get(PLAIN).is_none());
    }

    #[test]
    fn a_job_token_belongs_to_one_attempt() {
        let (sealer, id) = (sealer(7), JobId::new(2_611_210_236_110_700_000));
        let token = sealer.job_token(id, 1, "t");
        assert!(sealer.is_job_token(&token, id, 1, "t"));
        for (attempt, claim) in [(2, "t"), (1, "u")] {
            assert!(!sealer.is_job_token(&token, id, attempt, claim));
        }
        assert!(!sealer.is_job_token("", id, 1, "t") && !sealer.is_job_token("x", id, 1, "t"));
        assert_ne!(new_token(), new_token());
    }

    /// One replica knows the new key, the other one reads it later.
    #[tokio::test(start_paused = true)]
    async fn tokens_and_secrets_outlive_a_new_key_at_all_replicas() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        let clock = Clock::simulated(1_000, Arc::default());
        let a = Sealer::open(store.as_ref(), clock.clone()).await.unwrap();
        let b = Sealer::open(store.as_ref(), clock.clone()).await.unwrap();
        let id = JobId::new(7);
        let (before, mut sealed) = (a.job_token(id, 1, "t"), spec());
        a.seal(&mut sealed);

        keyring::rotate(store.as_ref(), random_bytes(), clock.wall_ms())
            .await
            .unwrap();
        a.reload(store.as_ref()).await.unwrap();
        assert!(
            b.is_job_token(&a.job_token(id, 1, "t"), id, 1, "t"),
            "b has not read it"
        );
        b.reload(store.as_ref()).await.unwrap();
        tokio::time::advance(Duration::from_millis(SETTLES_MS)).await;
        let after = a.job_token(id, 1, "t");
        assert_ne!(after, before);
        for token in [&before, &after] {
            assert!(b.is_job_token(token, id, 1, "t"));
        }
        assert!(b.is_peer_token(&a.peer_token()));
        b.open_secrets(&mut sealed).unwrap();
        assert_eq!(sealed, spec());
    }
}
