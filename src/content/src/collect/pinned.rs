//! All pins, as far as they were read. A pin never changes, so each is read once.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, path::Path};

use crate::{ContentError, ContentStore, Digest, PIN_LASTS_MAX, Pin, names::PINS, store::ABREAST};

/// Time for which pins count longer, because clocks of machines differ.
const SLACK: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(super) struct Pinned {
    /// End of each pin, UTC epoch ms.
    pins: BTreeMap<Path, u64>,
    digests: HashMap<Digest, u64>,
}

pub(super) fn written_ms(meta: &ObjectMeta) -> u64 {
    u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Pinned {
    /// Reads the pins that are new since the last time.
    pub(super) async fn read(&mut self, store: &ContentStore) -> Result<(), ContentError> {
        let there: Vec<ObjectMeta> = store.list(&Path::from(PINS)).try_collect().await?;
        let fresh = there
            .into_iter()
            .filter(|meta| !self.pins.contains_key(&meta.location));
        let fresh: Vec<ObjectMeta> = fresh.collect();
        let reads = stream::iter(fresh).map(async |meta| {
            let bytes = store.read(&meta.location).await?;
            Ok::<_, ContentError>((meta, bytes))
        });
        let mut reads = reads.buffered(ABREAST);
        while let Some((meta, bytes)) = reads.try_next().await? {
            let Some(bytes) = bytes else {
                // It was given up.
                continue;
            };
            let longest = written_ms(&meta).saturating_add(ms(PIN_LASTS_MAX));
            let pin = serde_json::from_slice::<Pin>(&bytes).unwrap_or_else(|error| {
                tracing::warn!(pin = %meta.location, %error, "a pin cannot be read, and protects nothing");
                Pin::default()
            });
            let until = pin.until_ms.min(longest).saturating_add(ms(SLACK));
            for digest in pin.digests {
                let longest = self.digests.entry(digest).or_insert(until);
                *longest = until.max(*longest);
            }
            self.pins.insert(meta.location, until);
        }
        Ok(())
    }

    pub(super) fn holds(&self, digest: Digest, now_ms: u64) -> bool {
        self.digests
            .get(&digest)
            .is_some_and(|until| *until >= now_ms)
    }

    /// Returns the pins that no longer count.
    pub(super) fn expired(&self, now_ms: u64) -> impl Iterator<Item = &Path> {
        let expired = self.pins.iter().filter(move |(_, until)| **until < now_ms);
        expired.map(|(name, _)| name)
    }
}
