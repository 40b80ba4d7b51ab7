//! Machines that asked what to boot and that nobody registered. They are shown to an admin and never stored.

use std::collections::BTreeMap;

use fairlead_api::UnknownMachine;
use fairlead_dispatch::Millis;
use parking_lot::Mutex;

/// Maximum number of remembered machines. A new one replaces the one that was silent longest.
const MACHINES_MAX: usize = 256;
/// Time for which a machine is remembered after its last request, ms: an hour.
const REMEMBERED_MS: u64 = 3_600_000;

/// Machines by MAC address, with the time of each one's last request on this replica's clock.
#[derive(Debug, Default)]
pub struct UnknownMachines(Mutex<BTreeMap<String, (Millis, UnknownMachine)>>);

impl UnknownMachines {
    /// Notes a request of a machine. `machine.first_ms` counts only for a machine that was not remembered.
    pub fn note(&self, now: Millis, mut machine: UnknownMachine) {
        let mut all = self.0.lock();
        forget_old(&mut all, now);
        if let Some((_, known)) = all.get(&machine.mac) {
            machine.first_ms = known.first_ms;
        } else if all.len() >= MACHINES_MAX {
            let silent = all.iter().min_by_key(|(_, (at, _))| at.0);
            if let Some(mac) = silent.map(|(mac, _)| mac.clone()) {
                all.remove(&mac);
            }
        }
        all.insert(machine.mac.clone(), (now, machine));
    }

    /// Forgets a machine that was registered.
    pub fn forget(&self, mac: &str) {
        self.0.lock().remove(mac);
    }

    /// Returns all machines of the last hour, by MAC address.
    pub fn list(&self, now: Millis) -> Vec<UnknownMachine> {
        let mut all = self.0.lock();
        forget_old(&mut all, now);
        all.values().map(|(_, machine)| machine.clone()).collect()
    }
}

fn forget_old(all: &mut BTreeMap<String, (Millis, UnknownMachine)>, now: Millis) {
    all.retain(|_, (at, _)| at.0.saturating_add(REMEMBERED_MS) > now.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(n: usize, first_ms: u64) -> UnknownMachine {
        UnknownMachine {
            mac: format!("52:54:00:00:{:02x}:{:02x}", n / 256, n % 256),
            first_ms,
            ..UnknownMachine::default()
        }
    }

    #[test]
    fn at_most_256_machines_are_remembered_for_an_hour() {
        let known = UnknownMachines::default();
        for n in 0..300 {
            known.note(Millis(n as u64), machine(n, 7));
        }
        let all = known.list(Millis(300));
        assert_eq!((all.len(), &all[0].mac), (256, &machine(44, 0).mac));
        known.note(Millis(400), machine(299, 9));
        assert_eq!(known.list(Millis(400)).last().unwrap().first_ms, 7);
        known.forget(&machine(298, 0).mac);
        assert_eq!(known.list(Millis(400)).len(), 255);
        assert_eq!(known.list(Millis(400 + REMEMBERED_MS - 1)).len(), 1);
        assert_eq!(known.list(Millis(400 + REMEMBERED_MS)), []);
    }
}
