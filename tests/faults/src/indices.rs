//! Indices of the lab that lose all of their shards for a while: no node gives them to anybody, and no data is lost.

use std::time::Duration;

use fairlead_cluster::http;
use fairlead_simulation::Chance;
use reqwest::Method;
use serde_json::{Value, json};

/// How long Elasticsearch may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Decides whether nodes take shards that nobody has.
const ALLOCATION: &str = "cluster.routing.allocation.enable";

/// The indices of a lab.
#[derive(Debug)]
pub(super) struct Indices {
    /// The first port of Elasticsearch, and its nodes.
    pub(super) port: u16,
    pub(super) nodes: u16,
    /// How their names begin.
    pub(super) prefix: String,
}

impl Indices {
    /// What the first node that answers says.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Option<Value> {
        let client = http::client(ANSWER_TIME).ok()?;
        for number in 0..self.nodes {
            let url = format!("http://127.0.0.1:{}{path}", self.port + number);
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

    async fn allocate(&self, what: Value) -> Option<Value> {
        let settings = json!({"transient": {ALLOCATION: what}});
        self.ask(Method::PUT, "/_cluster/settings", Some(settings))
            .await
    }

    /// Takes all shards from one index. Returns its name; `None`: Elasticsearch did not do it.
    pub(super) async fn lose_one(&self, chance: &mut Chance) -> Option<String> {
        let path = format!(
            "/_cat/shards/{}*?format=json&h=index,shard,node",
            self.prefix
        );
        let shards = self.ask(Method::GET, &path, None).await?;
        let shards = shards.as_array()?;
        let mut names: Vec<&str> = shards
            .iter()
            .filter_map(|it| it["index"].as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let name = *names.get(chance.index(names.len()))?;
        self.allocate(json!("none")).await?;
        let of_it = shards.iter().filter(|it| it["index"] == name);
        let cancels = of_it.filter(|it| it["node"].is_string()).map(|it| {
            let shard: u32 = it["shard"]
                .as_str()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
            json!({"cancel": {
                "index": name, "shard": shard, "node": it["node"], "allow_primary": true,
            }})
        });
        let commands = json!({"commands": cancels.collect::<Vec<_>>()});
        let done = self
            .ask(
                Method::POST,
                "/_cluster/reroute?metric=none",
                Some(commands),
            )
            .await;
        if done.is_none() {
            self.all_back().await;
        }
        done.map(|_| name.to_owned())
    }

    /// Lets all indices have their shards again.
    pub(super) async fn all_back(&self) {
        self.allocate(Value::Null).await;
        let path = "/_cluster/reroute?retry_failed=true&metric=none";
        self.ask(Method::POST, path, None).await;
    }
}
