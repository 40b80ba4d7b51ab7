//! Open groups: jobs that are submitted one by one and have one result.
//!
//! The first job of a group opens it: its parent is stored like that of a sharded job, with a block of ids behind it. A
//! job that joins takes a number by `create` of the id behind the parent. Then it reads the parent in real time: whoever
//! closes the group counts its shards after that, so a job that still finds the group open is counted. A document for the
//! group and one for each named shard hold the ids, so that a repeated submit finds them at any replica.

use std::sync::Arc;

use fairlead_job::{Fault, FieldError, JobId, SHARDS_MAX};
use fairlead_store::{
    DocKind, DocWrite, Expect, ItemError, JobState, NewJob, ShardPlace, StoredJob, Version,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::submission::{
    SubmissionFlow,
    built_jobs::{BuiltJobs, Ids, Joining, rename},
    records::Record,
};
use fairlead_base::{
    errors::{Refusal, StoreFault, SubmitError},
    storage::group_commit::only,
};
use fairlead_known::accounts::Who;
use fairlead_lifecycle::{
    parent::{closed, counted},
    shards::{joined, taken_out},
    wait_on::words_of_circle,
};

/// Jobs of one submit that join groups side by side.
const ABREAST: usize = 32;
/// How often a job tries to take a number before it gives up.
const TRIES_MAX: usize = 64;
/// What stands for the print of a record: the jobs of a group are not compared.
const NO_PRINT: &str = "";

/// The id of the document that names a group's parent, or one of its shards.
fn doc_id(account: &str, group: &str, shard: Option<&str>) -> String {
    let text = match shard {
        None => json!([account, "group", group]),
        Some(shard) => json!([account, "group", group, shard]),
    };
    blake3::hash(text.to_string().as_bytes())
        .to_hex()
        .to_string()
}

impl SubmissionFlow {
    /// Lets jobs of one submit join their groups. `key`: the idempotency key of the submit, which names shards that have
    /// no name. Answers each outcome with the place of its job.
    pub(super) async fn join_groups(
        self: &Arc<Self>,
        joining: Vec<(usize, NewJob, Joining)>,
        key: Option<&str>,
    ) -> Vec<(usize, Result<StoredJob, Refusal>)> {
        let mut outcomes = Vec::with_capacity(joining.len());
        let named = joining.into_iter().map(|(n, job, mut joining)| {
            let of_key = key.map(|key| format!("{key}\n{n}"));
            joining.shard = joining.shard.or(of_key);
            (n, job, joining)
        });
        let mut rest: Vec<_> = named.collect();
        // The first one of each group opens it.
        while let Some((n, job, joins)) = rest.pop() {
            let is_same = |other: &Joining| {
                let account = |joining: &Joining| joining.parent.state.account.clone();
                other.group == joins.group && account(other) == account(&joins)
            };
            let (same, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|(_, _, other)| is_same(other));
            rest = others;
            outcomes.push((n, Box::pin(self.join_group(job, &joins)).await));
            let same = stream::iter(same).map(|(n, job, joins)| async move {
                (n, Box::pin(self.join_group(job, &joins)).await)
            });
            outcomes.extend(same.buffer_unordered(ABREAST).collect::<Vec<_>>().await);
        }
        outcomes
    }

    /// Refuses jobs that would join a group which waits for them.
    pub(super) async fn check_circles(&self, built: &mut BuiltJobs) -> Result<(), Refusal> {
        for (outcome, asks) in built.asking() {
            let (Ok(job), Some(joining)) = (&*outcome, &asks.joins) else {
                continue;
            };
            if job.state.waits.is_none() {
                continue;
            }
            let account = &joining.parent.state.account;
            let Some(of) = self.find_group(account, &joining.group).await? else {
                continue;
            };
            let place = job.state.shard.unwrap_or_default();
            let member = JobState {
                shard: Some(ShardPlace { of, ..place }),
                ..job.state.clone()
            };
            let others = Box::pin(self.waiting.circle_of(&member)).await?;
            if !others.is_empty() {
                let ids = others.iter().map(|job| job.state.job_id);
                *outcome = Err(circle(&joining.group, words_of_circle("this job", ids)).into());
            }
        }
        Ok(())
    }

    async fn join_group(
        self: &Arc<Self>,
        mut job: NewJob,
        joining: &Joining,
    ) -> Result<StoredJob, Refusal> {
        let parent = self.open_group(joining).await?;
        let id = parent.state.job_id;
        self.jobs.note_shards(&parent.state);
        let account = &parent.state.account;
        let doc = joining.shard.as_deref();
        let doc = doc.map(|shard| doc_id(account, &joining.group, Some(shard)));
        // It tells this shard from others that try to take the same number.
        let mark = doc
            .clone()
            .unwrap_or_else(|| format!("group {}", job.state.job_id));
        job.state.fingerprint = mark;
        for _ in 0..TRIES_MAX {
            let written = match &doc {
                Some(doc) => self.written_down(doc).await?,
                None => None,
            };
            let mark = &job.state.fingerprint;
            let known = self.own_number(written.as_ref(), id, mark).await?;
            if known.is_none() && !is_open(&parent) {
                return Err(closed_group(joining, id).into());
            }
            let n = match known {
                Some(n) => n,
                None => self.next_number(id, joining).await?,
            };
            if let Some(doc) = &doc {
                // What was only read may vanish, so it is written once more.
                let is_ours = self.write_shard(doc, id, n, written.as_ref()).await?;
                if !is_ours {
                    if known.is_none() {
                        self.jobs.parents.give_number_back(id, n);
                    }
                    continue;
                }
            }
            job.state = joined(&job.state, id, n);
            rename(&mut job, id.behind(n));
            let built = BuiltJobs::from(vec![Ok(job.clone())]);
            let outcome = self.create(built, Ids::OfGroup).await.pop();
            match outcome.unwrap_or(Err(Refusal::Stopping)) {
                Ok(stored) => return self.check_joined(stored, joining).await,
                // Another job has this number.
                Err(Refusal::Store(StoreFault::Conflict)) => {}
                Err(refusal) => {
                    self.jobs.parents.give_number_back(id, n);
                    return Err(refusal);
                }
            }
        }
        let reason = "too many jobs join the group at once".to_owned();
        Err(ItemError::Unknown { reason }.into())
    }

    /// The parent of a group, opened now if nobody opened it before.
    async fn open_group(self: &Arc<Self>, joining: &Joining) -> Result<StoredJob, Refusal> {
        let (account, group) = (&joining.parent.state.account, &joining.group);
        let mut id = self.find_group(account, group).await?;
        if id.is_none() {
            let new = self.peers.next_ids(SHARDS_MAX.saturating_add(1));
            let doc = doc_id(account, group, None);
            let before = self.write_down(&doc, &self.record(new)).await?;
            id = before.map_or(Some(new), |record| record.first());
        }
        let id = id.ok_or(Refusal::Bug)?;
        if let Some(parent) = self.ctx.store.get(&[id]).await?.pop().flatten() {
            return Ok(parent);
        }
        let mut parent = joining.parent.clone();
        rename(&mut parent, id);
        let built = BuiltJobs::from(vec![Ok(parent)]);
        let mut opened = self.create(built, Ids::WrittenDown).await;
        opened.pop().unwrap_or(Err(Refusal::Stopping))
    }

    fn record(&self, id: JobId) -> Record {
        Record {
            ids: vec![Some(id)],
            print: NO_PRINT.to_owned(),
            at_ms: self.ctx.clock.wall_ms(),
        }
    }

    /// A number of the group that no job has, as far as is known here.
    async fn next_number(&self, id: JobId, joining: &Joining) -> Result<u16, Refusal> {
        let mut n = self.jobs.parents.take_number(id);
        if n.is_none() {
            let (parent, shards) = self.jobs.read_shards(id, 0).await?;
            self.jobs.note_shards(&parent.state);
            let last = u16::try_from(shards.len()).unwrap_or(u16::MAX);
            self.jobs.parents.numbers_taken(id, last);
            n = self
                .jobs
                .parents
                .take_number(id)
                .or(Some(last.saturating_add(1)));
        }
        let full = || SubmitError::GroupFull {
            group: joining.group.clone(),
            most: SHARDS_MAX,
        };
        Ok(n.filter(|n| *n <= SHARDS_MAX).ok_or_else(full)?)
    }

    /// Writes down the number of a named shard. False: somebody else wrote another one.
    async fn write_shard(
        &self,
        doc: &str,
        parent: JobId,
        n: u16,
        before: Option<&(Version, Record)>,
    ) -> Result<bool, Refusal> {
        let own = self.record(parent.behind(n));
        let Some((version, _)) = before else {
            return Ok(self.write_down(doc, &own).await?.is_none());
        };
        let write = DocWrite {
            id: doc.to_owned(),
            expect: Expect::Version(*version),
            body: Some(json!(own)),
        };
        match only(self.ctx.store.put_docs(DocKind::Submit, vec![write]).await) {
            Ok(_) => Ok(true),
            Err(ItemError::Conflict { .. } | ItemError::Missing) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The number that the record of a shard names; `None`: none, or that of a job with another mark. To write such a
    /// number down once more would undo the new one that another repeat writes now.
    async fn own_number(
        &self,
        written: Option<&(Version, Record)>,
        parent: JobId,
        mark: &str,
    ) -> Result<Option<u16>, Refusal> {
        let Some(n) = written.and_then(|(_, record)| number(record, parent)) else {
            return Ok(None);
        };
        let stored = self
            .ctx
            .store
            .get(&[parent.behind(n)])
            .await?
            .pop()
            .flatten();
        let is_own = stored.is_none_or(|job| job.state.fingerprint == mark);
        Ok(is_own.then_some(n))
    }

    /// A job that was created counts only if the group was open after that, or has it among its shards.
    async fn check_joined(
        self: &Arc<Self>,
        stored: StoredJob,
        joining: &Joining,
    ) -> Result<StoredJob, Refusal> {
        let Some(place) = stored.state.shard else {
            return Ok(stored);
        };
        if is_open(&self.jobs.stored_job(place.of).await?) {
            return Ok(stored);
        }
        for _ in 0..TRIES_MAX {
            let (parent, shards) = self.jobs.read_shards(place.of, 0).await?;
            let sharding = parent.state.shards.as_deref().cloned().unwrap_or_default();
            if place.n <= sharding.count {
                return Ok(stored);
            }
            let stops = parent.state.stop_asked || parent.state.stage.is_terminal();
            if sharding.count > 0 || stops {
                break;
            }
            // Somebody closes it at this moment.
            let count = u16::try_from(shards.len()).unwrap_or(SHARDS_MAX);
            self.jobs
                .change_known(parent, |state| {
                    let is_counted = state.shards.as_ref().is_none_or(|it| !it.is_uncounted());
                    Ok((!is_counted && !state.stage.is_terminal()).then(|| counted(state, count)))
                })
                .await?;
        }
        let refusal = closed_group(joining, place.of);
        let (now_ms, reason) = (self.ctx.clock.wall_ms(), refusal.to_string());
        self.jobs
            .change(stored.state.job_id, |state| {
                Ok(taken_out(state, now_ms, &reason))
            })
            .await?;
        Err(refusal.into())
    }

    /// The parent of a group of an account; `None`: there is none of this name.
    pub(crate) async fn find_group(
        &self,
        account: &str,
        group: &str,
    ) -> Result<Option<JobId>, Refusal> {
        let known = self.written_down(&doc_id(account, group, None)).await?;
        Ok(known.and_then(|(_, record)| record.first()))
    }

    /// Lets no job join a group any more.
    pub(crate) async fn close_group(self: &Arc<Self>, who: &Who, id: JobId) -> Result<(), Refusal> {
        self.end_joining(id).await?;
        self.ctx
            .audit(&who.name, "group.close", &id.to_string(), Value::Null);
        Ok(())
    }

    /// The same, without a word about who asked for it.
    pub(crate) async fn end_joining(self: &Arc<Self>, id: JobId) -> Result<(), Refusal> {
        let now_ms = self.ctx.clock.wall_ms();
        self.jobs
            .change(id, |state| {
                let is_open = state.shards.as_ref().is_some_and(|it| it.is_open());
                let is_over = state.stage.is_terminal();
                Ok((is_open && !is_over).then(|| closed(state, now_ms)))
            })
            .await?;
        Ok(())
    }
}

fn circle(group: &str, words: String) -> FieldError {
    FieldError {
        field: "wait_on".to_owned(),
        problem: words,
        hint: format!("do not wait for what waits for group '{group}', or join another group"),
        fault: Fault::Value,
    }
}

fn is_open(parent: &StoredJob) -> bool {
    let sharding = parent.state.shards.as_ref();
    sharding.is_some_and(|it| it.is_open())
        && !parent.state.stop_asked
        && !parent.state.stage.is_terminal()
}

fn closed_group(joining: &Joining, parent: JobId) -> SubmitError {
    SubmitError::GroupClosed {
        group: joining.group.clone(),
        parent,
    }
}

/// The number that a record names in the group of this parent.
fn number(record: &Record, parent: JobId) -> Option<u16> {
    let id = record.first()?;
    let behind = id.get().checked_sub(parent.get())?;
    u16::try_from(behind)
        .ok()
        .filter(|n| (1..=SHARDS_MAX).contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        flows::Flows,
        submission::submit::SubmitOptions,
        testing::{flows, flows_beside},
    };
    use fairlead_known::accounts::Credentials;

    async fn join(flows: &Arc<Flows>, shard: &str) -> (String, String) {
        let spec = json!({
            "suite": "sleep", "testbox": "dc", "my_account": "user1",
            "group": {"id": "g", "shard": shard},
        });
        let spec = spec.as_object().cloned().unwrap();
        let said = Credentials::default();
        let submitted = flows
            .submission
            .submit(vec![Ok(spec)], &said, SubmitOptions::default());
        let item = submitted.await.unwrap().items.remove(0);
        (item.job_id, item.code)
    }

    /// Replicas once fought over such a shard: each wrote the taken number down again before the other wrote a new one.
    #[tokio::test]
    async fn a_shard_whose_number_another_job_has_gets_one_at_many_replicas_at_once() {
        for together in 2..32 {
            let (_data, a) = flows().await;
            let b = flows_beside(&a);
            join(&a, "first").await;
            let parent = a
                .submission
                .find_group("user1", "g")
                .await
                .unwrap()
                .unwrap();
            let taken = a.submission.record(parent.behind(1));
            let doc = doc_id("user1", "g", Some("second"));
            assert_eq!(a.submission.write_down(&doc, &taken).await.unwrap(), None);
            let joins = (0..together).map(|n| join(if n % 2 == 0 { &a } else { &b }, "second"));
            let mut joined = futures_util::future::join_all(joins).await;
            assert!(
                joined.iter().all(|(_, code)| code.is_empty()),
                "{together}: {joined:?}"
            );
            joined.dedup();
            assert_eq!(joined.len(), 1, "{joined:?}");
            assert_ne!(joined[0].0, parent.behind(1).to_string());
        }
    }
}
