//! Pools for people: set, shown and deleted, and what was decided.

use std::collections::BTreeMap;

use fairlead_api::{
    PoolChange, PoolDecision, PoolMachine, PoolMachineView, PoolView, ScalingSettings,
};
use fairlead_scaler::Activity;
use fairlead_store::{DocFind, Version};

use super::machines::Look;
use crate::scaling::ScalingFlow;
use fairlead_base::{
    errors::{PoolError, Refusal, excerpt},
    names::check_name,
};
use fairlead_known::{
    hosts::kinds,
    pools::{
        ALL_POOLS, DecisionDoc, FleetDoc, FleetMachine, MACHINES_MAX, POOLS_MAX, PoolDoc,
        QUEUE_TIME, SEED,
    },
};

/// Longest time that can be said of a pool, seconds: a year.
const TIME_MAX_S: u64 = 366 * 86_400;
/// Most decisions in a row that can be asked for before machines retire.
const ROUNDS_MAX: u32 = 1_000;
/// Most tags, and most devices, of the machines of a pool.
const WORDS_MAX: usize = 64;

impl ScalingFlow {
    /// Sets what is given of a pool. It acts in the next round.
    pub(crate) async fn set_pool(
        &self,
        name: &str,
        change: &PoolChange,
    ) -> Result<PoolView, Refusal> {
        check_name("pool", name)?;
        let next = async |known: Option<PoolDoc>| -> Result<PoolDoc, Refusal> {
            if known.is_none() && self.lab.pools.all().len() >= POOLS_MAX {
                return Err(PoolError::TooMany(POOLS_MAX).into());
            }
            let doc = changed(known, change)?;
            if change.provider.is_some() && !self.providers.has(&doc.provider) {
                return Err(PoolError::NoProvider(excerpt(&doc.provider)).into());
            }
            Ok(doc)
        };
        let stored = self.ctx.docs.change(name, next).await?;
        self.pool_is(name, stored.version, Some(stored.doc));
        self.pool_view(name).await
    }

    /// Deletes a pool without machines.
    pub(crate) async fn delete_pool(&self, name: &str) -> Result<(), Refusal> {
        check_name("pool", name)?;
        let fleet = self.ctx.docs.read::<FleetDoc>(name).await?;
        let machines = fleet.map_or(0, |fleet| fleet.doc.machines.len());
        if machines > 0 {
            let name = name.to_owned();
            return Err(PoolError::HasMachines { name, machines }.into());
        }
        let Some(version) = self.ctx.docs.delete::<PoolDoc>(name).await? else {
            return Err(PoolError::Unknown(name.to_owned()).into());
        };
        self.pool_is(name, version, None);
        self.ctx.docs.delete::<FleetDoc>(name).await?;
        Ok(())
    }

    fn pool_is(&self, name: &str, version: Version, doc: Option<PoolDoc>) {
        self.lab.pools.with(|known| known.wrote(name, version, doc));
        // What no host could run perhaps can be run now.
        self.lab.feasibility.with(std::collections::HashMap::clear);
    }

    /// Reads all pools anew.
    pub(crate) async fn reload_pools(&self) -> Result<(), fairlead_store::StoreError> {
        if !self.providers.any() {
            return Ok(());
        }
        let read = self.ctx.docs.list::<PoolDoc>().await?;
        if self.lab.pools.with(|known| known.listed(read)) {
            self.lab.feasibility.with(std::collections::HashMap::clear);
        }
        Ok(())
    }

    /// All pools, by name.
    pub(crate) async fn pool_views(&self) -> Result<Vec<PoolView>, Refusal> {
        let mut views = Vec::new();
        for (name, pool) in self.lab.pools.all() {
            views.push(self.view_of_pool(name, pool).await?);
        }
        Ok(views)
    }

    /// One pool.
    pub(crate) async fn pool_view(&self, name: &str) -> Result<PoolView, Refusal> {
        let all = self.lab.pools.all();
        let found = all.into_iter().find(|(known, _)| known == name);
        let (name, pool) = found.ok_or_else(|| PoolError::Unknown(excerpt(name)))?;
        self.view_of_pool(name, pool).await
    }

    async fn view_of_pool(&self, name: String, pool: PoolDoc) -> Result<PoolView, Refusal> {
        let fleet = self.ctx.docs.read::<FleetDoc>(&name).await?;
        let fleet = fleet.map(|read| read.doc).unwrap_or_default();
        let doing = self
            .machines_of(&Look::default(), &name, &pool, &fleet)
            .await?;
        let doing = doing
            .into_iter()
            .map(|machine| (machine.name, machine.activity));
        let doing: BTreeMap<String, Activity> = doing.collect();
        let boots = fleet.boot_times(&pool);
        let (shrinking, horizon_ms) = (pool.shrinking(), pool.horizon_ms(boots));
        let machines = fleet
            .machines
            .iter()
            .map(|(name, machine)| PoolMachineView {
                name: name.clone(),
                state: state_of(machine, doing.get(name)).to_owned(),
                asked_ms: machine.asked_ms,
                jobs: machine.jobs,
                why: machine.why.clone(),
            });
        Ok(PoolView {
            provider: pool.provider,
            machine: pool.machine,
            min: pool.min,
            max: pool.max,
            max_step: pool.max_step,
            target_s: pool.target_s,
            law: pool.law,
            max_idle_s: pool.max_idle_s,
            max_jobs: pool.max_jobs,
            max_age_s: pool.max_age_s,
            horizon_s: horizon_ms.div_euclid(1_000),
            cooldown_s: shrinking.cooldown_ms.div_euclid(1_000),
            low_rounds: shrinking.rounds,
            low_use_percent: shrinking.low_use.div_euclid(10),
            paused: pool.paused,
            boot_s: boots.mean_ms.div_euclid(1_000),
            boots: fleet.boots_measured(),
            machines: machines.collect(),
            problem: fleet.problem.clone(),
            name,
        })
    }

    /// The decisions of a pool, the newest first, behind the one with the number `before`; 0: from the newest on.
    pub(crate) async fn pool_decisions(
        &self,
        name: &str,
        before: u64,
        limit: u32,
    ) -> Result<Vec<PoolDecision>, Refusal> {
        check_name("pool", name)?;
        let after = match before {
            0 => String::new(),
            before => fairlead_known::pools::decision_id(name, before),
        };
        let find = DocFind {
            prefix: format!("{name}/"),
            after,
            limit,
        };
        let page = self.ctx.docs.page::<DecisionDoc>(&find).await?;
        Ok(page
            .into_iter()
            .map(|(_, stored)| stored.doc.decision)
            .collect())
    }

    /// Forgets decisions that are a month old.
    pub(crate) async fn forget_old_decisions(&self) -> Result<(), fairlead_store::StoreError> {
        self.ctx
            .docs
            .forget_due::<DecisionDoc>(self.ctx.clock.wall_ms())
            .await
    }

    /// What holds for all pools together.
    pub(crate) fn scaling_settings(&self) -> ScalingSettings {
        let quota = self
            .lab
            .pools
            .with(|known| known.get(ALL_POOLS).and_then(|all| all.quota));
        ScalingSettings { quota }
    }

    /// Replaces what holds for all pools together.
    pub(crate) async fn set_scaling(
        &self,
        settings: &ScalingSettings,
    ) -> Result<ScalingSettings, Refusal> {
        let most = MACHINES_MAX.saturating_mul(u32::try_from(POOLS_MAX).unwrap_or(u32::MAX));
        check_most("quota", settings.quota.unwrap_or(0).into(), most.into())?;
        let doc = PoolDoc {
            quota: settings.quota,
            ..PoolDoc::default()
        };
        let next = async |_| -> Result<PoolDoc, Refusal> { Ok(doc.clone()) };
        let stored = self.ctx.docs.change(ALL_POOLS, next).await?;
        self.pool_is(ALL_POOLS, stored.version, Some(stored.doc));
        Ok(self.scaling_settings())
    }
}

fn state_of(machine: &FleetMachine, does: Option<&Activity>) -> &'static str {
    if machine.retires() {
        return "retires";
    }
    match does {
        Some(Activity::Boots { .. }) if machine.listed_ms == 0 => "asked",
        Some(Activity::Boots { .. }) | None => "boots",
        Some(Activity::Runs { .. }) => "runs",
        Some(Activity::Idle { .. }) => "idle",
        Some(Activity::Closed) => "closed",
    }
}

fn check_most(field: &'static str, given: u64, max: u64) -> Result<(), PoolError> {
    if given > max {
        return Err(PoolError::TooHigh { field, given, max });
    }
    Ok(())
}

/// A pool after a change.
fn changed(known: Option<PoolDoc>, change: &PoolChange) -> Result<PoolDoc, Refusal> {
    let is_new = known.is_none();
    let known = known.unwrap_or_else(PoolDoc::unsaid);
    if is_new && change.provider.is_none() {
        return Err(PoolError::Missing("provider").into());
    }
    if is_new && change.machine.is_none() {
        return Err(PoolError::Missing("machine").into());
    }
    if let Some(machine) = &change.machine {
        check_machine(machine)?;
    }
    let doc = PoolDoc {
        provider: change.provider.clone().unwrap_or(known.provider),
        machine: change.machine.clone().unwrap_or(known.machine),
        min: change.min.unwrap_or(known.min),
        max: change.max.unwrap_or(known.max),
        max_step: change.max_step.unwrap_or(known.max_step),
        boot_s: change.boot_s.unwrap_or(known.boot_s),
        target_s: change.target_s.unwrap_or(known.target_s),
        law: change.law.clone().unwrap_or(known.law),
        max_idle_s: change.max_idle_s.unwrap_or(known.max_idle_s),
        max_jobs: change.max_jobs.unwrap_or(known.max_jobs),
        max_age_s: change.max_age_s.unwrap_or(known.max_age_s),
        cooldown_s: change.cooldown_s.or(known.cooldown_s),
        low_rounds: change.low_rounds.or(known.low_rounds),
        low_use_percent: change.low_use_percent.or(known.low_use_percent),
        paused: change.paused.unwrap_or(known.paused),
        quota: None,
    };
    check_limits(&doc)?;
    Ok(doc)
}

fn check_limits(doc: &PoolDoc) -> Result<(), Refusal> {
    check_most("max", doc.max.into(), MACHINES_MAX.into())?;
    for (field, given) in [
        ("boot_s", doc.boot_s),
        ("target_s", doc.target_s),
        ("max_idle_s", doc.max_idle_s),
        ("max_age_s", doc.max_age_s),
        ("cooldown_s", doc.cooldown_s.unwrap_or(0)),
    ] {
        check_most(field, given, TIME_MAX_S)?;
    }
    for (field, given, max) in [
        ("low_rounds", doc.low_rounds, ROUNDS_MAX),
        ("low_use_percent", doc.low_use_percent, 100),
    ] {
        check_most(field, given.unwrap_or(0).into(), max.into())?;
        if given == Some(0) {
            return Err(PoolError::Zero(field).into());
        }
    }
    let (min, max) = (doc.min, doc.max);
    if min > max {
        return Err(PoolError::MinOverMax { min, max }.into());
    }
    if doc.max_step == 0 {
        return Err(PoolError::NoStep.into());
    }
    if ![QUEUE_TIME, SEED].contains(&doc.law.as_str()) {
        return Err(PoolError::UnknownLaw(excerpt(&doc.law)).into());
    }
    Ok(())
}

fn check_machine(machine: &PoolMachine) -> Result<(), Refusal> {
    let shown = || excerpt(&machine.kinds.join(","));
    let known = kinds(&machine.kinds).map_err(|_| PoolError::BadKinds(shown()))?;
    if known.is_empty() || (known.contains(&fairlead_job::TboxType::Hw) && known.len() > 1) {
        return Err(PoolError::BadKinds(shown()).into());
    }
    check_name("machine.arch", &machine.arch)?;
    if machine.memory_mb == 0 {
        return Err(PoolError::BadMachine {
            field: "memory_mb",
            given: "0".to_owned(),
            expected: "at least 1 MB",
        }
        .into());
    }
    for (field, words) in [("tags", &machine.tags), ("devices", &machine.devices)] {
        let bad = words.iter().find(|word| check_name(field, word).is_err());
        let given = match bad {
            Some(word) => excerpt(word),
            None if words.len() > WORDS_MAX => words.len().to_string(),
            None => continue,
        };
        return Err(PoolError::BadMachine {
            field,
            given,
            expected: "a list of at most 64 names",
        }
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> PoolChange {
        PoolChange {
            provider: Some("site".to_owned()),
            machine: Some(PoolMachine {
                kinds: vec!["dc".to_owned()],
                arch: "x86_64".to_owned(),
                memory_mb: 1_024,
                ..PoolMachine::default()
            }),
            ..PoolChange::default()
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let first = changed(None, &new()).unwrap();
        assert_eq!(
            (first.min, first.max, first.law.as_str()),
            (2, 10, QUEUE_TIME)
        );
        let change = PoolChange {
            min: Some(0),
            max: Some(50),
            ..PoolChange::default()
        };
        let next = changed(Some(first.clone()), &change).unwrap();
        assert_eq!((next.min, next.max), (0, 50));
        assert_eq!(next.machine, first.machine);
    }

    fn refused(change: impl FnOnce(&mut PoolChange)) -> String {
        let mut pool = new();
        change(&mut pool);
        changed(None, &pool).unwrap_err().to_string()
    }

    fn refused_machine(change: impl Fn(&mut PoolMachine)) -> String {
        refused(|pool| pool.machine.iter_mut().for_each(change))
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_value() {
        for (refused, word) in [
            (refused(|pool| pool.provider = None), "provider"),
            (refused(|pool| pool.machine = None), "machine"),
            (refused(|pool| pool.min = Some(11)), "11 is over max, 10"),
            (
                refused(|pool| pool.max = Some(10_001)),
                "10001 is over 10000",
            ),
            (refused(|pool| pool.max_step = Some(0)), "max_step"),
            (refused(|pool| pool.law = Some("luck".to_owned())), "'luck'"),
            (refused(|pool| pool.low_rounds = Some(0)), "low_rounds: 0"),
            (
                refused(|pool| pool.low_use_percent = Some(101)),
                "101 is over 100",
            ),
            (refused(|pool| pool.boot_s = Some(u64::MAX)), "boot_s"),
            (
                refused_machine(|one| one.kinds.push("hw".to_owned())),
                "dc,hw",
            ),
            (refused_machine(|one| one.kinds.clear()), "kinds"),
            (refused_machine(|one| one.memory_mb = 0), "memory_mb"),
            (
                refused_machine(|one| one.tags = vec!["a b".to_owned()]),
                "a b",
            ),
        ] {
            assert!(refused.contains(word), "{word}: {refused}");
        }
    }
}
