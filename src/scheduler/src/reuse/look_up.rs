//! Looks for results that new jobs may take.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fairlead_content::{ContentError, ContentStore, Digest, Manifest, Owned, PIN_CHUNKS_MAX, Pin};
use fairlead_job::{Input, InputOf, JobId, Spec, Stage};
use fairlead_store::{JobState, NewJob, StoreError};
use futures_util::{StreamExt, stream};

use crate::reuse::ReuseFlow;
use fairlead_base::errors::{ContentFault, Refusal};
use fairlead_known::reuse::{Entry, entry_id};
use fairlead_lifecycle::reuse::{audits, is_audit, reused, runs_itself};

use super::fate::{Fate, Read};

/// Outputs that are looked at side by side.
const ABREAST: usize = 16;
/// How long outputs are kept for the jobs that take them, ms: they are stored long before.
const PIN_MS: u64 = 600_000;

/// A job that may take a result.
pub(super) struct Asking<'a> {
    pub(super) state: &'a mut JobState,
    /// Whether it is to leave outputs.
    pub(super) has_outputs: bool,
}

/// Whether a job is to leave outputs by content.
pub(crate) fn leaves_outputs(spec: &Spec) -> bool {
    spec.get("outputs")
        .is_some_and(|outputs| !outputs.is_null())
}

/// The inputs of a job whose ids are known.
pub(crate) fn inputs_of(state: &JobState, folders: &[String]) -> Vec<Input> {
    let named = state.inputs.iter().zip(folders);
    let named = named.map(|(id, folder)| Input {
        of: InputOf::Id(id.clone()),
        folder: folder.clone(),
    });
    named.collect()
}

/// Whether a job may take a result, as far as it says itself.
pub(super) fn may_take(state: &JobState) -> bool {
    let has_key = state
        .reuse
        .as_ref()
        .is_some_and(|reuse| reuse.within_s > 0 && !reuse.key.is_empty());
    has_key && state.stage == Stage::Submit && state.shards.is_none() && state.cluster.is_none()
}

/// The ids of the documents in which a result for the job may be: the account's own, and the lab's.
pub(super) fn entry_ids(state: &JobState) -> [String; 2] {
    let key = state.reuse.as_ref().map_or("", |reuse| reuse.key.as_str());
    [Some(state.account.as_str()), None].map(|account| entry_id(key, account))
}

impl ReuseFlow {
    /// Lets new jobs take results where they may. A job that waits for others is looked at when it waits no more.
    ///
    /// `outputs`: whether they are to leave outputs; `None`: as their bodies say.
    pub(crate) async fn take_results(
        self: &Arc<Self>,
        jobs: Vec<&mut NewJob>,
        outputs: Option<bool>,
    ) {
        let asking = jobs
            .into_iter()
            .filter(|job| may_take(&job.state) && job.state.waits.is_none());
        let mut asking: Vec<Asking<'_>> = asking
            .map(|job| Asking {
                has_outputs: outputs.unwrap_or_else(|| leaves_outputs(&job.body)),
                state: &mut job.state,
            })
            .collect();
        self.take_for(&mut asking).await;
    }

    /// The same for states.
    pub(super) async fn take_for(self: &Arc<Self>, asking: &mut [Asking<'_>]) {
        if asking.is_empty() {
            return;
        }
        if let Err(refusal) = self.write_results().await {
            tracing::warn!(error = %refusal, "results of jobs that ended could not be noted; they are noted later");
        }
        let states: Vec<&JobState> = asking.iter().map(|one| &*one.state).collect();
        let mut read = match self.read_results(&states).await {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "results of earlier jobs could not be read; the jobs run");
                for one in asking {
                    *one.state = runs_itself(one.state, "the store could not be read");
                }
                return;
            }
        };
        let percent = self.rules.all().audit_percent();
        for one in asking {
            let ids = entry_ids(one.state);
            match read.fate(self, one.state, &ids, one.has_outputs) {
                Fate::Takes(origin) if is_audit(one.state.job_id, percent) => {
                    *one.state = audits(one.state, origin.job_id);
                }
                Fate::Takes(origin) => {
                    self.share_outputs(one.state, &origin).await;
                    *one.state = reused(one.state, &origin, read.now_ms);
                }
                Fate::Runs(why) => *one.state = runs_itself(one.state, &why),
            }
        }
    }

    /// Reads all that the fate of these jobs depends on: one batch of documents, one of jobs.
    async fn read_results(self: &Arc<Self>, states: &[&JobState]) -> Result<Read, StoreError> {
        let ids: BTreeSet<String> = states.iter().flat_map(|state| entry_ids(state)).collect();
        let ids: Vec<String> = ids.into_iter().collect();
        let entries = self.ctx.docs.read_some::<Entry>(&ids).await?;
        let entries: BTreeMap<String, Entry> = entries
            .into_iter()
            .map(|(id, stored)| (id, stored.doc))
            .collect();
        let good = entries
            .values()
            .flat_map(|entry| &entry.results)
            .filter(|known| known.is_good);
        let origins: BTreeSet<JobId> = good.map(|known| known.job).collect();
        if origins.is_empty() {
            return Ok(Read {
                entries,
                ..Read::default()
            });
        }
        let origins: Vec<JobId> = origins.into_iter().collect();
        let jobs = self.ctx.store.get_readable(&origins).await?;
        let jobs: BTreeMap<JobId, JobState> = jobs
            .into_iter()
            .map(|job| (job.state.job_id, job.state))
            .collect();
        let outputs = jobs
            .values()
            .map(|state| state.outputs.clone())
            .filter(|id| !id.is_empty());
        let gone = self.gone_outputs(outputs.collect()).await;
        let results = entries.values().flat_map(|entry| &entry.results);
        let prints = results.filter(|known| known.is_good && !known.print.is_empty());
        let prints = prints.filter_map(|known| {
            let state = jobs.get(&known.job)?;
            Some((state.clone(), known.print.clone()))
        });
        let changed = self.changed_files(prints.collect()).await;
        Ok(Read {
            entries,
            jobs,
            changed,
            gone,
            living: self.living_hosts(),
            now_ms: self.ctx.clock.wall_ms(),
        })
    }

    /// Which of these jobs have no longer the files of this print. Of what cannot be looked at nobody knows, so it counts as
    /// changed.
    async fn changed_files(self: &Arc<Self>, prints: Vec<(JobState, String)>) -> BTreeSet<JobId> {
        let looks = stream::iter(prints).map(|(state, print)| {
            let flow = Arc::clone(self);
            async move {
                let now = flow.files.print_of_files(&state).await;
                (!now.is_ok_and(|now| now == print)).then_some(state.job_id)
            }
        });
        let looked: Vec<Option<JobId>> = looks.buffer_unordered(ABREAST).collect().await;
        looked.into_iter().flatten().collect()
    }

    /// Which of these outputs lack anything. Of what cannot be looked at nobody knows, so it counts as gone.
    async fn gone_outputs(&self, ids: BTreeSet<String>) -> BTreeSet<String> {
        // Before they are looked at: no collection removes what was found.
        if let Err(error) = self.pin_outputs(&ids).await {
            tracing::warn!(%error, "outputs of earlier jobs could not be kept, so their results are not reused");
            return ids;
        }
        let looks = stream::iter(ids).map(|id| {
            let content = self.ctx.content.clone();
            async move {
                let is_whole = is_whole(&content, &id).await.unwrap_or(false);
                (!is_whole).then_some(id)
            }
        });
        let looked: Vec<Option<String>> = looks.buffer_unordered(ABREAST).collect().await;
        looked.into_iter().flatten().collect()
    }

    /// Keeps outputs until the jobs that take them are stored.
    async fn pin_outputs(&self, ids: &BTreeSet<String>) -> Result<(), ContentError> {
        let digests: Vec<Digest> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        for some in digests.chunks(PIN_CHUNKS_MAX) {
            let pin = Pin {
                put: format!("reuse-{}", uuid::Uuid::new_v4().simple()),
                until_ms: self.ctx.clock.wall_ms().saturating_add(PIN_MS),
                digests: some.iter().copied().collect(),
            };
            self.ctx.content.pin(&pin).await?;
        }
        Ok(())
    }

    /// The account of a job that takes the result of another account may read its outputs.
    async fn share_outputs(&self, state: &JobState, origin: &JobState) {
        if state.account == origin.account || origin.outputs.is_empty() {
            return;
        }
        let Ok(id) = origin.outputs.parse::<Digest>() else {
            return;
        };
        let shared = async {
            let about = self.ctx.content.about(id).await?;
            let owned = Owned {
                put_ms: self.ctx.clock.wall_ms(),
                job_id: state.job_id.to_string(),
                bytes: about.map_or(0, |about| about.bytes),
                ..Owned::default()
            };
            self.ctx.content.own(&state.account, id, &owned).await
        };
        if let Err(error) = shared.await {
            tracing::warn!(job_id = %state.job_id, %error, "the outputs of a reused result could not be shared");
        }
    }
}

/// Whether a manifest and all of its chunks are there.
async fn is_whole(content: &ContentStore, id: &str) -> Result<bool, Refusal> {
    let id: Digest = id.parse().map_err(ContentFault::from)?;
    let Some(bytes) = content.manifest(id).await? else {
        return Ok(false);
    };
    let manifest = Manifest::decode(&bytes).map_err(ContentError::from)?;
    let chunks: Vec<Digest> = manifest.digests().into_iter().collect();
    Ok(content.missing(&chunks).await?.is_empty())
}
