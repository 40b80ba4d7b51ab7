//! The chores of each second: a table says which chore runs in which rounds.
//!
//! Chores are independent. A failed chore is logged, counted and retried in the next round, and the others run. If the
//! store cannot be reached, the round ends early, because every other chore would fail too. Those chores stay due. `GET
//! /metrics` shows the time and the failures of each chore.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fairlead_dispatch::Millis;
use fairlead_store::StoreError;
use serde_json::json;
use tracing::Instrument;

use crate::{
    base::errors::Refusal,
    core::Core,
    dispatching::store_reads::{CountPace, until_look_ms},
};

/// What is done for the replica's knowledge of the lab, in the order of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Chore {
    /// Looks after what calls of the store do not tell of its health.
    Store,
    /// Reads what other replicas wrote and did not tell.
    Changes,
    /// Settles what the store seems to have lost.
    VanishedWrites,
    /// Reads the alarms of the next seconds.
    Alarms,
    /// Reads the timers of the next seconds.
    Timers,
    /// Closes hosts that became suspect.
    Suspects,
    /// Counts the waiting jobs by account, queue and host.
    Counts,
    /// Reads queues.
    Queues,
    /// Reads the submit rules, and how results are reused.
    Rules,
    /// Reads accounts.
    Accounts,
    /// Writes when tokens of accounts were used.
    TokenUse,
    /// Reads pools of machines.
    Pools,
    /// Reads closed hosts.
    Cordons,
    /// Makes health checks of suspect hosts.
    HealthChecks,
    /// Ends health checks of machines that are gone.
    StrayChecks,
    /// Reads reserved hosts.
    Reservations,
    /// Sums up hours of testboxes.
    Hours,
    /// Sums up what accounts uploaded.
    Uploads,
    /// Reads hosts.
    Hosts,
    /// Reads the lab's keys: several times before a new one acts.
    Keys,
    /// Compares the held jobs with the store's.
    Held,
    /// Looks at jobs that wait for others.
    Dependants,
    /// Looks at sequences.
    Sequences,
    /// Looks at clusters.
    Clusters,
    /// Looks at parents of shards.
    Parents,
    /// Writes how long tests took.
    TestTimes,
    /// Writes how long jobs took.
    RunTimes,
    /// Writes what ran in minutes that are over.
    Samples,
    /// Sums up hours that are over.
    OldSamples,
    /// Reads the webhooks of the next seconds.
    Webhooks,
    /// Forgets webhooks that are over.
    OldWebhooks,
    /// Forgets old idempotency keys.
    OldKeys,
    /// Forgets old sequences.
    OldSequences,
    /// Forgets machines that retired, and old decisions.
    OldMachines,
    /// Goes on with actions whose replica is gone.
    Previews,
    /// Forgets previews of yesterday.
    OldPreviews,
}

/// A chore, its name in logs and metrics, its period in rounds, and in which round of a period it runs.
const CHORES: &[(Chore, &str, u64, u64)] = &[
    (Chore::Store, "store", 1, 0),
    (Chore::Changes, "changes", 1, 0),
    (Chore::VanishedWrites, "vanished_writes", 1, 0),
    (Chore::Alarms, "alarms", 2, 1),
    (Chore::Timers, "timers", 2, 1),
    (Chore::Suspects, "suspects", 1, 0),
    (Chore::Counts, "counts", 1, 0),
    (Chore::Queues, "queues", 1, 0),
    (Chore::Rules, "rules", 2, 0),
    (Chore::Accounts, "accounts", 2, 0),
    (Chore::TokenUse, "token_use", 60, 30),
    (Chore::Pools, "pools", 2, 1),
    (Chore::Cordons, "cordons", 2, 0),
    (Chore::HealthChecks, "health_checks", 2, 0),
    (Chore::StrayChecks, "stray_checks", 10, 0),
    (Chore::Reservations, "reservations", 2, 0),
    (Chore::Hours, "hours", 5, 0),
    (Chore::Uploads, "uploads", 30, 1),
    (Chore::Hosts, "hosts", 10, 0),
    (Chore::Keys, "keys", 10, 0),
    (Chore::Held, "held", 10, 0),
    (Chore::Dependants, "dependants", 10, 0),
    (Chore::Sequences, "sequences", 10, 0),
    (Chore::Clusters, "clusters", 10, 0),
    (Chore::Parents, "parents", 10, 0),
    (Chore::TestTimes, "test_times", 5, 0),
    (Chore::RunTimes, "run_times", 5, 1),
    (Chore::Samples, "samples", 5, 0),
    (Chore::OldSamples, "old_samples", 600, 0),
    (Chore::Webhooks, "webhooks", 2, 0),
    (Chore::OldWebhooks, "old_webhooks", 3_600, 0),
    (Chore::OldKeys, "old_keys", 3_600, 0),
    (Chore::OldSequences, "old_sequences", 3_600, 0),
    (Chore::OldMachines, "old_machines", 3_600, 0),
    (Chore::Previews, "previews", 10, 7),
    (Chore::OldPreviews, "old_previews", 3_600, 0),
];

/// A store that did not answer for so long had an outage that people are told of, ms.
const OUTAGE_MS: u64 = 3_000;

/// Why a chore was not done.
#[derive(Debug, thiserror::Error)]
enum ChoreError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Refused(Refusal),
}

impl ChoreError {
    /// Whether the other chores would fail, too.
    fn is_outage(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unavailable { .. }))
    }
}

/// The rounds of one replica.
#[derive(Debug, Default)]
struct Rounds {
    round: u64,
    /// Chores that failed, or that an outage put off.
    owed: BTreeSet<Chore>,
    pace: CountPace,
    /// Changes were missed: counts are made anew.
    missed: bool,
    /// Since when the store does not answer; none: it does.
    silent_since: Option<Millis>,
}

impl Core {
    /// Does the chores of each second, until the replica stops.
    pub(crate) async fn keep_in_sync(self: Arc<Self>) {
        let mut rounds = Rounds::default();
        loop {
            // All replicas at the same time: what several ask for at once the store works out once. From beginning to
            // beginning: a round that takes long does not put off the next one.
            let wait_ms = until_look_ms(self.clock.wall_ms());
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = self.clock.rest(Duration::from_millis(wait_ms)) => {}
            }
            rounds.next(&self).await;
        }
    }
}

impl Rounds {
    /// One round: each chore that is due or owed.
    async fn next(&mut self, core: &Arc<Core>) {
        self.round = self.round.wrapping_add(1);
        let began_wall_ms = core.clock.wall_ms();
        let mut is_cut_off = false;
        for &(chore, name, every, at) in CHORES {
            let is_due = self.round % every == at || self.owed.contains(&chore);
            if !is_due {
                continue;
            }
            if is_cut_off {
                self.owed.insert(chore);
                continue;
            }
            let began = core.clock.now();
            let span = tracing::debug_span!("chore", chore = name);
            let outcome = self.run(chore, core, began_wall_ms).instrument(span).await;
            let took_ms = core.clock.now().0.saturating_sub(began.0);
            core.metrics.chore_ended(name, took_ms, outcome.is_ok());
            match outcome {
                Ok(()) => {
                    self.owed.remove(&chore);
                }
                Err(error) => {
                    tracing::warn!(chore = name, %error, "a chore failed; it runs again in a second");
                    self.owed.insert(chore);
                    is_cut_off = error.is_outage();
                }
            }
        }
        self.note_outage(core, is_cut_off, core.clock.now());
    }

    /// Notes how long the store did not answer, once it does.
    fn note_outage(&mut self, core: &Core, is_cut_off: bool, now: Millis) {
        if is_cut_off {
            self.silent_since.get_or_insert(now);
            return;
        }
        let Some(since) = self.silent_since.take() else {
            return;
        };
        let for_ms = now.0.saturating_sub(since.0);
        if for_ms >= OUTAGE_MS {
            let detail = json!({ "seconds": for_ms / 1000 });
            let replica = &core.config.replica;
            core.audit(replica, "store.outage", "store", detail);
        }
    }

    /// One chore. `began_wall_ms`: when the round began, by a clock that the replicas share.
    async fn run(
        &mut self,
        chore: Chore,
        core: &Arc<Core>,
        began_wall_ms: u64,
    ) -> Result<(), ChoreError> {
        let store = core.store.as_ref();
        match chore {
            Chore::Store => store.look_after().await,
            Chore::Changes => self.missed |= core.catch_up().await?,
            Chore::VanishedWrites => core.settle_doubts().await?,
            Chore::Alarms => core.read_alarms().await?,
            Chore::Timers => core.read_timers().await?,
            Chore::Suspects => core.put_suspects_aside().await,
            Chore::Counts => self.count(core, began_wall_ms).await?,
            Chore::Queues => core.reload_queues().await?,
            Chore::Rules => {
                let read = core.people.rules.reload(&core.docs).await;
                read.map_err(|error| ChoreError::Refused(error.into()))?;
                let read = core.people.reuse.reload(&core.docs).await;
                read.map_err(|error| ChoreError::Refused(error.into()))?;
            }
            Chore::Accounts => {
                core.people.accounts.reload(&core.docs).await?;
                core.tell_policy();
            }
            Chore::TokenUse => core.write_token_use().await,
            Chore::Pools => core.reload_pools().await?,
            Chore::Cordons => core.reload_closures().await?,
            Chore::HealthChecks => core.check_suspects().await?,
            Chore::StrayChecks if core.providers.any() => core.end_stray_checks().await?,
            Chore::StrayChecks => {}
            Chore::Reservations => core.reload_reservations().await?,
            Chore::Hours => core.sum_up_hours().await?,
            Chore::Uploads => core.sum_up_uploads().await?,
            Chore::Hosts => core.load_hosts().await?,
            Chore::Keys => core.sealer.reload(store).await?,
            Chore::Held => core.compare_held().await?,
            Chore::Dependants => core.sweep_dependants().await,
            Chore::Sequences => Box::pin(core.sweep_sequences()).await,
            Chore::Clusters => core.sweep_clusters().await,
            Chore::Parents => core.sweep_parents(),
            Chore::TestTimes => {
                let written = core.write_test_times().await;
                written.map_err(ChoreError::Refused)?;
            }
            Chore::RunTimes => core.write_run_times().await.map_err(ChoreError::Refused)?,
            Chore::Samples => core.write_samples().await.map_err(ChoreError::Refused)?,
            Chore::Webhooks => core.read_webhooks().await?,
            Chore::OldSamples
            | Chore::OldWebhooks
            | Chore::OldKeys
            | Chore::OldSequences
            | Chore::OldMachines
            | Chore::OldPreviews => forget_old(chore, core).await?,
            Chore::Previews => core.take_over_previews().await?,
        }
        Ok(())
    }

    async fn count(&mut self, core: &Core, wall_ms: u64) -> Result<(), StoreError> {
        if !self.missed && !self.pace.is_due(wall_ms) {
            return Ok(());
        }
        let began = core.clock.now();
        core.count().await?;
        self.missed = false;
        self.pace
            .took(core.clock.now().0.saturating_sub(began.0), wall_ms);
        Ok(())
    }
}

/// Sums up or forgets what is old.
async fn forget_old(chore: Chore, core: &Arc<Core>) -> Result<(), ChoreError> {
    match chore {
        Chore::OldSamples => {
            let summed = Box::pin(core.sum_up_samples()).await;
            summed.map_err(ChoreError::Refused)?;
        }
        Chore::OldWebhooks => {
            let swept = core.sweep_webhooks().await;
            swept.map_err(|error| ChoreError::Refused(error.into()))?;
        }
        Chore::OldKeys => {
            core.sweep_submits().await?;
            core.sweep_plans().await?;
            core.sweep_results().await?;
            core.forget_run_times().await?;
        }
        Chore::OldSequences => {
            core.forget_sequences().await.map_err(ChoreError::Refused)?;
        }
        Chore::OldMachines => {
            core.forget_old_turns().await?;
            core.forget_old_decisions().await?;
        }
        Chore::OldPreviews => core.forget_previews().await?,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fairlead_fault_store::{Fault, FaultStore, On, Step};

    use super::*;
    use crate::{
        Clock, Config,
        testing::{core, core_over, embedded, noted},
    };

    /// The chores that are owed after a round whose first search meets a fault, and after the next round.
    async fn owed_after(fault: Fault) -> [BTreeSet<Chore>; 2] {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(embedded(&data), []));
        let config = Config::embedded(data.path().to_owned());
        let core = core_over(Arc::clone(&store) as _, config, Clock::system());
        core.restore().await.unwrap();
        let mut rounds = Rounds::default();
        store.then(Step {
            on: On::Search,
            fault,
            times: 1,
        });
        Box::pin(rounds.next(&core)).await;
        assert_eq!(store.left(), []);
        let first = rounds.owed.clone();
        Box::pin(rounds.next(&core)).await;
        [first, rounds.owed]
    }

    #[tokio::test]
    async fn a_chore_that_fails_stops_no_other_and_runs_again() {
        let [first, second] = Box::pin(owed_after(Fault::Refused)).await;
        assert_eq!(first.len(), 1, "{first:?}");
        assert!(!first.contains(&Chore::Queues), "it came later: {first:?}");
        assert!(second.is_empty(), "{second:?}");
    }

    #[tokio::test]
    async fn an_outage_puts_off_what_is_due() {
        let [first, second] = Box::pin(owed_after(Fault::Unavailable)).await;
        assert!(first.contains(&Chore::Queues), "{first:?}");
        assert!(!first.contains(&Chore::Accounts), "not due: {first:?}");
        assert!(second.is_empty(), "{second:?}");
    }

    #[tokio::test]
    async fn an_outage_is_told_of_once_it_is_over() {
        let (_data, core) = core().await;
        let mut rounds = Rounds::default();
        // Short ones are nobody's business.
        for (is_cut_off, now) in [(true, 1), (false, 2_000), (false, 3_000)] {
            rounds.note_outage(&core, is_cut_off, Millis(now));
        }
        for (is_cut_off, now) in [
            (true, 10_000),
            (true, 11_000),
            (false, 17_500),
            (false, 18_000),
        ] {
            rounds.note_outage(&core, is_cut_off, Millis(now));
        }
        let events = noted(&core, 1).await;
        let told: Vec<_> = events
            .iter()
            .map(|event| &event.detail["seconds"])
            .collect();
        assert_eq!(told, [7]);
    }

    #[test]
    fn each_chore_is_in_the_table_once() {
        let chores: BTreeSet<Chore> = CHORES.iter().map(|(chore, ..)| *chore).collect();
        let names: BTreeSet<&str> = CHORES.iter().map(|(_, name, ..)| *name).collect();
        assert_eq!(chores.len(), CHORES.len());
        assert_eq!(names.len(), CHORES.len());
        assert!(chores.contains(&Chore::OldSequences));
        assert!(CHORES.iter().all(|(_, _, every, at)| at < every));
    }
}
