//! Asks the laws what each group should have, and does so within the quota.

use std::cmp::Reverse;

use fairlead_scaler::{
    Activity, Boots, Machine, Pool, SeedRules, Work, queue_length, queue_time, retire, seed,
};

use super::{BOOTS_MIN, Event, Group, Law, SEED_EVERY, State, Vm, World, scaled};

impl World<'_> {
    pub(super) fn decide(&mut self) {
        let mut adds = Vec::with_capacity(self.groups.len());
        for group in 0..self.groups.len() {
            let change = self.change(group);
            adds.push(u32::try_from(change.max(0)).unwrap_or(u32::MAX));
            if change < 0 {
                let go = usize::try_from(-change).unwrap_or(usize::MAX);
                let idle = &self.groups[group].idle;
                let gone: Vec<usize> = idle.iter().take(go).copied().collect();
                self.end(group, &gone);
            }
        }
        self.reclaim(&adds);
        // The groups take turns, so that they share the quota.
        let there: usize = self.groups.iter().map(|group| group.there.len()).sum();
        let mut room = self
            .scaling
            .quota
            .saturating_sub(u32::try_from(there).unwrap_or(u32::MAX));
        while room > 0 && adds.iter().any(|add| *add > 0) {
            for (group, add) in adds.iter_mut().enumerate() {
                if room > 0 && *add > 0 {
                    *add -= 1;
                    room -= 1;
                    self.launch(group);
                }
            }
        }
    }

    /// Retires idle machines of groups without waiting shards, if other groups lack machines and the quota is used up.
    fn reclaim(&mut self, adds: &[u32]) {
        let there: usize = self.groups.iter().map(|group| group.there.len()).sum();
        let wanted: usize = adds.iter().map(|add| *add as usize).sum();
        let quota = self.scaling.quota as usize;
        let mut short = (there + wanted).saturating_sub(quota);
        for (group, add) in adds.iter().enumerate() {
            let lender = &self.groups[group];
            if *add > 0 || !lender.waiting.is_empty() {
                continue;
            }
            let floor = self.scaling.min as usize;
            let over = lender.there.len().saturating_sub(floor).min(short);
            let gone: Vec<usize> = lender.idle.iter().take(over).copied().collect();
            short -= gone.len();
            self.end(group, &gone);
        }
    }

    /// Returns the number of machines to add. Negative: to remove.
    fn change(&mut self, group: usize) -> i64 {
        let now = self.now;
        let of = &self.groups[group];
        let boots = self.boots(of);
        let there = u32::try_from(of.there.len()).unwrap_or(u32::MAX);
        let busy = of
            .there
            .iter()
            .filter(|vm| matches!(self.vms[**vm].state, State::Runs { .. }));
        let busy = u32::try_from(busy.count()).unwrap_or(u32::MAX);
        let mean_ms = of.runs.mean_ms();
        let waiting = of.waiting.len();
        match self.scaling.law {
            Law::Seed => {
                if !self.rounds.is_multiple_of(SEED_EVERY) {
                    return 0;
                }
                let mean_ms = mean_ms.map(|ms| scaled(ms, self.scaling.estimate_factor));
                let rules = SeedRules {
                    min: self.scaling.min,
                    ..SeedRules::default()
                };
                let lull = &mut self.groups[group].lull;
                seed(&rules, lull, waiting, there, busy, mean_ms, now)
            }
            Law::QueueTime | Law::QueueLength => {
                let pool = Pool {
                    min: self.scaling.min,
                    max: self.scaling.quota,
                    step_max: u32::MAX,
                    target_ms: self.scaling.target_ms,
                };
                let machines = self.machines(of);
                let add = if self.scaling.law == Law::QueueTime {
                    let work: Vec<Work> = of
                        .waiting
                        .iter()
                        .map(|shard| Work {
                            share: 1_000,
                            expected_ms: self.expected_ms(of, *shard),
                            shape: 0,
                        })
                        .collect();
                    let mean_ms = mean_ms.map(|ms| of.bias.corrected_ms(self.wrong_ms(ms)));
                    queue_time(&pool, &machines, &[], &work, boots, mean_ms, now).add
                } else {
                    queue_length(&pool, &machines, waiting)
                };
                if add > 0 {
                    return add.into();
                }
                let gone = retire(&pool, &machines, waiting, boots, now);
                -i64::try_from(gone.len()).unwrap_or(0)
            }
        }
    }

    fn boots(&self, of: &Group) -> Boots {
        let (shortest, longest) = self.scaling.boot_ms;
        let said = Boots {
            mean_ms: shortest.midpoint(longest),
            deadline_ms: longest.saturating_mul(2),
        };
        if of.boots.samples() < BOOTS_MIN {
            return said;
        }
        Boots {
            mean_ms: of.boots.mean_ms().unwrap_or(said.mean_ms),
            deadline_ms: of
                .boots
                .quantile_ms(950)
                .map_or(said.deadline_ms, |ms| ms.saturating_mul(2)),
        }
    }

    fn machines(&self, of: &Group) -> Vec<Machine> {
        let machine = |id: &usize| {
            let vm = &self.vms[*id];
            let since_ms = vm.since_ms;
            let activity = match vm.state {
                State::Boots => Activity::Boots { since_ms },
                State::Idle => Activity::Idle { since_ms },
                State::Runs { shard, .. } => Activity::Runs {
                    left_ms: self.left_ms(of, shard, since_ms),
                },
                State::Gone => Activity::Closed,
            };
            Machine::new(id.to_string(), activity)
        };
        of.there.iter().map(machine).collect()
    }

    fn launch(&mut self, group: usize) {
        let (shortest, longest) = self.scaling.boot_ms;
        let boot = self.chance.between(shortest, longest);
        let vm = self.vms.len();
        self.vms.push(Vm {
            group,
            state: State::Boots,
            since_ms: self.now,
            asked_ms: self.now,
            gone_ms: 0,
            busy_ms: 0,
        });
        self.groups[group].there.push(vm);
        self.groups[group].turns(true);
        self.events
            .push(Reverse((self.now + boot, Event::Booted(vm))));
    }

    fn end(&mut self, group: usize, gone: &[usize]) {
        for vm in gone {
            self.vms[*vm].state = State::Gone;
            self.vms[*vm].gone_ms = self.now;
        }
        if !gone.is_empty() {
            self.groups[group].turns(false);
        }
        self.groups[group].idle.retain(|vm| !gone.contains(vm));
        self.groups[group].there.retain(|vm| !gone.contains(vm));
    }
}
