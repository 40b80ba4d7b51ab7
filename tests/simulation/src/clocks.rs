//! Wall clocks that step and are corrected later, and replicas that pause for longer than others wait. Most seeds have
//! none, and they have their own randomness. So other seeds stay unchanged.

use std::sync::Arc;

use super::{chance::Chance, timer::pause, world::World};

/// The streams of chance for what a seed has of it, and for when it happens.
const PLAN_STREAM: u64 = 6;
const STREAM: u64 = 7;
/// Of a thousand seeds so many have clocks that step, and so many replicas that are stopped for long.
const STEPS_PERMILLE: u32 = 150;
const STOPS_PERMILLE: u32 = 100;
/// How far clocks step, ms: less than a look notices, just more, minutes.
const STEPS_MS: [u64; 4] = [4_000, 6_000, 60_000, 400_000];
/// How long a clock is wrong, ms, at most: a replica stops itself after a minute.
const WRONG_MAX_MS: u64 = 90_000;
/// How often it is looked who gave up, ms.
const LOOK_MS: u64 = 1_000;
/// Most steps of a seed.
const STEPS_MAX: u64 = 5;
/// How long between two of them, ms, at most.
const REST_MAX_MS: u64 = 15_000;
/// How long a replica is stopped, ms: its number is another's after 60 s.
const STOPPED_MS: std::ops::RangeInclusive<u64> = 65_000..=90_000;
/// How long there are faults at least in such a seed, ms.
const FAULT_MS: u64 = 130_000;

/// What a seed has of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Whether clocks step.
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

    /// How long there are faults, if that was so long without it.
    pub(super) fn fault_ms(self, fault_ms: u64) -> u64 {
        if self.stops {
            fault_ms.max(FAULT_MS)
        } else {
            fault_ms
        }
    }
}

impl World {
    /// Lets clocks step and stops a replica, until calm.
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

    /// Stops replicas that give up because of their clocks, and starts them again, as a supervisor does.
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
                // Who stops it wants it alone.
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
