//! Arrivals on pools of machines that come and go: the laws of the scaler decide, in virtual time.
//!
//! A machine runs one shard at a time. Shards of a group run in the order of their arrivals, on the machine that was used
//! last. Run times are learned as the engine learns them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    sync::Arc,
};

use fairlead_dispatch::{Histogram, JobKind, RunTimes};
use fairlead_scaler::{Bias, Lull, RUN_UNKNOWN_MS, left_ms};
use serde::Serialize;

use crate::{arrivals::Arrival, chance::Chance};

mod deciding;

/// Time between two decisions, ms.
const EVERY_MS: u64 = 15_000;
/// Number of decision intervals between decisions of the seed's law, which decides once a minute.
const SEED_EVERY: u64 = 4;
/// Number of measured boots from which the measured times are used.
const BOOTS_MIN: u32 = 5;

/// Law that decides the number of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "clap", value(rename_all = "snake_case"))]
pub enum Law {
    /// Waiting shards begin within the target, or within a boot and a minute
    QueueTime,
    /// queue / (rate × time) − machines, with a step of 100, a cooldown, damping and hysteresis
    Seed,
    /// A machine for each shard that waits
    QueueLength,
}

/// Parameters of a replay of arrivals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Law that decides.
    pub law: Law,
    /// Minimum and maximum boot time, ms, with equal probability between them.
    pub boot_ms: (u64, u64),
    /// Maximum number of machines over all groups.
    pub quota: u32,
    /// Number of machines that each group keeps.
    pub min: u32,
    /// Target of the shards' waits, ms. The law `seed` has its own 300 s.
    pub target_ms: u64,
    /// Factor by which estimates are wrong.
    pub estimate_factor: f64,
    /// Seed of the random boot times.
    pub seed: u64,
}

/// Result of a replay of arrivals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaled {
    /// Number of shards that ran.
    pub jobs: usize,
    /// Median wait, seconds.
    pub p50_s: f64,
    /// 95th percentile of the waits, seconds.
    pub p95_s: f64,
    /// 99th percentile of the waits, seconds.
    pub p99_s: f64,
    /// Machine hours, from the request to the end.
    pub machine_hours: f64,
    /// Machine hours during which shards ran.
    pub busy_hours: f64,
    /// Number of requested machines.
    pub launches: u64,
    /// Number of times that a group turned from growing to shrinking, or back.
    pub flips: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The boot of a machine has ended.
    Booted(usize),
    /// The shard of a machine has ended.
    Ended(usize),
    /// A shard arrives.
    Arrives(usize),
    /// The scaler decides.
    Decides,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Boots,
    Idle,
    Runs { shard: usize, said_ms: Option<u64> },
    Gone,
}

struct Vm {
    group: usize,
    state: State,
    since_ms: u64,
    asked_ms: u64,
    gone_ms: u64,
    busy_ms: u64,
}

struct Group {
    name: Arc<str>,
    waiting: VecDeque<usize>,
    /// Machines that wait for work, the most recently used last.
    idle: Vec<usize>,
    /// Machines that are not gone.
    there: Vec<usize>,
    boots: Histogram,
    runs: Histogram,
    bias: Bias,
    lull: Lull,
    /// True if its last change was an increase.
    grew: Option<bool>,
    flips: u64,
}

/// Machines of all groups at one time, and the waiting shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time, ms.
    pub at_ms: u64,
    /// Number of booting machines.
    pub booting: u32,
    /// Number of machines that run a shard.
    pub busy: u32,
    /// Number of machines that wait for work.
    pub idle: u32,
    /// Number of waiting shards.
    pub waiting: u32,
}

/// Course of a replay, for charts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Samples at each decision, in order of time.
    pub samples: Vec<Sample>,
    /// Waits of all shards, ms, in ascending order.
    pub waits_ms: Vec<u64>,
}

/// Replays arrivals, in order of time.
pub fn scale(arrivals: &[Arrival], scaling: &Scaling) -> Scaled {
    scale_with_course(arrivals, scaling).0
}

/// Replays arrivals, in order of time, and returns the course.
pub fn scale_with_course(arrivals: &[Arrival], scaling: &Scaling) -> (Scaled, Course) {
    let mut world = World::new(arrivals, *scaling);
    while let Some(Reverse((at, event))) = world.events.pop() {
        world.now = at;
        world.happens(event);
        if world.open == 0 {
            break;
        }
    }
    world.figures()
}

struct World<'a> {
    arrivals: &'a [Arrival],
    scaling: Scaling,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    groups: Vec<Group>,
    /// Group and suite of each arrival.
    kinds: Vec<(usize, Arc<str>)>,
    vms: Vec<Vm>,
    times: RunTimes,
    course: Course,
    chance: Chance,
    /// Number of unfinished shards.
    open: usize,
    rounds: u64,
}

impl<'a> World<'a> {
    fn new(arrivals: &'a [Arrival], scaling: Scaling) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        let mut suites: BTreeMap<&str, Arc<str>> = BTreeMap::new();
        let mut kinds = Vec::with_capacity(arrivals.len());
        let mut events = BinaryHeap::new();
        for (n, arrival) in arrivals.iter().enumerate() {
            let group = *by_name.entry(&arrival.group).or_insert_with(|| {
                groups.push(Group::new(&arrival.group));
                groups.len() - 1
            });
            let suite = suites
                .entry(&arrival.suite)
                .or_insert_with(|| Arc::from(arrival.suite.as_str()));
            kinds.push((group, Arc::clone(suite)));
            events.push(Reverse((arrival.submit_ms, Event::Arrives(n))));
        }
        let begin = arrivals.first().map_or(0, |first| first.submit_ms);
        events.push(Reverse((begin, Event::Decides)));
        Self {
            arrivals,
            scaling,
            now: begin,
            events,
            groups,
            kinds,
            vms: Vec::new(),
            times: RunTimes::default(),
            course: Course {
                samples: Vec::new(),
                waits_ms: Vec::with_capacity(arrivals.len()),
            },
            chance: Chance::new(scaling.seed),
            open: arrivals.len(),
            rounds: 0,
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrives(n) => {
                let group = self.kinds[n].0;
                self.groups[group].waiting.push_back(n);
                self.dispatch(group);
            }
            Event::Booted(vm) => {
                let group = self.vms[vm].group;
                let took = self.now - self.vms[vm].asked_ms;
                self.groups[group].boots.note(took);
                self.rests(vm);
            }
            Event::Ended(vm) => {
                if let State::Runs { shard, said_ms } = self.vms[vm].state {
                    let run_ms = self.arrivals[shard].run_ms;
                    let (group, suite) = &self.kinds[shard];
                    let group = &mut self.groups[*group];
                    group.runs.note(run_ms);
                    if let Some(said_ms) = said_ms {
                        group.bias.note(said_ms, run_ms);
                    }
                    self.times.note(suite, 0, &group.name, run_ms);
                    self.vms[vm].busy_ms += run_ms;
                    self.open -= 1;
                }
                self.rests(vm);
            }
            Event::Decides => {
                self.decide();
                self.course.samples.push(self.sample());
                self.rounds += 1;
                let next = self.now + EVERY_MS;
                self.events.push(Reverse((next, Event::Decides)));
            }
        }
    }

    /// Marks a machine as waiting for work.
    fn rests(&mut self, vm: usize) {
        let at = self.now;
        self.vms[vm].state = State::Idle;
        self.vms[vm].since_ms = at;
        let group = self.vms[vm].group;
        self.groups[group].idle.push(vm);
        self.dispatch(group);
    }

    fn dispatch(&mut self, group: usize) {
        while !self.groups[group].waiting.is_empty() {
            let Some(vm) = self.groups[group].idle.pop() else {
                return;
            };
            let Some(shard) = self.groups[group].waiting.pop_front() else {
                return;
            };
            let said_ms = self.known(shard).and_then(Histogram::mean_ms);
            let said_ms = said_ms.map(|ms| self.wrong_ms(ms));
            let arrival = &self.arrivals[shard];
            self.vms[vm].state = State::Runs { shard, said_ms };
            self.vms[vm].since_ms = self.now;
            self.course.waits_ms.push(self.now - arrival.submit_ms);
            let end = self.now + arrival.run_ms;
            self.events.push(Reverse((end, Event::Ended(vm))));
        }
    }

    /// Returns the known run times of a shard's kind.
    fn known(&self, shard: usize) -> Option<&Histogram> {
        let (group, suite) = &self.kinds[shard];
        let kind = JobKind {
            suite,
            class: 0,
            group: &self.groups[*group].name,
        };
        self.times.of(kind)
    }

    /// Returns an estimate with the configured error.
    fn wrong_ms(&self, ms: u64) -> u64 {
        scaled(ms, self.scaling.estimate_factor)
    }

    /// Returns the expected run time of a shard, ms.
    fn expected_ms(&self, of: &Group, shard: usize) -> Option<u64> {
        let said = self.wrong_ms(self.known(shard)?.mean_ms()?);
        Some(of.bias.corrected_ms(said))
    }

    /// Returns the expected remaining run time of a shard, ms.
    fn left_ms(&self, of: &Group, shard: usize, since_ms: u64) -> u64 {
        let elapsed_ms = self.now - since_ms;
        let known = self.known(shard).and_then(|times| {
            let left = times.left_ms(elapsed_ms)?;
            Some(of.bias.corrected_ms(self.wrong_ms(left)))
        });
        known.unwrap_or_else(|| {
            let expected = self.expected_ms(of, shard);
            left_ms(expected.unwrap_or(RUN_UNKNOWN_MS), elapsed_ms)
        })
    }

    /// Returns the present state.
    fn sample(&self) -> Sample {
        let mut sample = Sample {
            at_ms: self.now,
            ..Sample::default()
        };
        for group in &self.groups {
            let waiting = u32::try_from(group.waiting.len()).unwrap_or(u32::MAX);
            sample.waiting = sample.waiting.saturating_add(waiting);
            for vm in &group.there {
                match self.vms[*vm].state {
                    State::Boots => sample.booting += 1,
                    State::Runs { .. } => sample.busy += 1,
                    State::Idle => sample.idle += 1,
                    State::Gone => {}
                }
            }
        }
        sample
    }

    fn figures(mut self) -> (Scaled, Course) {
        self.course.waits_ms.sort_unstable();
        let waits = &self.course.waits_ms;
        let jobs = waits.len();
        let at = |permille: usize| {
            let rank = (jobs * permille).div_ceil(1_000).saturating_sub(1);
            seconds(waits.get(rank).copied().unwrap_or(0))
        };
        let lives = self.vms.iter().map(|vm| match vm.state {
            State::Gone => vm.gone_ms - vm.asked_ms,
            State::Boots | State::Idle | State::Runs { .. } => self.now - vm.asked_ms,
        });
        let scaled = Scaled {
            jobs,
            p50_s: at(500),
            p95_s: at(950),
            p99_s: at(990),
            machine_hours: seconds(lives.sum()) / 3_600.0,
            busy_hours: seconds(self.vms.iter().map(|vm| vm.busy_ms).sum()) / 3_600.0,
            launches: self.vms.len() as u64,
            flips: self.groups.iter().map(|group| group.flips).sum(),
        };
        (scaled, self.course)
    }
}

impl Group {
    fn new(name: &str) -> Self {
        Self {
            name: Arc::from(name),
            waiting: VecDeque::new(),
            idle: Vec::new(),
            there: Vec::new(),
            boots: Histogram::default(),
            runs: Histogram::default(),
            bias: Bias::default(),
            lull: Lull::default(),
            grew: None,
            flips: 0,
        }
    }

    fn turns(&mut self, grows: bool) {
        if self.grew.is_some_and(|grew| grew != grows) {
            self.flips += 1;
        }
        self.grew = Some(grows);
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of jobs are far below 2^53 ms"
)]
fn scaled(ms: u64, factor: f64) -> u64 {
    (ms as f64 * factor.max(0.0)) as u64
}
