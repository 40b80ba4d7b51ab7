//! A test's own Elasticsearch, by the project's script: in its own folder and on its own ports. It ends with this, and
//! with the process in any case.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use fairlead_reaper::Reaper;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{Http, Scheduler, Store, clock, scheduler::free_ports, settings};

/// Nodes of the server.
#[derive(Debug)]
pub struct Server {
    /// URLs of its nodes.
    pub urls: Vec<String>,
    folder: PathBuf,
    port: String,
    words: Vec<String>,
    reaper: Reaper,
}

impl Server {
    /// Starts a server, with more arguments of `scripts/elasticsearch start`.
    pub fn start(words: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("fairlead-server-{}", clock::unique()));
        let made = fs::create_dir(&folder)
            .and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)));
        made.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let reaper = Reaper::start().and_then(|reaper| {
            reaper.stops(&script(), &folder)?;
            reaper.removes(&folder)?;
            Ok(reaper)
        });
        let reaper = reaper.unwrap_or_else(|error| panic!("a reaper: {error}"));
        let mut server = Self {
            urls: Vec::new(),
            // Nodes talk to each other a hundred ports above.
            port: free_ports(110).to_string(),
            words: words.iter().map(|&word| word.to_owned()).collect(),
            folder,
            reaper,
        };
        server.revive();
        server
    }

    /// Starts the nodes that do not run, and waits until the server answers.
    pub fn revive(&mut self) {
        let words = self.words.iter().map(String::as_str);
        let words: Vec<&str> = ["start", "--port", &self.port]
            .into_iter()
            .chain(words)
            .collect();
        let urls = self.say(&words);
        self.urls = urls.trim().split(',').map(str::to_owned).collect();
    }

    /// Kills a node (`kill -9`). The first is 1.
    pub fn kill(&self, node: usize) {
        self.say(&["kill", &node.to_string()]);
    }

    fn say(&self, words: &[&str]) -> String {
        let output = Command::new(script())
            .args(words)
            .arg("--dir")
            .arg(&self.folder)
            .envs([self.reaper.variable()])
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", script().display()));
        let remarks = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}:\n{remarks}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the path of a file in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the content of a file in its folder.
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Asks one of its nodes, which must answer with success. The first is 1.
    pub async fn get(&self, node: usize, path: &str) -> String {
        let url = self.urls.get(node.saturating_sub(1));
        let http = Http::new(url.unwrap_or_else(|| panic!("there is no node {node}")));
        let reply = http.get(path).await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
        reply.text
    }

    /// Changes settings of the whole running server. Null restores the default.
    pub async fn set(&self, settings: &Value) {
        let http = Http::new(self.urls.first().map_or("", String::as_str));
        let settings = json!({"persistent": settings}).to_string().into_bytes();
        let path = "/_cluster/settings";
        let reply = http.send(Method::PUT, path, "application/json", settings);
        let reply = reply.await;
        assert_eq!(reply.status, 200, "{}: {}", reply.asked, reply.text);
    }

    /// Starts a scheduler over all its nodes, with its own index prefix. Nothing must be cleaned up.
    pub async fn scheduler(&self, more: &[&str]) -> Scheduler {
        let (urls, prefix) = (self.urls.join(","), format!("t-{}", clock::unique()));
        let mut words = vec!["--elasticsearch", &urls, "--index-prefix", &prefix];
        words.extend(more);
        Scheduler::start_with(Store::Embedded, &words).await
    }
}

fn script() -> PathBuf {
    settings::project().join("scripts/elasticsearch")
}
