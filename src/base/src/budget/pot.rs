//! Pots: something that is used together, and charges of it by identity.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use fairlead_api::{ErrorBody, ErrorCode};
use fairlead_job::JobId;
use parking_lot::Mutex;

/// Advice if charges end soon.
pub(super) const SOON: &str = "try again in a few seconds";

/// User of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// Unidentified sender: its address, or the network of an IPv6 address.
    Stranger(IpAddr),
    /// An account, and all jobs of it. Empty: the operator of an open lab.
    Account(String),
    /// One job alone.
    Job(JobId),
    /// A testbox that asks, renews or reports, or another replica. They use the reserve.
    Reserve,
}

impl Identity {
    /// Returns the identity as text.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Stranger(address) => format!("senders without a token at {address}"),
            Self::Account(name) if name.is_empty() => "the operator".to_owned(),
            Self::Account(name) => format!("account '{name}'"),
            Self::Job(id) => format!("job {id}"),
            Self::Reserve => "testboxes and replicas".to_owned(),
        }
    }
}

/// The limits of a pot, in its own unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PotLimits {
    /// Maximum of all together.
    pub all_max: u64,
    /// Part of it that is reserved for [`Identity::Reserve`].
    pub reserve: u64,
    /// Part of it that all strangers may use.
    pub strangers_max: u64,
    /// Maximum of one identity, except [`Identity::Reserve`].
    pub each_max: u64,
}

impl PotLimits {
    /// Creates limits without a reserve, and without a part for strangers.
    pub(super) const fn of(all_max: u64, each_max: u64) -> Self {
        Self {
            all_max,
            reserve: 0,
            strangers_max: 0,
            each_max,
        }
    }
}

/// Shared resource.
#[derive(Debug)]
pub struct Pot {
    /// Name of the resource, for messages.
    what: &'static str,
    /// Advice for an identity that has its share.
    hint: &'static str,
    limits: PotLimits,
    used: Mutex<Used>,
}

/// Used amounts of a pot.
#[derive(Debug, Default)]
struct Used {
    /// Amount used by the reserve.
    reserve: u64,
    /// Amount used by all others.
    shared: u64,
    /// Part of `shared` that strangers use.
    strangers: u64,
    /// Amount used by each identity except the reserve.
    of: BTreeMap<Identity, u64>,
}

impl Used {
    fn add(&mut self, whose: &Identity, amount: u64) {
        if *whose == Identity::Reserve {
            self.reserve += amount;
            return;
        }
        self.shared += amount;
        if matches!(whose, Identity::Stranger(_)) {
            self.strangers += amount;
        }
        if let Some(own) = self.of.get_mut(whose) {
            *own += amount;
        } else if amount > 0 {
            self.of.insert(whose.clone(), amount);
        }
    }

    fn remove(&mut self, whose: &Identity, amount: u64) {
        if *whose == Identity::Reserve {
            self.reserve -= amount;
            return;
        }
        self.shared -= amount;
        if matches!(whose, Identity::Stranger(_)) {
            self.strangers -= amount;
        }
        if let Some(own) = self.of.get_mut(whose) {
            *own -= amount;
            if *own == 0 {
                self.of.remove(whose);
            }
        }
    }
}

impl Pot {
    pub(super) fn new(what: &'static str, hint: &'static str, limits: PotLimits) -> Arc<Self> {
        Arc::new(Self {
            what,
            hint,
            limits,
            used: Mutex::default(),
        })
    }

    /// Returns an empty charge.
    pub fn charge(self: &Arc<Self>, whose: Identity) -> Charge {
        Charge {
            pot: Arc::clone(self),
            whose,
            amount: 0,
        }
    }

    /// Returns a charge of this amount.
    pub fn take(self: &Arc<Self>, whose: Identity, amount: u64) -> Result<Charge, ErrorBody> {
        let mut charge = self.charge(whose);
        charge.grow(amount)?;
        Ok(charge)
    }

    /// Returns the advice for an identity that has its share.
    pub(super) const fn hint(&self) -> &'static str {
        self.hint
    }

    /// Returns the name of the resource.
    pub(super) const fn what(&self) -> &'static str {
        self.what
    }

    /// Returns the amount that an identity uses.
    pub(super) fn of(&self, whose: &Identity) -> u64 {
        self.used.lock().of.get(whose).copied().unwrap_or(0)
    }

    /// Returns the maximum of all sharing identities together.
    fn shared_max(&self) -> u64 {
        self.limits.all_max.saturating_sub(self.limits.reserve)
    }

    /// Returns the maximum of one identity while no other uses anything.
    fn own_max(&self, whose: &Identity) -> u64 {
        let half = match whose {
            Identity::Reserve => return self.limits.all_max,
            Identity::Stranger(_) => self.limits.strangers_max / 2,
            Identity::Account(_) | Identity::Job(_) => self.shared_max() / 2,
        };
        half.min(self.limits.each_max)
    }

    /// Adds `amount`, if that keeps a fair share. Otherwise fails with the amount that the identity uses.
    fn add(&self, whose: &Identity, amount: u64) -> Result<(), u64> {
        let mut used = self.used.lock();
        let own = used.of.get(whose).copied().unwrap_or(0);
        let limits = &self.limits;
        let then = own.saturating_add(amount);
        let all = used.reserve.saturating_add(used.shared);
        let fits_all = all.saturating_add(amount) <= limits.all_max;
        // As much must be left for others.
        let is_fair = |max: u64, taken: u64| {
            taken.saturating_add(amount).saturating_add(then) <= max && then <= limits.each_max
        };
        let may = match whose {
            Identity::Reserve => true,
            Identity::Stranger(_) => {
                is_fair(limits.strangers_max, used.strangers)
                    && used.shared.saturating_add(amount) <= self.shared_max()
            }
            Identity::Account(_) | Identity::Job(_) => is_fair(self.shared_max(), used.shared),
        };
        if !(may && fits_all) {
            return Err(own);
        }
        used.add(whose, amount);
        Ok(())
    }
}

/// Amount that one request uses of a pot.
#[derive(Debug)]
pub struct Charge {
    pot: Arc<Pot>,
    whose: Identity,
    amount: u64,
}

impl Charge {
    /// Returns an empty charge of the same identity.
    #[must_use]
    pub fn another(&self) -> Self {
        self.pot.charge(self.whose.clone())
    }

    /// Returns the charged identity.
    pub fn whose(&self) -> &Identity {
        &self.whose
    }

    /// Moves the charge to another identity, even if that one has its share already.
    pub fn belongs_to(&mut self, whose: Identity) {
        let mut used = self.pot.used.lock();
        used.remove(&self.whose, self.amount);
        used.add(&whose, self.amount);
        drop(used);
        self.whose = whose;
    }

    /// Adds to the charge, if that keeps a fair share.
    pub fn grow(&mut self, amount: u64) -> Result<(), ErrorBody> {
        if amount == 0 {
            return Ok(());
        }
        let then = self.amount.saturating_add(amount);
        let (what, most) = (self.pot.what, self.pot.own_max(&self.whose));
        if then > most {
            let message = format!("the request needs {then} {what}; one sender may have {most}");
            return Err(ErrorBody::new(ErrorCode::TooLarge, message, "split it"));
        }
        self.pot.add(&self.whose, amount).map_err(|own| {
            let whose = self.whose.shown();
            let message = format!(
                "{whose} has {own} {what} and wants {amount} more; nobody may have more than is left for others, at most {most}"
            );
            ErrorBody::new(ErrorCode::TooMany, message, self.pot.hint)
        })?;
        self.amount = then;
        Ok(())
    }

    /// Returns the amount.
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// Gives this amount back.
    pub(super) fn shrink(&mut self, amount: u64) {
        let amount = amount.min(self.amount);
        self.pot.used.lock().remove(&self.whose, amount);
        self.amount -= amount;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pot.used.lock().remove(&self.whose, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pot(all_max: u64, reserve: u64, strangers_max: u64) -> Arc<Pot> {
        Pot::new(
            "bytes",
            SOON,
            PotLimits {
                all_max,
                reserve,
                strangers_max,
                each_max: u64::MAX,
            },
        )
    }

    fn account(name: &str) -> Identity {
        Identity::Account(name.to_owned())
    }

    fn stranger(n: u8) -> Identity {
        Identity::Stranger(IpAddr::from([10, 0, 0, n]))
    }

    fn is_empty(pot: &Pot) -> bool {
        let used = pot.used.lock();
        (used.reserve, used.shared, used.strangers) == (0, 0, 0) && used.of.is_empty()
    }

    #[test]
    fn nobody_has_more_than_is_left_for_others() {
        let pot = pot(120, 20, 30);
        let first = pot.take(account("mallory"), 30).unwrap();
        let mut second = first.another();
        second.grow(20).unwrap();
        let refused = second.grow(1).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TooMany);
        assert!(
            refused.message.contains("account 'mallory' has 50 bytes"),
            "{refused:?}"
        );
        // Another one finds room, and the next one, too.
        let alice = pot.take(account("alice"), 25).unwrap();
        let bob = pot.take(account("bob"), 12).unwrap();
        assert!(pot.take(account("bob"), 1).is_err());
        // More than anybody ever has is refused for good.
        let code = pot.take(account("carol"), 51).unwrap_err().code;
        assert_eq!(code, ErrorCode::TooLarge);
        drop((first, alice, bob));
        second.grow(30).unwrap();
        drop(second);
        assert!(is_empty(&pot));
    }

    #[test]
    fn the_reserve_is_for_testboxes_and_does_not_crowd_out_others() {
        let pot = pot(120, 20, 30);
        let hogs = [50, 25, 12, 6].map(|n| pot.take(account(&format!("hog {n}")), n).unwrap());
        let mut agent = pot.take(Identity::Reserve, 20).unwrap();
        agent.grow(7).unwrap();
        assert_eq!(agent.grow(1).unwrap_err().code, ErrorCode::TooMany);
        drop(hogs);
        // The reserve of testboxes does not reduce the share of others.
        drop(agent);
        let _agent = pot.take(Identity::Reserve, 20).unwrap();
        let own = pot.take(account("alice"), 50).unwrap();
        drop(own);
    }

    #[test]
    fn strangers_share_a_small_part_by_address_until_they_are_known() {
        let pot = pot(120, 20, 30);
        let mut one = pot.take(stranger(1), 15).unwrap();
        assert!(pot.take(stranger(1), 1).is_err());
        let other = pot.take(stranger(2), 7).unwrap();
        one.belongs_to(account("alice"));
        let more = pot.take(stranger(1), 11).unwrap();
        one.grow(20).unwrap();
        drop((one, other, more));
        assert!(is_empty(&pot));
    }

    #[test]
    fn one_identity_may_have_a_limit_of_its_own() {
        let pot = Pot::new("uploads", SOON, PotLimits::of(100, 2));
        let job = |n| Identity::Job(JobId::new(n));
        let _held = [1, 2].map(|_| pot.take(job(1), 1).unwrap());
        assert!(pot.take(job(1), 1).is_err());
        assert!(pot.take(job(2), 1).is_ok());
    }
}
