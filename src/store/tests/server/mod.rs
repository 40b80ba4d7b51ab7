//! A real Elasticsearch for tests: requests beside the store, and removal of the tests' indices.

use std::{
    hash::{BuildHasher, RandomState},
    panic::{AssertUnwindSafe, resume_unwind},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use fairlead_store::ElasticConfig;
use futures_util::FutureExt;
use serde_json::Value;

/// Where it is and who may do anything there.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    urls: Vec<String>,
    ca_pem: Option<String>,
    login: Option<(String, String)>,
    client: reqwest::Client,
}

impl Server {
    /// `urls` as `--elasticsearch` takes them.
    pub(crate) fn new(urls: &str, ca_pem: Option<String>, login: Option<(String, String)>) -> Self {
        let mut client = reqwest::Client::builder().no_proxy();
        if let Some(pem) = &ca_pem {
            let certificate = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
            client = client.add_root_certificate(certificate);
        }
        Self {
            urls: urls.trim().split(',').map(str::to_owned).collect(),
            ca_pem,
            login,
            client: client.build().unwrap(),
        }
    }

    /// A store's configuration with an index prefix of its own.
    pub(crate) fn config(&self) -> ElasticConfig {
        static TESTS: AtomicU64 = AtomicU64::new(0);
        let test = TESTS.fetch_add(1, Ordering::Relaxed);
        let (username, password) = self.login.clone().unzip();
        ElasticConfig {
            urls: self.urls.clone(),
            index_prefix: format!("t{:016x}-{test}", RandomState::new().hash_one(test)),
            username,
            password,
            ca_pem: self.ca_pem.clone(),
            // A cluster that is busy with other tests may take its time.
            request_timeout: Duration::from_mins(1),
            ..ElasticConfig::default()
        }
    }

    /// A request beside the store, to the first node.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let body = body.map(|body| body.to_string());
        self.send(method, path, body.unwrap_or_default()).await
    }

    /// The same with lines of JSON.
    pub(crate) async fn ask_lines(&self, path: &str, lines: String) -> Value {
        self.send("POST", path, lines).await
    }

    async fn send(&self, method: &str, path: &str, body: String) -> Value {
        let url = format!("{}/{path}", self.urls[0]);
        let mut request = self.client.request(method.parse().unwrap(), url);
        if let Some((user, password)) = &self.login {
            request = request.basic_auth(user, Some(password));
        }
        if !body.is_empty() {
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let text = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Clears away what a case made, however it ended.
    pub(crate) async fn with_config(&self, case: impl AsyncFnOnce(ElasticConfig)) {
        let config = self.config();
        let prefix = config.index_prefix.clone();
        let result = AssertUnwindSafe(case(config)).catch_unwind().await;
        let list = format!("_cat/indices/{prefix}-*?h=index&format=json");
        let listed = self.ask("GET", &list, None).await;
        let indices: Vec<String> = listed
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| Some(row["index"].as_str()?.to_owned()))
            .collect();
        if !indices.is_empty() {
            self.ask("DELETE", &indices.join(","), None).await;
        }
        let templates = format!("_index_template/{prefix}-*");
        self.ask("DELETE", &templates, None).await;
        if let Err(panic) = result {
            resume_unwind(panic);
        }
    }
}
