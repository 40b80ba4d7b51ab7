//! The accounts whose jobs a host may run: current reservations, and health checks of suspect hosts.

use crate::placement::PlacementFlow;
use fairlead_base::names::HEALTH_CHECK;
use fairlead_known::{open_requests::Waiter, reservations::Reservation};

impl PlacementFlow {
    /// For whom a host is kept, if it is.
    pub(crate) fn reserved(&self, host: &str) -> Option<Reservation> {
        let now_ms = self.ctx.clock.wall_ms();
        let known = self.lab.reservations.with(|known| known.get(host).cloned());
        known.filter(|reservation| reservation.until_ms > now_ms)
    }

    /// All hosts that are kept for some, by name.
    pub(crate) fn reservations(&self) -> Vec<(String, Reservation)> {
        let now_ms = self.ctx.clock.wall_ms();
        self.lab.reservations.with(|known| {
            let holding = known.iter().filter(|(_, one)| one.until_ms > now_ms);
            let holding = holding.map(|(host, one)| (host.clone(), one.clone()));
            holding.collect()
        })
    }

    /// Whose jobs alone a host gets; empty: everybody's.
    pub(crate) fn served_accounts(&self, host: &str) -> Vec<String> {
        if self.lab.cordons.is_suspect(host) {
            return vec![HEALTH_CHECK.to_owned()];
        }
        let reserved = self.reserved(host);
        reserved.map_or_else(Vec::new, |reservation| reservation.accounts)
    }

    /// Whether a request says of its host what no longer holds: it is to ask again.
    pub(crate) fn is_outdated(&self, waiter: &Waiter) -> bool {
        waiter.offer.about.accounts != self.served_accounts(&waiter.offerer.host)
    }
}
