//! Submits a cluster: one job per node, all or none.

use std::{ops::Range, sync::Arc};

use fairlead_job::{JobId, ParsedJob, Spec, Stage, Submitted, cluster_nodes};
use fairlead_store::{ClusterPlace, ItemError, NewJob, StoredJob};
use serde_json::json;

use crate::submission::{
    SubmissionFlow,
    built_jobs::{Asks, BuiltJobs, Ids},
    intake::Item,
};
use fairlead_base::errors::{Refusal, StoreFault, SubmitError};
use fairlead_known::accounts::Credentials;
use fairlead_lifecycle::attempt::cancelled;

/// Refuses a job that would be several: what runs it again and again makes one job a time.
pub(crate) fn only_one_node(spec: &Spec, what: &'static str) -> Result<(), Refusal> {
    let nodes = cluster_nodes(spec)?.len();
    if nodes <= 1 {
        return Ok(());
    }
    Err(SubmitError::SeveralNodes { nodes, what }.into())
}

impl SubmissionFlow {
    /// Makes the jobs of one item of a submit.
    pub(crate) fn make_item(&self, built: &mut BuiltJobs, item: Item, said: &Credentials) {
        let mut spec = match item {
            Ok(spec) => spec,
            Err(error) => return built.refuse(1, None, &error.into()),
        };
        let (first, who) = (built.jobs.len(), self.submitter(&spec, said));
        let ruled = who
            .as_ref()
            .ok()
            .and_then(|who| self.apply_rules(&mut spec, who));
        let Submitted { name, count, jobs } = Submitted::of(spec, &self.ctx.config.site);
        let jobs = who.map_err(Refusal::from).and_then(|_| Ok(jobs?));
        match jobs.and_then(|jobs| self.make_jobs(jobs, said)) {
            Ok(jobs) => built.add(jobs),
            Err(refusal) => built.refuse(count, name.as_deref(), &refusal),
        }
        if let Some(ruled) = ruled {
            built.met(first, ruled);
        }
    }

    /// Makes the jobs of one spec; several are the nodes of a cluster.
    fn make_jobs(
        &self,
        parsed: Vec<ParsedJob>,
        said: &Credentials,
    ) -> Result<Vec<(NewJob, Asks)>, Refusal> {
        let mut made = Vec::with_capacity(parsed.len());
        let mut nodes = Vec::new();
        for mut job in parsed {
            let who = self.submitter(&job.spec, said)?;
            let mut asks = Asks {
                needs: std::mem::take(&mut job.fields.needs),
                inputs: job.fields.inputs.clone(),
                max_run: job.fields.max_run,
                joins: None,
                ruled: None,
            };
            let many = self.check_shards(&job)?;
            nodes.extend(job.node);
            if let Some(group) = job.fields.group.clone() {
                let (shard, joins) = self.build_joining(job.spec, &group, who)?;
                asks.joins = Some(Box::new(joins));
                made.push((shard, asks));
                continue;
            }
            let id = self.peers.next_ids(many);
            made.push((self.build(job.spec, job.fields, who, id)?, asks));
        }
        let jobs: Vec<JobId> = made.iter().map(|(job, _)| job.state.job_id).collect();
        for (node, (job, _)) in nodes.into_iter().zip(&mut made) {
            let place = ClusterPlace {
                jobs: jobs.clone(),
                roles: node.roles.join(" "),
                round: 1,
                wait_s: node.wait_s,
                ..ClusterPlace::default()
            };
            let is_head = place.head() == Some(job.state.job_id);
            say_cluster(Arc::make_mut(&mut job.body), &jobs);
            job.state.cluster = Some(place);
            if !is_head {
                // The cluster counts as one among those that run the same thing.
                job.state.fingerprint.clear();
            }
        }
        Ok(made)
    }

    /// How many ids a job and its shards take. Each way to run it must be one that can run.
    fn check_shards(&self, job: &ParsedJob) -> Result<u16, Refusal> {
        let Some(shards) = &job.fields.shards else {
            return Ok(1);
        };
        job.check_shards(&self.ctx.config.site)?;
        Ok(shards.id_count())
    }

    /// Says of clusters that want more whole machines than there are; if `strict`, refuses them.
    pub(crate) fn warn_of_clusters(
        &self,
        made: &mut BuiltJobs,
        warnings: &mut [Option<String>],
        strict: bool,
    ) {
        for range in &made.clusters {
            let nodes = made.jobs.get_mut(range.clone()).unwrap_or_default();
            let states = nodes.iter().flatten().map(|job| &job.state);
            let Some(few) = self.placement.too_few(states) else {
                continue;
            };
            if strict {
                nodes.fill_with(|| Err(SubmitError::NoHost(few.clone()).into()));
            }
            let warnings = warnings.get_mut(range.clone()).unwrap_or_default();
            for warning in warnings {
                warning.get_or_insert_with(|| few.clone());
            }
        }
    }

    /// Where one node's job could not be stored, all are refused, and the others do not stay. They do if their ids are
    /// written down: sent again, the submit makes those that are missing, and until then they wait for them.
    ///
    /// That nothing is in is only said when it is so of each node: else somebody would submit the others twice.
    pub(crate) async fn all_or_none(
        self: &Arc<Self>,
        outcomes: &mut [Result<StoredJob, Refusal>],
        clusters: &[Range<usize>],
        ids: Ids,
    ) {
        let unknown = |refusal: &Refusal| matches!(refusal, Refusal::Store(StoreFault::Unknown));
        for range in clusters {
            let Some(nodes) = outcomes.get_mut(range.clone()) else {
                continue;
            };
            let refusals = nodes.iter().filter_map(|node| node.as_ref().err());
            let Some(mut refusal) = refusals.min_by_key(|refusal| !unknown(refusal)).cloned()
            else {
                continue;
            };
            for node in nodes.iter_mut() {
                let outcome = std::mem::replace(node, Err(refusal.clone()));
                if let (Ok(stored), Ids::New) = (outcome, ids)
                    && !self.take_back(stored).await
                    && !unknown(&refusal)
                {
                    let reason = "a node of a cluster could not be taken back".to_owned();
                    refusal = ItemError::Unknown { reason }.into();
                }
            }
            nodes.fill_with(|| Err(refusal.clone()));
        }
    }

    /// Cancels a node's job that was stored without its peers; `false`: it stays. One that runs already waits for
    /// them, and ends when they do not come.
    async fn take_back(self: &Arc<Self>, stored: StoredJob) -> bool {
        let (id, now_ms) = (stored.state.job_id, self.ctx.clock.wall_ms());
        let reason = "another node of its cluster could not be stored";
        let taken = self
            .jobs
            .change_known(stored, |state| {
                let waits = state.stage == Stage::Submit;
                Ok(waits.then(|| cancelled(state, now_ms, reason)))
            })
            .await;
        match taken {
            Ok(changed) => changed.after.state.stage.is_terminal(),
            Err(refusal) => {
                tracing::warn!(job_id = %id, error = %refusal, "a node of a cluster could not be cancelled; it ends when its peers are missing");
                false
            }
        }
    }
}

/// What the testbox and people read of a cluster: its name and its jobs.
pub(crate) fn say_cluster(body: &mut Spec, jobs: &[JobId]) {
    body.insert("cluster_id".to_owned(), json!(jobs.first()));
    body.insert("cluster_jobs".to_owned(), json!(jobs));
}
