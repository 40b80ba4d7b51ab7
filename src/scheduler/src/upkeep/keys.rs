//! Shows, imports and rotates the lab's keys directly in the store, for operators.

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::{
    Clock, Config, StartError,
    base::{
        keyring::{self, Refused, Ring},
        sealing::random_bytes,
    },
    storage::open::{open_existing, open_to_read},
};

/// One key, without itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyView {
    /// Its fingerprint.
    pub id: String,
    /// It seals and signs from then on, UTC epoch ms.
    pub from_ms: u64,
    /// Whether it is the one that seals and signs now.
    pub seals: bool,
}

/// The keys of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Keys {
    /// The newest first.
    pub keys: Vec<KeyView>,
    /// All that a restore needs: the keys themselves.
    #[serde(skip)]
    pub export: Value,
}

impl Keys {
    fn of(ring: &Ring) -> Self {
        let now_ms = Clock::system().wall_ms();
        let active = ring.active(now_ms).map(|key| key.bytes);
        let keys = ring.newest_first().map(|key| KeyView {
            id: key.id(),
            from_ms: key.from_ms,
            seals: active == Some(key.bytes),
        });
        Self {
            keys: keys.collect(),
            export: ring.export(),
        }
    }
}

/// The keys in this store.
pub fn show_keys(config: &Config) -> BoxFuture<'_, Result<Keys, StartError>> {
    Box::pin(async move {
        let store = open_to_read(config).await?;
        Ok(Keys::of(&keyring::show(store.as_ref()).await?))
    })
}

/// Adds keys: an export, the settings document of a backup, or 64 hexadecimal digits a line.
pub fn import_keys<'a>(
    config: &'a Config,
    text: &'a str,
) -> BoxFuture<'a, Result<Keys, StartError>> {
    Box::pin(async move {
        let store = open_existing(config).await?;
        let now_ms = Clock::system().wall_ms();
        let ring = keyring::import(store.as_ref(), text, now_ms).await;
        Ok(Keys::of(&ring.map_err(refused)?))
    })
}

/// Adds a new key, which seals once every replica has read it.
pub fn rotate_key(config: &Config) -> BoxFuture<'_, Result<Keys, StartError>> {
    Box::pin(async move {
        let store = open_existing(config).await?;
        let now_ms = Clock::system().wall_ms();
        let ring = keyring::rotate(store.as_ref(), random_bytes(), now_ms).await;
        Ok(Keys::of(&ring.map_err(refused)?))
    })
}

fn refused(refused: Refused) -> StartError {
    let (message, hint) = match refused {
        Refused::Store(error) => return error.into(),
        Refused::NoKeys => (
            "there is no key in it",
            "give what 'fairlead key show --export' printed, or 64 hexadecimal digits a line",
        ),
        Refused::TooMany => (
            "the lab would have more than 64 keys",
            "keep those that it has; no job needs more",
        ),
    };
    StartError::Key {
        message: message.to_owned(),
        hint: hint.to_owned(),
    }
}
