//! Calls of providers, and what comes before them: no machine is ended that could still get a job.

use std::{future::ready, sync::Arc};

use futures_util::{StreamExt, stream};

use super::memory::Scaler;
use crate::scaling::ScalingFlow;
use fairlead_base::{errors::Refusal, providers::ProviderMachine};
use fairlead_known::pools::{FleetDoc, PoolDoc};

/// Machines whose session documents are written side by side.
const ABREAST: usize = 16;

impl ScalingFlow {
    /// Has the machines of a pool made and ended, beside the rounds: a provider may take minutes.
    pub(super) fn call_provider(
        self: &Arc<Self>,
        scaler: &Scaler,
        name: &str,
        pool: &PoolDoc,
        fleet: &FleetDoc,
        wanted: &[String],
    ) {
        let provided = |name: &String| fleet.machines.get(name).map(|one| one.provided(name));
        let wanted: Vec<ProviderMachine> = wanted.iter().filter_map(provided).collect();
        let retiring = fleet.machines.iter().filter(|(_, one)| one.retires());
        let retiring: Vec<ProviderMachine> =
            retiring.map(|(name, one)| one.provided(name)).collect();
        if wanted.is_empty() && retiring.is_empty() {
            return;
        }
        if !scaler.calls.lock().insert(name.to_owned()) {
            // It is called already. What it was not asked for is asked for again.
            return;
        }
        let (flow, calls) = (Arc::clone(self), Arc::clone(&scaler.calls));
        let (name, asked) = (name.to_owned(), pool.asked(name));
        self.ctx.tasks.spawn(async move {
            let mut problem = String::new();
            let mut not_made = Vec::new();
            if !wanted.is_empty()
                && let Err(failed) = flow.providers.increase(&asked, &wanted).await
            {
                problem = failed;
                not_made = wanted;
            }
            let ending = flow.retired(&name, retiring).await;
            if !ending.is_empty()
                && let Err(failed) = flow.providers.terminate(&asked, &ending).await
            {
                problem = failed;
            }
            if !problem.is_empty() {
                tracing::warn!(pool = name, problem, "a provider failed; it is asked again");
                flow.note_problem(&name, problem, &not_made).await;
            }
            calls.lock().remove(&name);
        });
    }

    /// Those of these machines that get no job from now on. The others have one, and stay.
    async fn retired(&self, pool: &str, machines: Vec<ProviderMachine>) -> Vec<ProviderMachine> {
        let looks = stream::iter(machines).map(|machine| async move {
            match self.hosts.retire_host(&machine.name).await {
                Ok(true) => {
                    self.ctx.metrics.machines_retired.inc();
                    Ok(machine)
                }
                Ok(false) => Err(Some(machine.name)),
                Err(error) => {
                    tracing::warn!(host = machine.name, %error, "a machine could not be retired; it is tried again");
                    Err(None)
                }
            }
        });
        let looked: Vec<Result<ProviderMachine, Option<String>>> =
            looks.buffer_unordered(ABREAST).collect().await;
        let (mut gone, mut stay) = (Vec::new(), Vec::new());
        for one in looked {
            match one {
                Ok(machine) => gone.push(machine),
                Err(name) => stay.extend(name),
            }
        }
        if !stay.is_empty()
            && let Err(error) = self.stay(pool, &stay).await
        {
            tracing::warn!(pool, %error, "that machines stay could not be noted; it is tried again");
        }
        gone
    }

    /// These machines do not retire after all.
    async fn stay(&self, pool: &str, names: &[String]) -> Result<(), Refusal> {
        self.change_fleet(pool, |fleet| {
            for name in names {
                if let Some(machine) = fleet.machines.get_mut(name) {
                    machine.retired_ms = 0;
                    machine.why.clear();
                }
            }
        })
        .await
    }

    async fn note_problem(&self, pool: &str, problem: String, not_made: &[ProviderMachine]) {
        let now_ms = self.ctx.clock.wall_ms();
        let noted = self
            .change_fleet(pool, |fleet| {
                fleet.problem.clone_from(&problem);
                for failed in not_made {
                    let machine = fleet.machines.get_mut(&failed.name);
                    if let Some(machine) = machine.filter(|one| one.listed_ms == 0) {
                        machine.failed_ms = now_ms;
                    }
                }
            })
            .await;
        if let Err(error) = noted {
            tracing::warn!(pool, %error, "a failed call could not be noted");
        }
    }

    async fn change_fleet(
        &self,
        pool: &str,
        mut change: impl FnMut(&mut FleetDoc),
    ) -> Result<(), Refusal> {
        let next = |known: Option<FleetDoc>| {
            let mut fleet = known.unwrap_or_default();
            change(&mut fleet);
            ready(Ok::<_, Refusal>(fleet))
        };
        self.ctx.docs.change(pool, next).await.map(drop)
    }

    /// A machine is gone: nothing is left of it. One that comes back all the same gets no job.
    pub(super) async fn forget_machine(self: &Arc<Self>, pool: &str, name: &str) {
        self.lab.pools.forget_host(name);
        let forgotten = match self.hosts.retire_host(name).await {
            Ok(true) => self.hosts.forget_documents(name, |_| false).await,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = forgotten {
            tracing::warn!(pool, host = name, %error, "the documents of a machine that is gone could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::flows;
    use fairlead_known::pools::FleetMachine;

    #[tokio::test]
    async fn a_machine_that_could_not_be_made_begins_to_boot_later() {
        let (_data, flows) = flows().await;
        let machine = |listed_ms| FleetMachine {
            asked_ms: 1,
            listed_ms,
            ..FleetMachine::default()
        };
        let mut fleet = FleetDoc::default();
        for (name, listed_ms) in [("asked", 0), ("made", 5)] {
            fleet.machines.insert(name.to_owned(), machine(listed_ms));
        }
        flows.ctx.docs.put("vms", None, Some(&fleet)).await.unwrap();
        let wanted: Vec<ProviderMachine> = fleet
            .machines
            .iter()
            .map(|(name, one)| one.provided(name))
            .collect();
        flows
            .scaling
            .note_problem("vms", "no capacity".to_owned(), &wanted)
            .await;
        let read = flows
            .ctx
            .docs
            .read::<FleetDoc>("vms")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(read.doc.problem, "no capacity");
        let failed = |name: &str| read.doc.machines[name].failed_ms > 0;
        assert!(failed("asked") && !failed("made"));
    }
}
