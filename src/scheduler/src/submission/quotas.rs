//! Enforces the limits of accounts and queues: waiting jobs, running jobs, and hours of testboxes within a day.
//!
//! The documents of queues and accounts keep the limits. The engine enforces those of running jobs. The store counts
//! waiting jobs: at each submit for a hard limit, and each second for a soft one. Jobs of the last refresh of the store
//! may not count yet, so they can exceed a hard limit.

use std::collections::BTreeMap;

use fairlead_api::Limits;
use fairlead_dispatch::{Limited, labels};
use fairlead_job::{Stage, units::counted};
use fairlead_store::{Counts, JobState, NewJob, Parts, Search, StoreError};

use crate::submission::{SubmissionFlow, queue_use::stored_of};
use fairlead_base::errors::{Refusal, SubmitError};
use fairlead_known::usage::{DAY_MS, HOUR_MS, Whose};
use fairlead_lifecycle::stages::HELD;

/// What a hard limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// Jobs that wait; of a job with shards, these.
    Waiting,
    /// Shards that have not ended.
    Shards,
}

impl SubmissionFlow {
    /// Sums up for how long testboxes had jobs of those that have a limit of hours: what ended within a day, and what
    /// runs.
    pub(crate) async fn sum_up_hours(&self) -> Result<(), StoreError> {
        let limited = |all: BTreeMap<String, Limits>| -> Vec<String> {
            let limited = all
                .into_iter()
                .filter(|(_, limits)| !limits.hours.is_none());
            limited.map(|(name, _)| name).collect()
        };
        let now_ms = self.ctx.clock.wall_ms();
        let usage = fairlead_store::Usage {
            since_ms: now_ms.saturating_sub(DAY_MS),
            accounts: limited(self.people.accounts.limits()),
            queues: {
                let queues = limited(self.people.queues.limits()).into_iter();
                queues
                    .flat_map(|name| stored_of(&name).collect::<Vec<_>>())
                    .collect()
            },
            uploads_of: Vec::new(),
        };
        // A queue's labels are its own.
        let whose: Vec<Whose> = {
            let accounts = usage.accounts.iter().cloned().map(Whose::Account);
            let queues = usage.queues.iter();
            let queues = queues.map(|stored| Whose::Queue(labels::queue_of(stored).to_owned()));
            accounts.chain(queues).collect()
        };
        if whose.is_empty() {
            self.people.usage.with(|used| used.spent_ms.clear());
            return Ok(());
        }
        let sums = self.ctx.store.usage(&usage).await?;
        let mut used_ms: BTreeMap<Whose, u64> = BTreeMap::new();
        for (whose, sum) in whose.into_iter().zip(sums) {
            let used = used_ms.entry(whose).or_default();
            *used = used.saturating_add(sum);
        }
        for id in self.jobs.live.ids() {
            let Some(live) = self.jobs.live.get(id) else {
                continue;
            };
            let state = &live.stored.state;
            // Earlier attempts of a job that runs are summed up already, if they are of this day.
            let present_ms = now_ms.saturating_sub(state.dispatch_ms).min(DAY_MS);
            let queue = labels::queue_of(&state.queue).to_owned();
            let account = state.account.clone();
            for whose in [Whose::Account(account), Whose::Queue(queue)] {
                if let Some(sum) = used_ms.get_mut(&whose) {
                    *sum = sum.saturating_add(present_ms);
                }
            }
        }
        self.people.usage.with(|used| used.spent_ms = used_ms);
        self.people.tell_policy();
        Ok(())
    }

    /// The store has counted who has how many ready jobs.
    pub(crate) fn note_waiting(&self, counts: &Counts) {
        let is_soft = |limits: &Limits| limits.waiting.soft.is_some();
        let count = |all: &[(String, u64)], name: &String| {
            let of = all
                .iter()
                .filter(|(known, _)| labels::queue_of(known) == name);
            of.map(|(_, jobs)| *jobs).sum()
        };
        let accounts = self.people.accounts.limits().into_iter();
        let accounts = accounts.filter(|(_, limits)| is_soft(limits));
        let accounts = accounts.map(|(name, _)| {
            let jobs = count(&counts.accounts, &name);
            (Whose::Account(name), jobs)
        });
        let queues = self.people.queues.limits().into_iter();
        let queues = queues.filter(|(_, limits)| is_soft(limits));
        let queues = queues.map(|(name, _)| {
            let jobs = count(&counts.queues, &name);
            (Whose::Queue(name), jobs)
        });
        let waiting = accounts.chain(queues).collect();
        self.people.usage.with(|used| used.waiting = waiting);
        self.people.tell_policy();
    }

    /// Whether there are limits that the submit of a job must keep.
    pub(crate) fn is_limited(&self, job: &NewJob) -> bool {
        job.body.contains_key("max_run") || !self.limits_for(&job.state).is_empty()
    }

    /// The limits of a job's account and queue, of those that have any.
    fn limits_for(&self, state: &JobState) -> Vec<(Whose, Limits)> {
        let both = [
            Whose::Account(state.account.clone()),
            Whose::Queue(labels::queue_of(&state.queue).to_owned()),
        ];
        let limits = both.into_iter().map(|whose| {
            let limits = self.people.limits_of(&whose);
            (whose, limits)
        });
        limits.filter(|(_, limits)| !limits.is_none()).collect()
    }

    /// Refuses of new jobs those that are too many for their account or queue, in their order.
    pub(crate) async fn enforce_quotas(
        &self,
        made: &mut [Result<NewJob, Refusal>],
    ) -> Result<(), StoreError> {
        let mut there: BTreeMap<(Whose, Counted), u64> = BTreeMap::new();
        for outcome in made {
            let Some(job) = outcome.as_ref().ok().filter(|job| !job.is_over()) else {
                continue;
            };
            let limits = self.limits_for(&job.state);
            let spent = |(whose, limits): &&(Whose, Limits)| self.people.is_spent(whose, *limits);
            if let Some((whose, limits)) = limits.iter().find(spent) {
                let most = limits.hours.hard.unwrap_or(0);
                let words = hours_words(whose, self.people.used_ms(whose), most);
                *outcome = Err(SubmitError::HoursSpent(words).into());
                continue;
            }
            let shards = match (&job.state.shards, job.state.shard) {
                (Some(sharding), _) => Some(u64::from(sharding.count)),
                (None, place) => place.map(|_| 1),
            };
            let limits: Vec<(Whose, Counted, u64)> = hard_limits(limits, shards.is_some());
            let more = shards.unwrap_or(1);
            let mut refused = None;
            for (whose, what, most) in &limits {
                let key = (whose.clone(), *what);
                if !there.contains_key(&key) {
                    there.insert(key.clone(), self.count_open(whose, *what).await?);
                }
                let present = there.get(&key).copied().unwrap_or(0);
                if present.saturating_add(more) > *most {
                    let refusal = too_many(whose, *what, present, shards, *most);
                    refused = refused.or(Some(refusal));
                }
            }
            if let Some(refusal) = refused {
                *outcome = Err(refusal.into());
                continue;
            }
            for (whose, what, _) in limits {
                *there.entry((whose, what)).or_default() += more;
            }
        }
        Ok(())
    }

    /// How many jobs or shards of an account or a queue there are, those that wait for their time or for others
    /// included. Shards that are not made yet do not count.
    async fn count_open(&self, whose: &Whose, what: Counted) -> Result<u64, StoreError> {
        let mut search = match what {
            Counted::Waiting => Search {
                stages: vec![Stage::Submit],
                parts: Parts::NoParents,
                ..Search::default()
            },
            Counted::Shards => Search {
                stages: std::iter::once(Stage::Submit).chain(HELD).collect(),
                parts: Parts::OnlyShards,
                ..Search::default()
            },
        };
        match whose {
            Whose::Account(name) => search.accounts.push(name.clone()),
            Whose::Queue(name) => search.queues.extend(stored_of(name)),
        }
        Ok(self.ctx.store.search(&search).await?.total)
    }

    /// Why jobs of an account or a queue wait or go behind others although not too many run, with the numbers.
    pub(crate) fn words_of_spent(&self, of: &Limited) -> String {
        let whose = Whose::from(of);
        let limits = self.people.limits_of(&whose);
        let hours = limits.hours.hard.or(limits.hours.soft);
        let used_ms = self.people.used_ms(&whose);
        let over = limits.hours.soft.or(limits.hours.hard);
        if over.is_some_and(|most| used_ms >= most.saturating_mul(HOUR_MS)) {
            return hours_words(&whose, used_ms, hours.unwrap_or(0));
        }
        let waiting = self.people.waiting(&whose);
        let most = limits.waiting.soft.unwrap_or(0);
        let jobs = counted(waiting, "job", "jobs");
        format!(
            "{} has {jobs} waiting; its soft limit is {most}",
            whose.words()
        )
    }

    /// The same of jobs that run.
    pub(crate) fn words_of_running(of: &Limited, held: u64, limit: u64) -> String {
        let jobs = counted(held, "job", "jobs");
        format!(
            "{} has {jobs} on testboxes; its limit is {limit}",
            Whose::from(of).words()
        )
    }
}

/// The hard limits that a job must keep.
fn hard_limits(limits: Vec<(Whose, Limits)>, has_shards: bool) -> Vec<(Whose, Counted, u64)> {
    let mut hard = Vec::new();
    for (whose, limits) in limits {
        if let Some(most) = limits.waiting.hard {
            hard.push((whose.clone(), Counted::Waiting, most));
        }
        if let Some(most) = limits.shards.hard.filter(|_| has_shards) {
            hard.push((whose, Counted::Shards, most));
        }
    }
    hard
}

fn too_many(
    whose: &Whose,
    what: Counted,
    present: u64,
    shards: Option<u64>,
    most: u64,
) -> SubmitError {
    let whose = whose.words();
    match (what, shards) {
        (Counted::Waiting, None) => SubmitError::TooManyWait {
            whose,
            present,
            most,
        },
        (_, shards) => SubmitError::TooManyShards {
            whose,
            more: shards.unwrap_or(1),
            present,
            most,
        },
    }
}

fn hours_words(whose: &Whose, used_ms: u64, most: u64) -> String {
    let tenths = used_ms.saturating_mul(10) / HOUR_MS;
    format!(
        "{} had {}.{} testbox hours within 24 hours; its limit is {most}",
        whose.words(),
        tenths / 10,
        tenths % 10
    )
}

#[cfg(test)]
mod tests {
    use fairlead_api::{AccountChange, Bounds, LimitsChange};
    use fairlead_job::{JobId, Spec};
    use fairlead_store::{DocKind, DocWrite, Expect};
    use serde_json::json;

    use super::*;
    use crate::testing::{flows, flows_beside, state, store_job};
    use fairlead_known::limits::{LIMIT_MAX, changed};

    fn hard(most: u64) -> Bounds {
        Bounds {
            soft: None,
            hard: Some(most),
        }
    }

    fn new_jobs(accounts: &[&str]) -> Vec<Result<NewJob, Refusal>> {
        let job = |(n, account): (u64, &&str)| NewJob {
            state: JobState {
                account: (*account).to_owned(),
                job_id: JobId::new(100 + n),
                ..state(1)
            },
            body: Spec::new().into(),
        };
        (0..).zip(accounts).map(job).map(Ok).collect()
    }

    fn refused(made: &[Result<NewJob, Refusal>]) -> Vec<Option<String>> {
        let each = made.iter();
        each.map(|made| Some(made.as_ref().err()?.to_string()))
            .collect()
    }

    #[tokio::test]
    async fn more_jobs_than_may_wait_are_refused_with_the_numbers() {
        let (_data, flows) = flows().await;
        let limits = LimitsChange {
            waiting: Some(hard(2)),
            ..LimitsChange::default()
        };
        let change = AccountChange {
            limits: limits.clone(),
            ..AccountChange::default()
        };
        flows.people.set_account("ann", &change).await.unwrap();
        for (n, account) in [(1, "ann"), (2, "bob")] {
            let account = account.to_owned();
            store_job(
                &flows,
                JobState {
                    account,
                    ..state(n)
                },
            )
            .await;
        }
        // Another replica reads them.
        let other = flows_beside(&flows);
        other.people.accounts.reload(&other.ctx.docs).await.unwrap();
        let mut made = new_jobs(&["bob", "ann", "ann", "bob"]);
        other.submission.enforce_quotas(&mut made).await.unwrap();
        let said = refused(&made);
        assert_eq!((&said[0], &said[1], &said[3]), (&None, &None, &None));
        assert_eq!(
            said[2].as_deref(),
            Some("account 'ann' has 2 jobs waiting; its limit is 2")
        );
        // All of them are in one queue.
        let limits = json!({"limits": limits, "paused": true});
        let write = DocWrite {
            id: "user1".to_owned(),
            expect: Expect::Absent,
            body: Some(limits),
        };
        let written = flows.ctx.store.put_docs(DocKind::Queue, vec![write]);
        written.await.remove(0).unwrap();
        flows.people.queues.reload(&flows.ctx.docs).await.unwrap();
        let mut made = new_jobs(&["bob"]);
        flows.submission.enforce_quotas(&mut made).await.unwrap();
        assert_eq!(
            refused(&made)[0].as_deref(),
            Some("queue 'user1' has 2 jobs waiting; its limit is 2")
        );
    }

    #[test]
    fn limits_change_one_by_one_and_make_sense() {
        let limits = Limits {
            waiting: Bounds {
                soft: Some(5),
                hard: None,
            },
            ..Limits::default()
        };
        let change = |change: LimitsChange| changed(limits, &change);
        let more = change(LimitsChange {
            running: Some(hard(3)),
            ..LimitsChange::default()
        });
        let more = more.unwrap();
        assert_eq!((more.waiting.soft, more.running.hard), (Some(5), Some(3)));
        let none = change(LimitsChange {
            waiting: Some(Bounds::default()),
            ..LimitsChange::default()
        });
        assert_eq!(none, Ok(Limits::default()));
        for (soft, hard, word) in [(9, 3, "soft limit 9"), (1, LIMIT_MAX + 1, "is over")] {
            let (soft, hard) = (Some(soft), Some(hard));
            let refusal = change(LimitsChange {
                running: Some(Bounds { soft, hard }),
                ..LimitsChange::default()
            });
            let message = refusal.unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[tokio::test]
    async fn hours_of_testboxes_are_summed_up_over_restarts() {
        let (_data, flows) = flows().await;
        let hours = Some(Bounds {
            soft: Some(1),
            hard: Some(3),
        });
        let change = AccountChange {
            limits: LimitsChange {
                hours,
                ..LimitsChange::default()
            },
            ..AccountChange::default()
        };
        flows.people.set_account("user1", &change).await.unwrap();
        let now_ms = flows.ctx.clock.wall_ms();
        let over = |n, ago_ms: u64, used_ms| JobState {
            stage: Stage::Finish,
            used_at_ms: now_ms - ago_ms,
            used_ms,
            ..state(n)
        };
        store_job(&flows, over(1, HOUR_MS, HOUR_MS)).await;
        store_job(&flows, over(2, 2 * DAY_MS, 50 * HOUR_MS)).await;
        let other = flows_beside(&flows);
        other.people.accounts.reload(&other.ctx.docs).await.unwrap();
        let allowance = || other.people.policy().account_limits["user1"];
        assert!(!allowance().behind);
        other.submission.sum_up_hours().await.unwrap();
        assert!(allowance().behind && !allowance().spent);
        // One that runs.
        let runs = JobState {
            stage: Stage::Running,
            host: "h".to_owned(),
            dispatch_ms: now_ms - 2 * HOUR_MS,
            ..state(3)
        };
        let runs = store_job(&flows, runs).await;
        other.jobs.live.put(runs, other.jobs.sight());
        other.submission.sum_up_hours().await.unwrap();
        assert!(allowance().spent);
        let mut made = new_jobs(&["user1", "bob"]);
        other.submission.enforce_quotas(&mut made).await.unwrap();
        let said = refused(&made);
        let words = "account 'user1' had 3.0 testbox hours within 24 hours; its limit is 3";
        assert_eq!((said[0].as_deref(), &said[1]), (Some(words), &None));
        let of = Limited::Account("user1".to_owned());
        assert_eq!(other.submission.words_of_spent(&of), words);
    }

    #[tokio::test]
    async fn who_has_more_waiting_than_the_soft_limit_goes_behind() {
        let (_data, flows) = flows().await;
        let change = AccountChange {
            limits: LimitsChange {
                waiting: Some(Bounds {
                    soft: Some(1),
                    hard: None,
                }),
                ..LimitsChange::default()
            },
            ..AccountChange::default()
        };
        flows.people.set_account("user1", &change).await.unwrap();
        let is_behind = || flows.people.policy().account_limits["user1"].behind;
        for n in 1..=2 {
            store_job(&flows, state(n)).await;
            flows
                .submission
                .note_waiting(&flows.ctx.store.counts().await.unwrap());
            assert_eq!(is_behind(), n == 2);
        }
        let of = Limited::Account("user1".to_owned());
        assert!(
            flows
                .submission
                .words_of_spent(&of)
                .contains("2 jobs waiting")
        );
    }
}
