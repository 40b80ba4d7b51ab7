//! The memory of the replica that decides for the pools, from round to round. All of it can be lost.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use fairlead_dispatch::Millis;
use fairlead_scaler::Lull;
use parking_lot::Mutex;

/// Within so many ms a pool asks for `max_step` machines at most.
const MINUTE_MS: u64 = 60_000;

/// Who decides, as this replica saw it last.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) holder: String,
    pub(super) beat: u64,
    /// Since when it is so, on this replica's own clock.
    pub(super) since: Millis,
}

/// What the replica that decides remembers.
#[derive(Debug, Default)]
pub(super) struct Scaler {
    /// Since when it decides, UTC epoch ms; 0: it does not.
    pub(super) since_ms: u64,
    pub(super) round: u64,
    pools: BTreeMap<String, Remembered>,
    /// Pools whose provider is being called.
    pub(super) calls: Arc<Mutex<BTreeSet<String>>>,
}

/// What it remembers of a pool.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// Before its law's last decision.
    pub(super) lull: Lull,
    /// Before its last round, for other pools.
    pub(super) lends: Lull,
    /// When how many machines were asked for, UTC epoch ms.
    pub(super) asked: VecDeque<(u64, u32)>,
    /// How many lists lacked a machine, by token.
    pub(super) missed: BTreeMap<String, u32>,
    /// Jobs of each host that were counted.
    pub(super) counted: BTreeMap<String, u32>,
    /// When this replica found that a machine had asked for work, by its own clock: those of others may be apart.
    pub(super) met: BTreeMap<String, u64>,
    /// The last sentence that was stored.
    pub(super) said: String,
}

impl Scaler {
    /// It decides now.
    pub(super) fn holds(&mut self, now_ms: u64) {
        if self.since_ms == 0 {
            self.since_ms = now_ms;
        }
    }

    /// It does not decide.
    pub(super) fn rests(&mut self) {
        self.since_ms = 0;
        self.pools.clear();
    }

    pub(super) fn of(&mut self, pool: &str) -> &mut Remembered {
        self.pools.entry(pool.to_owned()).or_default()
    }
}

impl Remembered {
    /// Machines that may be asked for now.
    pub(super) fn step_left(&mut self, max_step: u32, now_ms: u64) -> u32 {
        self.asked
            .retain(|(at_ms, _)| at_ms.saturating_add(MINUTE_MS) > now_ms);
        let asked = self.asked.iter().map(|(_, many)| *many);
        max_step.saturating_sub(asked.fold(0, u32::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_asks_for_its_step_within_a_minute() {
        let mut scaler = Scaler::default();
        let pool = scaler.of("p");
        pool.asked.push_back((1_000, 30));
        pool.asked.push_back((50_000, 30));
        assert_eq!(pool.step_left(100, 50_000), 40);
        assert_eq!(pool.step_left(100, 61_000), 70);
        assert_eq!(pool.step_left(10, 61_000), 0);
    }
}
