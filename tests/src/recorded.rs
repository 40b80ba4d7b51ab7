//! A lab that an older version left behind (`tests/recorded`), with the present version started on it.

use std::{fs, path::Path};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{Http, Lab, Scheduler, Store, settings};

/// A recorded lab that goes on.
#[derive(Debug)]
pub struct Recorded {
    /// Scheduler of the present version, over the stored data.
    pub scheduler: Scheduler,
    /// Contents of `lab.json`: tokens, job ids, messages of the agent.
    pub lab: Value,
}

impl Recorded {
    /// Starts the present version with `--auth` on the data that version `name` left in this store.
    pub async fn start(name: &str, store: Store) -> Self {
        let of_store = match store {
            Store::Embedded => "embedded",
            Store::Elasticsearch => "elasticsearch",
        };
        let folder = settings::project().join("tests/recorded");
        let folder = folder.join(name).join(of_store);
        let (shared, urls) = (Lab::on(store), urls(store));
        let mut scheduler = Scheduler::prepare(&shared, &urls, &["--auth"]);
        copy(&folder.join("data"), &scheduler.data());
        if let Some(url) = urls.first() {
            let indices = read(&folder.join("indices.json"));
            fill(&Http::new(url), shared.prefix(), &indices).await;
        }
        scheduler.restart().await;
        Self {
            scheduler,
            lab: read(&folder.join("lab.json")),
        }
    }

    /// Returns a client of one of its accounts.
    pub fn client(&self, account: &str) -> Http {
        let token = self.lab["tokens"][account].as_str().unwrap_or_default();
        self.scheduler.http().with_token(token)
    }

    /// Returns the id of one of its jobs.
    pub fn id(&self, job: &str) -> &str {
        let id = self.lab["ids"][job].as_str();
        id.unwrap_or_else(|| panic!("no job {job} was recorded"))
    }
}

fn urls(store: Store) -> Vec<String> {
    match store {
        Store::Embedded => Vec::new(),
        Store::Elasticsearch => settings::elasticsearch(),
    }
}

fn read(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Copies a folder with its contents.
///
/// # Panics
/// Panics if something cannot be read or written.
pub fn copy(from: &Path, to: &Path) {
    let failed = |error: std::io::Error| -> ! { panic!("{}: {error}", from.display()) };
    fs::create_dir_all(to).unwrap_or_else(|error| failed(error));
    for entry in fs::read_dir(from).unwrap_or_else(|error| failed(error)) {
        let path = entry.unwrap_or_else(|error| failed(error)).path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap_or_else(|error| failed(error));
        }
    }
}

/// Creates the recorded indices under their own prefix.
async fn fill(http: &Http, prefix: &str, recorded: &Value) {
    let text = recorded.to_string().replace("PREFIX", prefix);
    let recorded: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("recorded indices: {error}"));
    for template in recorded["templates"].as_array().into_iter().flatten() {
        let path = format!(
            "/_index_template/{}",
            template["name"].as_str().unwrap_or_default()
        );
        put(http, &path, &template["index_template"]).await;
    }
    for (name, index) in recorded["indices"].as_object().into_iter().flatten() {
        let path = format!("/{prefix}{name}");
        put(http, &path, &json!({"mappings": index["mappings"]})).await;
        let mut lines = String::new();
        for document in index["documents"].as_array().into_iter().flatten() {
            let action = json!({"create": {"_id": document["id"]}});
            lines.push_str(&action.to_string());
            lines.push('\n');
            lines.push_str(&document["source"].to_string());
            lines.push('\n');
        }
        if lines.is_empty() {
            continue;
        }
        let bulk = format!("{path}/_bulk?refresh=true");
        let kind = "application/x-ndjson";
        let reply = http.send(Method::POST, &bulk, kind, lines.into()).await;
        assert_eq!(reply.json()["errors"], false, "{}", reply.text);
    }
}

async fn put(http: &Http, path: &str, body: &Value) {
    let bytes = body.to_string().into_bytes();
    let reply = http.send(Method::PUT, path, "application/json", bytes);
    let reply = reply.await;
    let is_done = (200..300).contains(&reply.status);
    assert!(is_done, "{}: {} {}", reply.asked, reply.status, reply.text);
}
