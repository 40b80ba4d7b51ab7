//! The chores of each second: a table says which chore runs in which rounds.
//!
//! Chores are independent. A failed chore is logged, counted and retried in the next round, and the others run. If the
//! store cannot be reached, the round ends early, because every other chore would fail too. Those chores stay due. `GET
//! /metrics` shows the time and the failures of each chore.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use fairlead_dispatch::Millis;
use fairlead_store::StoreError;
use futures_util::future::BoxFuture;
use serde_json::json;
use tracing::Instrument;

use crate::{
    dispatching::store_reads::{CountPace, until_look_ms},
    flows::Flows,
};
use fairlead_base::{errors::Refusal, storage::small_doc::DocError};

/// What a chore does, with the rounds of the replica and what all flows share.
type Work = for<'r> fn(&'r mut Rounds, &'r Arc<Flows>) -> Outcome<'r>;
type Outcome<'r> = BoxFuture<'r, Result<(), ChoreError>>;

/// One chore.
struct Chore {
    /// Its name in logs and metrics.
    name: &'static str,
    /// Its period, in rounds.
    every: u64,
    /// In which round of a period it runs.
    at: u64,
    work: Work,
}

/// Makes the table of chores. A row has a name, a period, a round, and the work: `?` and `await` may stand in it.
macro_rules! chores {
    ($($name:literal every $every:literal at $at:literal: |$rounds:pat_param, $flows:pat_param| $work:expr;)*) => {
        &[$(Chore {
            name: $name,
            every: $every,
            at: $at,
            work: |$rounds, $flows| Box::pin(async move {
                $work;
                Ok(())
            }),
        }),*]
    };
}

/// What is done for the replica's knowledge of the lab, in the order of a round.
const CHORES: &[Chore] = chores! {
    // What calls of the store do not tell of its health.
    "store" every 1 at 0: |_, flows| flows.ctx.store.look_after().await;
    // What other replicas wrote and did not tell.
    "changes" every 1 at 0: |rounds, flows| rounds.missed |= flows.jobs.catch_up().await?;
    // What the store seems to have lost.
    "vanished_writes" every 1 at 0: |_, flows| flows.jobs.settle_doubts().await?;
    // Alarms and timers of the next seconds.
    "alarms" every 2 at 1: |_, flows| flows.waiting.read_alarms().await?;
    "timers" every 2 at 1: |_, flows| flows.timers.read_timers().await?;
    // Closes hosts that became suspect.
    "suspects" every 1 at 0: |_, flows| flows.hosts.put_suspects_aside().await;
    // Counts the waiting jobs by account, queue and host.
    "counts" every 1 at 0: |rounds, flows| rounds.count(flows).await?;
    "queues" every 1 at 0: |_, flows| flows.people.reload_queues().await?;
    // The submit rules, and how results are reused.
    "rules" every 2 at 0: |_, flows| {
        flows.people.rules.reload(&flows.ctx.docs).await?;
        flows.reuse.rules.reload(&flows.ctx.docs).await?;
    };
    "accounts" every 2 at 0: |_, flows| {
        flows.people.accounts.reload(&flows.ctx.docs).await?;
        flows.people.tell_policy();
    };
    // Writes when tokens of accounts were used.
    "token_use" every 60 at 30: |_, flows| flows.people.write_token_use().await;
    "pools" every 2 at 1: |_, flows| flows.scaling.reload_pools().await?;
    "cordons" every 2 at 0: |_, flows| flows.hosts.reload_closures().await?;
    // Makes health checks of suspect hosts, and ends those of machines that are gone.
    "health_checks" every 2 at 0: |_, flows| flows.hosts.check_suspects().await?;
    "stray_checks" every 10 at 0: |_, flows| if flows.scaling.providers.any() { flows.hosts.end_stray_checks().await? };
    "reservations" every 2 at 0: |_, flows| flows.hosts.reload_reservations().await?;
    // Sums up hours of testboxes, and what accounts uploaded.
    "hours" every 5 at 0: |_, flows| flows.submission.sum_up_hours().await?;
    "uploads" every 30 at 1: |_, flows| flows.files.sum_up_uploads().await?;
    "hosts" every 10 at 0: |_, flows| flows.placement.load_hosts().await?;
    // The lab's keys: several times before a new one acts.
    "keys" every 10 at 0: |_, flows| flows.ctx.sealer.reload(flows.ctx.store.as_ref()).await?;
    // Compares the held jobs with the store's.
    "held" every 10 at 0: |_, flows| flows.upkeep.compare_held().await?;
    // Looks again at what waits, for an announcement may have been missed.
    "dependants" every 10 at 0: |_, flows| flows.waiting.sweep_dependants().await;
    "sequences" every 10 at 0: |_, flows| flows.waiting.sweep_sequences();
    "clusters" every 10 at 0: |_, flows| flows.waiting.sweep_clusters();
    "parents" every 10 at 0: |_, flows| flows.shards.sweep_parents();
    // Writes how long tests and jobs took, and what ran in minutes that are over; sums up hours that are over.
    "test_times" every 5 at 0: |_, flows| flows.shards.write_test_times().await?;
    "run_times" every 5 at 1: |_, flows| flows.samples.write_run_times().await?;
    "samples" every 5 at 0: |_, flows| flows.samples.write_samples().await?;
    "old_samples" every 600 at 0: |_, flows| Box::pin(flows.samples.sum_up_samples()).await?;
    // Webhooks of the next seconds.
    "webhooks" every 2 at 0: |_, flows| flows.webhooks.read_webhooks().await?;
    // Forgets what is over.
    "old_webhooks" every 3_600 at 0: |_, flows| flows.webhooks.sweep_webhooks().await?;
    "old_keys" every 3_600 at 0: |_, flows| {
        flows.submission.sweep_submits().await?;
        flows.shards.sweep_plans().await?;
        flows.reuse.sweep_results().await?;
        flows.samples.forget_run_times().await?;
    };
    "old_sequences" every 3_600 at 0: |_, flows| flows.waiting.forget_sequences().await?;
    // Machines that retired, and old decisions.
    "old_machines" every 3_600 at 0: |_, flows| {
        flows.hosts.forget_old_turns().await?;
        flows.scaling.forget_old_decisions().await?;
    };
    // Goes on with actions whose replica is gone.
    "previews" every 10 at 7: |_, flows| flows.bulk.take_over_previews().await?;
    "old_previews" every 3_600 at 0: |_, flows| flows.bulk.forget_previews().await?;
};

/// A store that did not answer for so long had an outage that people are told of, ms.
const OUTAGE_MS: u64 = 3_000;

/// Why a chore was not done.
#[derive(Debug, thiserror::Error)]
enum ChoreError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Doc(#[from] DocError),
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
    /// When the round began, UTC epoch ms: by a clock that the replicas share.
    began_wall_ms: u64,
    /// Chores that failed, or that an outage put off.
    owed: BTreeSet<&'static str>,
    pace: CountPace,
    /// Changes were missed: counts are made anew.
    missed: bool,
    /// Since when the store does not answer; none: it does.
    silent_since: Option<Millis>,
}

/// Does the chores of each second, until the replica stops.
pub(crate) async fn keep_in_sync(flows: Arc<Flows>) {
    let mut rounds = Rounds::default();
    let (clock, tasks) = (&flows.ctx.clock, &flows.ctx.tasks);
    // All replicas at the same time: what several ask for at once the store works out once. From beginning to
    // beginning: a round that takes long does not put off the next one.
    let pause = || async {
        let wait = Duration::from_millis(until_look_ms(clock.wall_ms()));
        tasks.until_draining(clock.rest(wait)).await
    };
    while pause().await.is_some() {
        rounds.next(&flows).await;
    }
}

impl Rounds {
    /// One round: each chore that is due or owed.
    async fn next(&mut self, flows: &Arc<Flows>) {
        self.round = self.round.wrapping_add(1);
        self.began_wall_ms = flows.ctx.clock.wall_ms();
        let mut is_cut_off = false;
        for Chore {
            name,
            every,
            at,
            work,
        } in CHORES
        {
            let is_due = self.round % every == *at || self.owed.contains(name);
            if !is_due {
                continue;
            }
            if is_cut_off {
                self.owed.insert(name);
                continue;
            }
            let began = flows.ctx.clock.now();
            let span = tracing::debug_span!("chore", chore = name);
            let outcome = work(self, flows).instrument(span).await;
            let took_ms = flows.ctx.clock.now().0.saturating_sub(began.0);
            flows
                .ctx
                .metrics
                .chore_ended(name, took_ms, outcome.is_ok());
            match outcome {
                Ok(()) => {
                    self.owed.remove(name);
                }
                Err(error) => {
                    tracing::warn!(chore = name, %error, "a chore failed; it runs again in a second");
                    self.owed.insert(name);
                    is_cut_off = error.is_outage();
                }
            }
        }
        self.note_outage(flows, is_cut_off, flows.ctx.clock.now());
    }

    /// Notes how long the store did not answer, once it does.
    fn note_outage(&mut self, flows: &Flows, is_cut_off: bool, now: Millis) {
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
            let replica = &flows.ctx.config.replica;
            flows.ctx.audit(replica, "store.outage", "store", detail);
        }
    }

    async fn count(&mut self, flows: &Flows) -> Result<(), StoreError> {
        let wall_ms = self.began_wall_ms;
        if !self.missed && !self.pace.is_due(wall_ms) {
            return Ok(());
        }
        let began = flows.ctx.clock.now();
        flows.dispatching.count().await?;
        self.missed = false;
        self.pace
            .took(flows.ctx.clock.now().0.saturating_sub(began.0), wall_ms);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fairlead_fault_store::{Fault, FaultStore, On, Step};

    use super::*;
    use crate::{
        Clock, Config,
        testing::{embedded, flows, flows_over, noted},
    };

    /// The chores that are owed after a round whose first search meets a fault, and after the next round.
    async fn owed_after(fault: Fault) -> [BTreeSet<&'static str>; 2] {
        let data = tempfile::tempdir().unwrap();
        let store = Arc::new(FaultStore::new(embedded(&data), []));
        let config = Config::embedded(data.path().to_owned());
        let flows = flows_over(Arc::clone(&store) as _, config, Clock::system());
        flows.upkeep.restore().await.unwrap();
        let mut rounds = Rounds::default();
        store.then(Step {
            on: On::Search,
            fault,
            times: 1,
        });
        Box::pin(rounds.next(&flows)).await;
        assert_eq!(store.left(), []);
        let first = rounds.owed.clone();
        Box::pin(rounds.next(&flows)).await;
        [first, rounds.owed]
    }

    #[tokio::test]
    async fn a_chore_that_fails_stops_no_other_and_runs_again() {
        let [first, second] = Box::pin(owed_after(Fault::Refused)).await;
        assert_eq!(first.len(), 1, "{first:?}");
        assert!(!first.contains("queues"), "it came later: {first:?}");
        assert!(second.is_empty(), "{second:?}");
    }

    #[tokio::test]
    async fn an_outage_puts_off_what_is_due() {
        let [first, second] = Box::pin(owed_after(Fault::Unavailable)).await;
        assert!(first.contains("queues"), "{first:?}");
        assert!(!first.contains("accounts"), "not due: {first:?}");
        assert!(second.is_empty(), "{second:?}");
    }

    #[tokio::test]
    async fn an_outage_is_told_of_once_it_is_over() {
        let (_data, flows) = flows().await;
        let mut rounds = Rounds::default();
        // Short ones are nobody's business.
        for (is_cut_off, now) in [(true, 1), (false, 2_000), (false, 3_000)] {
            rounds.note_outage(&flows, is_cut_off, Millis(now));
        }
        for (is_cut_off, now) in [
            (true, 10_000),
            (true, 11_000),
            (false, 17_500),
            (false, 18_000),
        ] {
            rounds.note_outage(&flows, is_cut_off, Millis(now));
        }
        let events = noted(&flows, 1).await;
        let told: Vec<_> = events
            .iter()
            .map(|event| &event.detail["seconds"])
            .collect();
        assert_eq!(told, [7]);
    }

    #[test]
    fn each_chore_has_a_name_of_its_own_and_a_round_of_its_period() {
        let names: BTreeSet<&str> = CHORES.iter().map(|chore| chore.name).collect();
        assert_eq!(names.len(), CHORES.len());
        assert!(CHORES.iter().all(|chore| chore.at < chore.every));
    }
}
