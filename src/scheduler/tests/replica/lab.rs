//! One replica over the embedded store, and a client of it.

use std::collections::BTreeMap;

use fairlead_api::{ConsumeAnswer, ConsumeRequest, Grant, HeldJob, SubmitItem};
use fairlead_scheduler::{Config, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Lab {
    data: TempDir,
    pub(crate) server: Option<Server>,
    pub(crate) http: reqwest::Client,
}

impl Lab {
    pub(crate) async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut lab = Self {
            data,
            server: None,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        };
        lab.restart().await;
        lab
    }

    pub(crate) async fn restart(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
        let config = Config {
            heartbeat_ms: 200,
            lease_ms: 4_000,
            ..Config::embedded(self.data.path().to_owned())
        };
        self.server = Some(Server::start(config).await.unwrap());
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.as_ref().unwrap().url())
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(self.http.get(self.url(path)).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        read(
            self.http
                .post(self.url(path))
                .body(body.to_string())
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    pub(crate) async fn submit(&self, job: Value) -> String {
        let (status, answer) = self.post("/scheduler/v1/jobs/submit", &job).await;
        let items: Vec<SubmitItem> = serde_json::from_value(answer).unwrap();
        assert_eq!((status, items[0].message.as_str()), (200, ""));
        items[0].job_id.clone()
    }

    pub(crate) async fn consume(&self, request: &ConsumeRequest) -> ConsumeAnswer {
        let (status, answer) = self
            .post(
                "/scheduler/v1/testboxes/box1/consume",
                &serde_json::to_value(request).unwrap(),
            )
            .await;
        assert_eq!(status, 200, "{answer}");
        serde_json::from_value(answer).unwrap()
    }

    pub(crate) async fn report(&self, grant: &Grant, what: &str) -> u16 {
        let path = format!(
            "/scheduler/v1/jobs/{}/update?attempt={}&job_token={}&{what}",
            grant.job_id, grant.attempt, grant.job_token
        );
        self.post(&path, &Value::Null).await.0
    }

    pub(crate) async fn stage(&self, id: &str) -> String {
        let (status, job) = self.get(&format!("/scheduler/v1/jobs/{id}")).await;
        assert_eq!(status, 200);
        job["job_stage"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn read(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

pub(crate) fn job() -> Value {
    json!({"suite": "sleep", "script": "true", "my_account": "user1", "testbox": "dc", "arch": "x86_64"})
}

pub(crate) fn ask(session: &str, request: u64) -> ConsumeRequest {
    ConsumeRequest {
        content: Vec::new(),
        load: None,
        session: session.to_owned(),
        request,
        seen: None,
        kinds: vec!["vm".to_owned(), "dc".to_owned()],
        arch: "x86_64".to_owned(),
        group: String::new(),
        memory_mb: 8192,
        free_memory_mb: 8192,
        cpus: None,
        free_cpus: None,
        tags: Vec::new(),
        devices: Vec::new(),
        cache_dirs: Vec::new(),
        jobs_max: 8,
        wait_s: 20,
        running: Vec::new(),
        instance: String::new(),
        isolation: String::new(),
        executors: Vec::new(),
        facts: BTreeMap::default(),
    }
}

pub(crate) fn held(grant: &Grant) -> HeldJob {
    HeldJob {
        job_id: grant.job_id.clone(),
        attempt: grant.attempt,
        claim_token: grant.claim_token.clone(),
    }
}
