//! The collector's lock: a number that only one can create.
//!
//! The last number is the present collector's. It writes its number's object again and again. Another takes the next
//! number when that object did not change for a lease, by its own clock. So no clocks are compared. The last number's
//! object stays, so that no number comes twice.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::{
    ContentError, ContentStore,
    condemned::LEASE,
    json::json,
    names::{term_name, terms},
};

/// Interval at which a collector renews its term.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// Interval at which another collector looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    holder: String,
    renewals: u64,
    done: bool,
}

#[derive(Debug)]
pub(super) struct Term {
    number: u64,
    holder: String,
    renewals: u64,
    renewed: Duration,
}

impl Term {
    pub(super) async fn take(store: &ContentStore, holder: &str) -> Result<Self, ContentError> {
        let before = last(store).await?;
        if let Some((number, bytes)) = &before {
            let stored: Stored = serde_json::from_slice(bytes).unwrap_or_default();
            let since = store.clock.elapsed();
            while !stored.done && store.clock.elapsed().saturating_sub(since) <= LEASE {
                store.clock.sleep(LOOK_EVERY).await;
                if last(store).await? != before {
                    return Err(ContentError::CollectedByAnother(stored.holder));
                }
            }
            tracing::debug!(number, holder = %stored.holder, "the collector before this one is over");
        }
        let term = Self {
            number: before.map_or(1, |(number, _)| number.saturating_add(1)),
            holder: holder.to_owned(),
            renewals: 0,
            renewed: store.clock.elapsed(),
        };
        let is_mine = store
            .create(&term_name(term.number), term.stored(false)?)
            .await?;
        if !is_mine {
            let other = last(store)
                .await?
                .map(|(_, bytes)| bytes)
                .unwrap_or_default();
            let other: Stored = serde_json::from_slice(&other).unwrap_or_default();
            return Err(ContentError::CollectedByAnother(other.holder));
        }
        for name in all(store).await? {
            if number_of(&name).is_none_or(|number| number < term.number) {
                store.delete(&name).await?;
            }
        }
        Ok(term)
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) async fn keep(&mut self, store: &ContentStore) -> Result<(), ContentError> {
        let now = store.clock.elapsed();
        if now.saturating_sub(self.renewed) < RENEW_EVERY {
            return Ok(());
        }
        if let Some((number, bytes)) = last(store).await?
            && number > self.number
        {
            let other: Stored = serde_json::from_slice(&bytes).unwrap_or_default();
            return Err(ContentError::CollectedByAnother(other.holder));
        }
        self.renewals += 1;
        store
            .write(&term_name(self.number), self.stored(false)?)
            .await?;
        self.renewed = now;
        Ok(())
    }

    /// Ends the term. Called only if no work is unfinished; otherwise the next collector waits for a lease.
    pub(super) async fn end(self, store: &ContentStore) -> Result<(), ContentError> {
        store
            .write(&term_name(self.number), self.stored(true)?)
            .await
    }

    fn stored(&self, done: bool) -> Result<Bytes, ContentError> {
        let stored = Stored {
            holder: self.holder.clone(),
            renewals: self.renewals,
            done,
        };
        json(&stored)
    }
}

async fn all(store: &ContentStore) -> Result<Vec<Path>, ContentError> {
    let found = store.list(&terms());
    found.map_ok(|meta| meta.location).try_collect().await
}

fn number_of(name: &Path) -> Option<u64> {
    name.filename()?.parse().ok()
}

/// Returns the last number and the content of its object; empty: it was just removed.
async fn last(store: &ContentStore) -> Result<Option<(u64, Bytes)>, ContentError> {
    let numbers = all(store).await?;
    let Some(number) = numbers.iter().filter_map(number_of).max() else {
        return Ok(None);
    };
    let bytes = store.read(&term_name(number)).await?;
    Ok(Some((number, bytes.unwrap_or_default())))
}
