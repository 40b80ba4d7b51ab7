//! A testbox that the test plays over HTTP: it asks, reports and renews exactly when told.

use std::collections::BTreeMap;

use fairlead_api::{ConsumeAnswer, ConsumeRequest, Grant, HeartbeatRequest, HeldJob, HostLoad};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{Http, Reply, clock};

/// Time within which an expected job arrives, s: the longest request.
const COMES_WITHIN_S: u32 = 60;

/// A testbox controlled by the test. It holds its granted jobs until it reports the end or drops them.
#[derive(Debug, Clone)]
pub struct Testbox {
    http: Http,
    /// Name of the host.
    pub host: String,
    /// The next request as it will be sent. Number, `free_memory_mb` and `running` are kept up to date.
    pub offer: ConsumeRequest,
    held: Vec<Grant>,
}

impl Testbox {
    /// Returns a vm/dc host with this memory, MB.
    pub fn dc(http: &Http, host: &str, memory_mb: u32) -> Self {
        Self::new(http, host, &["vm", "dc"], memory_mb)
    }

    /// Returns a machine for hw jobs, with 16 GB.
    pub fn hw(http: &Http, host: &str) -> Self {
        Self::new(http, host, &["hw"], 16 << 10)
    }

    fn new(http: &Http, host: &str, kinds: &[&str], memory_mb: u32) -> Self {
        Self {
            http: http.clone(),
            host: host.to_owned(),
            held: Vec::new(),
            offer: ConsumeRequest {
                session: clock::unique(),
                request: 0,
                seen: None,
                kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
                arch: std::env::consts::ARCH.to_owned(),
                group: String::new(),
                memory_mb,
                free_memory_mb: memory_mb,
                cpus: None,
                free_cpus: None,
                tags: Vec::new(),
                devices: Vec::new(),
                cache_dirs: Vec::new(),
                jobs_max: 256,
                wait_s: 0,
                running: Vec::new(),
                instance: String::new(),
                isolation: String::new(),
                executors: Vec::new(),
                facts: BTreeMap::default(),
                content: Vec::new(),
                load: None,
            },
        }
    }

    /// Starts a new session, as after a reboot, and forgets its jobs.
    pub fn reboot(&mut self) {
        self.offer.session = clock::unique();
        self.offer.request = 0;
        self.held.clear();
    }

    /// Reports a load from now on: the used memory, percent, and that it is loaded.
    pub fn is_loaded(&mut self, used_percent: u32) {
        let total_mb = self.offer.memory_mb;
        self.offer.load = Some(HostLoad {
            memory_total_mb: total_mb,
            memory_available_mb: total_mb * 100_u32.saturating_sub(used_percent) / 100,
            unpromised_memory_mb: total_mb,
            loaded: true,
            ..HostLoad::default()
        });
    }

    /// Asks and reports at another replica from now on.
    pub fn turn_to(&mut self, http: &Http) {
        self.http = http.clone();
    }

    /// Returns the jobs that it holds.
    pub fn held(&self) -> &[Grant] {
        &self.held
    }

    /// Asks for work for up to `wait_s` seconds, and holds the jobs that it got.
    pub async fn ask(&mut self, wait_s: u32) -> Vec<Grant> {
        self.next_request(wait_s);
        let answer = self.ask_again().await;
        self.held.extend(answer.jobs.iter().cloned());
        answer.jobs
    }

    /// Asks for work that must arrive, with the time limit for a busy machine, and holds it.
    pub async fn take_all(&mut self) -> Vec<Grant> {
        self.ask(COMES_WITHIN_S).await
    }

    /// Asks for one job that must arrive, and holds it.
    ///
    /// # Panics
    /// Panics if none arrives.
    pub async fn take(&mut self) -> Grant {
        let came = self.take_all().await.into_iter().next();
        came.unwrap_or_else(|| panic!("no job came to {} in {COMES_WITHIN_S} s", self.host))
    }

    /// Prepares the next request without sending it.
    pub fn next_request(&mut self, wait_s: u32) {
        self.offer.request += 1;
        self.offer.wait_s = wait_s;
        let used: u32 = self.held.iter().map(|grant| grant.memory_mb).sum();
        self.offer.free_memory_mb = self.offer.memory_mb.saturating_sub(used);
        let used: u32 = self.held.iter().map(|grant| grant.cpus).sum();
        self.offer.free_cpus = self.offer.cpus.map(|cpus| cpus.saturating_sub(used));
        self.offer.running = self.running();
    }

    /// Sends the prepared request, as after a broken connection. It does not hold the granted jobs.
    pub async fn ask_again(&self) -> ConsumeAnswer {
        let reply = self.send().await;
        serde_json::from_value(reply.json())
            .unwrap_or_else(|error| panic!("{error} in {}", reply.text))
    }

    /// Sends the prepared request, and returns any answer.
    pub async fn send(&self) -> Reply {
        let path = format!("/scheduler/v1/testboxes/{}/consume", self.host);
        self.http.post(&path, &json!(self.offer)).await
    }

    /// Renews its leases, and returns the ids of jobs that it must stop.
    pub async fn heartbeat(&self) -> Vec<String> {
        let reply = self.try_heartbeat().await;
        let answer = reply
            .unwrap_or_else(|error| panic!("no answer: {error}"))
            .json();
        let stops = answer["stop"].as_array().cloned().unwrap_or_default();
        let ids = stops.iter().filter_map(|stop| stop["job_id"].as_str());
        ids.map(str::to_owned).collect()
    }

    /// Renews its leases. Returns any answer, or the reason why there is none.
    pub async fn try_heartbeat(&self) -> Result<Reply, String> {
        let request = HeartbeatRequest {
            session: self.offer.session.clone(),
            running: self.running(),
            free_memory_mb: self.offer.free_memory_mb,
            free_cpus: self.offer.free_cpus,
            load: self.offer.load,
        };
        let path = format!("/scheduler/v1/testboxes/{}/heartbeat", self.host);
        let body = json!(request).to_string().into_bytes();
        self.http
            .try_send(Method::POST, &path, "application/json", body)
            .await
    }

    fn running(&self) -> Vec<HeldJob> {
        let held = |grant: &Grant| HeldJob {
            job_id: grant.job_id.clone(),
            attempt: grant.attempt,
            claim_token: grant.claim_token.clone(),
        };
        self.held.iter().map(held).collect()
    }

    /// Reports about a job with its token and attempt, and with `more` parameters.
    pub async fn report(&self, grant: &Grant, more: &str) -> Reply {
        let path = format!(
            "/scheduler/v1/jobs/{}/update?job_token={}&attempt={}&{more}",
            grant.job_id, grant.job_token, grant.attempt
        );
        self.http.post(&path, &Value::Null).await
    }

    /// Reports that a job runs, then that it ended successfully, and no longer holds it.
    ///
    /// # Panics
    /// Panics if a report is refused.
    pub async fn finish(&mut self, grant: &Grant) {
        let reply = self.report(grant, "job_stage=running").await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
        self.finish_running(grant).await;
    }

    /// Reports that a running job ended successfully, and no longer holds it.
    ///
    /// # Panics
    /// Panics if the report is refused.
    pub async fn finish_running(&mut self, grant: &Grant) {
        let end = "job_stage=finish&job_health=success&exit_code=0&job_data_readiness=complete";
        let reply = self.report(grant, end).await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
        self.drop_job(&grant.job_id);
    }

    /// Forgets a job without a report.
    pub fn drop_job(&mut self, job_id: &str) {
        self.held.retain(|grant| grant.job_id != job_id);
    }

    /// Runs one job after the other, and returns their ids in order. It waits for the first like
    /// [`take_all`](Self::take_all), and ends when `wait_s` seconds bring no other.
    pub async fn run_all(&mut self, wait_s: u32) -> Vec<String> {
        let mut ran = Vec::new();
        let mut next = self.run_next(COMES_WITHIN_S).await;
        while !next.is_empty() {
            ran.append(&mut next);
            next = self.run_next(wait_s).await;
        }
        ran
    }

    /// Asks for work for up to `wait_s` seconds, and finishes the jobs that arrived. Returns the ids in order.
    pub async fn run_next(&mut self, wait_s: u32) -> Vec<String> {
        let grants = self.ask(wait_s).await;
        for grant in &grants {
            self.finish(grant).await;
        }
        grants.into_iter().map(|grant| grant.job_id).collect()
    }
}
