//! A lab shared by several schedulers: an index prefix of the Elasticsearch, which is removed with the last of them.

use std::{path::PathBuf, sync::Arc};

use reqwest::Method;
use tempfile::TempDir;

use crate::{Gate, Http, Scheduler, Store, clock, reaper, settings};

/// State that schedulers share. Clones are the same lab.
#[derive(Debug, Clone)]
pub struct Lab(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    prefix: String,
    /// Data folder of the lab, shared by its replicas.
    data: TempDir,
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

impl Lab {
    /// Creates an empty lab on Elasticsearch.
    pub fn new() -> Self {
        Self::on(Store::Elasticsearch)
    }

    pub(crate) fn on(store: Store) -> Self {
        let prefix = format!("t-{}", clock::unique());
        let data = reaper::folder("fairlead-data-");
        Self(Arc::new(Shared {
            store,
            prefix,
            data,
        }))
    }

    pub(crate) fn store(&self) -> Store {
        self.0.store
    }

    /// Returns its data folder.
    pub fn data(&self) -> PathBuf {
        self.0.data.path().join("data")
    }

    /// Returns the prefix of its indices.
    pub fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Starts a scheduler with more arguments of `fairlead serve`, and waits until it answers.
    pub async fn scheduler(&self, more: &[&str]) -> Scheduler {
        let mut scheduler = Scheduler::begin(self, &settings::elasticsearch(), more);
        scheduler.answers().await;
        scheduler
    }

    /// Starts a scheduler with variables in its environment.
    pub async fn scheduler_within(&self, variables: &[(String, String)]) -> Scheduler {
        let mut scheduler = Scheduler::prepare(self, &settings::elasticsearch(), &[]);
        scheduler.variables = variables.to_vec();
        scheduler.restart().await;
        scheduler
    }

    /// Starts a scheduler with Elasticsearch behind a gate.
    pub async fn scheduler_behind(&self, gate: &Gate, more: &[&str]) -> Scheduler {
        let mut scheduler = Scheduler::begin(self, &[gate.url().to_owned()], more);
        scheduler.answers().await;
        scheduler
    }

    /// Starts `n` schedulers at the same time.
    pub async fn schedulers(&self, n: usize, more: &[&str]) -> Vec<Scheduler> {
        let urls = settings::elasticsearch();
        let mut all: Vec<_> = (0..n)
            .map(|_| Scheduler::begin(self, &urls, more))
            .collect();
        for scheduler in &mut all {
            scheduler.answers().await;
        }
        all
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.store == Store::Embedded {
            return;
        }
        let prefix = self.prefix.clone();
        let _ = std::thread::spawn(move || forget_indices(&prefix)).join();
    }
}

/// Deletes all indices and templates of a prefix. Failures are ignored, because the cluster is thrown away anyway.
pub(crate) fn forget_indices(prefix: &str) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    runtime.block_on(async {
        let urls = settings::elasticsearch();
        let Some(http) = urls.first().map(|url| Http::new(url)) else {
            return;
        };
        let list = format!("/_cat/indices/{prefix}*?h=index&expand_wildcards=all");
        if let Ok(reply) = http.try_send(Method::GET, &list, "", Vec::new()).await
            && reply.status == 200
            && !reply.text.trim().is_empty()
        {
            let indices: Vec<&str> = reply.text.split_whitespace().collect();
            let path = format!("/{}", indices.join(","));
            let _ = http.try_send(Method::DELETE, &path, "", Vec::new()).await;
        }
        let templates = format!("/_index_template/{prefix}*");
        let _ = http
            .try_send(Method::DELETE, &templates, "", Vec::new())
            .await;
    });
}
