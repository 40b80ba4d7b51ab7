//! Machines that take the place of suspect ones: each is suspect until it has passed a health check.

use std::collections::BTreeSet;

use fairlead_job::Health;
use fairlead_store::StoreError;

use crate::scaling::ScalingFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::{cordons::CordonKind, pools::FleetDoc};

/// Why such a machine is suspect.
const REASON: &str = "it takes the place of a suspect machine, and passes a health check first";

impl ScalingFlow {
    /// Whether the machine in the place of this one is to be tried out.
    pub(super) fn leaves_a_trial(&self, machine: &str) -> bool {
        self.ctx.config.health_check.is_some() && self.lab.cordons.is_suspect(machine)
    }

    /// Those of these machines that are to be tried out are suspect from now on, before they boot.
    pub(super) async fn put_on_trial(
        &self,
        fleet: &FleetDoc,
        names: impl Iterator<Item = &String>,
    ) -> Result<(), Refusal> {
        for name in names {
            let machine = fleet.machines.get(name);
            let begins = machine.is_some_and(|one| one.is_tried && one.met_ms == 0);
            if begins && self.lab.cordons.of(name).is_none() {
                let by = &self.ctx.config.replica;
                self.hosts
                    .close_host(name, CordonKind::Suspect, REASON, by)
                    .await?;
            }
        }
        Ok(())
    }

    /// The machines that are tried out, and have not failed.
    pub(super) async fn tried_of(&self, fleet: &FleetDoc) -> Result<BTreeSet<String>, StoreError> {
        let mut tried = BTreeSet::new();
        if self.ctx.config.health_check.is_none() {
            return Ok(tried);
        }
        let machines = fleet.machines.iter().filter(|(_, one)| one.is_tried);
        for (name, _) in machines {
            let closure = self.lab.cordons.of(name).filter(|one| !one.is_shut());
            let Some(closure) = closure else { continue };
            let job = match closure.check {
                Some(check) => self.ctx.store.get(&[check.job_id]).await?.pop().flatten(),
                None => None,
            };
            // One that passed is opened within seconds.
            let has_failed = job.is_some_and(|job| {
                job.state.stage.is_terminal() && job.state.health != Health::Success
            });
            if !has_failed {
                tried.insert(name.clone());
            }
        }
        Ok(tried)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use fairlead_job::{SiteDefaults, Stage};
    use fairlead_scaler::Activity;
    use fairlead_store::JobState;
    use serde_json::json;

    use super::*;
    use crate::{
        Config,
        flows::Flows,
        scaling::machines::Look,
        testing::{embedded, flows_over, state, store_job},
    };
    use fairlead_base::health_check::HealthCheck;
    use fairlead_known::{
        cordons::{Check, Cordon},
        pools::{FleetMachine, PoolDoc},
    };

    fn fleet(met_ms: u64) -> FleetDoc {
        let machine = FleetMachine {
            is_tried: true,
            asked_ms: 1,
            met_ms,
            ..FleetMachine::default()
        };
        let plain = FleetMachine {
            is_tried: false,
            ..machine.clone()
        };
        FleetDoc {
            machines: BTreeMap::from([("new".to_owned(), machine), ("plain".to_owned(), plain)]),
            ..FleetDoc::default()
        }
    }

    fn lab_in(data: &tempfile::TempDir) -> Arc<Flows> {
        let spec = serde_json::from_value(json!({"suite": "selftest", "script": "true"})).unwrap();
        let config = Config {
            health_check: Some(HealthCheck::of(spec, &SiteDefaults::default()).unwrap()),
            ..Config::embedded(data.path().to_owned())
        };
        let clock = crate::Clock::simulated(1_000, Arc::new(crate::Pause::default()));
        flows_over(embedded(data), config, clock)
    }

    fn closure(flows: &Flows) -> Cordon {
        flows
            .hosts
            .lab
            .cordons
            .of("new")
            .unwrap_or_else(|| panic!("{:?}", flows.ctx.config.replica))
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_in_the_place_of_a_suspect_one_boots_until_it_has_passed() {
        let data = tempfile::tempdir().unwrap();
        let flows = lab_in(&data);
        let names = ["new".to_owned(), "plain".to_owned()];
        flows
            .scaling
            .put_on_trial(&fleet(0), names.iter())
            .await
            .unwrap();
        assert_eq!(flows.hosts.lab.cordons.suspects(), ["new"]);
        let does = async || {
            let pool = PoolDoc::unsaid();
            let machines = flows
                .scaling
                .machines_of(&Look::default(), "vms", &pool, &fleet(5))
                .await;
            machines.unwrap().remove(0).activity
        };
        let boots = Activity::Boots { since_ms: 1 };
        assert_eq!(does().await, boots, "no health check yet");
        let checked = |id: u64, health| {
            let stage = Stage::Finish;
            JobState {
                stage,
                health,
                ready: false,
                ..state(id)
            }
        };
        for (id, health, then) in [
            (7, Health::Success, boots),
            (8, Health::Fail, Activity::Closed),
        ] {
            let job = store_job(&flows, checked(id, health)).await;
            let check = Some(Check {
                job_id: job.state.job_id,
                number: 1,
            });
            let present = flows.ctx.docs.read("new").await.unwrap();
            let next = Cordon {
                check,
                ..closure(&flows)
            };
            let written = flows
                .hosts
                .write_closure("new", present.as_ref(), Some(next));
            assert!(written.await.unwrap());
            assert_eq!(does().await, then, "{health:?}");
        }
        flows.hosts.open_host("new").await.unwrap();
        assert!(matches!(does().await, Activity::Idle { .. }));
        // It has asked: whoever opened it had a reason.
        flows
            .scaling
            .put_on_trial(&fleet(5), names.iter())
            .await
            .unwrap();
        assert_eq!(flows.hosts.lab.cordons.of("new"), None);
    }
}
