//! One job as the scheduler under test stores it, for the measurement of Elasticsearch alone.

use std::cell::Cell;

use anyhow::anyhow;
use serde_json::{Map, Value, json};

use super::{
    load,
    raw::{Raw, Version},
};

/// The two documents of a waiting job, and the changes of the first by a claim and by an end.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) job_id: String,
    pub(super) jobs_index: String,
    /// State while it waits.
    pub(super) state: String,
    /// State after its end.
    pub(super) finished: Map<String, Value>,
    pub(super) body: String,
    claim: String,
    end: String,
    /// Number of runs of Elasticsearch alone so far.
    runs: Cell<u64>,
}

/// A run of Elasticsearch alone. The jobs of each run have their own ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run(u64);

impl Run {
    /// Returns a number of 19 digits, like the scheduler's ids and greater than those.
    pub(super) fn id(self, n: usize) -> String {
        format!("8{:09}{n:09}", self.0)
    }
}

impl Sample {
    /// Submits a job and has it claimed, and reads its documents before and after.
    pub(super) async fn take(
        scheduler: &load::Site,
        raw: &Raw,
        prefix: &str,
    ) -> anyhow::Result<Self> {
        let ids = scheduler.submit(&load::jobs(0, 1)).await?;
        let job_id = ids.into_iter().next().ok_or_else(|| anyhow!("no id"))?;
        let (jobs_index, before) = raw.document(&format!("{prefix}-jobs-*"), &job_id).await?;
        let (_, body) = raw.document(&jobs_index, &body_id(&job_id)).await?;
        let mut agent = load::Agent::new(0);
        let got = agent.ask(scheduler, 1, 20).await?;
        anyhow::ensure!(got == 1, "the sample job was not dispatched");
        let (_, after) = raw.document(&format!("{prefix}-jobs-*"), &job_id).await?;
        agent.finish_all(scheduler).await?;
        let (_, finished) = raw.document(&format!("{prefix}-jobs-*"), &job_id).await?;
        let (before, after, finished) = (fields(before)?, fields(after)?, fields(finished)?);
        Ok(Self {
            job_id,
            jobs_index,
            claim: update(&before, &after)?,
            end: update(&after, &finished)?,
            state: Value::Object(before).to_string(),
            finished,
            body: body.to_string(),
            runs: Cell::default(),
        })
    }

    pub(super) fn next_run(&self) -> Run {
        self.runs.set(self.runs.get() + 1);
        Run(self.runs.get())
    }

    /// Returns the lines that create job `n` of a run: two documents.
    pub(super) fn create(&self, run: Run, n: usize) -> String {
        let id = run.id(n);
        format!(
            "{}\n{}\n{}\n{}\n",
            create_line(&self.jobs_index, &id),
            self.state.replace(&self.job_id, &id),
            create_body_line(&self.jobs_index, &id),
            self.body
        )
    }

    /// Returns the lines that claim job `n`, whose state has this version.
    pub(super) fn claim(&self, run: Run, n: usize, at: Version) -> String {
        self.claim_in(&self.jobs_index, run, n, at)
    }

    /// Returns the lines that claim job `n` in another index.
    pub(super) fn claim_in(&self, index: &str, run: Run, n: usize, at: Version) -> String {
        update_lines(index, &run.id(n), at, &self.claim)
    }

    /// Returns the lines that end job `n`, whose state has this version.
    pub(super) fn end(&self, run: Run, n: usize, at: Version) -> String {
        update_lines(&self.jobs_index, &run.id(n), at, &self.end)
    }
}

pub(super) fn create_line(index: &str, id: &str) -> String {
    format!(r#"{{"create":{{"_index":"{index}","_id":"{id}"}}}}"#)
}

/// Returns the id of the body of a job beside its state.
fn body_id(id: &str) -> String {
    format!("{id}-body")
}

/// Returns the line that creates the body of a job beside its state.
pub(super) fn create_body_line(index: &str, id: &str) -> String {
    let body_id = body_id(id);
    format!(r#"{{"create":{{"_index":"{index}","_id":"{body_id}","routing":"{id}"}}}}"#)
}

fn update_lines(index: &str, id: &str, (seq_no, primary_term): Version, change: &str) -> String {
    format!(
        "{{\"update\":{{\"_index\":\"{index}\",\"_id\":\"{id}\",\"if_seq_no\":{seq_no},\"if_primary_term\":{primary_term}}}}}\n{change}\n"
    )
}

/// Returns the update from one state to another.
fn update(before: &Map<String, Value>, after: &Map<String, Value>) -> anyhow::Result<String> {
    let changed: Map<String, Value> = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    anyhow::ensure!(!changed.is_empty(), "a write changed nothing");
    Ok(json!({"doc": changed, "detect_noop": false}).to_string())
}

fn fields(document: Value) -> anyhow::Result<Map<String, Value>> {
    match document {
        Value::Object(fields) => Ok(fields),
        _ => Err(anyhow!("a document is no object")),
    }
}

#[cfg(test)]
impl Sample {
    /// Returns a sample of these two documents.
    pub(super) fn of_documents(state: &str, body: &str) -> Self {
        let waiting: Value = serde_json::from_str(state).unwrap();
        let mut finished = fields(waiting.clone()).unwrap();
        finished.insert("stage".to_owned(), Value::from("finish"));
        let before = fields(waiting).unwrap();
        let update = update(&before, &finished).unwrap();
        Self {
            job_id: before["job_id"].as_str().unwrap().to_owned(),
            jobs_index: "jobs".to_owned(),
            state: state.to_owned(),
            finished,
            body: body.to_owned(),
            claim: update.clone(),
            end: update,
            runs: Cell::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_has_only_the_fields_that_changed() {
        let sample = Sample::of_documents(r#"{"job_id":"77","stage":"submit"}"#, "{}");
        let run = sample.next_run();
        let lines = sample.end(run, 5, (8, 1));
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let at = json!({"_index": "jobs", "_id": run.id(5), "if_seq_no": 8, "if_primary_term": 1});
        let change = json!({"doc": {"stage": "finish"}, "detect_noop": false});
        assert_eq!(lines, [json!({"update": at}), change]);
        assert!(update(&sample.finished, &sample.finished).is_err());
    }
}
