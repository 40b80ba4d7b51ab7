//! Several replicas over one Elasticsearch, started by the real `fairlead-cluster` in its own folder.

use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Http, Ran, clock, lab::forget_indices, reaper, scheduler::free_ports, settings};

/// A cluster of replicas. Nothing of it is left at the end.
#[derive(Debug)]
pub struct Replicas {
    folder: TempDir,
    prefix: String,
    /// Port of the first replica. The others have the next ports.
    pub port: u16,
    /// Number of replicas.
    pub count: u16,
}

impl Replicas {
    /// Starts `count` replicas in open mode over the Elasticsearch of `ES_URL`, with more arguments of `fairlead
    /// serve`, and waits until all are ready.
    pub async fn up(count: u16, more: &[&str]) -> Self {
        let prefix = format!("t-{}", clock::unique());
        let elasticsearch = settings::elasticsearch().join(",");
        let store = ["--elasticsearch", &elasticsearch, "--index-prefix", &prefix];
        Self::up_on(&prefix, &store, count, more).await
    }

    /// Starts `count` replicas over another Elasticsearch, which the arguments `store` name with the prefix.
    pub async fn up_on(prefix: &str, store: &[&str], count: u16, more: &[&str]) -> Self {
        let replicas = Self {
            folder: reaper::folder("fairlead-replicas-"),
            prefix: prefix.to_owned(),
            port: free_ports(count),
            count,
        };
        let (port, count) = (replicas.port.to_string(), count.to_string());
        let mut words = vec!["up", "--replicas", &count, "--port", &port];
        words.extend(store);
        words.push("--");
        words.extend(more);
        replicas.done(&words).await;
        replicas
    }

    /// Runs `fairlead-cluster` on it, with any outcome.
    pub async fn say(&self, words: &[&str]) -> Ran {
        let mut command = Command::new(settings::binary("fairlead-cluster"));
        command
            .arg("--dir")
            .arg(self.folder.path())
            .args(words)
            .env("HOME", self.folder.path())
            .env("RUST_LOG", "info")
            .envs([reaper::variable()])
            .stdin(Stdio::null());
        let asked = format!("fairlead-cluster {}", words.join(" "));
        let ran = tokio::task::spawn_blocking(move || command.output()).await;
        let output = ran
            .unwrap_or_else(|error| panic!("{asked}: {error}"))
            .unwrap_or_else(|error| panic!("{asked}: {error}"));
        Ran {
            asked,
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs `fairlead-cluster` on it, which must succeed, and returns its output.
    pub async fn done(&self, words: &[&str]) -> String {
        self.say(words).await.expect_code(0).to_owned()
    }

    /// Returns the state of each replica, and the exit code of `status`.
    pub async fn status(&self) -> (Vec<String>, i32) {
        let ran = self.say(&["status", "--json"]).await;
        let views: Vec<Value> = serde_json::from_str(&ran.out)
            .unwrap_or_else(|error| panic!("{error} in {}{}", ran.out, ran.err));
        let words = views.iter().map(|view| {
            let word = view["condition"].as_str();
            word.unwrap_or_default().to_owned()
        });
        (words.collect(), ran.code)
    }

    /// Returns the address of replica `number`, from 1.
    pub fn url(&self, number: u16) -> String {
        format!("http://127.0.0.1:{}", self.port + number - 1)
    }

    /// Returns all addresses.
    pub fn urls(&self) -> Vec<String> {
        (1..=self.count).map(|number| self.url(number)).collect()
    }

    /// Returns a client of replica `number`, without an account.
    pub fn http(&self, number: u16) -> Http {
        Http::new(&self.url(number))
    }

    /// Returns the prefix of its indices.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns its folder: `data/` is shared by the replicas, and `logs/` has their output.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn logs(&self) -> String {
        let read = |number: u16| {
            let path = format!("logs/replica-{number}.log");
            let log = std::fs::read_to_string(self.folder.path().join(path)).unwrap_or_default();
            let lines: Vec<_> = log.lines().rev().take(25).collect();
            let lines: Vec<_> = lines.into_iter().rev().collect();
            format!(
                "--- the log of replica {number} ends:\n{}\n",
                lines.join("\n")
            )
        };
        (1..=self.count).map(read).collect()
    }
}

impl Drop for Replicas {
    #[expect(
        clippy::print_stderr,
        reason = "a failed test shows what the replicas said"
    )]
    fn drop(&mut self) {
        for number in 1..=self.count {
            let _ = Command::new(settings::binary("fairlead-cluster"))
                .arg("--dir")
                .arg(self.folder.path())
                .args(["kill", &number.to_string()])
                .stdin(Stdio::null())
                .output();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        let prefix = self.prefix.clone();
        // If it uses another Elasticsearch than ES_URL, there is nothing to delete here.
        let _ = std::thread::spawn(move || forget_indices(&prefix)).join();
    }
}
