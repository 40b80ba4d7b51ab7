//! A provider of machines in virtual time: it makes the elastic hosts of a seed. It is slow, loses requests and answers,
//! and some of its machines never boot. The judge looks at each machine that it is told to end.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use fairlead_job::Stage;
use fairlead_scheduler::{ProviderMachine, ProviderPool, Providers};
use fairlead_store::JobState;
use serde_json::{Value, json};

use super::{
    chance::Chance,
    net::Message,
    process::Process,
    scenario::Scenario,
    timer::pause,
    world::{Violation, World},
};

/// Random stream of pools.
const STREAM: u64 = 30;
/// Random stream of the minimum sizes of a pool.
const FLOORS_STREAM: u64 = 31;
/// Name of the pool, and of its provider.
pub(super) const POOL: &str = "elastic";
/// Share of calls that are lost before or after the action until calm, per mille.
const LOST: u32 = 100;
/// Share of machines that never boot until calm, per mille.
const HANGS: u32 = 150;

/// Time after which no request arrives a second time, ms.
const TWINS_MS: u64 = 40_000;

/// Pool of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// Number of elastic hosts. They stand behind the others.
    pub(super) machines: usize,
    /// Minimum number of machines in the pool.
    pub(super) min: usize,
}

impl Plan {
    pub(super) fn draw(seed: u64) -> Self {
        let chance = &mut Chance::new(seed, STREAM);
        Self {
            machines: 24,
            min: chance.index(3),
        }
    }

    /// Returns the maximum number of machines in the pool. The others replace machines that are ended.
    fn max(self) -> usize {
        (self.machines / 6).max(self.min)
    }
}

/// A machine that was created.
#[derive(Debug, Clone, Copy)]
struct Made {
    host: usize,
    is_ended: bool,
}

/// All created machines, by token.
#[derive(Debug, Default)]
pub(super) struct Cloud(BTreeMap<String, Made>);

impl Cloud {
    fn living(&self) -> usize {
        self.0.values().filter(|made| !made.is_ended).count()
    }
}

/// The provider as one replica reaches it.
pub(super) struct Reached {
    world: Arc<World>,
    process: Arc<Process>,
}

impl fmt::Debug for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reached")
            .field("by", &self.process.name)
            .finish_non_exhaustive()
    }
}

impl Reached {
    pub(super) fn new(world: &Arc<World>, process: &Arc<Process>) -> Self {
        Self {
            world: Arc::clone(world),
            process: Arc::clone(process),
        }
    }

    /// Makes a call: request, action, answer. A process that is paused in the meantime gets the answer later.
    async fn call<R>(&self, what: &str, deed: impl FnOnce(&Arc<World>) -> R) -> Result<R, String> {
        let world = &self.world;
        let lost = if world.calm.is_cancelled() { 0 } else { LOST };
        let (there_ms, back_ms) = {
            let mut chance = world.chance();
            (chance.within(10..=3_000), chance.within(10..=3_000))
        };
        let (is_lost, is_unheard) = (world.hits(lost), world.hits(lost));
        self.process.gate().await;
        pause(there_ms).await;
        if is_lost {
            return Err(format!("{what} got lost"));
        }
        world.note(format_args!("{}: {what}", self.process.name));
        let done = deed(world);
        pause(back_ms).await;
        self.process.gate().await;
        if is_unheard {
            return Err(format!("the answer to {what} got lost"));
        }
        Ok(done)
    }
}

#[async_trait]
impl Providers for Reached {
    fn any(&self) -> bool {
        self.world.scenario.pool.is_some()
    }

    fn has(&self, provider: &str) -> bool {
        provider == POOL
    }

    async fn list(&self, _pool: &ProviderPool) -> Result<Vec<ProviderMachine>, String> {
        self.call("list", |world| world.listed()).await
    }

    async fn increase(
        &self,
        _pool: &ProviderPool,
        machines: &[ProviderMachine],
    ) -> Result<(), String> {
        let tokens = tokens(machines);
        let what = format!("increase {tokens:?}");
        self.call(&what, |world| world.makes(&tokens)).await
    }

    async fn terminate(
        &self,
        _pool: &ProviderPool,
        machines: &[ProviderMachine],
    ) -> Result<(), String> {
        let tokens = tokens(machines);
        let what = format!("terminate {tokens:?}");
        self.call(&what, |world| world.ends(&tokens)).await
    }
}

fn tokens(machines: &[ProviderMachine]) -> Vec<String> {
    machines
        .iter()
        .map(|machine| machine.token.clone())
        .collect()
}

impl World {
    fn listed(&self) -> Vec<ProviderMachine> {
        let cloud = self.cloud();
        let living = cloud.0.iter().filter(|(_, made)| !made.is_ended);
        let listed = living.filter_map(|(token, made)| {
            Some(ProviderMachine {
                token: token.clone(),
                name: self.scenario.hosts.get(made.host)?.name.clone(),
                state: String::new(),
            })
        });
        listed.collect()
    }

    fn makes(self: &Arc<Self>, tokens: &[String]) {
        for token in tokens {
            let Some(plan) = self.scenario.pool else {
                return;
            };
            let mut cloud = self.cloud();
            if cloud.0.contains_key(token) {
                continue;
            }
            // Each elastic host lives once, so its name is never reused.
            let host = self.scenario.fixed().len() + cloud.0.len();
            if host >= self.scenario.hosts.len() {
                return;
            }
            cloud.0.insert(
                token.clone(),
                Made {
                    host,
                    is_ended: false,
                },
            );
            let living = cloud.living();
            drop(cloud);
            if living > plan.max() {
                let most = plan.max();
                let what = format!("{living} machines live, and the pool has {most} at most");
                self.violated("I17", what);
            }
            let boot_ms = self.chance().within(2_000..=15_000);
            let hangs = !self.calm.is_cancelled() && self.hits(HANGS);
            let (world, token) = (Arc::clone(self), token.clone());
            self.tasks.spawn(async move {
                pause(boot_ms).await;
                let lives = world
                    .cloud()
                    .0
                    .get(&token)
                    .is_some_and(|made| !made.is_ended);
                if lives
                    && !hangs
                    && let Some(machine) = world.machines.get(host)
                {
                    machine.power(true);
                }
            });
        }
    }

    fn ends(self: &Arc<Self>, tokens: &[String]) {
        for token in tokens {
            let host = {
                let mut cloud = self.cloud();
                let Some(made) = cloud.0.get_mut(token).filter(|made| !made.is_ended) else {
                    continue;
                };
                made.is_ended = true;
                made.host
            };
            let name = self.scenario.hosts.get(host).map_or("", |plan| &plan.name);
            let held = {
                let truth = self.truth();
                // A job that was only claimed for it was not handed out, and goes back.
                let has = |state: &&JobState| {
                    let is_its = state.stage.is_held() && state.host == name;
                    is_its && state.stage != Stage::Dispatch
                };
                let held = truth.states().find(has);
                held.map(|state| state.job_id)
            };
            self.checked(|check, _| match held {
                Some(id) => Err(Violation {
                    invariant: "I17",
                    what: format!("{name} is ended, and has job {id}"),
                }),
                None => check.runs_nothing(host, name),
            });
            if let Some(machine) = self.machines.get(host) {
                machine.power(false);
            }
        }
    }

    /// Returns a description of the machines above the pool's minimum. Empty: none.
    pub(super) fn pool_left(&self) -> String {
        let Some(plan) = self.scenario.pool else {
            return String::new();
        };
        let (living, made) = {
            let cloud = self.cloud();
            (cloud.living(), cloud.0.len())
        };
        // Machines that never boot may use up many of the planned ones.
        if living == plan.min || made >= plan.machines {
            return String::new();
        }
        format!("{living} machines of a pool whose floor is {}", plan.min)
    }

    /// Runs an admin that creates the pool, and changes its minimum now and then, until calm.
    pub(super) async fn makes_pool(self: Arc<Self>) {
        let Some((plan, machine)) = self.scenario.pool.zip(self.scenario.hosts.last()) else {
            return;
        };
        let pool = json!({
            "provider": POOL,
            "machine": {
                "kinds": machine.kinds,
                "arch": machine.arch,
                "memory_mb": machine.memory_mb,
                "cpus": machine.cpus,
                "tags": machine.tags,
                "devices": machine.devices,
            },
            "min": plan.min,
            "max": plan.max(),
            "boot_s": 10,
        });
        self.sets_pool(pool).await;
        let chance = &mut Chance::new(self.scenario.seed, FLOORS_STREAM);
        while !self.calm.is_cancelled() {
            pause(chance.within(3_000..=30_000)).await;
            let min = chance.index(plan.max() + 1);
            self.sets_pool(json!({ "min": min })).await;
        }
        self.sets_pool(json!({ "min": plan.min })).await;
        // An earlier request that the network repeats sets an older minimum.
        pause(TWINS_MS).await;
        self.sets_pool(json!({ "min": plan.min })).await;
    }

    async fn sets_pool(self: &Arc<Self>, change: Value) {
        let path = format!("/scheduler/v1/pools/{POOL}");
        let message = Message::new("pool".to_owned(), path, &change);
        loop {
            let answer = self.person_asks("pool", &message).await;
            if answer.is_some_and(|answer| answer.status == 200) {
                return;
            }
            pause(1_000).await;
        }
    }
}

impl Scenario {
    /// Returns the hosts that always exist.
    pub(super) fn fixed(&self) -> &[super::scenario::HostPlan] {
        let elastic = self.pool.map_or(0, |pool| pool.machines);
        let fixed = self.hosts.len().saturating_sub(elastic);
        self.hosts.get(..fixed).unwrap_or_default()
    }
}
