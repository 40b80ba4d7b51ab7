//! Places of messages that are on their way: a few for each account and for each receiver. So a receiver that does not
//! answer delays nobody else's messages, and an account with many receivers delays no other account's.
//!
//! A message that was never tried may take all of the places, one that is tried again half of them: fresh ones go first.
//! A receiver that let several messages wait in a row rests.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use fairlead_dispatch::Millis;
use parking_lot::Mutex;

/// Maximum number of messages in flight for one account, and to one receiver.
const PLACES_MAX: u32 = 8;
/// Maximum number of messages in flight from one replica.
const ALL_MAX: u32 = 256;
/// Number of consecutive messages without an answer in time after which a receiver is paused.
const SLOW_MAX: u32 = 3;
/// First pause, ms. It doubles with each further message that is not answered in time.
const REST_MS: u64 = 10_000;
/// Longest pause, ms.
const REST_MS_MAX: u64 = 300_000;
/// Delay before a message without a slot is checked again, ms.
const BUSY_MS: u64 = 1_000;
/// Maximum number of remembered slow receivers.
const SLOW_KNOWN_MAX: usize = 10_000;

/// Slots for messages in flight from this replica.
#[derive(Debug, Default)]
pub struct WebhookPlaces(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: u32,
    accounts: BTreeMap<String, u32>,
    receivers: BTreeMap<String, Receiver>,
}

#[derive(Debug, Default)]
struct Receiver {
    on_their_way: u32,
    /// Number of consecutive messages that it did not answer in time.
    slow: u32,
    rests_until: Millis,
}

/// Slot of one message. Dropping it frees the slot.
#[derive(Debug)]
pub struct WebhookPlace {
    places: Arc<WebhookPlaces>,
    account: String,
    receiver: String,
}

impl Taken {
    fn has_room(&self, account: &str, is_fresh: bool) -> Result<(), u64> {
        let of_account = self.accounts.get(account).copied().unwrap_or(0);
        let has_room = self.all < ALL_MAX && of_account < most(is_fresh);
        has_room.then_some(()).ok_or(BUSY_MS)
    }
}

impl WebhookPlaces {
    /// Checks that an account has a free slot, regardless of the receiver. The error is the delay before the next
    /// check, ms.
    pub fn has_room(&self, account: &str, is_fresh: bool) -> Result<(), u64> {
        self.0.lock().has_room(account, is_fresh)
    }

    /// Takes a slot for a message to this receiver. The error is the delay before the next try, ms.
    pub fn take(
        self: &Arc<Self>,
        account: &str,
        receiver: &str,
        is_fresh: bool,
        now: Millis,
    ) -> Result<WebhookPlace, u64> {
        let mut taken = self.0.lock();
        taken.has_room(account, is_fresh)?;
        let known = taken.receivers.entry(receiver.to_owned()).or_default();
        if known.rests_until > now {
            return Err(known.rests_until.0.saturating_sub(now.0));
        }
        if known.on_their_way >= most(is_fresh) {
            return Err(BUSY_MS);
        }
        known.on_their_way += 1;
        *taken.accounts.entry(account.to_owned()).or_default() += 1;
        taken.all += 1;
        Ok(WebhookPlace {
            places: Arc::clone(self),
            account: account.to_owned(),
            receiver: receiver.to_owned(),
        })
    }
}

impl WebhookPlace {
    /// Notes whether the receiver answered in time.
    pub fn answered(&self, in_time: bool, now: Millis) {
        let mut taken = self.places.0.lock();
        let Some(known) = taken.receivers.get_mut(&self.receiver) else {
            return;
        };
        if in_time {
            (known.slow, known.rests_until) = (0, Millis(0));
            return;
        }
        known.slow = known.slow.saturating_add(1);
        if let Some(more) = known.slow.checked_sub(SLOW_MAX) {
            let rest_ms = REST_MS.saturating_mul(1 << more.min(16)).min(REST_MS_MAX);
            known.rests_until = Millis(now.0.saturating_add(rest_ms));
        }
    }
}

impl Drop for WebhookPlace {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Entry::Occupied(mut of_account) = taken.accounts.entry(self.account.clone()) {
            *of_account.get_mut() -= 1;
            if *of_account.get() == 0 {
                of_account.remove();
            }
        }
        let is_full = taken.receivers.len() > SLOW_KNOWN_MAX;
        if let Entry::Occupied(mut known) = taken.receivers.entry(self.receiver.clone()) {
            known.get_mut().on_their_way -= 1;
            let known_slow = known.get().slow > 0 && !is_full;
            if known.get().on_their_way == 0 && !known_slow {
                known.remove();
            }
        }
    }
}

/// Returns the number of taken slots below which a message gets one.
const fn most(is_fresh: bool) -> u32 {
    if is_fresh { PLACES_MAX } else { PLACES_MAX / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(
        places: &Arc<WebhookPlaces>,
        is_fresh: bool,
        of: impl Fn(u32) -> (String, String),
    ) -> Vec<WebhookPlace> {
        let tries = (0..100).map(|n| {
            let (account, receiver) = of(n);
            places.take(&account, &receiver, is_fresh, Millis(0))
        });
        tries.map_while(Result::ok).collect()
    }

    #[test]
    fn neither_one_account_nor_one_receiver_takes_all_places() {
        let places = Arc::new(WebhookPlaces::default());
        let of_alice = many(&places, true, |n| ("alice".to_owned(), n.to_string()));
        assert_eq!(of_alice.len(), 8);
        assert_eq!(places.has_room("alice", true), Err(1_000));
        let to_slow = many(&places, true, |n| (n.to_string(), "slow".to_owned()));
        assert_eq!(to_slow.len(), 8);
        assert_eq!(places.has_room("bob", true), Ok(()));
        assert!(places.take("bob", "fast", true, Millis(0)).is_ok());
        drop((of_alice, to_slow));
        let taken = places.0.lock();
        assert_eq!(
            (taken.all, taken.accounts.len(), taken.receivers.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn what_is_tried_again_leaves_places_for_fresh_ones() {
        let places = Arc::new(WebhookPlaces::default());
        let again = many(&places, false, |_| ("alice".to_owned(), "r".to_owned()));
        assert_eq!(again.len(), 4);
        assert!(places.take("alice", "r", true, Millis(0)).is_ok());
    }

    #[test]
    fn a_receiver_that_lets_messages_wait_rests() {
        let places = Arc::new(WebhookPlaces::default());
        let mut rests = Vec::new();
        let mut now = Millis(0);
        for _ in 0..9 {
            let place = places.take("a", "slow", true, now).unwrap();
            place.answered(false, now);
            drop(place);
            let rest_ms = places.take("a", "slow", true, now).err().unwrap_or(0);
            rests.push(rest_ms / 1_000);
            now = Millis(now.0 + rest_ms);
        }
        assert_eq!(rests, [0, 0, 10, 20, 40, 80, 160, 300, 300]);
        places
            .take("a", "slow", true, now)
            .unwrap()
            .answered(true, now);
        assert!(places.take("a", "slow", true, now).is_ok());
        assert!(places.0.lock().receivers.is_empty());
    }
}
