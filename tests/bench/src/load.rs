//! The load: clients that submit and agents that ask, as cheap as they can be, over HTTP.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context, anyhow};
use fairlead_api::{ConsumeAnswer, ConsumeRequest, Grant, HeldJob, SubmitItem};
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{figure::Series, pace::Pace, raw::rate};
use fairlead_cluster::{
    clock::{now, until},
    http,
};

/// Number of accounts that submit.
const ACCOUNTS: usize = 300;
/// Machine that waits for jobs of its own.
const RECEIPT: &str = "receipt";
/// Memory of each agent, MB. It is never full.
const MEMORY_MB: u32 = 4_000_000;
/// CPUs of each agent, never all in use.
const CPUS: u32 = 65_536;
/// Maximum number of jobs that an agent may take at one time.
pub(super) const JOBS_MAX: usize = 256;
/// Maximum number of jobs that an agent holds, unless one answer brings more. It names them in every request.
const HELD_MAX: usize = 64;
/// Timeout of a request.
const ANSWER_TIME: Duration = Duration::from_mins(2);
/// Time that agents wait for submitted jobs, seconds.
const WAIT_S: u32 = 20;

/// Schedulers that are asked in turn.
#[derive(Debug, Clone)]
pub(super) struct Site {
    client: reqwest::Client,
    urls: Vec<String>,
}

/// Returns `count` jobs of many accounts, beginning with number `from`.
pub(super) fn jobs(from: usize, count: usize) -> Value {
    let job = |n: usize| {
        json!({
            "suite": "bench", "my_account": format!("account{}", n % ACCOUNTS), "testbox": "dc",
            "need_memory": "1m", "script": "true", "bench": n,
        })
    };
    Value::Array((from..from + count).map(job).collect())
}

/// Returns a job for the machine of [`Site::receipts`] alone.
fn urgent(n: usize) -> Value {
    json!([{
        "suite": "bench", "my_account": "receipt", "testbox": "hw", "target_machines": [RECEIPT],
        "script": "true", "bench": n,
    }])
}

impl Site {
    pub(super) fn new(urls: Vec<String>) -> anyhow::Result<Self> {
        let client = http::client(ANSWER_TIME)?;
        Ok(Self { client, urls })
    }

    fn url(&self, n: usize) -> &str {
        let at = n.checked_rem(self.urls.len()).unwrap_or(0);
        self.urls.get(at).map_or("", String::as_str)
    }

    async fn post(&self, n: usize, path: &str, body: String) -> anyhow::Result<Vec<u8>> {
        let url = format!("{}{path}", self.url(n));
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json");
        let answer = request.body(body).send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?.to_vec();
        if status.is_success() {
            return Ok(bytes);
        }
        Err(anyhow!(
            "{path}: {status}: {}",
            String::from_utf8_lossy(&bytes)
        ))
    }

    /// Returns true if the first scheduler accepts work.
    pub(super) async fn is_ready(&self) -> bool {
        let health = format!("{}/scheduler/v1/health", self.url(0));
        let answer = self.client.get(health).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Lists jobs as people do.
    pub(super) async fn list(&self, search: &str) -> anyhow::Result<()> {
        let url = format!("{}/scheduler/v1/jobs?{search}", self.url(0));
        let answer = self.client.get(url).send().await?.error_for_status()?;
        answer.bytes().await?;
        Ok(())
    }

    async fn submit_body(&self, n: usize, body: String) -> anyhow::Result<Vec<String>> {
        let answer = self.post(n, "/scheduler/v1/jobs/submit", body).await?;
        let items: Vec<SubmitItem> = serde_json::from_slice(&answer)?;
        items
            .into_iter()
            .map(|item| match item.job_id.as_str() {
                "0" => Err(anyhow!("a job was refused: {item:?}")),
                _ => Ok(item.job_id),
            })
            .collect()
    }

    /// Submits jobs. Returns their ids.
    pub(super) async fn submit(&self, jobs: &Value) -> anyhow::Result<Vec<String>> {
        self.submit_body(0, jobs.to_string()).await
    }

    /// Submits jobs to the nth scheduler. Returns their ids.
    pub(super) async fn submit_at(&self, n: usize, jobs: &Value) -> anyhow::Result<Vec<String>> {
        self.submit_body(n, jobs.to_string()).await
    }

    /// Returns the answer of the first scheduler.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.url(0));
        let answer = self.client.get(url).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    }

    /// Returns the sum of a metric over all schedulers. `name` ends with a blank.
    pub(super) async fn metric(&self, name: &str) -> anyhow::Result<u64> {
        let mut sum = 0;
        for url in &self.urls {
            let page = self.client.get(format!("{url}/metrics")).send().await?;
            let page = page.text().await?;
            let line = page.lines().find_map(|line| line.strip_prefix(name));
            sum += line
                .with_context(|| format!("no metric {name}"))?
                .trim()
                .parse::<u64>()?;
        }
        Ok(sum)
    }

    /// Ends a job successfully, at the nth scheduler.
    pub(super) async fn end(&self, n: usize, grant: &Grant) -> anyhow::Result<()> {
        let path = format!("{}&has_cases=1", end_path(grant));
        self.post(n, &path, "null".to_owned()).await?;
        Ok(())
    }

    /// Uploads the test results of a job to the nth scheduler.
    pub(super) async fn upload(
        &self,
        n: usize,
        grant: &Grant,
        results: &Value,
    ) -> anyhow::Result<()> {
        let path = format!(
            "{}/results.json?job_id={}&job_token={}&attempt={}",
            grant.result_root, grant.job_id, grant.job_token, grant.attempt
        );
        self.post(n, &path, results.to_string()).await?;
        Ok(())
    }

    /// Submits `count` jobs with `clients`, several in a request. Returns jobs a second.
    pub(super) async fn submit_many(
        &self,
        clients: usize,
        count: usize,
        each: usize,
    ) -> anyhow::Result<f64> {
        self.submit_paced(clients, count, each, None).await
    }

    /// Submits jobs at a pace: no request before its first job is due.
    pub(super) async fn submit_paced(
        &self,
        clients: usize,
        count: usize,
        each: usize,
        pace: Option<Pace>,
    ) -> anyhow::Result<f64> {
        let bodies: Vec<String> = (0..count)
            .step_by(each.max(1))
            .map(|from| jobs(from, each.min(count - from)).to_string())
            .collect();
        let next = AtomicUsize::new(0);
        let begin = now();
        let client = async || {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(body) = bodies.get(n) else {
                    return anyhow::Ok(());
                };
                if let Some(pace) = pace {
                    pace.wait(begin, n * each).await;
                }
                self.submit_body(n, body.clone()).await?;
            }
        };
        try_join_all((0..clients).map(|_| client())).await?;
        Ok(rate(count, begin.elapsed().as_secs_f64()))
    }

    /// Lets agents take `count` of the waiting jobs, at most `each` in a request, and end them. Returns the seconds in
    /// which they were handed out, and the growth of `used` in that time. The ends are not measured.
    pub(super) async fn dispatch(
        &self,
        agents: &mut [Agent],
        count: usize,
        each: usize,
        used: impl Fn() -> f64,
    ) -> anyhow::Result<(f64, f64)> {
        let (mut left, mut seconds, mut use_then) = (count, 0.0, 0.0);
        while left > 0 {
            let part = left.min(agents.len().max(1) * each.max(HELD_MAX));
            let before = used();
            seconds += self.hand_out(agents, part, each).await?;
            use_then += used() - before;
            try_join_all(agents.iter_mut().map(|agent| agent.finish_all(self))).await?;
            left -= part;
        }
        Ok((seconds, use_then))
    }

    /// Lets agents ask until `count` jobs were handed out. Returns the seconds.
    async fn hand_out(
        &self,
        agents: &mut [Agent],
        count: usize,
        each: usize,
    ) -> anyhow::Result<f64> {
        let left = Mutex::new(count);
        // Each agent takes its part before it asks, so that none waits for jobs of another.
        let take = |back: usize| {
            let mut left = left.lock();
            *left += back;
            let part = each.min(*left);
            *left -= part;
            part
        };
        let begin = now();
        let ask = async |agent: &mut Agent| {
            let mut part = take(0);
            while part > 0 {
                let got = agent.ask(self, part, WAIT_S).await?;
                anyhow::ensure!(
                    got > 0,
                    "an agent got nothing for {WAIT_S} s, although jobs wait"
                );
                part = take(part.saturating_sub(got));
            }
            anyhow::Ok(now())
        };
        let ended = try_join_all(agents.iter_mut().map(ask)).await?;
        let last = ended.into_iter().max().context("no agent")?;
        Ok(last.duration_since(begin).as_secs_f64())
    }

    /// Lets agents take `count` of the waiting jobs, `each` at a time, and end them at once. No agent asks before its
    /// first job is due.
    pub(super) async fn serve_paced(
        &self,
        agents: &mut [Agent],
        count: usize,
        each: usize,
        pace: Pace,
    ) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let begin = now();
        let serve = async |agent: &mut Agent| {
            loop {
                let from = next.fetch_add(each, Ordering::Relaxed);
                let mut left = each.min(count.saturating_sub(from));
                if left == 0 {
                    return anyhow::Ok(());
                }
                pace.wait(begin, from).await;
                while left > 0 {
                    let got = agent.ask(self, left, WAIT_S).await?;
                    anyhow::ensure!(got > 0, "an agent got nothing for {WAIT_S} s");
                    left = left.saturating_sub(got);
                    agent.finish_all(self).await?;
                }
            }
        };
        try_join_all(agents.iter_mut().map(serve)).await?;
        Ok(())
    }

    /// Submits one job after the other while an agent waits. Returns the times from submit to receipt, ms.
    pub(super) async fn receipts(&self, count: usize) -> anyhow::Result<Series> {
        let mut took = Series::default();
        let mut agent = Agent::of(RECEIPT.to_owned(), 0, "hw");
        for n in 0..count {
            let submit = async {
                self.agent_waits().await?;
                let begin = now();
                self.submit_body(0, urgent(n).to_string()).await?;
                anyhow::Ok(begin)
            };
            let receipt = async {
                agent.ask(self, 1, WAIT_S).await?;
                anyhow::Ok(now())
            };
            let (begin, received) = tokio::try_join!(submit, receipt)?;
            took.push(received.duration_since(begin).as_secs_f64() * 1_000.0);
            agent.finish_all(self).await?;
        }
        Ok(took)
    }

    /// Waits until an agent waits for a job.
    async fn agent_waits(&self) -> anyhow::Result<()> {
        let url = format!("{}/metrics", self.url(0));
        let look = async || {
            let page = self.client.get(&url).send().await.ok()?.text().await.ok()?;
            page.lines()
                .find(|line| *line == "fairlead_waiters 1")
                .map(drop)
        };
        let seen = until(Duration::from_millis(2), ANSWER_TIME, look).await;
        seen.context("no agent waits")
    }
}

/// An agent that takes jobs, and ends them on request.
#[derive(Debug)]
pub(super) struct Agent {
    host: String,
    number: usize,
    request: ConsumeRequest,
    held: Vec<Grant>,
}

impl Agent {
    /// Returns an agent that runs any job of [`jobs`].
    pub(super) fn new(number: usize) -> Self {
        Self::of(format!("bench-{number}"), number, "dc")
    }

    fn of(host: String, number: usize, kind: &str) -> Self {
        Self {
            host,
            number,
            held: Vec::new(),
            request: ConsumeRequest {
                content: Vec::new(),
                load: None,
                session: uuid::Uuid::now_v7().to_string(),
                request: 0,
                seen: None,
                kinds: vec![kind.to_owned()],
                arch: std::env::consts::ARCH.to_owned(),
                group: String::new(),
                memory_mb: MEMORY_MB,
                free_memory_mb: MEMORY_MB,
                cpus: Some(CPUS),
                free_cpus: None,
                tags: Vec::new(),
                devices: Vec::new(),
                cache_dirs: Vec::new(),
                jobs_max: 0,
                wait_s: 0,
                running: Vec::new(),
                instance: String::new(),
                isolation: String::new(),
                executors: Vec::new(),
                facts: BTreeMap::default(),
            },
        }
    }

    /// Asks for up to `most` jobs and holds them. Returns their number.
    pub(super) async fn ask(
        &mut self,
        site: &Site,
        most: usize,
        wait_s: u32,
    ) -> anyhow::Result<usize> {
        self.request.request += 1;
        self.request.jobs_max = u32::try_from(most)?;
        self.request.wait_s = wait_s;
        let path = format!("/scheduler/v1/testboxes/{}/consume", self.host);
        let body = serde_json::to_string(&self.request)?;
        let answer = site.post(self.number, &path, body).await?;
        let answer: ConsumeAnswer = serde_json::from_slice(&answer)?;
        let got = answer.jobs.len();
        self.request
            .running
            .extend(answer.jobs.iter().map(|grant| HeldJob {
                job_id: grant.job_id.clone(),
                attempt: grant.attempt,
                claim_token: grant.claim_token.clone(),
            }));
        self.held.extend(answer.jobs);
        Ok(got)
    }

    /// Removes the jobs that it holds, so that another part ends them. The agent names them in its requests until they
    /// have ended.
    pub(super) fn take_held(&mut self) -> Vec<Grant> {
        std::mem::take(&mut self.held)
    }

    /// Notes that the removed jobs have ended.
    pub(super) fn have_ended(&mut self) {
        self.request.running.clear();
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Ends all jobs that it holds successfully.
    pub(super) async fn finish_all(&mut self, site: &Site) -> anyhow::Result<()> {
        self.request.running.clear();
        for grant in std::mem::take(&mut self.held) {
            site.post(self.number, &end_path(&grant), "null".to_owned())
                .await?;
        }
        Ok(())
    }
}

/// Returns the report of a job's successful end.
fn end_path(grant: &Grant) -> String {
    format!(
        "/scheduler/v1/jobs/{}/update?job_token={}&attempt={}&job_stage=finish&job_health=success&exit_code=0&job_data_readiness=complete",
        grant.job_id, grant.job_token, grant.attempt
    )
}
