//! Pins: what a collection must leave alone.
//!
//! A put and a collection may meet without knowing each other, so each writes first and reads then. A put writes its pin,
//! and then reads what is condemned. A collection writes what it condemns, and then reads the pins. So one of the two sees
//! the other. A put that finds its digests condemned waits until that batch is over, and only then looks what is there.

use std::{collections::BTreeSet, time::Duration};

use futures_util::TryStreamExt;
use object_store::path::Path;

use crate::{
    ContentError, ContentStore, Digest, Pin,
    condemned::Condemned,
    json::json,
    names::{PINS, condemned, pin_name},
};

/// Maximum time that a put waits for batches that hold its digests. After it the put must try again later.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Interval of its looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl ContentStore {
    /// Keeps these digests from collection until a time. When this returns, existing content stays. Pin chunks before
    /// asking for missing ones, and a manifest before naming it.
    ///
    /// # Errors
    /// [`ContentError::Collecting`]: some of them are just being removed, and that takes too long.
    pub async fn pin(&self, pin: &Pin) -> Result<(), ContentError> {
        let json = json(pin)?;
        let name = pin_name(&pin.put, Digest::of(&json));
        self.write(&name, json).await?;
        let begun = self.clock.elapsed();
        while self.any_condemned(&pin.digests).await? {
            if self.clock.elapsed().saturating_sub(begun) > WAIT_MAX {
                return Err(ContentError::Collecting);
            }
            self.clock.sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Gives up all pins of a put, at its end.
    pub async fn unpin(&self, put: &str) -> Result<(), ContentError> {
        let pins = self.list(&Path::from_iter([PINS, put]));
        let names: Vec<Path> = pins.map_ok(|meta| meta.location).try_collect().await?;
        for name in names {
            self.delete(&name).await?;
        }
        Ok(())
    }

    async fn any_condemned(&self, digests: &BTreeSet<Digest>) -> Result<bool, ContentError> {
        let lists = self.list(&condemned());
        let lists: Vec<Path> = lists.map_ok(|meta| meta.location).try_collect().await?;
        // A collector that died in a batch leaves its list behind.
        let dead = self.watched.dead(&lists, self.clock.elapsed());
        for name in &dead {
            self.delete(name).await?;
        }
        for name in lists.iter().filter(|name| !dead.contains(name)) {
            let Some(json) = self.read(name).await? else {
                continue;
            };
            let holds = serde_json::from_slice::<Condemned>(&json).map_or(true, |list| {
                list.digests.iter().any(|digest| digests.contains(digest))
            });
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
