//! One job as the scheduler under test stores it, for the measurement of Elasticsearch alone.

use std::cell::Cell;

use anyhow::{Context, anyhow};
use serde_json::{Map, Value, json};

use super::{
    load,
    raw::{Raw, Version},
};

/// The two documents of a waiting job, and what a claim changes of the first.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) job_id: String,
    pub(super) jobs_index: String,
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
    pub(super) fn id(self, n: usize) -> String {
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
        self.create_two(&run.id(n), &self.body)
    }

    /// The same with a body that is filled up.
    pub(super) fn create_filled(&self, run: Run, n: usize, filling: &str) -> String {
        self.create_two(
            &run.id(n),
            &with_field(&self.body, "body", &filled(filling)),
        )
    }

    fn create_two(&self, id: &str, body: &str) -> String {
        format!(
            "{}\n{}\n{}\n{}\n",
            create_line(&self.jobs_index, id),
            self.state.replace(&self.job_id, id),
            create_line(&self.bodies_index, id),
            body.replace(&self.job_id, id)
        )
    }

    /// The lines that create it as one document, with a body that is filled up.
    pub(super) fn create_whole(&self, run: Run, n: usize, index: &str, filling: &str) -> String {
        let id = run.id(n);
        let whole = with_field(&self.state, "body", &filled(filling));
        let whole = whole.replace(&self.job_id, &id);
        format!("{}\n{whole}\n", create_line(index, &id))
    }

    /// The lines that claim job `n`, whose state has this version.
    pub(super) fn claim(&self, run: Run, n: usize, at: Version) -> String {
        self.claim_in(&self.jobs_index, run, n, at)
    }

    /// The same in another index.
    pub(super) fn claim_in(&self, index: &str, run: Run, n: usize, at: Version) -> String {
        let (seq_no, primary_term) = at;
        format!(
            "{{\"update\":{{\"_index\":\"{index}\",\"_id\":\"{}\",\"if_seq_no\":{seq_no},\"if_primary_term\":{primary_term}}}}}\n{}\n",
            run.id(n),
            self.claim
        )
    }
}

fn create_line(index: &str, id: &str) -> String {
    format!(r#"{{"create":{{"_index":"{index}","_id":"{id}"}}}}"#)
}

fn filled(filling: &str) -> Value {
    json!({"filling": filling})
}

/// A document's text with one field set.
fn with_field(document: &str, name: &str, value: &Value) -> String {
    let mut document: Value = serde_json::from_str(document).unwrap_or_default();
    document[name] = value.clone();
    document.to_string()
}

fn fields(document: &Value) -> anyhow::Result<&Map<String, Value>> {
    document.as_object().context("a document is no object")
}
