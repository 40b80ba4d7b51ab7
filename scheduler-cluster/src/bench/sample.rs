//! One job as the scheduler under test stores it: what Elasticsearch is measured alone with.

use std::cell::Cell;

use anyhow::{Context, anyhow};
use serde_json::{Map, Value, json};

use super::{load, raw::Raw};

/// The two documents of a waiting job, and what a claim changes of the first.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) job_id: String,
    jobs_index: String,
    bodies_index: String,
    state: String,
    /// Its state when it had ended.
    pub(super) finished: Map<String, Value>,
    pub(super) body: String,
    claim: String,
    /// Runs of Elasticsearch alone so far.
    runs: Cell<u64>,
}

/// Which jobs of Elasticsearch alone: those of each run have ids of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run(u64);

impl Run {
    /// A number of 19 digits, as the scheduler's ids are, and greater than those.
    fn id(self, n: usize) -> String {
        format!("8{:09}{n:09}", self.0)
    }
}

impl Sample {
    /// Has a job submitted and claimed, and looks at its documents before and after.
    pub(super) async fn take(
        scheduler: &load::Site,
        raw: &Raw,
        prefix: &str,
    ) -> anyhow::Result<Self> {
        let ids = scheduler.submit(&load::jobs(0, 1)).await?;
        let job_id = ids.into_iter().next().ok_or_else(|| anyhow!("no id"))?;
        let (jobs_index, before) = raw.document(&format!("{prefix}-jobs-*"), &job_id).await?;
        let (bodies_index, body) = raw.document(&format!("{prefix}-bodies-*"), &job_id).await?;
        let mut agent = load::Agent::new(0);
        let got = agent.ask(scheduler, 1, 20).await?;
        anyhow::ensure!(got == 1, "the sample job was not dispatched");
        let (_, after) = raw.document(&format!("{prefix}-jobs-*"), &job_id).await?;
        agent.finish_all(scheduler).await?;
        let (_, finished) = raw.document(&format!("{prefix}-jobs-*"), &job_id).await?;
        let (before, after) = (fields(&before)?, fields(&after)?);
        let changed: Map<String, Value> = after
            .iter()
            .filter(|(name, value)| before.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        anyhow::ensure!(!changed.is_empty(), "a claim changed nothing");
        Ok(Self {
            job_id,
            jobs_index,
            bodies_index,
            state: Value::Object(before.clone()).to_string(),
            finished: fields(&finished)?.clone(),
            body: body.to_string(),
            claim: json!({"doc": changed, "detect_noop": false}).to_string(),
            runs: Cell::default(),
        })
    }

    pub(super) fn next_run(&self) -> Run {
        self.runs.set(self.runs.get() + 1);
        Run(self.runs.get())
    }

    /// The lines that create job `n` of a run: two documents.
    pub(super) fn create(&self, run: Run, n: usize) -> String {
        let id = run.id(n);
        let line = |index: &str| format!(r#"{{"create":{{"_index":"{index}","_id":"{id}"}}}}"#);
        format!(
            "{}\n{}\n{}\n{}\n",
            line(&self.jobs_index),
            self.state.replace(&self.job_id, &id),
            line(&self.bodies_index),
            self.body.replace(&self.job_id, &id)
        )
    }

    /// The lines that claim job `n`, whose state has this version.
    pub(super) fn claim(&self, run: Run, n: usize, seq_no: u64, primary_term: u64) -> String {
        format!(
            "{{\"update\":{{\"_index\":\"{}\",\"_id\":\"{}\",\"if_seq_no\":{seq_no},\"if_primary_term\":{primary_term}}}}}\n{}\n",
            self.jobs_index,
            run.id(n),
            self.claim
        )
    }
}

fn fields(document: &Value) -> anyhow::Result<&Map<String, Value>> {
    document.as_object().context("a document is no object")
}
