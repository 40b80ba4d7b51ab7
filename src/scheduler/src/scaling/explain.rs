//! Explains how pools deal with a job that waits.

use std::collections::BTreeMap;

use fairlead_scaler::{Activity, Machine, left_ms};
use fairlead_store::JobState;

use crate::{
    core::Core,
    known::pools::{FleetDoc, PoolDoc},
    placement::feasibility::fits_template,
};

impl Core {
    /// What each pool that could run the job does about it. A store that does not answer says nothing.
    pub(crate) async fn pools_say(&self, state: &JobState) -> Vec<String> {
        let mut words = Vec::new();
        for (name, pool) in self.lab.pools.all() {
            if !fits_template(state, &name, &pool.template(&name)) {
                continue;
            }
            let Ok(read) = self.docs.read::<FleetDoc>(&name).await else {
                continue;
            };
            let fleet = read.map(|read| read.doc).unwrap_or_default();
            let machines = self.machines_of(0, &BTreeMap::new(), &pool, &fleet).await;
            if let Ok(machines) = machines {
                words.push(self.pool_says(&name, &pool, &fleet, &machines));
            }
        }
        words
    }

    fn pool_says(
        &self,
        name: &str,
        pool: &PoolDoc,
        fleet: &FleetDoc,
        machines: &[Machine],
    ) -> String {
        let could = format!("a machine of pool {name} could run it");
        if pool.paused {
            return format!("{could}, but the pool is paused");
        }
        let boots = fleet.boot_times(pool);
        let now_ms = self.clock.wall_ms();
        let ready_in = machines
            .iter()
            .filter_map(|machine| match machine.activity {
                Activity::Boots { since_ms } => {
                    let age_ms = now_ms.saturating_sub(since_ms);
                    Some(left_ms(boots.mean_ms, age_ms).div_ceil(1_000))
                }
                Activity::Runs { .. } | Activity::Idle { .. } | Activity::Closed => None,
            });
        let ready_in: Vec<u64> = ready_in.collect();
        if let Some(first) = ready_in.iter().min() {
            let many = ready_in.len();
            return format!("{could}: {many} boot, and the next is ready in about {first} s");
        }
        let there = machines.len();
        if !fleet.problem.is_empty() {
            return format!("{could}, but its provider failed: {}", fleet.problem);
        }
        if there >= usize::try_from(pool.max).unwrap_or(usize::MAX) {
            return format!("{could}: the pool has its {there} machines, which is its max");
        }
        if !self.providers.has(&pool.provider) {
            let provider = &pool.provider;
            return format!("{could}, but this replica has no provider '{provider}'");
        }
        let seconds = boots.mean_ms.div_ceil(1_000);
        format!("{could}: it has {there} machines, and a new one takes about {seconds} s")
    }
}
