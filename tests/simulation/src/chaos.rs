//! Faults of whole processes, machines and the store, by the seed's plan, until calm.

use std::sync::Arc;

use super::{
    scenario::Trouble,
    timer::pause,
    world::{Broken, World},
};

/// Injects troubles at random times.
pub(super) async fn make_trouble(world: Arc<World>) {
    let every_ms = world.scenario.trouble_every_ms;
    while !world.scenario.troubles.is_empty() {
        let rest_ms = world.chance().within(0..=2 * every_ms);
        tokio::select! {
            biased;
            () = world.calm.cancelled() => return,
            () = pause(rest_ms) => {}
        }
        let kind = {
            let troubles = &world.scenario.troubles;
            world.chance().one_of(troubles, Trouble::StoreSlow)
        };
        let world_too = Arc::clone(&world);
        world.tasks.spawn(async move {
            happens(&world_too, kind).await;
        });
    }
}

async fn happens(world: &Arc<World>, kind: Trouble) {
    // The provider decides about the machines of a pool.
    let machines = world
        .machines
        .get(..world.scenario.fixed().len())
        .unwrap_or_default();
    let (slot, other, host, for_ms) = {
        let mut chance = world.chance();
        let long = chance.hits(250);
        let for_ms = chance.within(if long { 10_000..=40_000 } else { 200..=8_000 });
        let slot = chance.index(world.slots.len());
        let other = chance.index(world.slots.len());
        (slot, other, chance.index(machines.len()), for_ms)
    };
    match kind {
        Trouble::ReplicaDies => dies(world, slot, for_ms).await,
        Trouble::ReplicaPauses => {
            if let Some(slot) = world.slots.get(slot) {
                slot.pause_for(world, for_ms).await;
            }
        }
        Trouble::ReplicaRestarts => {
            world.stop_replica(slot).await;
            Arc::clone(world).start_replica(slot).await;
        }
        Trouble::HostDies => {
            if let Some(machine) = machines.get(host) {
                machine.crash_for(for_ms).await;
            }
        }
        Trouble::HostAlone => {
            let lines = (0..world.slots.len()).map(|slot| Broken::Line { host, slot });
            breaks(world, &lines.collect::<Vec<_>>(), for_ms).await;
        }
        Trouble::HostApart => breaks(world, &[Broken::Line { host, slot }], for_ms).await,
        Trouble::PeersApart if slot != other => {
            let peers = Broken::Peers(slot.min(other), slot.max(other));
            breaks(world, &[peers], for_ms).await;
        }
        Trouble::PeersApart => {}
        Trouble::ReplicaWithoutStore => breaks(world, &[Broken::StoreOf(slot)], for_ms).await,
        Trouble::StoreAway => breaks(world, &[Broken::Store], for_ms).await,
        Trouble::StoreSlow => breaks(world, &[Broken::Slow], for_ms).await,
        Trouble::StoreFull => breaks(world, &[Broken::Full], for_ms).await,
        Trouble::StoreConflicts => breaks(world, &[Broken::Conflicts], for_ms).await,
    }
}

async fn until_calm_or(world: &World, ms: u64) {
    tokio::select! {
        biased;
        () = pause(ms) => {}
        () = world.calm.cancelled() => {}
    }
}

async fn dies(world: &Arc<World>, slot: usize, for_ms: u64) {
    if world
        .slots
        .get(slot)
        .is_some_and(super::process::Slot::kill)
    {
        world.note(format_args!("r{slot} dies for {for_ms} ms"));
        world.check().is_killed(slot, world.now_ms());
        until_calm_or(world, for_ms).await;
        Arc::clone(world).start_replica(slot).await;
    }
}

async fn breaks(world: &World, what: &[Broken], for_ms: u64) {
    world.note(format_args!("broken for {for_ms} ms: {what:?}"));
    for one in what {
        world.breaks(*one);
    }
    until_calm_or(world, for_ms).await;
    for one in what {
        world.mends(*one);
    }
    world.note(format_args!("mended: {what:?}"));
}
