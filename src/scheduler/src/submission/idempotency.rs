//! Idempotent submits: a repeat with the same idempotency key, at any replica, creates nothing and returns the first
//! ids.
//!
//! A small document named by account and key holds the ids, and is written before any job. A repeat that finds it uses
//! its ids. So the jobs of one key have one set of ids, and each job is made once by `create`. The repeat also
//! completes whatever the first sender left undone.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_job::{JobId, Waits, check_idempotency_key, idempotency_key};
use fairlead_store::{DocKind, JobState, NewJob, StoreError, StoredJob};
use serde_json::json;

use crate::submission::{
    SubmissionFlow,
    built_jobs::{BuiltJobs, Ids, rename},
    cluster_nodes::say_cluster,
    intake::Item,
    records::Record,
};
use fairlead_base::errors::{Refusal, SubmitError};

/// The field of a job, and the parameter of a submit.
pub(crate) const KEY: &str = fairlead_job::IDEMPOTENCY_KEY;
/// What differs between one submit and its repetition without meaning anything.
const VOLATILE: [&str; 2] = ["submit_id", "my_token"];

/// A submit with a key.
#[derive(Debug, Clone)]
pub(crate) struct Keyed {
    key: String,
    print: String,
}

impl Keyed {
    /// Reads the key: of the request, else the one that all its jobs name. `None`: there is none.
    pub(crate) fn of(said: Option<&str>, items: &[Item]) -> Result<Option<Self>, Refusal> {
        let mut key = said.map(str::to_owned);
        if key.is_none() {
            let of_job = |item: &Item| item.as_ref().map_or(Ok(None), idempotency_key);
            let keys = items.iter().map(of_job);
            let mut keys: Vec<Option<String>> = keys.collect::<Result<_, _>>()?;
            keys.dedup();
            if keys.len() > 1 {
                return Err(SubmitError::SeveralKeys.into());
            }
            key = keys.pop().flatten();
        }
        let Some(key) = key else {
            return Ok(None);
        };
        check_idempotency_key(&key)?;
        let mut hasher = blake3::Hasher::new();
        for item in items {
            if let Ok(spec) = item {
                let mut spec = spec.clone();
                spec.retain(|name, _| !VOLATILE.contains(&name.as_str()));
                hasher.update(json!(spec).to_string().as_bytes());
            }
            hasher.update(b"\n");
        }
        let print = hasher.finalize().to_hex().to_string();
        Ok(Some(Self { key, print }))
    }

    /// The document's id: whoever submits has keys of its own.
    fn id(&self, account: &str) -> String {
        let text = json!([account, self.key]).to_string();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

impl SubmissionFlow {
    /// Creates jobs, once for their key if they have one: then they get the ids of the first submit.
    pub(crate) async fn create_once(
        self: &Arc<Self>,
        mut built: BuiltJobs,
        keyed: Option<&Keyed>,
    ) -> Vec<Result<StoredJob, Refusal>> {
        let joining = built.take_joining();
        let mut outcomes = self.create_keyed(built, keyed).await;
        let key = keyed.map(|keyed| keyed.key.as_str());
        for (n, outcome) in self.join_groups(joining, key).await {
            if let Some(place) = outcomes.get_mut(n) {
                *place = outcome;
            }
        }
        outcomes
    }

    async fn create_keyed(
        self: &Arc<Self>,
        mut built: BuiltJobs,
        keyed: Option<&Keyed>,
    ) -> Vec<Result<StoredJob, Refusal>> {
        let Some(keyed) = keyed else {
            return self.create(built, Ids::New).await;
        };
        if let Err(refusal) = self.take_ids(&mut built.jobs, keyed).await {
            built.refuse_all(&refusal);
        }
        self.create(built, Ids::WrittenDown).await
    }

    /// Whether jobs were submitted under this key before.
    pub(crate) async fn is_repeated(
        &self,
        made: &[Result<NewJob, Refusal>],
        keyed: Option<&Keyed>,
    ) -> Result<bool, StoreError> {
        let (Some(keyed), Some(first)) = (keyed, made.iter().flatten().next()) else {
            return Ok(false);
        };
        let id = keyed.id(submitter(&first.state));
        Ok(self
            .ctx
            .store
            .get_doc(DocKind::Submit, &id)
            .await?
            .is_some())
    }

    /// Writes down which ids the jobs of this key have, or takes those that somebody wrote down before.
    async fn take_ids(
        &self,
        made: &mut [Result<NewJob, Refusal>],
        keyed: &Keyed,
    ) -> Result<(), Refusal> {
        let Some(first) = made.iter().flatten().next() else {
            return Ok(());
        };
        let id = keyed.id(submitter(&first.state));
        let own = Record {
            ids: made
                .iter()
                .map(|job| Some(job.as_ref().ok()?.state.job_id))
                .collect(),
            print: keyed.print.clone(),
            at_ms: self.ctx.clock.wall_ms(),
        };
        match self.write_down(&id, &own).await? {
            None => Ok(()),
            Some(record) => Ok(take_over(made, &record, &own)?),
        }
    }
}

/// Who submitted a job: whose keys count.
fn submitter(state: &JobState) -> &str {
    if state.principal.is_empty() {
        &state.account
    } else {
        &state.principal
    }
}

/// The jobs get the ids of the first submit.
fn take_over(
    made: &mut [Result<NewJob, Refusal>],
    record: &Record,
    own: &Record,
) -> Result<(), SubmitError> {
    if record.print != own.print || record.ids.len() != made.len() {
        return Err(SubmitError::KeyUsed);
    }
    let mut renamed: BTreeMap<JobId, JobId> = BTreeMap::new();
    for (made, id) in made.iter_mut().zip(&record.ids) {
        let Ok(job) = made else {
            continue;
        };
        match id {
            Some(id) => {
                renamed.insert(job.state.job_id, *id);
                rename(job, *id);
            }
            None => {
                *made = Err(SubmitError::RefusedBefore.into());
            }
        }
    }
    for job in made.iter_mut().flatten() {
        name_others(job, &renamed);
    }
    Ok(())
}

/// What a job says of others of its submit, with the ids that those have now.
fn name_others(job: &mut NewJob, renamed: &BTreeMap<JobId, JobId>) {
    if let Some(place) = &mut job.state.cluster {
        for peer in &mut place.jobs {
            *peer = renamed.get(peer).copied().unwrap_or(*peer);
        }
        say_cluster(Arc::make_mut(&mut job.body), &place.jobs);
    }
    for input in &mut job.state.inputs {
        let from = input.strip_prefix(JobState::INPUT_FROM);
        let from = from.and_then(|from| from.parse::<JobId>().ok());
        if let Some(now) = from.and_then(|from| renamed.get(&from)) {
            *input = format!("{}{now}", JobState::INPUT_FROM);
        }
    }
    if let Some(Waits::Jobs(on)) = &mut job.state.waits {
        for condition in &mut on.conditions {
            let now = renamed.get(&condition.job).copied();
            condition.job = now.unwrap_or(condition.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_api::ErrorCode;
    use fairlead_job::Spec;
    use fairlead_store::{ClusterPlace, DocKind, DocWrite, Expect};
    use serde_json::Value;

    use super::*;
    use crate::{
        flows::Flows,
        testing::{flows, flows_beside, state, waits},
    };

    fn spec(fields: &Value) -> Spec {
        fields.as_object().cloned().unwrap_or_default()
    }

    fn job(n: u64) -> NewJob {
        NewJob {
            state: state(n),
            body: Spec::from_iter([("suite".to_owned(), json!("sleep"))]).into(),
        }
    }

    /// They named the ids of the repeated submit, under which there is nothing.
    #[test]
    fn what_jobs_say_of_each_other_has_the_first_submit_s_ids() {
        let mut made: Vec<Result<NewJob, Refusal>> = [11, 12].map(|n| Ok(job(n))).into();
        let own = [11, 12].map(JobId::new);
        for made in made.iter_mut().flatten() {
            made.state.waits = Some(waits(
                &json!({"wait_on": {own[0].to_string(): null, "99": null}}),
            ));
            made.state.cluster = Some(ClusterPlace {
                jobs: own.to_vec(),
                ..ClusterPlace::default()
            });
        }
        let record = |ids: [u64; 2]| Record {
            ids: ids.map(|id| Some(JobId::new(id))).into(),
            print: String::new(),
            at_ms: 0,
        };
        take_over(&mut made, &record([1, 2]), &record([11, 12])).unwrap();
        let first = [1, 2].map(JobId::new);
        for (made, id) in made.into_iter().zip(first) {
            let NewJob { state, body } = made.unwrap();
            assert_eq!(state.job_id, id);
            assert_eq!(state.cluster.unwrap().jobs, first);
            assert_eq!(body["cluster_jobs"], json!(first));
            let other = JobId::new(99).to_string();
            let on = json!({first[0].to_string(): null, other: null});
            assert_eq!(json!(state.waits)["wait_on"], on);
        }
    }

    fn keyed(what: &str) -> Keyed {
        let items = [Ok(spec(&json!({"suite": what})))];
        Keyed::of(Some("k"), &items).unwrap().unwrap()
    }

    async fn submitted(flows: &Arc<Flows>, n: u64, keyed: &Keyed) -> Result<JobId, Refusal> {
        let built = BuiltJobs::from(vec![Ok(job(n))]);
        let outcome = flows
            .submission
            .create_once(built, Some(keyed))
            .await
            .remove(0);
        outcome.map(|stored| stored.state.job_id)
    }

    #[tokio::test]
    async fn a_repeated_submit_has_the_first_one_s_ids_at_any_replica() {
        let (_data, a) = flows().await;
        let b = flows_beside(&a);
        assert_eq!(submitted(&a, 5, &keyed("x")).await, Ok(JobId::new(5)));
        assert_eq!(submitted(&b, 6, &keyed("x")).await, Ok(JobId::new(5)));
        let found = a.ctx.store.get(&[JobId::new(6)]).await.unwrap();
        assert_eq!(found, [None], "nothing was made twice");
        let other = submitted(&b, 7, &keyed("y")).await.unwrap_err();
        assert_eq!(other.body().code, ErrorCode::Conflict);
    }

    #[tokio::test]
    async fn what_the_first_left_undone_the_second_does() {
        let (_data, flows) = flows().await;
        let mut made = vec![Ok(job(5))];
        flows
            .submission
            .take_ids(&mut made, &keyed("x"))
            .await
            .unwrap();
        assert_eq!(submitted(&flows, 6, &keyed("x")).await, Ok(JobId::new(5)));
        let found = flows.ctx.store.get(&[JobId::new(5)]).await.unwrap();
        assert!(found[0].is_some());
    }

    #[tokio::test]
    async fn keys_are_forgotten_after_a_day_and_not_before() {
        let (_data, flows) = flows().await;
        submitted(&flows, 5, &keyed("x")).await.unwrap();
        flows.submission.sweep_submits().await.unwrap();
        assert_eq!(
            flows
                .ctx
                .store
                .list_docs(DocKind::Submit)
                .await
                .unwrap()
                .len(),
            1
        );
        let old = Record {
            ids: Vec::new(),
            print: String::new(),
            at_ms: 1,
        };
        let write = DocWrite {
            id: "old".to_owned(),
            expect: Expect::Any,
            body: Some(json!(old)),
        };
        flows.ctx.store.put_docs(DocKind::Submit, vec![write]).await;
        flows.submission.sweep_submits().await.unwrap();
        assert_eq!(
            flows
                .ctx
                .store
                .list_docs(DocKind::Submit)
                .await
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn a_key_is_said_once_and_the_submit_s_name_is_no_part_of_it() {
        let with = |more: Value| {
            let items = [Ok(spec(&more)), Ok(spec(&more))];
            Keyed::of(None, &items).map(|keyed| keyed.map(|keyed| (keyed.key, keyed.print)))
        };
        let one = with(json!({KEY: "k", "submit_id": "1"})).unwrap();
        assert_eq!(one, with(json!({KEY: "k", "submit_id": "2"})).unwrap());
        assert_ne!(one, with(json!({KEY: "k", "nr": "2"})).unwrap());
        assert_eq!(with(json!({"suite": "x"})).unwrap(), None);
        assert!(with(json!({KEY: ""})).is_err() && with(json!({KEY: "k".repeat(300)})).is_err());
        let mixed = [Ok(spec(&json!({KEY: "k"}))), Ok(Spec::new())];
        assert!(Keyed::of(None, &mixed).is_err());
    }
}
