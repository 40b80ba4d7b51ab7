//! One round of the replica that decides: looks at each pool, decides for all, stores that, and has it done.

use std::{collections::BTreeSet, sync::Arc};

use fairlead_api::PoolDecision;
use fairlead_scaler::Boots;
use fairlead_store::{ItemError, StoreError};
use futures_util::{StreamExt, stream};

use super::{
    decide::{Picture, Plan, decide},
    fleet::{Reconciled, apply, reconcile},
    machines::Look,
    memory::{Remembered, Scaler},
    work::Waiting,
};
use crate::scaling::ScalingFlow;
use fairlead_base::{errors::Refusal, providers::ProviderMachine, storage::small_doc::Stored};
use fairlead_known::{
    ids::id_of_texts,
    pools::{DECISIONS_KEPT_MS, DecisionDoc, FleetDoc, FleetMachine, PoolDoc, decision_id},
};

/// Providers that are asked side by side.
const ABREAST: usize = 8;
/// In how many rounds the law `seed` decides once.
const SEED_EVERY: u64 = 4;
/// Characters of a token.
const TOKEN_CHARS: usize = 12;

/// A pool in a round.
struct Looked {
    name: String,
    pool: PoolDoc,
    /// As it is stored; none: it is not yet.
    stored: Option<Stored<FleetDoc>>,
    fleet: FleetDoc,
    /// What the list of the provider said.
    found: Reconciled,
}

impl ScalingFlow {
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
        let stored = self.ctx.docs.read::<FleetDoc>(&name).await?;
        let mut fleet = stored
            .as_ref()
            .map(|read| read.doc.clone())
            .unwrap_or_default();
        let now_ms = self.ctx.clock.wall_ms();
        if fleet.word.is_empty() {
            fleet.word = id_of_texts(&[&self.ctx.replicas.run, &now_ms.to_string(), &name]);
        }
        let boots = fleet.boot_times(&pool);
        let remembered = scaler.of(&name);
        let found = match listed {
            Ok(listed) => {
                fleet.problem.clear();
                let missed = &mut remembered.missed;
                let mut found = reconcile(&mut fleet, &listed, missed, boots, now_ms);
                self.keep_busy(&mut found.gone, &mut fleet, stored.as_ref());
                found
            }
            Err(problem) => {
                tracing::warn!(
                    pool = name,
                    problem,
                    "the machines of a pool could not be listed, so nothing is decided"
                );
                fleet.problem = problem;
                pool.paused = true;
                Reconciled::default()
            }
        };
        self.note_news(&mut fleet, boots, remembered);
        Ok(Looked {
            name,
            pool,
            stored,
            fleet,
            found,
        })
    }

    /// Machines that vanished with a job stay until that is lost or ends.
    fn keep_busy(
        &self,
        gone: &mut Vec<String>,
        fleet: &mut FleetDoc,
        stored: Option<&Stored<FleetDoc>>,
    ) {
        let before = stored.map(|stored| &stored.doc.machines);
        gone.retain(|name| {
            let has_jobs = !self.jobs.live.of_host(name).is_empty();
            if let Some(known) = before.and_then(|all| all.get(name)).filter(|_| has_jobs) {
                fleet.machines.insert(name.clone(), known.clone());
            }
            !has_jobs
        });
    }

    /// Which machines asked for work for the first time, which passed their health check, and how many jobs each has run.
    fn note_news(&self, fleet: &mut FleetDoc, times: Boots, remembered: &mut Remembered) {
        let now_ms = self.ctx.clock.wall_ms();
        let mut boots = Vec::new();
        for (name, machine) in &mut fleet.machines {
            let host = self.lab.hosts.get(name);
            // Each machine has a name of its own, so whoever asked under it is this one, whatever clocks say.
            let has_asked = host.as_ref().is_some_and(|host| host.seen_ms > 0);
            if machine.met_ms == 0 && has_asked {
                machine.met_ms = now_ms.max(1);
                remembered.met.insert(name.clone(), now_ms);
                let first_ms = host.map_or(0, |host| host.first_ms);
                // One that took longer would have been given up: a clock stepped meanwhile.
                let took_ms = machine.boot_ms(first_ms);
                boots.extend(took_ms.filter(|took_ms| *took_ms <= times.deadline_ms));
            }
            if machine.met_ms > 0 && self.lab.cordons.of(name).is_none() {
                machine.is_tried = false;
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
        for took_ms in boots {
            fleet.note_boot(took_ms);
        }
    }

    async fn plan(&self, scaler: &mut Scaler, looked: &[Looked]) -> Result<Vec<Plan>, StoreError> {
        let mut pictures = self.pictures(scaler, looked).await?;
        let now_ms = self.ctx.clock.wall_ms();
        let plans = decide(&mut pictures, self.lab.pools.quota(), now_ms);
        for one in pictures {
            let remembered = scaler.of(&one.name);
            (remembered.lull, remembered.lends) = (one.lull, one.lends);
        }
        Ok(plans)
    }

    async fn pictures(
        &self,
        scaler: &mut Scaler,
        looked: &[Looked],
    ) -> Result<Vec<Picture>, StoreError> {
        let decided = looked.iter().filter(|one| !one.pool.paused);
        let pools: Vec<(String, PoolDoc)> = decided
            .map(|one| (one.name.clone(), one.pool.clone()))
            .collect();
        let boots = |one: &Looked| one.fleet.boot_times(&one.pool);
        let boot_ms = looked
            .iter()
            .map(|one| (one.name.clone(), boots(one).mean_ms));
        let mut waiting = self.waiting_for(&pools, &boot_ms.collect()).await?;
        let machines = looked.iter().flat_map(|one| one.fleet.machines.keys());
        let fleets: BTreeSet<String> = machines.cloned().collect();
        let mut pictures = Vec::new();
        for one in looked {
            let waiting = waiting.remove(&one.name).unwrap_or_default();
            pictures.push(self.picture(scaler, one, waiting, &fleets).await?);
        }
        Ok(pictures)
    }

    async fn picture(
        &self,
        scaler: &mut Scaler,
        one: &Looked,
        waiting: Waiting,
        fleets: &BTreeSet<String>,
    ) -> Result<Picture, StoreError> {
        let (pool, fleet) = (&one.pool, &one.fleet);
        let boots = fleet.boot_times(pool);
        let since_ms = scaler.since_ms;
        let is_minute = scaler.round.is_multiple_of(SEED_EVERY);
        let remembered = scaler.of(&one.name);
        let look = Look {
            since_ms,
            met: Some(&remembered.met),
            shapes: &waiting.shapes,
            horizon_ms: pool.horizon_ms(boots),
        };
        let machines = self.machines_of(&look, &one.name, pool, fleet).await?;
        let others = self.others_of(&look, fleets).await;
        let wear = machines.iter().map(|machine| {
            let known = fleet.machines.get(&machine.name);
            let known = known.cloned().unwrap_or_default();
            self.wear_of(&machine.name, &known, machine.activity)
        });
        let retiring = fleet.machines.values().filter(|it| it.retires());
        Ok(Picture {
            name: one.name.clone(),
            pool: pool.clone(),
            wear: wear.collect(),
            machines,
            others,
            waiting,
            boots,
            retiring: u32::try_from(retiring.count()).unwrap_or(u32::MAX),
            step_left: remembered.step_left(pool.max_step, self.ctx.clock.wall_ms()),
            lull: remembered.lull,
            lends: remembered.lends,
            is_minute,
        })
    }

    /// Stores a decision, then what it makes of the pool, and has it done.
    async fn carry_out(
        self: &Arc<Self>,
        scaler: &mut Scaler,
        mut looked: Looked,
        mut plan: Plan,
    ) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        if !looked.pool.paused {
            let hung = hung(&mut looked.fleet, &looked.pool, now_ms);
            plan.retire.extend(hung);
        }
        let number = looked.fleet.decision.saturating_add(1);
        let added = new_machines(&looked.name, &looked.fleet.word, number, plan.add);
        let remembered = scaler.of(&looked.name);
        let is_news = plan.is_short && remembered.said != plan.sentence;
        if plan.add > 0 || !plan.retire.is_empty() || is_news {
            let decision = self.told(&looked, number, now_ms, &added, &plan);
            if !self.store_decision(&looked, decision).await? {
                return Ok(());
            }
            looked.fleet.decision = number;
            remembered.said.clone_from(&plan.sentence);
            let (pool, sentence) = (&looked.name, &plan.sentence);
            tracing::info!(pool, number, sentence, "decided");
        }
        let Looked {
            name,
            pool,
            stored,
            mut fleet,
            found,
            ..
        } = looked;
        let is_suspect = |machine: &str| self.leaves_a_trial(machine);
        apply(&mut fleet, &added, &plan.retire, is_suspect, now_ms);
        if stored.as_ref().map(|stored| &stored.doc) != Some(&fleet) {
            let put = self.ctx.docs.put(&name, stored.as_ref(), Some(&fleet));
            match put.await {
                Ok(_) => {}
                // Somebody else decides, or it is not known: nothing is done that is not stored.
                Err(ItemError::Conflict { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        if plan.add > 0 {
            let remembered = scaler.of(&name);
            remembered.asked.push_back((now_ms, plan.add));
            self.ctx.metrics.machines_asked.inc_by(u64::from(plan.add));
        }
        self.follow_list(&name, &fleet, &found).await?;
        let wanted = added.into_iter().map(|(machine, _)| machine);
        let wanted: Vec<String> = wanted.chain(found.again).collect();
        let tried = wanted.iter().chain(&found.fresh);
        self.put_on_trial(&fleet, tried).await?;
        self.call_provider(scaler, &name, &pool, &fleet, &wanted);
        Ok(())
    }

    /// Does what a list of the provider asks for, once it is stored.
    async fn follow_list(
        self: &Arc<Self>,
        pool: &str,
        fleet: &FleetDoc,
        found: &Reconciled,
    ) -> Result<(), Refusal> {
        for machine in &found.fresh {
            // A provider may give a name again. One that retired before it was listed stays so.
            let stays = fleet.machines.get(machine);
            if stays.is_some_and(|one| !one.retires()) {
                self.hosts.welcome_host(machine).await?;
            }
        }
        for machine in &found.gone {
            self.forget_machine(pool, machine).await;
        }
        Ok(())
    }

    /// Stores a decision. `false`: its number is taken by one that was never carried out, and the next round has the next
    /// number.
    async fn store_decision(
        &self,
        looked: &Looked,
        decision: PoolDecision,
    ) -> Result<bool, Refusal> {
        let (name, number) = (&looked.name, decision.number);
        let doc = DecisionDoc {
            at_ms: decision.at_ms.saturating_add(DECISIONS_KEPT_MS),
            decision,
        };
        let id = decision_id(name, number);
        match self.ctx.docs.put(&id, None, Some(&doc)).await {
            Ok(_) => Ok(true),
            Err(ItemError::Conflict { .. }) => {
                let before = looked.stored.as_ref();
                let fleet = FleetDoc {
                    decision: number,
                    word: looked.fleet.word.clone(),
                    ..before.map(|stored| stored.doc.clone()).unwrap_or_default()
                };
                self.ctx.docs.put(name, before, Some(&fleet)).await?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn told(
        &self,
        looked: &Looked,
        number: u64,
        now_ms: u64,
        added: &[(String, String)],
        plan: &Plan,
    ) -> PoolDecision {
        let seconds = |ms: u64| ms.div_euclid(1_000);
        PoolDecision {
            pool: looked.name.clone(),
            number,
            at_ms: now_ms,
            replica: self.ctx.config.replica.clone(),
            law: looked.pool.law.clone(),
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

/// Machines that do not boot, and why they are given up.
fn hung(fleet: &mut FleetDoc, pool: &PoolDoc, now_ms: u64) -> Vec<(String, String)> {
    let patience_ms = fleet.boot_times(pool).deadline_ms;
    let boots = fleet
        .machines
        .iter()
        .filter(|(_, one)| one.met_ms == 0 && !one.retires());
    let age_ms = |one: &FleetMachine| now_ms.saturating_sub(one.boots_since(now_ms));
    let hung = boots.filter(|(_, one)| age_ms(one) > patience_ms);
    let why = format!(
        "it did not ask for work within {} s",
        patience_ms.div_euclid(1_000)
    );
    let hung: Vec<(String, String)> = hung.map(|(name, _)| (name.clone(), why.clone())).collect();
    fleet.hung = fleet.hung.saturating_add(u32::from(!hung.is_empty()));
    hung
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flows;
    use fairlead_known::hosts::Host;
    use fairlead_scaler::BOOT_UNKNOWN_MS;

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
        let pool = PoolDoc::unsaid();
        let mut fleet = FleetDoc::default();
        let listed = |listed_ms, met_ms| FleetMachine {
            asked_ms: 1,
            listed_ms,
            met_ms,
            ..FleetMachine::default()
        };
        fleet.machines.insert("hangs".to_owned(), listed(1, 0));
        fleet.machines.insert("boots".to_owned(), listed(2, 0));
        fleet.machines.insert("not-made".to_owned(), listed(0, 0));
        fleet.machines.insert("runs".to_owned(), listed(1, 5));
        let patience_ms = 2 * BOOT_UNKNOWN_MS;
        let hung: Vec<String> = hung(&mut fleet, &pool, patience_ms + 2)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!((hung, fleet.hung), (vec!["hangs".to_owned()], 1));
    }

    #[tokio::test]
    async fn a_boot_ends_with_the_first_request_and_not_with_the_round() {
        let (_data, flows) = flows().await;
        let said = Host {
            seen_ms: flows.ctx.clock.wall_ms(),
            first_ms: 4_000,
            ..Host::default()
        };
        flows
            .hosts
            .lab
            .hosts
            .update("m", |host| *host = said)
            .unwrap();
        let machine = FleetMachine {
            asked_ms: 1_000,
            ..FleetMachine::default()
        };
        let mut fleet = FleetDoc::default();
        fleet.machines.insert("m".to_owned(), machine);
        let mut measured = fleet.clone();
        measured.note_boot(3_000);
        // Its clock stepped by more than a boot may take, so that time says nothing.
        let mut stepped = fleet.clone();
        let times = |deadline_ms| Boots {
            mean_ms: 1,
            deadline_ms,
        };
        flows
            .scaling
            .note_news(&mut fleet, times(3_000), &mut Remembered::default());
        assert_eq!(fleet.boots, measured.boots);
        assert!(fleet.machines["m"].met_ms > 4_000);
        flows
            .scaling
            .note_news(&mut stepped, times(2_999), &mut Remembered::default());
        assert_eq!(stepped.boots_measured(), 0);
        assert!(stepped.machines["m"].met_ms > 4_000);
    }
}
