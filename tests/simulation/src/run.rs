//! Runs one seed to its verdict: a phase with faults, then calm, in which everything must end.

use std::{
    cell::Cell,
    ops::RangeInclusive,
    sync::{Arc, Once},
};

use fairlead_job::JobId;

use super::{
    chaos, check, host,
    scenario::Scenario,
    timer::{pause, within},
    timers,
    world::{Violation, World},
};

/// Time for hosts and replicas to find each other again when calm begins, ms. It lasts at least the minimum, and until
/// requests with lost answers are abandoned.
const SETTLE_MS: RangeInclusive<u64> = 12_000..=60_000;
/// Number of batches submitted during calm, to check how they are served.
const CALM_BATCHES: u64 = 4;
/// Number of batches in seeds with reuse. Some arrive after the end of the first jobs.
const CALM_BATCHES_OF_REUSE: u64 = 12;
/// Interval between checks during calm, ms.
const LOOK_MS: u64 = 100;
/// Time without a change while jobs are unfinished, in addition to three leases, ms. The longest job is shorter.
const STILL_MS: u64 = 30_000;
/// Overhead of a try in addition to its run, ms.
const TRY_MS: u64 = 2_000;
/// Time after the last end for which a replica may believe that something is left, ms. Changes are found by a refresh
/// and a second.
const QUIET_MS: u64 = 10_000;
/// The same with a pool, whose machines become idle, retire, and disappear from lists later.
const POOL_QUIET_MS: u64 = 900_000;
/// Maximum duration of a simulation, ms. A longer one is a bug of the simulation.
const LIFE_MS: u64 = 3_600_000;

/// Options of a run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Maximum number of replicas in a seed, at least 1. Default 4.
    pub replicas_max: usize,
    /// True if each line of the history is printed at once. Default false.
    pub trace: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            replicas_max: 4,
            trace: false,
        }
    }
}

/// Result of a seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Hash over the whole history. It is equal for the same seed and code.
    pub hash: u64,
    /// Number of history lines.
    pub lines: u64,
    /// Duration, ms of virtual time.
    pub virtual_ms: u64,
    /// Time from the first check of calm until all jobs ended, ms of virtual time.
    pub drained_ms: u64,
    /// Counts of events.
    pub counts: check::Counts,
    /// First broken promise: its invariant, and a description.
    pub violation: Option<(String, String)>,
    /// Last lines of the history, oldest first.
    pub last: Vec<String>,
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Counts panics, because tasks swallow them and a simulation must not.
fn count_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            usual(panic);
        }));
    });
    PANICS.set(0);
}

/// Runs one seed.
///
/// # Errors
/// Fails if the runtime cannot be created.
pub fn simulate(seed: u64, options: Options) -> std::io::Result<Outcome> {
    count_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(live(seed, options)))
}

async fn live(seed: u64, options: Options) -> Outcome {
    let scenario = Scenario::draw(seed, options.replicas_max);
    let world = Arc::new(World::new(scenario, options.trace));
    world.note(format_args!("{:?}", world.scenario));
    let mut drained_ms = 0;
    let course = async {
        drained_ms = phases(&world).await;
    };
    let ended = within(LIFE_MS, async {
        tokio::select! {
            biased;
            () = world.over.cancelled() => {}
            () = course => {}
        }
    });
    if ended.await.is_none() {
        world.violated("drain", "the simulation does not end".to_owned());
    }
    if PANICS.get() > 0 {
        world.violated("panic", "a task panicked".to_owned());
    }
    let outcome = outcome(&world, seed, drained_ms);
    // Each process refers to its world, so without a kill nothing would ever be freed.
    for slot in &world.slots {
        slot.kill();
    }
    outcome
}

fn outcome(world: &World, seed: u64, drained_ms: u64) -> Outcome {
    let counts = world.check().counts;
    let virtual_ms = world.now_ms();
    let violation = world.violation();
    let log = world.log();
    Outcome {
        seed,
        hash: log.hash(),
        lines: log.lines(),
        virtual_ms,
        drained_ms,
        counts,
        violation: violation.map(|it| (it.invariant.to_owned(), it.what)),
        last: log.last(),
    }
}

/// Runs the phases: faults, calm, end. Returns the duration of draining, ms.
async fn phases(world: &Arc<World>) -> u64 {
    for place in 0..world.scenario.places {
        world.tasks.spawn(Arc::clone(world).refreshes(Some(place)));
    }
    world.tasks.spawn(Arc::clone(world).refreshes(None));
    world.start_missing();
    for (number, machine) in world.machines.iter().enumerate() {
        let lives = host::live(Arc::clone(world), number, Arc::clone(machine));
        world.tasks.spawn(lives);
    }
    let persons = u64::try_from(world.scenario.users).unwrap_or(1).max(1);
    for _ in 0..persons {
        world
            .tasks
            .spawn(Arc::clone(world).person(world.scenario.jobs / persons));
    }
    world.tasks.spawn(Arc::clone(world).settles_reuse());
    world.tasks.spawn(Arc::clone(world).makes_timers());
    world.tasks.spawn(Arc::clone(world).administers());
    world.tasks.spawn(Arc::clone(world).makes_pool());
    world.tasks.spawn(Arc::clone(world).moves_clocks());
    world.tasks.spawn(Arc::clone(world).restarts_who_gave_up());
    world.tasks.spawn(chaos::make_trouble(Arc::clone(world)));
    pause(world.scenario.fault_ms).await;
    world.note(format_args!("calm"));
    world.calm_down();
    while !world.all_stand() {
        world.start_missing();
        pause(LOOK_MS).await;
    }
    world.opens_hosts().await;
    let calm_ms = world.now_ms();
    let settled = async {
        pause(*SETTLE_MS.start()).await;
        while !world.check().all_asked_since(calm_ms) {
            pause(LOOK_MS).await;
        }
    };
    // After that, the judge reports idle hosts.
    let _ = within(*SETTLE_MS.end(), settled).await;
    world.pauses_timers().await;
    drain(world).await
}

/// Submits new jobs during calm, and waits for the end of all jobs, in order and without idle hosts.
async fn drain(world: &Arc<World>) -> u64 {
    let began_ms = world.now_ms();
    world.note(format_args!("calm is judged"));
    world.check().calm_begins(began_ms);
    let submitting = world
        .tasks
        .clone()
        .spawn(submits_in_calm(Arc::clone(world)));
    let administering = {
        let world = Arc::clone(world);
        world.tasks.clone().spawn(world.administers_in_calm())
    };
    loop {
        pause(LOOK_MS).await;
        let idle = world.check().nobody_idles(world.now_ms());
        if let Err(Violation { invariant, what }) = idle {
            let said = match first_job(&what) {
                Some(id) => world.explained(id).await,
                None => String::new(),
            };
            world.violated(invariant, format!("{what}: {said}"));
        }
        world.checked(check::Check::higher_classes_went_first);
        world.counts_are_in_bounds().await;
        let open = world.check().open();
        let all_done = submitting.is_finished() && administering.is_finished();
        if all_done && open.is_empty() {
            break;
        }
        let now_ms = world.now_ms();
        let still_ms = now_ms - world.check().changed_ms.max(began_ms);
        // Jobs delayed by a clock that was set back arrive later by that step.
        let stepped_ms = world.check().stepped_ms();
        let patience_ms = STILL_MS + 3 * world.scenario.lease_ms + stepped_ms;
        // Admins may be slow when no job waits for them.
        let is_stuck = still_ms > patience_ms && !open.is_empty();
        if is_stuck || now_ms > began_ms + patience_ms + all_ms(world) {
            let first = match open.first() {
                Some(id) => world.explained(*id).await,
                None => String::new(),
            };
            let what = format!(
                "{} jobs do not end: {open:?}; the first: {first}",
                open.len()
            );
            world.violated("drain", what);
            return 0;
        }
    }
    let drained_ms = world.now_ms() - began_ms;
    world.checked(|check, _| check.all_ended(&world.truth()));
    world.checked(|_, _| timers::add_up(&world.truth(), world.scenario.clocks.steps));
    quiet(world).await;
    drained_ms
}

async fn submits_in_calm(world: Arc<World>) {
    let batches = if world.scenario.has_reuse() {
        CALM_BATCHES_OF_REUSE
    } else {
        CALM_BATCHES
    };
    for _ in 0..batches {
        let (many, rest_ms) = {
            let mut chance = world.chance();
            (chance.within(1..=6), chance.within(0..=4_000))
        };
        pause(rest_ms).await;
        world.submit(many).await;
    }
}

/// Returns the first job that a text names.
fn first_job(text: &str) -> Option<JobId> {
    let mut words = text.split(|c: char| !c.is_ascii_digit());
    words.find(|word| word.len() == 19)?.parse().ok()
}

/// Checks that every replica knows the end of everything, and keeps nothing in memory.
async fn quiet(world: &Arc<World>) {
    let mut left = String::new();
    let quiet_ms = if world.scenario.pool.is_some() {
        POOL_QUIET_MS
    } else {
        QUIET_MS
    };
    for _ in 0..quiet_ms / LOOK_MS {
        pause(LOOK_MS).await;
        left = world.left_behind().await;
        if left.is_empty() {
            left = world.check().suspects();
        }
        if left.is_empty() {
            left = world.check().strangers();
        }
        if left.is_empty() {
            left = world.pool_left();
        }
        if left.is_empty() {
            return;
        }
    }
    world.violated("I7", format!("all has ended, and there is still {left}"));
}

/// Returns the time that all jobs would take one after the other, with all their tries, ms.
fn all_ms(world: &World) -> u64 {
    let truth = world.truth();
    let number = |body: &fairlead_job::Spec, field: &str| {
        let value = body.get(field).and_then(serde_json::Value::as_u64);
        value.unwrap_or(0)
    };
    let bodies = truth.bodies();
    bodies
        .map(|body| (number(body, "run_ms") + TRY_MS) * (1 + 2 * number(body, "retry")))
        .sum()
}

impl World {
    /// Makes writes visible to searches repeatedly: a place's jobs, or all small documents.
    async fn refreshes(self: Arc<Self>, place: Option<usize>) {
        let every_ms = self.scenario.refresh_ms;
        let first_ms = self.chance().within(0..=every_ms);
        pause(first_ms).await;
        loop {
            let late_ms = if self.hits(self.faults().refresh_late) {
                self.chance().within(500..=4_000)
            } else {
                0
            };
            pause(every_ms + late_ms).await;
            let (mut truth, now_ms) = (self.truth(), self.now_ms());
            match place {
                Some(place) => truth.refresh_place(place, now_ms),
                None => truth.refresh_docs(),
            }
        }
    }
}

impl From<Violation> for (String, String) {
    fn from(violation: Violation) -> Self {
        (violation.invariant.to_owned(), violation.what)
    }
}
