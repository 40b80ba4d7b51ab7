//! One round of the replica that decides: looks at each pool, decides for all, stores that, and has it done.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use fairlead_api::PoolDecision;
use fairlead_scaler::{Machine, Seed, SeedRules, Wear};
use fairlead_store::{ItemError, StoreError};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use super::{
    decide::{Picture, Plan, decide},
    fleet::reconcile,
    lease::Seen,
};
use crate::{
    base::{errors::Refusal, providers::ProviderMachine},
    core::Core,
    known::{
        ids::id_of_texts,
        pools::{DECISIONS_KEPT_MS, DecisionDoc, FleetDoc, FleetMachine, PoolDoc, decision_id},
    },
    storage::small_doc::Stored,
};

/// Providers that are asked side by side.
const ABREAST: usize = 8;
/// In how many rounds the law `seed` decides once.
const SEED_EVERY: u64 = 4;
/// Within so many ms a pool asks for `max_step` machines at most.
const MINUTE_MS: u64 = 60_000;
/// Characters of a token.
const TOKEN_CHARS: usize = 12;
/// Machines that did not ask for work for so long after they were asked for are ended, ms, or twice the time of a boot.
const HANGS_MS: u64 = 300_000;

/// What the replica that decides remembers.
#[derive(Debug, Default)]
pub(super) struct Scaler {
    pub(super) seen: Seen,
    /// Since when it decides, UTC epoch ms; 0: it does not.
    pub(super) since_ms: u64,
    round: u64,
    pools: BTreeMap<String, Remembered>,
    /// Pools whose provider is being called.
    pub(super) calls: Arc<Mutex<BTreeSet<String>>>,
}

/// What it remembers of a pool.
#[derive(Debug)]
struct Remembered {
    seed: Seed,
    low: u32,
    /// When how many machines were asked for, UTC epoch ms.
    asked: VecDeque<(u64, u32)>,
    /// How many lists lacked a machine, by token.
    missed: BTreeMap<String, u32>,
    /// Jobs of each host that were counted.
    counted: BTreeMap<String, u32>,
    /// When this replica found that a machine had asked for work, by its own clock: those of others may be apart.
    met: BTreeMap<String, u64>,
    /// The last sentence that was stored.
    said: String,
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

    fn of(&mut self, pool: &str, min: u32) -> &mut Remembered {
        let new = || Remembered {
            seed: Seed::new(SeedRules {
                min,
                ..SeedRules::default()
            }),
            low: 0,
            asked: VecDeque::new(),
            missed: BTreeMap::new(),
            counted: BTreeMap::new(),
            met: BTreeMap::new(),
            said: String::new(),
        };
        self.pools.entry(pool.to_owned()).or_insert_with(new)
    }
}

impl Remembered {
    /// Machines that may be asked for now.
    fn step_left(&mut self, max_step: u32, now_ms: u64) -> u32 {
        self.asked
            .retain(|(at_ms, _)| at_ms.saturating_add(MINUTE_MS) > now_ms);
        let asked = self.asked.iter().map(|(_, many)| *many);
        max_step.saturating_sub(asked.fold(0, u32::saturating_add))
    }
}

/// A pool in a round.
struct Looked {
    name: String,
    pool: PoolDoc,
    /// As it is stored; none: it is not yet.
    stored: Option<Stored<FleetDoc>>,
    fleet: FleetDoc,
    machines: Vec<Machine>,
    wear: Vec<Wear>,
    gone: Vec<String>,
    again: Vec<String>,
    fresh: Vec<String>,
}

impl Core {
    /// One round.
    pub(super) async fn scale(self: &Arc<Self>, scaler: &mut Scaler) -> Result<(), Refusal> {
        scaler.round = scaler.round.wrapping_add(1);
        let pools = self.lab.pools.all();
        let reached = pools
            .into_iter()
            .filter(|(_, pool)| self.providers.has(&pool.provider));
        let mut looked = Vec::new();
        let lists = stream::iter(reached.collect::<Vec<_>>()).map(|(name, pool)| async {
            let listed = self.providers.list(&pool.asked(&name)).await;
            (name, pool, listed)
        });
        let mut lists: Vec<_> = lists.buffer_unordered(ABREAST).collect().await;
        lists.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        for (name, pool, listed) in lists {
            looked.push(self.look_at_pool(scaler, name, pool, listed).await?);
        }
        let plans = self.plan(scaler, &looked).await?;
        for (one, plan) in looked.into_iter().zip(plans) {
            let name = one.name.clone();
            if let Err(error) = Box::pin(self.carry_out(scaler, one, plan)).await {
                tracing::warn!(pool = name, %error, "a decision could not be carried out; the next round goes on");
            }
        }
        Ok(())
    }

    async fn look_at_pool(
        &self,
        scaler: &mut Scaler,
        name: String,
        mut pool: PoolDoc,
        listed: Result<Vec<ProviderMachine>, String>,
    ) -> Result<Looked, Refusal> {
        let stored = self.docs.read::<FleetDoc>(&name).await?;
        let mut fleet = stored
            .as_ref()
            .map(|read| read.doc.clone())
            .unwrap_or_default();
        if fleet.word.is_empty() {
            fleet.word = uuid::Uuid::new_v4().simple().to_string();
        }
        let now_ms = self.clock.wall_ms();
        let boots = fleet.boot_times(&pool);
        let remembered = scaler.of(&name, pool.min);
        let (mut gone, mut again, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
        match listed {
            Ok(listed) => {
                let missed = &mut remembered.missed;
                let found = reconcile(&mut fleet, &listed, missed, boots, now_ms);
                (gone, again, fresh) = (found.gone, found.again, found.fresh);
                // One that vanished with a job stays until that is lost or ends.
                let before = stored.as_ref().map(|stored| &stored.doc.machines);
                gone.retain(|name| {
                    let has_jobs = !self.jobs.live.of_host(name).is_empty();
                    if let Some(known) = before.and_then(|all| all.get(name)).filter(|_| has_jobs) {
                        fleet.machines.insert(name.clone(), known.clone());
                    }
                    !has_jobs
                });
                fleet.problem.clear();
            }
            Err(problem) => {
                tracing::warn!(
                    pool = name,
                    problem,
                    "the machines of a pool could not be listed, so nothing is decided"
                );
                fleet.problem = problem;
                pool.paused = true;
            }
        }
        self.note_news(&mut fleet, remembered);
        let met = remembered.met.clone();
        let machines = self.machines_of(scaler.since_ms, &met, &pool, &fleet).await;
        let wear = machines.iter().map(|machine| {
            let known = fleet
                .machines
                .get(&machine.name)
                .cloned()
                .unwrap_or_default();
            self.wear_of(&machine.name, &known, machine.activity)
        });
        let wear = wear.collect();
        Ok(Looked {
            name,
            pool,
            stored,
            fleet,
            machines,
            wear,
            gone,
            again,
            fresh,
        })
    }

    /// Which machines asked for work for the first time, and how many jobs each has run.
    fn note_news(&self, fleet: &mut FleetDoc, remembered: &mut Remembered) {
        let now_ms = self.clock.wall_ms();
        let mut boots = Vec::new();
        for (name, machine) in &mut fleet.machines {
            let host = self.lab.hosts.get(name);
            // Each machine has a name of its own, so whoever asked under it is this one, whatever clocks say.
            let has_asked = host.is_some_and(|host| host.seen_ms > 0);
            if machine.met_ms == 0 && has_asked {
                machine.met_ms = now_ms.max(1);
                remembered.met.insert(name.clone(), now_ms);
                boots.push(now_ms.saturating_sub(machine.asked_ms));
            }
            let jobs = self.lab.pools.last_job(name).jobs;
            let before = remembered
                .counted
                .insert(name.clone(), jobs)
                .unwrap_or(jobs);
            machine.jobs = machine.jobs.saturating_add(jobs.saturating_sub(before));
        }
        remembered
            .counted
            .retain(|name, _| fleet.machines.contains_key(name));
        remembered
            .met
            .retain(|name, _| fleet.machines.contains_key(name));
        boots
            .into_iter()
            .for_each(|took_ms| fleet.note_boot(took_ms));
    }

    async fn plan(&self, scaler: &mut Scaler, looked: &[Looked]) -> Result<Vec<Plan>, StoreError> {
        let now_ms = self.clock.wall_ms();
        let pools: Vec<(String, PoolDoc)> = looked
            .iter()
            .filter(|one| !one.pool.paused)
            .map(|one| (one.name.clone(), one.pool.clone()))
            .collect();
        let boots = |one: &Looked| one.fleet.boot_times(&one.pool);
        let boot_ms = looked
            .iter()
            .map(|one| (one.name.clone(), boots(one).mean_ms));
        let mut waiting = self.waiting_for(&pools, &boot_ms.collect()).await?;
        let fleets: BTreeSet<String> = looked
            .iter()
            .flat_map(|one| one.fleet.machines.keys().cloned())
            .collect();
        let is_minute = scaler.round % SEED_EVERY == 0;
        let mut pictures = Vec::new();
        for one in looked {
            let others = self.others_of(scaler, &one.name, &one.pool, &fleets).await;
            let remembered = scaler.of(&one.name, one.pool.min);
            let retiring = one
                .fleet
                .machines
                .values()
                .filter(|it| it.retires())
                .count();
            pictures.push(Picture {
                name: one.name.clone(),
                pool: one.pool.clone(),
                machines: one.machines.clone(),
                wear: one.wear.clone(),
                others,
                waiting: waiting.remove(&one.name).unwrap_or_default(),
                boots: boots(one),
                retiring: u32::try_from(retiring).unwrap_or(u32::MAX),
                step_left: remembered.step_left(one.pool.max_step, now_ms),
                low: remembered.low,
                is_minute,
            });
        }
        let known = pictures
            .iter()
            .map(|one| scaler.of(&one.name, one.pool.min).seed);
        let mut laws: Vec<Seed> = known.collect();
        let plans = decide(&pictures, &mut laws, self.lab.pools.quota(), now_ms);
        for (one, law) in pictures.iter().zip(laws) {
            let remembered = scaler.of(&one.name, one.pool.min);
            remembered.seed = law;
            remembered.low = if one.is_low() {
                remembered.low.saturating_add(1)
            } else {
                0
            };
        }
        Ok(plans)
    }

    /// Stores a decision, then what it makes of the pool, and has it done.
    async fn carry_out(
        self: &Arc<Self>,
        scaler: &mut Scaler,
        looked: Looked,
        mut plan: Plan,
    ) -> Result<(), Refusal> {
        let Looked {
            name,
            pool,
            stored,
            mut fleet,
            gone,
            again,
            fresh,
            ..
        } = looked;
        let now_ms = self.clock.wall_ms();
        if !pool.paused {
            plan.retire.extend(hung(&fleet, &pool, now_ms));
        }
        let number = fleet.decision.saturating_add(1);
        let added = new_machines(&name, &fleet.word, number, plan.add);
        let is_change = plan.add > 0 || !plan.retire.is_empty();
        let remembered = scaler.of(&name, pool.min);
        let is_news = plan.is_short && remembered.said != plan.sentence;
        if is_change || is_news {
            let decision = DecisionDoc {
                at_ms: now_ms.saturating_add(DECISIONS_KEPT_MS),
                decision: self.told(&name, &pool, number, now_ms, &added, &plan),
            };
            fleet.decision = number;
            match self
                .docs
                .put(&decision_id(&name, number), None, Some(&decision))
                .await
            {
                Ok(_) => {}
                Err(ItemError::Conflict { .. }) => {
                    // Its number is taken by a decision that was never carried out: the next round has the next one.
                    self.docs.put(&name, stored.as_ref(), Some(&fleet)).await?;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            remembered.said.clone_from(&plan.sentence);
            tracing::info!(pool = name, number, sentence = plan.sentence, "decided");
        }
        for (machine, token) in &added {
            let asked = FleetMachine {
                token: token.clone(),
                asked_ms: now_ms,
                ..FleetMachine::default()
            };
            fleet.machines.insert(machine.clone(), asked);
        }
        for (machine, why) in &plan.retire {
            if let Some(known) = fleet
                .machines
                .get_mut(machine)
                .filter(|known| !known.retires())
            {
                known.retired_ms = now_ms;
                known.why.clone_from(why);
            }
        }
        let before = stored.as_ref().map(|stored| &stored.doc);
        if before != Some(&fleet) {
            match self.docs.put(&name, stored.as_ref(), Some(&fleet)).await {
                Ok(_) => {}
                // Somebody else decides, or it is not known: nothing is done that is not stored.
                Err(ItemError::Conflict { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if plan.add > 0 {
            scaler
                .of(&name, pool.min)
                .asked
                .push_back((now_ms, plan.add));
            self.metrics.machines_asked.inc_by(u64::from(plan.add));
        }
        for machine in fresh {
            // A provider may give a name again. One that retired before it was listed stays so.
            let stays = fleet
                .machines
                .get(&machine)
                .is_some_and(|one| !one.retires());
            if stays {
                self.welcome_host(&machine).await?;
            }
        }
        for machine in gone {
            self.forget_machine(&name, &machine).await;
        }
        let wanted = added.into_iter().map(|(machine, _)| machine).chain(again);
        self.call_provider(scaler, &name, &pool, &fleet, wanted.collect())
            .await;
        Ok(())
    }

    fn told(
        &self,
        name: &str,
        pool: &PoolDoc,
        number: u64,
        now_ms: u64,
        added: &[(String, String)],
        plan: &Plan,
    ) -> PoolDecision {
        let seconds = |ms: u64| ms.div_euclid(1_000);
        PoolDecision {
            pool: name.to_owned(),
            number,
            at_ms: now_ms,
            replica: self.config.replica.clone(),
            law: pool.law.clone(),
            added: added.iter().map(|(machine, _)| machine.clone()).collect(),
            retired: plan
                .retire
                .iter()
                .map(|(machine, why)| format!("{machine}: {why}"))
                .collect(),
            waiting: plan.waiting,
            work_s: seconds(plan.need.work_ms),
            supply_s: seconds(plan.need.supply_ms),
            horizon_s: seconds(plan.need.horizon_ms),
            wanted: plan.need.wanted,
            booting: plan.counts.booting,
            busy: plan.counts.busy,
            idle: plan.counts.idle,
            closed: plan.counts.closed,
            sentence: plan.sentence.clone(),
        }
    }
}

/// Names and tokens of new machines: the same for the same decision, whoever carries it out.
fn new_machines(pool: &str, word: &str, number: u64, many: u32) -> Vec<(String, String)> {
    let number = number.to_string();
    let one = |n: u32| {
        let mut token = id_of_texts(&[word, pool, &number, &n.to_string()]);
        token.truncate(TOKEN_CHARS);
        (format!("{pool}--{token}"), token)
    };
    (0..many).map(one).collect()
}

/// Machines that do not boot.
fn hung(fleet: &FleetDoc, pool: &PoolDoc, now_ms: u64) -> Vec<(String, String)> {
    let patience_ms = HANGS_MS.max(fleet.boot_times(pool).p95_ms.saturating_mul(2));
    let boots = fleet
        .machines
        .iter()
        .filter(|(_, one)| one.met_ms == 0 && !one.retires());
    let hung = boots.filter(|(_, one)| now_ms.saturating_sub(one.asked_ms) > patience_ms);
    let why = format!(
        "it did not ask for work within {} s",
        patience_ms.div_euclid(1_000)
    );
    hung.map(|(name, _)| (name.clone(), why.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_names_the_same_machines_whoever_carries_it_out() {
        let once = new_machines("vms", "w", 7, 3);
        assert_eq!(once, new_machines("vms", "w", 7, 3));
        let others = new_machines("vms", "w", 8, 3);
        assert!(once.iter().all(|one| !others.contains(one)));
        assert!(
            once.iter()
                .all(|(name, token)| *name == format!("vms--{token}"))
        );
    }

    #[test]
    fn a_machine_that_hangs_is_ended() {
        let pool = PoolDoc::new();
        let mut fleet = FleetDoc::default();
        let asked = |asked_ms, met_ms| FleetMachine {
            asked_ms,
            met_ms,
            ..FleetMachine::default()
        };
        fleet.machines.insert("hangs".to_owned(), asked(1, 0));
        fleet.machines.insert("boots".to_owned(), asked(2, 0));
        fleet.machines.insert("runs".to_owned(), asked(1, 5));
        let hung: Vec<String> = hung(&fleet, &pool, HANGS_MS + 2)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(hung, ["hangs"]);
    }

    #[test]
    fn a_pool_asks_for_its_step_within_a_minute() {
        let mut scaler = Scaler::default();
        let pool = scaler.of("p", 0);
        pool.asked.push_back((1_000, 30));
        pool.asked.push_back((50_000, 30));
        assert_eq!(pool.step_left(100, 50_000), 40);
        assert_eq!(pool.step_left(100, 61_000), 70);
        assert_eq!(pool.step_left(10, 61_000), 0);
    }
}
