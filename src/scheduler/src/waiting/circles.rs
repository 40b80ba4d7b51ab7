//! Circles of jobs that wait for each other.
//!
//! A job can wait only for jobs that were there before it. A member of a sequence has its turn only when it waits for
//! nothing else. So each circle goes through an open group: a job waits for the group, which waits for its jobs. One of
//! these joined it later, and waits for the first job. A submit refuses to join such a group. Two submits at one moment
//! may miss each other. Then the youngest job of the circle ends.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Stage, WaitOn};
use fairlead_store::{JobState, ShardPlace, StoredJob};

use crate::waiting::WaitingFlow;
use fairlead_base::errors::Refusal;
use fairlead_lifecycle::wait_on::{aborted, waits_for, words_of_circle};

/// Most jobs that are read for one circle. A longer one is not seen.
const JOBS_MAX: usize = 1_000;

impl WaitingFlow {
    /// The other jobs of a circle through this one: each waits for the next one, and the last one for this one. Empty: there
    /// is none.
    pub(crate) async fn circle_of(&self, start: &JobState) -> Result<Vec<StoredJob>, Refusal> {
        // Of each job that was found, which one waits for it.
        let mut found: BTreeMap<JobId, (StoredJob, JobId)> = BTreeMap::new();
        let mut next = self.waited_for(start).await?;
        let mut led: BTreeMap<JobId, JobId> = BTreeMap::new();
        led.extend(next.iter().map(|id| (*id, start.job_id)));
        while !next.is_empty() && led.len() <= JOBS_MAX {
            let read = self.ctx.store.get(&next).await?;
            next.clear();
            for job in read.into_iter().flatten() {
                let id = job.state.job_id;
                let from = led.get(&id).copied().unwrap_or(start.job_id);
                if job.state.stage != Stage::Submit {
                    continue;
                }
                found.insert(id, (job, from));
                let closes = start.shard.is_some_and(|place| place.of == id);
                let further = match found.get(&id) {
                    Some((job, _)) if !closes => self.waited_for(&job.state).await?,
                    _ => Vec::new(),
                };
                if closes || further.contains(&start.job_id) {
                    return Ok(way_to(id, start.job_id, &mut found));
                }
                for on in further {
                    led.entry(on).or_insert_with(|| {
                        next.push(on);
                        id
                    });
                }
            }
        }
        Ok(Vec::new())
    }

    /// The jobs that one waits for: those that it names, and of a group those of its jobs that wait for others.
    async fn waited_for(&self, state: &JobState) -> Result<Vec<JobId>, Refusal> {
        let mut ids = waits_for(state).map_or_else(Vec::new, WaitOn::jobs);
        if state.shards.as_ref().is_some_and(|it| it.is_group()) {
            let (_, members) = self.jobs.read_shards(state.job_id, 0).await?;
            let waits = |job: &StoredJob| waits_for(&job.state).is_some();
            let members = members.into_iter().flatten().filter(waits);
            ids.extend(members.map(|job| job.state.job_id));
        }
        Ok(ids)
    }

    /// In words, the circle of which a job is part. Without an answer of the store: nothing.
    pub(crate) async fn circle_words(&self, state: &JobState) -> Option<String> {
        let others = Box::pin(self.circle_of(state)).await.ok()?;
        let ids = others.iter().map(|job| job.state.job_id);
        (!others.is_empty()).then(|| words_of_circle(&format!("job {}", state.job_id), ids))
    }

    /// Ends the youngest job of the circle that goes through a job of a group. True: there is one.
    pub(super) async fn end_circle(self: &Arc<Self>, member: &StoredJob) -> Result<bool, Refusal> {
        let is_member = member.state.shard.is_some_and(ShardPlace::has_own_body);
        if !is_member {
            return Ok(false);
        }
        let others = Box::pin(self.circle_of(&member.state)).await?;
        if others.is_empty() || !self.jobs.are_proven(others.clone()).await? {
            return Ok(false);
        }
        let ids = others.iter().map(|job| job.state.job_id);
        let reason = words_of_circle(&format!("job {}", member.state.job_id), ids);
        let all = others.iter().chain([member]);
        let waiting = all.filter(|job| waits_for(&job.state).is_some());
        let age = |job: &&StoredJob| (job.state.submit_ms, job.state.job_id);
        let Some(youngest) = waiting.max_by_key(age) else {
            return Ok(false);
        };
        let now_ms = self.ctx.clock.wall_ms();
        let id = youngest.state.job_id;
        tracing::warn!(job_id = %id, reason, "a job ends because it waits in a circle");
        let end = |state: &JobState| {
            let waits = state.stage == Stage::Submit && waits_for(state).is_some();
            Ok(waits.then(|| aborted(state, now_ms, &reason)))
        };
        self.jobs.change_known(youngest.clone(), end).await?;
        Ok(true)
    }
}

/// The jobs from the first one that `start` waits for to `last`.
fn way_to(
    last: JobId,
    start: JobId,
    found: &mut BTreeMap<JobId, (StoredJob, JobId)>,
) -> Vec<StoredJob> {
    let (mut way, mut at) = (Vec::new(), last);
    while at != start
        && let Some((job, from)) = found.remove(&at)
    {
        way.push(job);
        at = from;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use fairlead_job::{Health, Spec};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        flows::Flows,
        submission::submit::SubmitOptions,
        testing::{flows, store_job, waits},
    };
    use fairlead_known::accounts::Credentials;

    /// Submits one job; its id, or why it is refused.
    async fn submit(flows: &Arc<Flows>, more: &Value) -> Result<JobId, String> {
        let mut spec = Spec::from_iter([
            ("suite".to_owned(), json!("sleep")),
            ("testbox".to_owned(), json!("dc")),
            ("my_account".to_owned(), json!("user1")),
        ]);
        spec.extend(more.as_object().cloned().unwrap());
        let said = Credentials::default();
        let submitted = flows
            .submission
            .submit(vec![Ok(spec)], &said, SubmitOptions::default());
        let item = submitted.await.unwrap().items.remove(0);
        if item.code.is_empty() {
            Ok(item.job_id.parse().unwrap())
        } else {
            Err(format!("{} {} {}", item.code, item.message, item.hint))
        }
    }

    /// A job that waits for the group `g`, and the group.
    async fn waits_for_group(flows: &Arc<Flows>) -> (JobId, JobId) {
        submit(flows, &json!({"group": "g"})).await.unwrap();
        let group = flows
            .submission
            .find_group("user1", "g")
            .await
            .unwrap()
            .unwrap();
        let on_group = json!({"wait_on": {group.to_string(): null}});
        (submit(flows, &on_group).await.unwrap(), group)
    }

    async fn state_of(flows: &Flows, id: JobId) -> JobState {
        flows.jobs.stored_job(id).await.unwrap().state
    }

    #[tokio::test]
    async fn a_job_joins_no_group_that_waits_for_it() {
        let (_data, flows) = flows().await;
        let (first, group) = waits_for_group(&flows).await;
        let on_first = json!({"wait_on": {first.to_string(): null}});
        let between = submit(&flows, &on_first).await.unwrap();
        for on in [first, between] {
            let joins = json!({"group": "g", "wait_on": {on.to_string(): null}});
            let refused = submit(&flows, &joins).await.unwrap_err();
            for word in ["bad_field", "circle", &on.to_string(), &group.to_string()] {
                assert!(refused.contains(word), "{word}: {refused}");
            }
        }
        // Through another group, too.
        submit(
            &flows,
            &json!({"group": "h", "wait_on": {first.to_string(): null}}),
        )
        .await
        .unwrap();
        let other = flows
            .submission
            .find_group("user1", "h")
            .await
            .unwrap()
            .unwrap();
        let joins = json!({"group": "g", "wait_on": {other.to_string(): null}});
        let refused = submit(&flows, &joins).await.unwrap_err();
        assert!(refused.contains("circle"), "{refused}");
        let joins = json!({"group": "other", "wait_on": {first.to_string(): null}});
        assert!(submit(&flows, &joins).await.is_ok());
    }

    /// Two submits at one moment do not see each other.
    #[tokio::test]
    async fn the_youngest_of_a_circle_ends_and_says_so() {
        let (_data, flows) = flows().await;
        let (first, group) = waits_for_group(&flows).await;
        let joined = state_of(&flows, group.behind(1)).await;
        let on_first = json!({"wait_on": {first.to_string(): null}});
        let late = JobState {
            job_id: group.behind(2),
            ready: false,
            waits: Some(waits(&on_first)),
            submit_ms: flows.ctx.clock.wall_ms() + 1,
            ..joined
        };
        let late = store_job(&flows, late).await.state.job_id;
        for id in [first, late, group] {
            let words = flows
                .waiting
                .circle_words(&state_of(&flows, id).await)
                .await;
            let words = words.unwrap_or_default();
            for other in [first, late, group] {
                assert!(words.contains(&other.to_string()), "{words}");
            }
        }
        flows.waiting.look_at_dependant(late).await.unwrap();
        let over = state_of(&flows, late).await;
        assert_eq!(
            (over.stage, over.health),
            (Stage::AbortWait, Health::AbortWait)
        );
        assert!(over.reason.contains("circle"), "{}", over.reason);
        let waits_on = state_of(&flows, first).await;
        assert_eq!(waits_on.stage, Stage::Submit);
        assert_eq!(flows.waiting.circle_of(&waits_on).await.unwrap(), []);
    }
}
