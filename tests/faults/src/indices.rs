//! Indices of the lab that lose all of their shards again and again for a while. No data is lost.

use std::{collections::BTreeSet, time::Duration};

use fairlead_cluster::{http, launch::OwnElastic};
use fairlead_simulation::Chance;
use reqwest::Method;
use serde_json::{Value, json};

/// Timeout of an answer of Elasticsearch.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Setting that decides whether nodes take unassigned shards.
const ALLOCATION: &str = "cluster.routing.allocation.enable";

/// Indices of a lab.
#[derive(Debug)]
pub(super) struct Indices {
    pub(super) own: OwnElastic,
    /// Prefix of their names.
    pub(super) prefix: String,
}

/// Returns the answer of the first node that answers in time.
pub(super) async fn ask(
    own: OwnElastic,
    answer_time: Duration,
    (method, path): (Method, &str),
    body: Option<Value>,
) -> Option<Value> {
    let client = http::client(answer_time).ok()?;
    for number in 0..own.nodes {
        let url = format!("http://127.0.0.1:{}{path}", own.port + number);
        let mut request = client.request(method.clone(), url);
        if let Some(body) = &body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let Ok(answer) = request.send().await else {
            continue;
        };
        if answer.status().is_success() {
            return serde_json::from_str(&answer.text().await.ok()?).ok();
        }
    }
    None
}

impl Indices {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Option<Value> {
        ask(self.own, ANSWER_TIME, (method, path), body).await
    }

    async fn allocate(&self, what: Value) {
        let settings = json!({"transient": {ALLOCATION: what}});
        self.ask(Method::PUT, "/_cluster/settings", Some(settings))
            .await;
    }

    /// Returns the copies of shards of these indices, on all nodes.
    async fn copies(&self, of: &str) -> Vec<Value> {
        let path = format!("/_cat/shards/{of}?format=json&h=index,shard,node");
        match self.ask(Method::GET, &path, None).await {
            Some(Value::Array(copies)) => copies,
            _ => Vec::new(),
        }
    }

    /// Returns a random index. `None`: Elasticsearch names none.
    pub(super) async fn draw(&self, chance: &mut Chance) -> Option<String> {
        let copies = self.copies(&format!("{}*", self.prefix)).await;
        let names = copies.iter().filter_map(|copy| copy["index"].as_str());
        let names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
        names
            .get(chance.index(names.len()))
            .map(|name| (*name).to_owned())
    }

    /// Removes all shards of an index. Elasticsearch restores the first ones within a second, so this must be repeated.
    pub(super) async fn lose(&self, index: &str) {
        self.allocate(json!("none")).await;
        let copies = self.copies(index).await;
        let held = copies.iter().filter(|copy| copy["node"].is_string());
        let cancels = held.map(|copy| {
            let shard = copy["shard"].as_str().and_then(|n| n.parse().ok());
            let shard: u32 = shard.unwrap_or(0);
            json!({"cancel": {
                "index": index, "shard": shard, "node": copy["node"], "allow_primary": true,
            }})
        });
        let commands = json!({"commands": cancels.collect::<Vec<_>>()});
        let path = "/_cluster/reroute?metric=none";
        self.ask(Method::POST, path, Some(commands)).await;
    }

    /// Allows all indices to have their shards again.
    pub(super) async fn all_back(&self) {
        self.allocate(Value::Null).await;
        let path = "/_cluster/reroute?retry_failed=true&metric=none";
        self.ask(Method::POST, path, None).await;
    }
}
