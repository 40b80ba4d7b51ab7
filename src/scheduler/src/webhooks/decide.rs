//! Decides what a webhook tells of an end: that there is one, that the job failed, or that it passed again.
//!
//! It is decided once. The decision is written with the first try, so all tries of all replicas say the same.

use std::sync::Arc;

use fairlead_job::{CallbackEvents, Health, JobId, Stage};
use fairlead_store::{JobState, Parts, Search};

use crate::webhooks::WebhookFlow;
use fairlead_base::errors::Refusal;
use fairlead_known::webhooks::Event;

/// Most earlier jobs that are looked at, to find the last one that had ended.
const EARLIER_MAX: u32 = 100;

/// What is to be done about an end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is told as this event.
    Tell(Event),
    /// Nobody asked for an event that came; why none did.
    Skip(String),
}

/// What an end says of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    /// A person stopped it: that says nothing of the job.
    Stopped,
}

impl End {
    fn of(health: Health) -> Self {
        match health {
            Health::Success => Self::Passed,
            stopped if Health::STOPPED.contains(&stopped) => Self::Stopped,
            _ => Self::Failed,
        }
    }
}

/// The last earlier job of the account that ran the same thing.
enum Earlier {
    /// It had failed.
    Failed,
    /// It had not, or there is none; in words.
    No(String),
    /// Searches may not see all ends that came before.
    Unseen,
}

impl WebhookFlow {
    /// What is told of the end of a job to whoever asked for these events. `None`: the store does not show it to searches
    /// yet.
    pub(super) async fn decide(
        self: &Arc<Self>,
        on: CallbackEvents,
        state: &JobState,
    ) -> Result<Option<Decision>, Refusal> {
        let tell = |event| Ok(Some(Decision::Tell(event)));
        let why = match End::of(state.health) {
            End::Failed if on.failed => return tell(Event::Failed),
            End::Passed if on.passed_again => match self.ran_before(state).await? {
                Earlier::Failed => return tell(Event::PassedAgain),
                Earlier::Unseen => return Ok(None),
                Earlier::No(why) => why,
            },
            End::Stopped => "a person stopped the job".to_owned(),
            End::Passed | End::Failed => format!("the job ended with {}", state.health),
        };
        if on.ended {
            return tell(Event::Ended);
        }
        Ok(Some(Decision::Skip(why)))
    }

    /// How the last job before this one ended: of the same account, of the same fingerprint, and not stopped by a person.
    async fn ran_before(self: &Arc<Self>, state: &JobState) -> Result<Earlier, Refusal> {
        if state.fingerprint.is_empty() {
            let why = match state.reused_from {
                Some(_) => "nothing ran for the job",
                None => "of a cluster, only the first job is compared with earlier ones",
            };
            return Ok(Earlier::No(why.to_owned()));
        }
        let page = self.ctx.store.search(&ends_up_to(state)).await?;
        let mut found = page.jobs.into_iter();
        // Once this end is found, ends that were written before it are, too.
        if found.next().map(|job| job.state.job_id) != Some(state.job_id) {
            return Ok(Earlier::Unseen);
        }
        let before = found.find(|job| job.state.end_ms <= state.end_ms);
        let Some(before) = before else {
            let why = "there is no earlier job that ran the same thing".to_owned();
            return Ok(Earlier::No(why));
        };
        let id = before.state.job_id;
        if End::of(before.state.health) != End::Failed {
            return Ok(Earlier::No(format!("job {id} before it had not failed")));
        }
        // What is read may vanish, and with it the failure.
        Ok(if self.jobs.confirm(before).await?.1 {
            Earlier::Failed
        } else {
            Earlier::Unseen
        })
    }
}

/// The newest ended jobs that ran the same thing, this one first. A person stopped none of them.
fn ends_up_to(state: &JobState) -> Search {
    let stages = Stage::ALL.iter().copied();
    let healths = Health::ALL.iter().copied();
    Search {
        stages: stages.filter(|stage| stage.is_terminal()).collect(),
        healths: healths
            .filter(|health| End::of(*health) != End::Stopped)
            .collect(),
        accounts: vec![state.account.clone()],
        fingerprints: vec![state.fingerprint.clone()],
        parts: Parts::NoShards,
        after: Some(JobId::new(state.job_id.get().saturating_add(1))),
        limit: EARLIER_MAX,
        ..Search::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flows, state, store_job};

    const ALL: CallbackEvents = CallbackEvents {
        ended: false,
        failing: false,
        failed: true,
        passed_again: true,
    };

    fn ended(n: u64, health: Health, end_ms: u64) -> JobState {
        let stage = if health == Health::Cancel {
            Stage::Cancel
        } else {
            Stage::Finish
        };
        JobState {
            stage,
            health,
            end_ms,
            ready: false,
            fingerprint: "p".to_owned(),
            ..state(n)
        }
    }

    /// What is told of a job that ended at 100 ms with success, after these.
    async fn after(earlier: &[JobState]) -> Decision {
        let (_data, flows) = flows().await;
        for state in earlier {
            store_job(&flows, state.clone()).await;
        }
        let job = ended(50, Health::Success, 100);
        store_job(&flows, job.clone()).await;
        flows.webhooks.decide(ALL, &job).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_success_after_a_failure_is_told_once() {
        let failed = || ended(10, Health::Fail, 10);
        assert_eq!(after(&[failed()]).await, Decision::Tell(Event::PassedAgain));
        let passed = ended(20, Health::Success, 20);
        let Decision::Skip(why) = after(&[failed(), passed]).await else {
            panic!("it had passed before");
        };
        assert!(why.contains("had not failed"), "{why}");
        let Decision::Skip(why) = after(&[]).await else {
            panic!("it is the first");
        };
        assert!(why.contains("no earlier job"), "{why}");
    }

    #[tokio::test]
    async fn a_job_that_says_nothing_is_passed_over() {
        let failed = ended(10, Health::Oom, 10);
        let stopped = [
            ended(20, Health::Cancel, 20),
            ended(21, Health::Terminate, 21),
        ];
        let [cancelled, terminated] = stopped;
        let other = JobState {
            fingerprint: "q".to_owned(),
            ..ended(22, Health::Success, 22)
        };
        let others = JobState {
            account: "user2".to_owned(),
            ..ended(23, Health::Success, 23)
        };
        let late = ended(24, Health::Success, 101);
        let newer = ended(60, Health::Success, 90);
        let shard = JobState {
            shard: Some(fairlead_store::ShardPlace::default()),
            ..ended(25, Health::Success, 25)
        };
        let runs = JobState {
            fingerprint: "p".to_owned(),
            ..state(26)
        };
        let all = [
            failed, cancelled, terminated, other, others, late, newer, shard, runs,
        ];
        assert_eq!(after(&all).await, Decision::Tell(Event::PassedAgain));
    }

    #[tokio::test]
    async fn nothing_is_decided_before_the_store_shows_the_end() {
        let (_data, flows) = flows().await;
        store_job(&flows, ended(10, Health::Fail, 10)).await;
        let unseen = ended(50, Health::Success, 100);
        let decided = flows.webhooks.decide(ALL, &unseen).await.unwrap();
        assert_eq!(decided, None);
    }

    #[tokio::test]
    async fn an_end_is_told_as_the_most_telling_event_that_was_asked_for() {
        let (_data, flows) = flows().await;
        let of = async |on, health| {
            let job = ended(50, health, 100);
            flows.webhooks.decide(on, &job).await.unwrap().unwrap()
        };
        let both = CallbackEvents {
            failed: true,
            ..CallbackEvents::ENDED
        };
        assert_eq!(of(both, Health::Panic).await, Decision::Tell(Event::Failed));
        for health in [Health::Success, Health::Cancel, Health::Terminate] {
            assert_eq!(of(both, health).await, Decision::Tell(Event::Ended));
        }
        let only = CallbackEvents {
            ended: false,
            ..both
        };
        for health in [Health::Success, Health::Cancel, Health::Terminate] {
            let decided = of(only, health).await;
            assert!(matches!(decided, Decision::Skip(_)), "{health}");
        }
    }

    #[tokio::test]
    async fn a_job_for_which_nothing_ran_has_not_passed_again() {
        let (_data, flows) = flows().await;
        let reused = JobState {
            fingerprint: String::new(),
            reused_from: Some(JobId::new(10)),
            ..ended(50, Health::Success, 100)
        };
        let decided = flows.webhooks.decide(ALL, &reused).await.unwrap();
        assert!(matches!(decided, Some(Decision::Skip(_))), "{decided:?}");
    }
}
