//! Elasticsearch alone: the same documents and changes, in bulks that are made beforehand.

use std::time::Duration;

use anyhow::{Context, anyhow};
use futures_util::{StreamExt, TryStream, TryStreamExt, future::try_join_all, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    figure::Series,
    sample::{Run, Sample},
};
use fairlead_cluster::{
    clock::{now, until},
    http,
    launch::Process,
};

/// Required parts of an answer, as in the scheduler's requests.
const REPLY: &str = "items.*.status,items.*._seq_no,items.*._primary_term,\
    items.*.error.type,items.*.error.reason,items.*.error.caused_by";
/// Number of bulks in flight, as in the scheduler.
const IN_FLIGHT: usize = 4;
/// Number of jobs in a bulk if only the result counts.
const FILL: usize = 2_000;
/// Interval between checks of merges. The next constant is the time limit.
const MERGE_LOOK: Duration = Duration::from_millis(500);
const MERGE_TIME: Duration = Duration::from_mins(10);
/// Timeout of a request.
const ANSWER_TIME: Duration = Duration::from_mins(1);

/// An Elasticsearch, asked directly.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    client: reqwest::Client,
    base: String,
}

/// Version of a job's state: primary term and sequence number.
pub(super) type Version = (u64, u64);

impl Raw {
    pub(super) fn new(base: &str) -> anyhow::Result<Self> {
        let client = http::client(ANSWER_TIME)?;
        Ok(Self {
            client,
            base: base.to_owned(),
        })
    }

    /// Returns an answer as JSON.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let get = self.client.get(format!("{}/{path}", self.base));
        let answer = get.send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    }

    /// Returns a document of one of these indices, with the name of the index.
    pub(super) async fn document(
        &self,
        indices: &str,
        id: &str,
    ) -> anyhow::Result<(String, Value)> {
        let url = format!("{}/{indices}/_search?ignore_unavailable=true", self.base);
        let query = serde_json::json!({"query": {"ids": {"values": [id]}}});
        self.refresh(indices).await?;
        let answer = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .body(query.to_string())
            .send()
            .await?
            .error_for_status()?;
        let mut answer: Value = serde_json::from_slice(&answer.bytes().await?)?;
        let mut hit = answer["hits"]["hits"][0].take();
        let index = hit["_index"].as_str().context("the job is not stored")?;
        Ok((index.to_owned(), hit["_source"].take()))
    }

    /// Deletes everything that was created under a prefix.
    pub(super) async fn forget(&self, prefix: &str) -> anyhow::Result<()> {
        let base = &self.base;
        let list = format!("{base}/_cat/indices/{prefix}*?h=index&expand_wildcards=all");
        let names = self.client.get(list).send().await?.text().await?;
        let names: Vec<&str> = names.split_whitespace().collect();
        let indices = (!names.is_empty()).then(|| format!("{base}/{}", names.join(",")));
        let templates = format!("{base}/_index_template/{prefix}*");
        for url in indices.into_iter().chain([templates]) {
            self.client.delete(url).send().await?.error_for_status()?;
        }
        Ok(())
    }

    /// Returns the processes of Elasticsearch. Its own figures of them may be a second old.
    pub(super) async fn processes(&self) -> anyhow::Result<Vec<Process>> {
        let nodes = self
            .get("_nodes/process?filter_path=nodes.*.process.id")
            .await?;
        let nodes = nodes["nodes"].as_object().context("no nodes")?;
        let found = nodes.values().map(|node| {
            let pid = node["process"]["id"].as_i64().context("a node has no id")?;
            Process::find(i32::try_from(pid)?).context("Elasticsearch runs on another machine")
        });
        found.collect()
    }

    /// Creates an index like another one.
    pub(super) async fn copy_index(&self, from: &str, to: &str) -> anyhow::Result<()> {
        let mut like = self.get(from).await?;
        let mut settings = like[from]["settings"]["index"].take();
        let mappings = like[from]["mappings"].take();
        let own = settings
            .as_object_mut()
            .context("an index has no settings")?;
        for name in ["uuid", "creation_date", "provided_name", "version"] {
            own.remove(name);
        }
        let body = json!({"settings": {"index": settings}, "mappings": mappings});
        self.set(to, &body).await
    }

    /// Creates an index, or changes its settings.
    pub(super) async fn set(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        let put = self.client.put(format!("{}/{path}", self.base));
        let put = put.header("content-type", "application/json");
        let done = put.body(body.to_string()).send().await?;
        done.error_for_status()?;
        Ok(())
    }

    /// Makes all writes to an index visible to searches.
    pub(super) async fn refresh(&self, index: &str) -> anyhow::Result<()> {
        let refresh = self.client.post(format!("{}/{index}/_refresh", self.base));
        refresh.send().await?.error_for_status()?;
        Ok(())
    }

    /// Returns the duration of a search that must find something, ms.
    pub(super) async fn search_ms(&self, index: &str, query: &Value) -> anyhow::Result<f64> {
        let search = self.client.post(format!("{}/{index}/_search", self.base));
        let search = search.header("content-type", "application/json");
        let begin = now();
        let found = search.body(query.to_string()).send().await?;
        let found = found.error_for_status()?.bytes().await?;
        let took_ms = begin.elapsed().as_secs_f64() * 1_000.0;
        let found: Value = serde_json::from_slice(&found)?;
        let hits = found["hits"]["hits"].as_array();
        anyhow::ensure!(
            hits.is_some_and(|hits| !hits.is_empty()),
            "nothing is found"
        );
        Ok(took_ms)
    }

    pub(super) async fn bulk(&self, lines: String) -> anyhow::Result<Vec<u8>> {
        let answer = self
            .client
            .post(format!("{}/_bulk?filter_path={REPLY}", self.base))
            .header("content-type", "application/x-ndjson")
            .body(lines)
            .send()
            .await?
            .error_for_status()?;
        Ok(answer.bytes().await?.to_vec())
    }

    /// Sends bulks, `IN_FLIGHT` at a time. Returns the seconds that this took, and the answers.
    async fn send(&self, bulks: Vec<String>) -> anyhow::Result<(f64, Vec<Vec<u8>>)> {
        let begin = now();
        let answers: Vec<Vec<u8>> = stream::iter(bulks)
            .map(|lines| self.bulk(lines))
            .buffered(IN_FLIGHT)
            .try_collect()
            .await?;
        Ok((begin.elapsed().as_secs_f64(), answers))
    }

    /// Sends bulks with this number of clients, each one after the other. Returns the seconds that this took, the
    /// answers in order, and the duration of each bulk, ms.
    pub(super) async fn send_by(
        &self,
        clients: usize,
        bulks: Vec<String>,
    ) -> anyhow::Result<(f64, Vec<Vec<u8>>, Series)> {
        let bulks = Mutex::new(bulks.into_iter().enumerate());
        let take = || bulks.lock().next();
        let client = async || {
            let mut answers = Vec::new();
            while let Some((nth, lines)) = take() {
                let begin = now();
                let answer = self.bulk(lines).await?;
                answers.push((nth, begin.elapsed(), answer));
            }
            anyhow::Ok(answers)
        };
        let begin = now();
        let answers = try_join_all((0..clients).map(|_| client())).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let mut answers: Vec<_> = answers.into_iter().flatten().collect();
        answers.sort_unstable_by_key(|(nth, ..)| *nth);
        let mut took_ms = Series::default();
        for (_, took, _) in &answers {
            took_ms.push(took.as_secs_f64() * 1_000.0);
        }
        let answers = answers.into_iter().map(|(.., answer)| answer).collect();
        Ok((seconds, answers, took_ms))
    }

    /// Creates `count` jobs, `batch` in a bulk. Returns jobs a second, and the versions of their states.
    pub(super) async fn create(
        &self,
        sample: &Sample,
        run: Run,
        count: usize,
        batch: usize,
    ) -> anyhow::Result<(f64, Vec<Version>)> {
        let bulks = in_batches(count, batch, |n| sample.create(run, n));
        let (seconds, answers) = self.send(bulks).await?;
        // The first of two documents is the state.
        let states = versions(answers)?.into_iter().step_by(2);
        Ok((rate(count, seconds), states.collect()))
    }

    /// Claims jobs that were created by the same run, `batch` in a bulk. Returns claims a second.
    pub(super) async fn claim(
        &self,
        sample: &Sample,
        run: Run,
        states: &[Version],
        batch: usize,
    ) -> anyhow::Result<f64> {
        self.claim_by(states, batch, |n, at| sample.claim(run, n, at))
            .await
    }

    /// Claims jobs by these lines.
    pub(super) async fn claim_by(
        &self,
        states: &[Version],
        batch: usize,
        line: impl Fn(usize, Version) -> String,
    ) -> anyhow::Result<f64> {
        let line = |n: usize| line(n, states.get(n).copied().unwrap_or_default());
        let (seconds, answers) = self.send(in_batches(states.len(), batch, line)).await?;
        anyhow::ensure!(
            versions(answers)?.len() == states.len(),
            "claims are missing"
        );
        Ok(rate(states.len(), seconds))
    }

    /// Writes `count` jobs by their lines into new indices of these names, without a measurement. Then everything is
    /// searchable and merged.
    pub(super) async fn fill(
        &self,
        indices: &[String],
        count: usize,
        line: impl Fn(usize) -> String,
    ) -> anyhow::Result<()> {
        for index in indices {
            self.set(index, &json!({})).await?;
        }
        let indices = indices.join(",");
        // A searchable index would be refreshed each second, which would be most of the work.
        self.refresh_every(&indices, "-1").await?;
        let mut bulks = self.pour(count, FILL, &line);
        while bulks.try_next().await?.is_some() {}
        self.refresh_every(&indices, "1s").await?;
        self.refresh(&indices).await?;
        let started = format!("_cluster/health/{indices}?wait_for_status=yellow&timeout=50s");
        self.get(&started).await?;
        self.wait_merged(&indices).await
    }

    /// Writes `count` jobs by their lines, with `batch` in a bulk. Yields the number of jobs after each stored bulk.
    pub(super) fn pour<'a>(
        &'a self,
        count: usize,
        batch: usize,
        line: &'a dyn Fn(usize) -> String,
    ) -> impl TryStream<Ok = usize, Error = anyhow::Error> + Unpin + 'a {
        let bulks = (0..count).step_by(batch).map(move |from| {
            let to = count.min(from + batch);
            let lines = (from..to).map(line).collect();
            async move {
                versions(vec![self.bulk(lines).await?])?;
                anyhow::Ok(to - from)
            }
        });
        stream::iter(bulks).buffer_unordered(IN_FLIGHT)
    }

    /// Sets the refresh interval of indices.
    pub(super) async fn refresh_every(&self, indices: &str, every: &str) -> anyhow::Result<()> {
        let every = json!({"index.refresh_interval": every});
        self.set(&format!("{indices}/_settings"), &every).await
    }

    /// Waits until no merge runs in these indices, and none has started since the last check. The second condition
    /// covers merges that wait for their turn.
    pub(super) async fn wait_merged(&self, indices: &str) -> anyhow::Result<()> {
        let path = format!("{indices}/_stats/merge");
        let merges = async || {
            let stats = self.get(&path).await?;
            let merges = &stats["_all"]["total"]["merges"];
            let numbers = merges["current"].as_u64().zip(merges["total"].as_u64());
            numbers.context("no merges are told")
        };
        let mut last = None;
        let over = until(MERGE_LOOK, MERGE_TIME, async || {
            let now = match merges().await {
                Ok(now) => now,
                Err(error) => return Some(Err(error)),
            };
            let is_over = now.0 == 0 && last == Some(now);
            last = Some(now);
            is_over.then_some(Ok(()))
        });
        over.await.context("merges do not end")?
    }

    /// Creates and claims one job after the other. Returns the duration of both bulks together, ms.
    pub(super) async fn one_by_one(
        &self,
        sample: &Sample,
        run: Run,
        count: usize,
    ) -> anyhow::Result<Series> {
        let mut took = Series::default();
        for n in 0..count {
            let create = sample.create(run, n);
            let begin = now();
            let answer = self.bulk(create).await?;
            let created = begin.elapsed();
            let created_at = versions(vec![answer])?.first().copied();
            let claim = sample.claim(run, n, created_at.context("no answer")?);
            let begin = now();
            let answer = self.bulk(claim).await?;
            let claimed = begin.elapsed();
            versions(vec![answer])?;
            took.push((created + claimed).as_secs_f64() * 1_000.0);
        }
        Ok(took)
    }
}

/// Returns the processor time so far, seconds.
pub(super) fn cpu_s(processes: &[Process]) -> f64 {
    let used: Duration = processes.iter().map(Process::cpu).sum();
    used.as_secs_f64()
}

pub(super) fn rate(count: usize, seconds: f64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds
}

pub(super) fn in_batches(
    count: usize,
    batch: usize,
    line: impl Fn(usize) -> String,
) -> Vec<String> {
    (0..count)
        .step_by(batch.max(1))
        .map(|from| (from..count.min(from + batch)).map(&line).collect())
        .collect()
}

/// Returns the versions of all items. Fails if one was refused.
pub(super) fn versions(answers: Vec<Vec<u8>>) -> anyhow::Result<Vec<Version>> {
    let mut versions = Vec::new();
    for answer in answers {
        let answer: Value = serde_json::from_slice(&answer)?;
        let items = answer["items"].as_array().context("no items")?;
        for item in items {
            let item = item.as_object().and_then(|item| item.values().next());
            let item = item.context("an empty item")?;
            let version = item["_seq_no"].as_u64().zip(item["_primary_term"].as_u64());
            versions.push(version.ok_or_else(|| anyhow!("refused: {item}"))?);
        }
    }
    Ok(versions)
}
