//! How many machines each pool asks for and which retire, all pools together. Pure.

use fairlead_scaler::{
    Activity, Boots, Lull, Machine, Need, Reason, Wear, make_room, queue_time, retire, seed,
};

use super::work::Waiting;
use fairlead_known::pools::PoolDoc;

/// A pool as it is now.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) name: String,
    pub(super) pool: PoolDoc,
    /// Those that do not retire.
    pub(super) machines: Vec<Machine>,
    /// Beside each of them, what wears it out.
    pub(super) wear: Vec<Wear>,
    /// Hosts of no pool that could run its jobs.
    pub(super) others: Vec<Machine>,
    pub(super) waiting: Waiting,
    pub(super) boots: Boots,
    /// Machines that retire and are not gone.
    pub(super) retiring: u32,
    /// Machines that it may ask for in this minute.
    pub(super) step_left: u32,
    /// How it was when its law decided last.
    pub(super) lull: Lull,
    /// How it was in the last rounds, for pools that lack machines.
    pub(super) lends: Lull,
    /// Whether the law `seed` decides in this round: once a minute.
    pub(super) is_minute: bool,
}

/// What is decided for a pool.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) need: Need,
    pub(super) add: u32,
    /// Names, and why.
    pub(super) retire: Vec<(String, String)>,
    pub(super) counts: Counts,
    /// Whether other pools may have its idle machines.
    may_lend: bool,
    /// Jobs that lack only a machine.
    pub(super) waiting: u64,
    pub(super) sentence: String,
    /// Whether more was wanted than limits allow.
    pub(super) is_short: bool,
}

/// What the machines of a pool do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) booting: u32,
    pub(super) busy: u32,
    pub(super) idle: u32,
    pub(super) closed: u32,
}

impl Counts {
    fn of(machines: &[Machine]) -> Self {
        let mut counts = Self::default();
        for machine in machines {
            let count = match machine.activity {
                Activity::Boots { .. } => &mut counts.booting,
                Activity::Runs { .. } => &mut counts.busy,
                Activity::Idle { .. } => &mut counts.idle,
                Activity::Closed => &mut counts.closed,
            };
            *count = count.saturating_add(1);
        }
        counts
    }
}

impl Picture {
    fn there(&self) -> u32 {
        u32::try_from(self.machines.len()).unwrap_or(u32::MAX)
    }

    /// Whether other pools may have its idle machines. Asked once a round.
    fn may_lend(&mut self, counts: Counts, now_ms: u64) -> bool {
        let boot_ms = self.boots.mean_ms;
        let is_idle = |machine: &Machine| match machine.activity {
            Activity::Idle { since_ms } => now_ms.saturating_sub(since_ms) >= boot_ms,
            Activity::Boots { .. } | Activity::Runs { .. } | Activity::Closed => false,
        };
        let waits = !self.waiting.work.is_empty();
        let (rules, there) = (self.pool.lending(), self.there());
        let is_low = self.lends.allows(rules, waits, counts.busy, there, now_ms);
        !waits && !self.pool.paused && (is_low || self.machines.iter().any(is_idle))
    }

    /// Why each machine is to be replaced, if it is; beside the machines.
    fn worn(&self) -> Vec<Option<Reason>> {
        let rules = self.pool.recycling();
        let waits = !self.waiting.work.is_empty();
        let wear = self.wear.iter();
        wear.map(|wear| rules.reason(*wear, waits)).collect()
    }

    /// The machines that are not to be replaced.
    fn staying(&self) -> Vec<Machine> {
        let machines = self.machines.iter().zip(self.worn());
        let staying = machines.filter(|(_, worn)| worn.is_none());
        staying.map(|(machine, _)| machine.clone()).collect()
    }

    /// The machines that are replaced now, and why. A worn one goes only when its successor can run jobs, as far as the floor
    /// needs one; if there can be none, it goes first. `asked`: machines that are asked for now.
    fn replaced(&self, asked: u32) -> Vec<(String, String)> {
        if self.pool.paused {
            return Vec::new();
        }
        let number = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
        let staying = self.staying();
        let able = staying.iter().filter(|machine| machine.is_able()).count();
        let boots = Counts::of(&staying).booting.saturating_add(asked) > 0;
        let lacks = self.pool.min.saturating_sub(number(able));
        let mut kept = if boots {
            lacks
        } else {
            lacks.saturating_sub(1)
        };
        let worn = self.machines.iter().zip(&self.wear).zip(self.worn());
        let mut gone = Vec::new();
        for ((machine, wear), reason) in worn {
            let why = match reason {
                None => continue,
                Some(Reason::Unhealthy) => "it failed by its own fault, or is silent".to_owned(),
                Some(_) if kept > 0 => {
                    kept -= 1;
                    continue;
                }
                Some(Reason::Jobs) => format!("it has run {} jobs", wear.jobs),
                Some(Reason::Age) => format!("it is {} s old", wear.age_ms.div_euclid(1_000)),
            };
            gone.push((machine.name.clone(), why));
        }
        gone
    }

    /// What the law says, before the quota.
    fn plan(&mut self, now_ms: u64) -> Plan {
        let counts = Counts::of(&self.machines);
        let mut plan = Plan {
            counts,
            may_lend: self.may_lend(counts, now_ms),
            waiting: u64::try_from(self.waiting.work.len()).unwrap_or(u64::MAX),
            ..Plan::default()
        };
        if self.pool.paused {
            return plan;
        }
        let staying = self.staying();
        let worn = self.machines.len().saturating_sub(staying.len());
        // Those that retire still live, and those that are worn are no part of the floor.
        let limits = fairlead_scaler::Pool {
            step_max: self.step_left,
            min: (self.pool.min).saturating_add(u32::try_from(worn).unwrap_or(u32::MAX)),
            max: self.pool.max.saturating_sub(self.retiring),
            ..self.pool.limits()
        };
        plan.need = queue_time(
            &limits,
            &self.machines,
            &self.others,
            &self.waiting.work,
            self.boots,
            self.waiting.mean_ms,
            now_ms,
        );
        let (gone, why) = if self.pool.is_seed() {
            self.by_seed(&mut plan.need, &limits, &staying, now_ms)
        } else {
            self.idle(plan.need.add > 0, &staying, now_ms)
        };
        let gone = gone.into_iter().map(|name| (name, why.clone()));
        plan.retire = gone.collect();
        plan.add = plan.need.add;
        plan
    }

    /// What the law `seed` says. Machines that go, and why.
    fn by_seed(
        &mut self,
        need: &mut Need,
        limits: &fairlead_scaler::Pool,
        staying: &[Machine],
        now_ms: u64,
    ) -> (Vec<String>, String) {
        let there = self.there();
        let room = limits.max.saturating_sub(there);
        let rules = self.pool.seed_rules();
        need.horizon_ms = rules.time_ms;
        need.add = limits.min.saturating_sub(there).min(room);
        let why = "little of the pool is in use".to_owned();
        if !self.is_minute {
            return (Vec::new(), why);
        }
        let busy = Counts::of(&self.machines).busy;
        let (many, mean_ms) = (self.waiting.work.len(), self.waiting.mean_ms);
        let change = seed(&rules, &mut self.lull, many, there, busy, mean_ms, now_ms);
        let more = u32::try_from(change).unwrap_or(0);
        need.add = need.add.max(more.min(limits.step_max).min(room));
        let fewer = u32::try_from(change.saturating_neg()).unwrap_or(0);
        (make_room(staying, self.pool.min, fewer), why)
    }

    /// Machines that were idle for long, and why they go.
    fn idle(&mut self, grows: bool, staying: &[Machine], now_ms: u64) -> (Vec<String>, String) {
        let idle_ms = self.pool.recycling().max_idle_ms.max(self.boots.mean_ms);
        let patience = Boots {
            mean_ms: idle_ms,
            ..self.boots
        };
        let seconds = idle_ms.div_euclid(1_000);
        let why = format!("it was idle for {seconds} s while nothing waited");
        let (waiting, busy) = (self.waiting.work.len(), Counts::of(&self.machines).busy);
        if grows {
            self.lull.changes(now_ms);
            return (Vec::new(), why);
        }
        let (rules, there) = (self.pool.shrinking(), self.there());
        if !(self.lull).allows(rules, waiting > 0, busy, there, now_ms) {
            return (Vec::new(), why);
        }
        let gone = retire(&self.pool.limits(), staying, waiting, patience, now_ms);
        if !gone.is_empty() {
            self.lull.changes(now_ms);
        }
        (gone, why)
    }

    fn sentence(&self, plan: &Plan, quota: Option<u32>) -> String {
        let seconds = |ms: u64| ms.div_euclid(1_000);
        let waiting = self.waiting.work.len();
        let mut words = vec![if waiting == 0 {
            "no job waits".to_owned()
        } else {
            format!(
                "{waiting} jobs wait with {} s of work, and the machines take {} s within {} s",
                seconds(plan.need.work_ms),
                seconds(plan.need.supply_ms),
                seconds(plan.need.horizon_ms),
            )
        }];
        if plan.add > 0 {
            words.push(format!("{} machines are asked for", plan.add));
        }
        let gone = |machine: &Machine| plan.retire.iter().any(|(name, _)| *name == machine.name);
        let worn = self.machines.iter().zip(self.worn());
        let worn = worn.filter(|(machine, worn)| worn.is_some() && !gone(machine));
        let worn = worn.count();
        if worn > 0 {
            words.push(format!("{worn} worn machines end once others can run jobs"));
        }
        if plan.is_short {
            let wanted = plan.need.wanted.max(plan.need.add);
            let limit = quota.map_or_else(
                || format!("max {} or max_step {}", self.pool.max, self.pool.max_step),
                |quota| format!("the quota of {quota} machines"),
            );
            words.push(format!("{wanted} were wanted, and {limit} allows no more"));
        }
        if !plan.retire.is_empty() {
            words.push(format!("{} machines retire", plan.retire.len()));
        }
        words.join("; ")
    }
}

/// Decides for all pools together.
pub(super) fn decide(pictures: &mut [Picture], quota: u32, now_ms: u64) -> Vec<Plan> {
    let plans = pictures.iter_mut().map(|picture| picture.plan(now_ms));
    let mut plans: Vec<Plan> = plans.collect();
    let there: u32 = pictures
        .iter()
        .map(|picture| picture.there().saturating_add(picture.retiring))
        .fold(0, u32::saturating_add);
    let granted = grant(pictures, &plans, quota.saturating_sub(there));
    for ((picture, plan), granted) in pictures.iter().zip(&mut plans).zip(&granted) {
        plan.retire.extend(picture.replaced(*granted));
        plan.retire.sort_unstable();
    }
    let short: Vec<u32> = plans
        .iter()
        .zip(&granted)
        .map(|(plan, granted)| plan.add.saturating_sub(*granted))
        .collect();
    let lacks: u32 = short.iter().copied().fold(0, u32::saturating_add);
    lend(pictures, &mut plans, &short, lacks);
    let all = pictures
        .iter()
        .zip(plans.iter_mut())
        .zip(granted.iter().zip(&short));
    for ((picture, plan), (granted, short)) in all {
        let wanted = plan.need.wanted;
        plan.add = *granted;
        let by_quota = *short > 0;
        plan.is_short =
            by_quota || (!picture.pool.paused && wanted > plan.add && !picture.pool.is_seed());
        plan.sentence = picture.sentence(plan, by_quota.then_some(quota));
    }
    plans
}

/// How many machines each pool may ask for, of `left` for all: the floors come first, then the pools in turns by one each.
fn grant(pictures: &[Picture], plans: &[Plan], mut left: u32) -> Vec<u32> {
    let mut granted = Vec::with_capacity(plans.len());
    for (picture, plan) in pictures.iter().zip(plans) {
        let floor = picture.pool.min.saturating_sub(picture.there());
        let floor = floor.min(plan.add).min(left);
        granted.push(floor);
        left = left.saturating_sub(floor);
    }
    while left > 0 {
        let mut given = 0_u32;
        for (plan, granted) in plans.iter().zip(&mut granted) {
            if *granted < plan.add && given < left {
                *granted = granted.saturating_add(1);
                given = given.saturating_add(1);
            }
        }
        if given == 0 {
            break;
        }
        left = left.saturating_sub(given);
    }
    granted
}

/// Idle machines of pools that lack nothing retire, so that others get theirs.
fn lend(pictures: &[Picture], plans: &mut [Plan], short: &[u32], lacks: u32) {
    let retiring: u32 = pictures.iter().map(|picture| picture.retiring).sum();
    let going: u32 = plans
        .iter()
        .map(|plan| u32::try_from(plan.retire.len()).unwrap_or(u32::MAX))
        .fold(retiring, u32::saturating_add);
    let mut lacks = lacks.saturating_sub(going);
    let borrower = pictures.iter().zip(short).max_by_key(|(_, short)| **short);
    let Some(borrower) = borrower.map(|(picture, _)| picture.name.clone()) else {
        return;
    };
    for ((picture, plan), short) in pictures.iter().zip(plans).zip(short) {
        if lacks == 0 {
            return;
        }
        if *short > 0 || !plan.may_lend {
            continue;
        }
        let stays = |machine: &&Machine| !plan.retire.iter().any(|(name, _)| *name == machine.name);
        let staying: Vec<Machine> = picture.machines.iter().filter(stays).cloned().collect();
        let gone = make_room(&staying, picture.pool.min, lacks);
        lacks = lacks.saturating_sub(u32::try_from(gone.len()).unwrap_or(u32::MAX));
        let why = format!("it makes room for pool {borrower}");
        plan.retire
            .extend(gone.into_iter().map(|name| (name, why.clone())));
    }
}

#[cfg(test)]
mod tests;
