//! Wall clocks that step and are corrected later, and replicas that pause for longer than others wait. Most seeds have
//! none, and they have their own randomness. So other seeds stay unchanged.

use std::sync::Arc;

use super::{chance::Chance, timer::pause, world::World};

/// Random streams of the plan, and of the times of the events.
const PLAN_STREAM: u64 = 6;
const STREAM: u64 = 7;
/// Share of seeds with clocks that step, per mille. The next constant is the share with replicas that are stopped long.
const STEPS_PERMILLE: u32 = 150;
const STOPS_PERMILLE: u32 = 100;
/// Sizes of clock steps, ms: below the detection limit, just above it, and minutes.
const STEPS_MS: [u64; 4] = [4_000, 6_000, 60_000, 400_000];
/// Maximum time for which a clock is wrong, ms. A replica stops itself after a minute.
const WRONG_MAX_MS: u64 = 90_000;
/// Interval between checks for replicas that gave up, ms.
const LOOK_MS: u64 = 1_000;
/// Maximum number of clock steps in a seed.
const STEPS_MAX: u64 = 5;
/// Maximum time between two steps, ms.
const REST_MAX_MS: u64 = 15_000;
/// Time for which a replica is stopped, ms. After 60 s another replica may take its number.
const STOPPED_MS: std::ops::RangeInclusive<u64> = 65_000..=90_000;
/// Minimum duration of the faults in such a seed, ms.
const FAULT_MS: u64 = 130_000;

/// Clock events of a seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// True if clocks step.
    pub(super) steps: bool,
    stops: bool,
}

impl Plan {
    pub(super) fn draw(seed: u64) -> Self {
        let chance = &mut Chance::new(seed, PLAN_STREAM);
        Self {
            steps: chance.hits(STEPS_PERMILLE),
            stops: chance.hits(STOPS_PERMILLE),
        }
    }

    /// Returns the duration of the faults, ms, at least the minimum if replicas are stopped.
    pub(super) fn fault_ms(self, fault_ms: u64) -> u64 {
        if self.stops {
            fault_ms.max(FAULT_MS)
        } else {
            fault_ms
        }
    }
}

impl World {
    /// Steps clocks and stops a replica, until calm.
    pub(super) async fn moves_clocks(self: Arc<Self>) {
        let plan = self.scenario.clocks;
        let mut chance = Chance::new(self.scenario.seed, STREAM);
        if plan.stops {
            let (slot, for_ms) = (chance.index(self.slots.len()), chance.within(STOPPED_MS));
            let world = Arc::clone(&self);
            self.tasks.spawn(async move {
                pause(REST_MAX_MS).await;
                if let Some(slot) = world.slots.get(slot) {
                    slot.pause_for(&world, for_ms).await;
                }
            });
        }
        for _ in 0..STEPS_MAX {
            let rest_ms = chance.within(1..=REST_MAX_MS);
            tokio::select! {
                biased;
                () = self.calm.cancelled() => return,
                () = pause(rest_ms) => {}
            }
            let by_ms = i64::try_from(chance.one_of(&STEPS_MS, 6_000)).unwrap_or(6_000);
            let by_ms = if chance.hits(500) { by_ms } else { -by_ms };
            let slot = chance.index(self.slots.len());
            let wrong_ms = chance.within(0..=WRONG_MAX_MS);
            if plan.steps {
                self.clock_steps(slot, by_ms);
                let world = Arc::clone(&self);
                self.tasks.spawn(async move {
                    tokio::select! {
                        biased;
                        () = world.calm.cancelled() => {}
                        () = pause(wrong_ms) => {}
                    }
                    world.clock_steps(slot, -by_ms);
                });
            }
        }
    }

    /// Restarts replicas that gave up because of their clocks, as a supervisor does.
    pub(super) async fn restarts_who_gave_up(self: Arc<Self>) {
        loop {
            pause(LOOK_MS).await;
            for (number, slot) in self.slots.iter().enumerate() {
                let Some((_, replica)) = slot.up() else {
                    continue;
                };
                let gave_up = tokio::select! {
                    biased;
                    () = replica.gave_up() => true,
                    () = std::future::ready(()) => false,
                };
                // The stop needs the only reference.
                drop(replica);
                if gave_up {
                    self.note(format_args!("r{number} gives up"));
                    self.stop_replica(number).await;
                    Arc::clone(&self).start_replica(number).await;
                }
            }
        }
    }
}
