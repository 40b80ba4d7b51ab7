//! Hosts of which this replica found that nobody hears of them, until they are heard of again.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Maximum number of remembered hosts. The return of others is not reported.
const LOST_HOSTS_MAX: usize = 10_000;

/// Lost hosts with the time of the loss, UTC epoch ms.
#[derive(Debug, Default)]
pub struct LostHosts(Mutex<BTreeMap<String, u64>>);

impl LostHosts {
    /// Notes the loss of a host. Returns false if it was lost before and has not returned.
    pub fn lost(&self, host: &str, at_ms: u64) -> bool {
        let mut lost = self.0.lock();
        if lost.contains_key(host) {
            return false;
        }
        if lost.len() < LOST_HOSTS_MAX {
            lost.insert(host.to_owned(), at_ms);
        }
        true
    }

    /// Removes and returns the hosts that returned, each with the time of its loss. `heard_ms` returns the time of a
    /// host's last sign of life.
    pub fn back(&self, heard_ms: impl Fn(&str) -> u64) -> Vec<(String, u64)> {
        let mut lost = self.0.lock();
        let back = lost.iter().filter(|(host, at_ms)| heard_ms(host) > **at_ms);
        let back: Vec<(String, u64)> = back.map(|(host, at_ms)| (host.clone(), *at_ms)).collect();
        for (host, _) in &back {
            lost.remove(host);
        }
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_lost_once_until_it_is_back() {
        let hosts = LostHosts::default();
        assert!(hosts.lost("a", 10) && hosts.lost("b", 20));
        assert!(!hosts.lost("a", 15));
        assert!(hosts.back(|_| 10).is_empty());
        assert_eq!(hosts.back(|_| 20), [("a".to_owned(), 10)]);
        assert!(hosts.lost("a", 30), "it is lost again");
    }
}
