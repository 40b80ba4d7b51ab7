//! How many machines each pool asks for and which retire, all pools together. Pure.

use fairlead_scaler::{
    Activity, Boots, Machine, Need, Reason, Seed, Wear, make_room, queue_time, retire,
};

use super::work::Waiting;
use crate::known::pools::{PoolDoc, SEED};

/// Below this part of its machines in use a pool lends idle ones, thousandths.
const LOW_USE: u64 = 300;
/// In so many rounds in a row, or idle for one boot.
const LOW_ROUNDS: u32 = 4;

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
    /// In how many rounds in a row little of it was in use, before this one.
    pub(super) low: u32,
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

    /// Whether little of it is in use.
    pub(super) fn is_low(&self) -> bool {
        let busy = u64::from(Counts::of(&self.machines).busy);
        busy.saturating_mul(1_000) < LOW_USE.saturating_mul(u64::from(self.there()))
    }

    /// Whether other pools may have its idle machines.
    fn lends(&self, now_ms: u64) -> bool {
        let is_idle = |machine: &Machine| match machine.activity {
            Activity::Idle { since_ms } => now_ms.saturating_sub(since_ms) >= self.boots.mean_ms,
            Activity::Boots { .. } | Activity::Runs { .. } | Activity::Closed => false,
        };
        let waits = !self.waiting.work.is_empty();
        !waits && !self.pool.paused && (self.low >= LOW_ROUNDS || self.machines.iter().any(is_idle))
    }

    /// The machines that are replaced, and why.
    fn worn(&self) -> Vec<(String, String)> {
        let rules = self.pool.recycling();
        let waits = !self.waiting.work.is_empty();
        let machines = self.machines.iter().zip(&self.wear);
        let worn = machines.filter_map(|(machine, wear)| {
            let why = match rules.reason(*wear, waits)? {
                Reason::Unhealthy => "it failed by its own fault, or is silent".to_owned(),
                Reason::Jobs => format!("it has run {} jobs", wear.jobs),
                Reason::Age => format!("it is {} s old", wear.age_ms.div_euclid(1_000)),
            };
            Some((machine.name.clone(), why))
        });
        worn.collect()
    }

    /// What the law says, before the quota.
    fn plan(&self, law: &mut Seed, now_ms: u64) -> Plan {
        let counts = Counts::of(&self.machines);
        let mut plan = Plan {
            counts,
            waiting: u64::try_from(self.waiting.work.len()).unwrap_or(u64::MAX),
            ..Plan::default()
        };
        if self.pool.paused {
            return plan;
        }
        plan.retire = self.worn();
        let waiting = &self.waiting;
        // Those that retire still live.
        let limits = fairlead_scaler::Pool {
            step_max: self.step_left,
            max: self.pool.max.saturating_sub(self.retiring),
            ..self.pool.limits()
        };
        plan.need = queue_time(
            &limits,
            &self.machines,
            &self.others,
            &waiting.work,
            self.boots,
            waiting.mean_ms,
            now_ms,
        );
        let (gone, why) = if self.pool.law == SEED {
            self.by_seed(&mut plan.need, &limits, law, now_ms)
        } else {
            self.idle(&limits, now_ms)
        };
        let gone = gone.into_iter().map(|name| (name, why.clone()));
        plan.retire.extend(gone);
        plan.retire.sort_unstable();
        plan.retire.dedup_by(|(one, _), (other, _)| one == other);
        plan.add = plan.need.add;
        plan
    }

    /// What the law `seed` says. Machines that go, and why.
    fn by_seed(
        &self,
        need: &mut Need,
        limits: &fairlead_scaler::Pool,
        law: &mut Seed,
        now_ms: u64,
    ) -> (Vec<String>, String) {
        need.add = 0;
        let why = "little of the pool is in use".to_owned();
        if !self.is_minute {
            return (Vec::new(), why);
        }
        let busy = Counts::of(&self.machines).busy;
        let waiting = &self.waiting;
        let many = waiting.work.len();
        let change = law.decide(many, self.there(), busy, waiting.mean_ms, now_ms);
        let room = limits.max.saturating_sub(self.there());
        let more = u32::try_from(change).unwrap_or(0);
        need.add = more.min(limits.step_max).min(room);
        let fewer = u32::try_from(change.saturating_neg()).unwrap_or(0);
        (make_room(&self.machines, limits.min, fewer), why)
    }

    /// Machines that were idle for long, and why they go.
    fn idle(&self, limits: &fairlead_scaler::Pool, now_ms: u64) -> (Vec<String>, String) {
        let idle_ms = self.pool.recycling().max_idle_ms.max(self.boots.mean_ms);
        let patience = Boots {
            mean_ms: idle_ms,
            ..self.boots
        };
        let waiting = self.waiting.work.len();
        let gone = retire(limits, &self.machines, waiting, patience, now_ms);
        let seconds = idle_ms.div_euclid(1_000);
        (
            gone,
            format!("it was idle for {seconds} s while nothing waited"),
        )
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

/// Decides for all pools together. `laws`: beside each picture, what the law `seed` remembers of it.
pub(super) fn decide(
    pictures: &[Picture],
    laws: &mut [Seed],
    quota: u32,
    now_ms: u64,
) -> Vec<Plan> {
    let plans = pictures
        .iter()
        .zip(laws)
        .map(|(picture, law)| picture.plan(law, now_ms));
    let mut plans: Vec<Plan> = plans.collect();
    let there: u32 = pictures
        .iter()
        .map(|picture| picture.there().saturating_add(picture.retiring))
        .fold(0, u32::saturating_add);
    let granted = grant(pictures, &plans, quota.saturating_sub(there));
    let short: Vec<u32> = plans
        .iter()
        .zip(&granted)
        .map(|(plan, granted)| plan.add.saturating_sub(*granted))
        .collect();
    let lacks: u32 = short.iter().copied().fold(0, u32::saturating_add);
    lend(pictures, &mut plans, &short, lacks, now_ms);
    let all = pictures
        .iter()
        .zip(plans.iter_mut())
        .zip(granted.iter().zip(&short));
    for ((picture, plan), (granted, short)) in all {
        let wanted = plan.need.wanted;
        plan.add = *granted;
        let by_quota = *short > 0;
        plan.is_short =
            by_quota || (!picture.pool.paused && wanted > plan.add && picture.pool.law != SEED);
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
fn lend(pictures: &[Picture], plans: &mut [Plan], short: &[u32], lacks: u32, now_ms: u64) {
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
        if *short > 0 || !picture.lends(now_ms) {
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
mod tests {
    use fairlead_scaler::{SeedRules, Work};

    use super::*;

    const NOW_MS: u64 = 1_000_000;

    fn picture(name: &str, machines: &[Activity], jobs: usize) -> Picture {
        let named = machines.iter().enumerate();
        let named = named.map(|(n, activity)| Machine::new(format!("{name}--{n}"), *activity));
        let hour = Work {
            share: 1_000,
            expected_ms: Some(3_600_000),
            shape: 0,
        };
        Picture {
            name: name.to_owned(),
            pool: PoolDoc {
                min: 0,
                ..PoolDoc::unsaid()
            },
            machines: named.collect(),
            wear: vec![Wear::default(); machines.len()],
            others: Vec::new(),
            waiting: Waiting {
                work: vec![hour; jobs],
                ..Waiting::default()
            },
            boots: Boots {
                mean_ms: 100_000,
                deadline_ms: 300_000,
            },
            retiring: 0,
            step_left: 100,
            low: 0,
            is_minute: true,
        }
    }

    fn decided(pictures: &[Picture], quota: u32) -> Vec<Plan> {
        let mut laws = vec![Seed::new(SeedRules::default()); pictures.len()];
        decide(pictures, &mut laws, quota, NOW_MS)
    }

    const IDLE: Activity = Activity::Idle { since_ms: 0 };
    const FRESH: Activity = Activity::Idle { since_ms: NOW_MS };
    const BUSY: Activity = Activity::Runs { left_ms: 9_000_000 };

    #[test]
    fn a_pool_asks_for_what_waits_and_says_why() {
        let [plan] = &decided(&[picture("a", &[BUSY], 3)], u32::MAX)[..] else {
            panic!("one plan")
        };
        assert_eq!((plan.add, plan.is_short, plan.retire.len()), (3, false, 0));
        assert_eq!(
            plan.sentence,
            "3 jobs wait with 10800 s of work, and the machines take 0 s within 160 s; 3 machines are asked for"
        );
        let many = &decided(&[picture("a", &[], 30)], u32::MAX)[0];
        assert_eq!((many.add, many.is_short), (10, true));
        assert!(
            many.sentence
                .ends_with("30 were wanted, and max 10 or max_step 100 allows no more")
        );
    }

    #[test]
    fn a_machine_that_retires_counts_until_it_is_gone() {
        let mut full = picture("a", &[BUSY, BUSY], 5);
        (full.pool.max, full.retiring) = (4, 1);
        assert_eq!(decided(&[full], u32::MAX)[0].add, 1);
        let mut floor = picture("a", &[BUSY], 0);
        (floor.pool.min, floor.pool.max, floor.retiring) = (4, 4, 2);
        assert_eq!(decided(&[floor], u32::MAX)[0].add, 1);
    }

    #[test]
    fn a_paused_pool_does_nothing() {
        let mut paused = picture("a", &[IDLE], 0);
        paused.pool.paused = true;
        let plan = &decided(&[paused], u32::MAX)[0];
        assert_eq!((plan.add, plan.retire.len()), (0, 0));
    }

    #[test]
    fn the_quota_is_shared_and_the_floors_come_first() {
        let mut floor = picture("c", &[], 0);
        floor.pool.min = 2;
        let pools = [picture("a", &[], 8), picture("b", &[], 8), floor];
        let adds: Vec<u32> = decided(&pools, 9).iter().map(|plan| plan.add).collect();
        assert_eq!(adds, [4, 3, 2]);
    }

    #[test]
    fn an_idle_pool_makes_room_for_one_that_lacks_machines_and_never_below_its_floor() {
        // Idle for long it retires anyway; one that was just used stays, unless others need the room.
        let mut lender = picture("a", &[FRESH, FRESH, BUSY], 0);
        lender.low = LOW_ROUNDS;
        let alone = &decided(&[picture("a", &[FRESH, FRESH], 0)], 2)[0];
        assert_eq!(alone.retire.len(), 0);
        let plans = decided(&[lender, picture("b", &[], 1)], 3);
        assert_eq!(plans[1].add, 0);
        assert!(plans[1].is_short && plans[1].sentence.contains("the quota of 3 machines"));
        let why = "it makes room for pool b".to_owned();
        assert_eq!(plans[0].retire, [("a--0".to_owned(), why)]);
        let mut at_floor = picture("a", &[FRESH, FRESH], 0);
        (at_floor.low, at_floor.pool.min) = (LOW_ROUNDS, 2);
        let plans = decided(&[at_floor, picture("b", &[], 1)], 2);
        assert_eq!(plans[0].retire.len(), 0);
        // Those that go already are enough.
        let mut going = picture("a", &[FRESH], 0);
        (going.low, going.retiring) = (LOW_ROUNDS, 1);
        let plans = decided(&[going, picture("b", &[], 1)], 2);
        assert_eq!(plans[0].retire.len(), 0);
    }

    #[test]
    fn idle_machines_retire_only_while_nothing_waits() {
        let plan = &decided(&[picture("a", &[IDLE, FRESH, BUSY], 0)], u32::MAX)[0];
        let names: Vec<&str> = plan.retire.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a--0"]);
        let plan = &decided(&[picture("a", &[IDLE, BUSY], 5)], u32::MAX)[0];
        assert_eq!(plan.retire.len(), 0);
        let mut patient = picture("a", &[IDLE], 0);
        patient.pool.max_idle_s = 2_000;
        assert_eq!(decided(&[patient], u32::MAX)[0].retire.len(), 0);
    }

    #[test]
    fn an_unhealthy_machine_is_replaced_even_if_jobs_wait() {
        let mut ill = picture("a", &[Activity::Closed], 1);
        ill.wear[0] = Wear {
            is_unhealthy: true,
            idle_ms: Some(0),
            ..Wear::default()
        };
        let plan = &decided(&[ill], u32::MAX)[0];
        assert_eq!((plan.add, plan.retire.len()), (1, 1));
    }
}
