//! Shows, imports, rotates and retires the lab's keys directly in the store, for operators.

use fairlead_store::JobStore;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::{Clock, Config, StartError, upkeep::sealed::OfKey};
use fairlead_base::{
    clock::utc_text,
    errors::excerpt,
    keyring::{self, Refused},
    ring::Ring,
    sealing::{Sealer, random_bytes},
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
    /// When it was retired, UTC epoch ms; 0: it was not. A retired key opens and verifies nothing.
    pub retired_ms: u64,
}

/// The keys of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Keys {
    /// The newest first, then those that were retired.
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
            retired_ms: 0,
        });
        let retired = ring.retired().iter().rev().map(|key| KeyView {
            id: key.id.clone(),
            from_ms: 0,
            seals: false,
            retired_ms: key.at_ms,
        });
        Self {
            keys: keys.chain(retired).collect(),
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

/// What came of retiring a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetiredKeys {
    /// The keys of the lab.
    #[serde(flatten)]
    pub keys: Keys,
    /// Timers, previews and receivers of notices that were sealed anew.
    pub sealed_anew: u64,
    /// Jobs that wait with secrets that nobody opens any more.
    pub waiting: u64,
    /// Jobs that run, and whose reports are refused from now on.
    pub running: u64,
}

/// Retires a key: it opens and verifies nothing any more, at any replica. What documents hold is sealed with another key
/// first. Jobs that have not ended and need it are a refusal, unless `is_forced`.
pub fn retire_key<'a>(
    config: &'a Config,
    id: &'a str,
    is_forced: bool,
) -> BoxFuture<'a, Result<RetiredKeys, StartError>> {
    Box::pin(async move {
        let store = open_existing(config).await?;
        let retired = retire(store.as_ref(), id, is_forced, &Clock::system()).await;
        retired.map_err(refused)
    })
}

async fn retire(
    store: &dyn JobStore,
    id: &str,
    is_forced: bool,
    clock: &Clock,
) -> Result<RetiredKeys, Refused> {
    let (ring, now_ms) = (keyring::show(store).await?, clock.wall_ms());
    let signed = keyring::signed_by(&ring, id, now_ms)?;
    let sealer = |ring| Sealer::with_ring(ring, clock.clone());
    let of_key = OfKey::new(store, &ring, id, signed, sealer);
    let needed = of_key.count().await?;
    let (waiting, running) = (needed.waiting, needed.running);
    if !is_forced && waiting + running > 0 {
        return Err(Refused::Needed { waiting, running });
    }
    let sealed_anew = of_key.seal_anew().await?;
    let ring = keyring::retire(store, id, now_ms).await?;
    Ok(RetiredKeys {
        keys: Keys::of(&ring),
        sealed_anew,
        waiting,
        running,
    })
}

fn refused(refused: Refused) -> StartError {
    let (message, hint) = match refused {
        Refused::Store(error) => return error.into(),
        Refused::NoKeys => (
            "there is no key in it".to_owned(),
            "give what 'fairlead key show --export' printed, or 64 hexadecimal digits a line",
        ),
        Refused::TooMany => (
            "the lab would have more than 64 keys".to_owned(),
            "retire those that nothing needs: fairlead key retire KEY",
        ),
        Refused::Unknown(id) => (
            format!("the lab has no key '{}'", excerpt(&id)),
            "list them: fairlead key show",
        ),
        Refused::Seals(id, None) => (
            format!("key {id} is the newest one, and seals"),
            "make another one: fairlead key rotate; retire this one after a minute",
        ),
        Refused::Seals(id, Some(from_ms)) => (
            format!("key {id} may be in use until {}", utc_text(from_ms)),
            "try again then",
        ),
        Refused::Needed { waiting, running } => (
            format!(
                "jobs that have not ended need this key: {waiting} wait with secrets that it sealed, {running} run with tokens or secrets of it"
            ),
            "wait for their ends, or cancel them; with --force, those that wait end as abort_invalid, and those that run lose their hosts",
        ),
    };
    StartError::Key {
        message,
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use fairlead_job::{CallbackEvents, Spec};
    use fairlead_store::{DocKind, DocWrite, Expect, NewJob};
    use serde_json::json;

    use super::*;
    use crate::testing::{embedded, state};
    use fairlead_known::{account_notify::AccountNotify, previews::PreviewDoc};

    fn spec(value: Value) -> Spec {
        serde_json::from_value(value).unwrap()
    }

    async fn put(store: &dyn JobStore, kind: DocKind, body: Value) {
        let write = DocWrite {
            id: "ann".to_owned(),
            expect: Expect::Absent,
            body: Some(body),
        };
        store.put_docs(kind, vec![write]).await.remove(0).unwrap();
    }

    async fn body(store: &dyn JobStore, kind: DocKind) -> Value {
        store.get_doc(kind, "ann").await.unwrap().unwrap().body
    }

    #[tokio::test(start_paused = true)]
    async fn a_retired_key_opens_nothing_and_documents_are_sealed_anew() {
        let data = tempfile::tempdir().unwrap();
        let store = embedded(&data);
        let store = store.as_ref();
        let clock = Clock::simulated(1_000, Arc::default());
        let sealer = Sealer::open(store, clock.clone()).await.unwrap();
        let old = Keys::of(&keyring::show(store).await.unwrap()).keys[0]
            .id
            .clone();
        let secret = || spec(json!({"suite": "x", "secrets": {"k": "hush"}}));
        let mut sealed = secret();
        sealer.seal(&mut sealed);
        let job = NewJob {
            state: state(1),
            body: Arc::new(sealed.clone()),
        };
        store.submit(vec![job]).await.remove(0).unwrap();
        put(store, DocKind::Timer, json!({ "job": sealed })).await;
        let said = (CallbackEvents::default(), "text", String::new());
        let notify = AccountNotify::seal(said, &secret(), "ann", &sealer);
        put(store, DocKind::Account, json!({ "notify": notify })).await;
        let mut preview = PreviewDoc {
            by: "ann".to_owned(),
            ..PreviewDoc::default()
        };
        preview.asked.set = secret();
        let preview = preview.sealed(&sealer).unwrap();
        put(store, DocKind::Preview, json!(preview)).await;

        let ring = keyring::rotate(store, random_bytes(), clock.wall_ms()).await;
        ring.unwrap();
        let early = retire(store, &old, true, &clock).await.unwrap_err();
        assert!(matches!(early, Refused::Seals(..)), "{early:?}");
        tokio::time::advance(Duration::from_mins(2)).await;
        let refused = retire(store, &old, false, &clock).await.unwrap_err();
        assert!(matches!(refused, Refused::Needed { waiting: 1, .. }));
        let retired = retire(store, &old, true, &clock).await.unwrap();
        assert_eq!((retired.waiting, retired.sealed_anew), (1, 3));
        let shown: Vec<u64> = retired.keys.keys.iter().map(|key| key.retired_ms).collect();
        assert_eq!(shown.len(), 2);
        assert!(shown[0] == 0 && shown[1] > 0);

        sealer.reload(store).await.unwrap();
        assert!(sealer.open_secrets(&mut sealed).is_err(), "the key is gone");
        let mut timer = spec(body(store, DocKind::Timer).await["job"].clone());
        sealer.open_secrets(&mut timer).unwrap();
        assert_eq!(timer, secret());
        let account = body(store, DocKind::Account).await;
        let notify: AccountNotify = serde_json::from_value(account["notify"].clone()).unwrap();
        assert_eq!(notify.open("ann", &sealer), Some(secret()));
        let preview = body(store, DocKind::Preview).await;
        let preview: PreviewDoc = serde_json::from_value(preview).unwrap();
        assert_eq!(preview.set(&sealer).unwrap(), secret());
    }
}
