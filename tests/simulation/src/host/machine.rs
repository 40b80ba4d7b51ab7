//! A box over its crashes: power, disk, one agent after the other.

use std::sync::Arc;

use fairlead_scheduler::Pause;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::{
    agent::Agent,
    journal::{End, Journal},
};
use crate::{timer::pause, world::World};

/// Events of a host.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    crash: Notify,
    off: Pause,
    disk: Mutex<Vec<Journal>>,
}

impl Machine {
    /// Returns a machine that is on or off.
    pub(crate) fn new(is_on: bool) -> Self {
        let machine = Self::default();
        if !is_on {
            machine.off.begin();
        }
        machine
    }

    /// Turns it on, or off at once.
    pub(crate) fn power(&self, is_on: bool) {
        if is_on {
            self.off.end();
        } else {
            self.off.begin();
            self.crash.notify_one();
        }
    }

    /// Kills its agent, which stays away for `ms`.
    pub(crate) async fn crash_for(&self, ms: u64) {
        self.off.begin();
        self.crash.notify_one();
        pause(ms).await;
        self.off.end();
    }

    fn disk(&self) -> MutexGuard<'_, Vec<Journal>> {
        self.disk.lock()
    }
}

/// Runs a host: agent, crash, agent, crash.
pub(crate) async fn live(world: Arc<World>, number: usize, machine: Arc<Machine>) {
    let Some(plan) = world.scenario.hosts.get(number).cloned() else {
        return;
    };
    let mut plan = plan;
    let first_ms = world.chance().within(0..=3_000);
    pause(first_ms).await;
    for life in 1_u32.. {
        machine.off.over().await;
        let session = session(&world, number);
        world.note(format_args!(
            "{} begins session {session}, its life {life}",
            plan.name
        ));
        world.check().session_begins(number, &session);
        world.is_booted(number, plan.boots);
        let left = std::mem::take(&mut *machine.disk());
        let mut agent = Agent::new(&world, number, plan.clone(), session, left);
        tokio::select! {
            biased;
            () = machine.crash.notified() => {}
            () = agent.work() => {}
        }
        let left = agent.dies();
        world.note(format_args!("{} is down", plan.name));
        world.check().session_ends(number);
        *machine.disk() = settle(&world, number, left, plan.jobs_survive);
        if !plan.jobs_survive {
            // The machine returns with another kernel.
            plan.boots = plan.boots.map(|boots| boots + 1);
        }
    }
}

/// Returns a session's name, which contains its start time.
pub(super) fn session(world: &World, host: usize) -> String {
    let tail = (host as u128).to_be_bytes();
    let tail = tail.last_chunk::<10>().unwrap_or(&[0; 10]);
    let began = uuid::Builder::from_unix_timestamp_millis(world.true_ms(), tail);
    began.into_uuid().to_string()
}

/// Returns the remaining jobs when the agent is gone. Running jobs ended with it, unless they survive.
fn settle(world: &World, host: usize, left: Vec<Journal>, jobs_survive: bool) -> Vec<Journal> {
    let mut kept = Vec::new();
    for mut journal in left {
        if journal.end.is_none() {
            let Some(_) = journal.runs_until_ms else {
                // The job was never started: it goes back when no request names it.
                continue;
            };
            if !jobs_survive {
                world.run_ends(host, &journal.key());
                journal.end = Some(End {
                    health: fairlead_job::Health::AbortProvider,
                    exit_code: None,
                    ran: true,
                });
            }
        }
        kept.push(journal);
    }
    kept
}
