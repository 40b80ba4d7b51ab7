//! Replicas as processes: started, killed, paused, stopped.
//!
//! A dead or paused process has no visible effect. Its sleeps do not end, and its messages, calls and their answers
//! wait at its gate. Those of a dead process wait forever.

use std::{fmt, path::PathBuf, sync::Arc};

use fairlead_job::SiteDefaults;
use fairlead_scheduler::{Clock, Config, FilesIn, Limits, Parts, Pause, Replica};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::{
    cloud::Reached,
    health::Health,
    peers::Peers,
    store::Handle,
    timer::{pause, within},
    world::World,
};

/// Time limit of an orderly stop of a replica, ms. Then it is killed.
const STOP_MS: u64 = 20_000;

/// One life of a replica.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) slot: usize,
    life: u32,
    pub(super) name: String,
    pub(super) pause: Arc<Pause>,
    pub(super) died: CancellationToken,
    /// Health of its store.
    pub(super) health: Health,
}

impl Process {
    /// Waits until the process runs. It waits forever if the process is dead.
    pub(super) async fn gate(&self) {
        self.pause.over().await;
    }

    fn kill(&self) {
        self.pause.begin();
        self.died.cancel();
    }

    fn resume(&self) {
        if !self.died.is_cancelled() {
            self.pause.end();
        }
    }
}

#[derive(Clone)]
struct Life {
    process: Arc<Process>,
    /// The replica. `None`: it is starting.
    replica: Option<Arc<Replica>>,
}

/// Place of a replica: one address with successive lives.
pub(super) struct Slot {
    number: usize,
    life: Mutex<(u32, Option<Life>)>,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Slot {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            life: Mutex::new((0, None)),
        }
    }

    fn life(&self) -> MutexGuard<'_, (u32, Option<Life>)> {
        self.life.lock()
    }

    /// Returns its URL for other replicas.
    pub(super) fn url(&self) -> String {
        format!("http://r{}", self.number)
    }

    /// Returns the process and replica that listen there now.
    pub(super) fn up(&self) -> Option<(Arc<Process>, Arc<Replica>)> {
        let life = self.life().1.clone()?;
        Some((life.process, life.replica?))
    }

    /// Returns the process, even while it starts.
    fn process(&self) -> Option<Arc<Process>> {
        self.life().1.as_ref().map(|life| Arc::clone(&life.process))
    }

    /// Kills the process. Returns false if there is none.
    pub(super) fn kill(&self) -> bool {
        let gone = self.life().1.take();
        gone.inspect(|life| life.process.kill()).is_some()
    }

    /// Steps the wall clock of the process.
    pub(super) fn clock_steps(&self, by_ms: i64) {
        if let Some(process) = self.process() {
            process.pause.step_wall(by_ms);
        }
    }

    /// Stops the process for this time, or until calm.
    pub(super) async fn pause_for(&self, world: &World, ms: u64) {
        let Some(process) = self.process() else {
            return;
        };
        world.note(format_args!("{} pauses for {ms} ms", process.name));
        process.pause.begin();
        tokio::select! {
            biased;
            () = pause(ms) => {}
            () = world.calm.cancelled() => {}
        }
        process.resume();
        world.note(format_args!("{} goes on", process.name));
    }

    /// Creates a process, if there is none.
    fn begin(&self, world: &World) -> Option<Arc<Process>> {
        let same_name = world.chance().hits(500);
        let mut life = self.life();
        if life.1.is_some() {
            return None;
        }
        life.0 += 1;
        let number = self.number;
        let name = if same_name {
            format!("r{number}")
        } else {
            format!("r{number}.{}", life.0)
        };
        let process = Arc::new(Process {
            slot: number,
            life: life.0,
            name,
            pause: Arc::default(),
            died: CancellationToken::new(),
            health: Health::default(),
        });
        life.1 = Some(Life {
            process: Arc::clone(&process),
            replica: None,
        });
        Some(process)
    }

    /// Removes this process from the place, if it is still there.
    fn clear(&self, process: &Arc<Process>) {
        let mut life = self.life();
        if life
            .1
            .as_ref()
            .is_some_and(|life| Arc::ptr_eq(&life.process, process))
        {
            life.1 = None;
        }
    }

    /// Puts the started replica in its place, if its process still lives.
    fn started(&self, process: &Arc<Process>, replica: Replica) -> bool {
        let mut life = self.life();
        let ours = life
            .1
            .as_mut()
            .filter(|life| Arc::ptr_eq(&life.process, process));
        ours.map(|life| life.replica = Some(Arc::new(replica)))
            .is_some()
    }
}

/// Returns the defaults of jobs.
pub(super) fn site() -> SiteDefaults {
    SiteDefaults {
        vm_overhead_mb: 0,
        ..SiteDefaults::default()
    }
}

fn config(world: &World, process: &Process) -> Config {
    let scenario = &world.scenario;
    Config {
        replica: process.name.clone(),
        lease_ms: scenario.lease_ms,
        heartbeat_ms: scenario.heartbeat_ms,
        cache_jobs_max: scenario.cache_jobs_max,
        // All hosts have failures all the time.
        suspect_after: scenario.admins.suspect_after(),
        health_check: scenario.admins.health_check(),
        limits: Limits {
            timer_period_min_s: 1,
            ..Limits::default()
        },
        // Hosts are known later than jobs, and give all of their memory to guests.
        devices_later: true,
        site: site(),
        // No simulated data is in files, because threads that read files would make a seed's history random.
        files_in: FilesIn::Content,
        ..Config::embedded(PathBuf::from("nowhere"))
    }
}

impl World {
    fn parts(self: &Arc<Self>, process: &Arc<Process>) -> Parts {
        let wall_ms = self.wall_ms(process.slot);
        Parts {
            store: Arc::new(Handle::new(self, process)),
            clock: Clock::simulated(wall_ms, Arc::clone(&process.pause)),
            peers: Arc::new(Peers::new(self, process)),
            content: self.content.clone(),
            providers: Arc::new(Reached::new(self, process)),
            run: process.life.to_string(),
        }
    }

    /// Starts a replica in its place, and repeats until it runs, as a supervisor does.
    pub(super) async fn start_replica(self: Arc<Self>, number: usize) {
        let Some(slot) = self.slots.get(number) else {
            return;
        };
        while let Some(process) = slot.begin(&self) {
            let takes_ms = self.chance().within(5..=1_500);
            pause(takes_ms).await;
            let starting =
                Replica::start(config(&self, &process), self.parts(&process), slot.url());
            let outcome = tokio::select! {
                biased;
                () = process.died.cancelled() => return,
                outcome = starting => outcome,
            };
            match outcome {
                Ok(replica) => {
                    if slot.started(&process, replica) {
                        self.note(format_args!("{} has started", process.name));
                    }
                    return;
                }
                Err(error) => {
                    self.note(format_args!("{} cannot start: {error}", process.name));
                    process.kill();
                    slot.clear(&process);
                    pause(1_000).await;
                }
            }
        }
    }

    /// Stops a replica in order: it accepts no new work, answers waiting requests, and ends.
    pub(super) async fn stop_replica(&self, number: usize) {
        let Some(slot) = self.slots.get(number) else {
            return;
        };
        let Some((process, replica)) = slot.up() else {
            return;
        };
        self.note(format_args!("{} is told to stop", process.name));
        replica.drain();
        let stopped = within(STOP_MS, async {
            // Its answers are sent first, because the clients still hold it.
            pause(200).await;
            slot.clear(&process);
            let mut replica = replica;
            loop {
                match Arc::try_unwrap(replica) {
                    Ok(last) => return last.stop().await,
                    Err(held) => replica = held,
                }
                pause(10).await;
            }
        });
        let in_order = stopped.await.is_some();
        process.kill();
        if !in_order {
            self.check().is_killed(number, self.now_ms());
        }
        self.note(format_args!(
            "{} has stopped{}",
            process.name,
            if in_order { "" } else { ", killed" }
        ));
    }

    /// Starts every missing replica.
    pub(super) fn start_missing(self: &Arc<Self>) {
        for (number, slot) in self.slots.iter().enumerate() {
            if slot.process().is_none() {
                self.tasks.spawn(Arc::clone(self).start_replica(number));
            }
        }
    }

    /// Returns true if every replica runs.
    pub(super) fn all_stand(&self) -> bool {
        self.slots.iter().all(|slot| slot.up().is_some())
    }
}
