//! Charges that last longer than a request.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_api::{ErrorBody, ErrorCode};
use parking_lot::Mutex;

use super::pot::{Charge, Identity, Pot};

/// Memory of the name of a charge, and of the charge itself, bytes.
const NAME_BYTES: u64 = 512;
/// Maximum number of charges of an identity.
const NAMES_MAX: usize = 20_000;

/// Charges by name, which last for a time or until they are ended.
#[derive(Debug)]
pub struct Kept {
    pot: Arc<Pot>,
    lasts_ms: u64,
    charges: Mutex<Charges>,
}

/// Charges of one identity by name, with the time at which each ends, on the clock of the caller, ms.
type ByName = BTreeMap<String, (u64, Charge)>;

#[derive(Debug, Default)]
struct Charges {
    of: BTreeMap<Identity, ByName>,
    /// Time before which none of them ends.
    end_ms: u64,
}

impl Charges {
    /// Drops charges that have ended. Mostly there is none, and none is looked at.
    fn drop_ended(&mut self, now_ms: u64) {
        if now_ms < self.end_ms {
            return;
        }
        self.end_ms = u64::MAX;
        for by_name in self.of.values_mut() {
            by_name.retain(|_, (until_ms, _)| *until_ms > now_ms);
            let until_ms = by_name.values().map(|(until_ms, _)| *until_ms).min();
            self.end_ms = self.end_ms.min(until_ms.unwrap_or(u64::MAX));
        }
        self.of.retain(|_, by_name| !by_name.is_empty());
    }
}

impl Kept {
    pub(super) fn new(pot: Arc<Pot>, lasts_ms: u64) -> Self {
        Self {
            pot,
            lasts_ms,
            charges: Mutex::default(),
        }
    }

    /// Adds a charge under a name of an identity.
    pub fn add(
        &self,
        whose: &Identity,
        name: &str,
        amount: u64,
        now_ms: u64,
    ) -> Result<(), ErrorBody> {
        let until_ms = now_ms.saturating_add(self.lasts_ms);
        let mut charges = self.charges.lock();
        charges.drop_ended(now_ms);
        if let Some((until, charge)) = charges.of.get_mut(whose).and_then(|own| own.get_mut(name)) {
            charge.grow(amount)?;
            *until = until_ms;
            return Ok(());
        }
        if charges.of.get(whose).map_or(0, BTreeMap::len) >= NAMES_MAX {
            let (whose, what) = (whose.shown(), self.pot.what());
            let message = format!("{whose} has {what} under {NAMES_MAX} names");
            return Err(ErrorBody::new(ErrorCode::TooMany, message, self.pot.hint()));
        }
        // The memory that keeps the charge is charged as well.
        let amount = amount.saturating_add(NAME_BYTES);
        let charge = self.pot.take(whose.clone(), amount)?;
        let own = charges.of.entry(whose.clone()).or_default();
        own.insert(name.to_owned(), (until_ms, charge));
        charges.end_ms = charges.end_ms.min(until_ms);
        Ok(())
    }

    /// Ends the charge under a name.
    pub fn end(&self, whose: &Identity, name: &str) {
        if let Some(own) = self.charges.lock().of.get_mut(whose) {
            own.remove(name);
        }
    }

    /// Reduces the charge under a name, and ends it if nothing is left.
    pub fn shrink(&self, whose: &Identity, name: &str, amount: u64) {
        let mut charges = self.charges.lock();
        let Some(own) = charges.of.get_mut(whose) else {
            return;
        };
        if let Some((_, charge)) = own.get_mut(name) {
            charge.shrink(amount);
            if charge.amount() <= NAME_BYTES {
                own.remove(name);
            }
        }
    }

    /// Returns the charges of an identity under a name, and under all others.
    pub fn of(&self, whose: &Identity, name: &str) -> (u64, u64) {
        let charges = self.charges.lock();
        let own = charges.of.get(whose).and_then(|own| own.get(name));
        let own = own.map_or(0, |(_, charge)| charge.amount());
        let others = self.pot.of(whose).saturating_sub(own);
        (own.saturating_sub(NAME_BYTES), others)
    }

    /// Returns the names of an identity that were last charged before a time.
    pub fn names(&self, whose: &Identity, before_ms: u64) -> Vec<String> {
        let until_ms = before_ms.saturating_add(self.lasts_ms);
        let charges = self.charges.lock();
        let own = charges.of.get(whose).into_iter().flatten();
        let own = own.filter(|(_, (until, _))| *until < until_ms);
        own.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pot::PotLimits, *};

    fn account(name: &str) -> Identity {
        Identity::Account(name.to_owned())
    }

    #[test]
    fn a_lasting_charge_ends_by_its_name_or_its_time() {
        let pot = Pot::new("bytes", "wait", PotLimits::of(10_000, u64::MAX));
        let kept = Kept::new(pot, 100);
        let alice = account("alice");
        kept.add(&alice, "a", 1_000, 0).unwrap();
        kept.add(&alice, "a", 1_000, 0).unwrap();
        kept.add(&alice, "b", 1_000, 50).unwrap();
        assert_eq!(kept.of(&alice, "a"), (2_000, 1_000 + NAME_BYTES));
        assert!(kept.add(&alice, "c", 1_000, 50).is_err());
        kept.shrink(&alice, "b", 600);
        assert_eq!(kept.of(&alice, "b"), (400, 2_000 + NAME_BYTES));
        kept.add(&account("bob"), "a", 1_000, 100).unwrap();
        assert_eq!(kept.names(&alice, 51), ["b"]);
        assert!(kept.names(&alice, 50).is_empty());
        kept.end(&alice, "b");
        assert_eq!(kept.of(&alice, "b"), (0, 0));
    }
}
