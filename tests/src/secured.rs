//! An Elasticsearch with TLS and logins: one node for all tests of a process.

use std::{fs, process::Stdio, sync::OnceLock, time::Duration};

use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Ran, Scheduler, Server, Store, clock, command, reaper, settings};

/// A role that may set up and run, of prefix `fairlead`.
const ROLE: &str = include_str!("../../scheduler-cluster/deploy/elasticsearch-role.json");
/// One that may only run what another has set up.
const RUN_ROLE: &str = include_str!("../../scheduler-cluster/deploy/elasticsearch-role-run.json");

/// How long a scheduler that must not start may take to say so.
const REFUSAL_LIMIT: Duration = Duration::from_mins(1);

/// The server, and who may do anything there.
#[derive(Debug)]
pub struct Secured {
    server: Server,
    url: String,
    password: String,
    client: Client,
}

/// Somebody who logs in with a role over indices of one prefix.
#[derive(Debug)]
pub struct Login<'a> {
    server: &'a Secured,
    /// Begins the names of the indices.
    pub prefix: String,
    /// The user's name; empty for an API key.
    pub user: String,
    /// Files with secrets.
    folder: TempDir,
    /// The arguments that log in.
    words: Vec<String>,
}

impl Secured {
    /// The one of this process; the first that asks starts it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Secured> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let server = Server::start(&["--security"]);
        let authority = Certificate::from_pem(server.read("tls/ca.crt").as_bytes());
        let authority = authority.unwrap_or_else(|error| panic!("the authority: {error}"));
        // Each test has a runtime of its own: a connection that is kept would outlive the one that drives it.
        let client = Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .add_root_certificate(authority);
        Self {
            url: server.urls.join(","),
            password: server.read("password").trim().to_owned(),
            client: client
                .build()
                .unwrap_or_else(|error| panic!("an HTTP client: {error}")),
            server,
        }
    }

    /// A file of the authority's certificate.
    pub fn authority(&self) -> String {
        let path = self.server.path("tls/ca.crt");
        path.to_string_lossy().into_owned()
    }

    /// Asks as one who may do anything.
    ///
    /// # Panics
    /// When it is not answered with success.
    pub async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let asked = format!("{method} {path} {body}");
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request
            .basic_auth("elastic", Some(&self.password))
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{asked}: {error}"));
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        assert!(status.is_success(), "{asked}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{asked}: {error} in {text}"))
    }

    /// A user with the role that sets up and runs, and indices of its own.
    pub async fn user(&self) -> Login<'_> {
        self.user_of(&format!("t-{}", clock::unique()), &role())
            .await
    }

    /// A user with this role over indices of this prefix.
    pub async fn user_of(&self, prefix: &str, role: &Value) -> Login<'_> {
        let name = clock::unique();
        let role = with_prefix(role, prefix);
        self.ask(Method::PUT, &format!("/_security/role/{name}"), &role)
            .await;
        let password = format!("secret-{name}");
        let user = json!({"password": password, "roles": [name]});
        self.ask(Method::PUT, &format!("/_security/user/{name}"), &user)
            .await;
        let mut login = Login::new(self, prefix);
        login.user.clone_from(&name);
        login
            .words
            .extend(["--elasticsearch-user".to_owned(), name]);
        login.secret("--elasticsearch-password-file", &password);
        login
    }

    /// Somebody without a login.
    pub fn nobody(&self) -> Login<'_> {
        Login::new(self, "t-nobody")
    }

    /// An API key with the role that sets up and runs, and indices of its own.
    pub async fn key(&self) -> Login<'_> {
        let name = clock::unique();
        let prefix = format!("t-{name}");
        let role = with_prefix(&role(), &prefix);
        let key = json!({"name": name, "role_descriptors": {"fairlead": role}});
        let made = self.ask(Method::POST, "/_security/api_key", &key).await;
        let mut login = Login::new(self, &prefix);
        let key = made["encoded"].as_str().unwrap_or_default();
        login.secret("--elasticsearch-api-key-file", key);
        login
    }
}

/// The role that sets up and runs.
pub fn role() -> Value {
    serde_json::from_str(ROLE).unwrap_or_else(|error| panic!("elasticsearch-role.json: {error}"))
}

/// The role that runs what another has set up.
pub fn run_role() -> Value {
    serde_json::from_str(RUN_ROLE)
        .unwrap_or_else(|error| panic!("elasticsearch-role-run.json: {error}"))
}

/// A role as the guide makes it for another prefix.
fn with_prefix(role: &Value, prefix: &str) -> Value {
    let text = role
        .to_string()
        .replace("fairlead-*", &format!("{prefix}-*"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

impl<'a> Login<'a> {
    fn new(server: &'a Secured, prefix: &str) -> Self {
        Self {
            server,
            prefix: prefix.to_owned(),
            user: String::new(),
            folder: reaper::folder("fairlead-login-"),
            words: Vec::new(),
        }
    }

    /// Gives a secret by a file, and another one when it is given again.
    pub fn secret(&mut self, flag: &str, secret: &str) {
        let path = self.folder.path().join(flag.trim_start_matches('-'));
        fs::write(&path, format!("{secret}\n"))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if !self.words.iter().any(|word| word == flag) {
            let path = path.to_string_lossy().into_owned();
            self.words.extend([flag.to_owned(), path]);
        }
    }

    /// All arguments that name the store and log in.
    pub fn words(&self) -> Vec<&str> {
        let mut words = vec!["--elasticsearch", &self.server.url];
        words.extend(["--index-prefix", &self.prefix]);
        words.extend(self.words.iter().map(String::as_str));
        words
    }

    /// A scheduler that logs in so. All of its store is named by its arguments; nothing is to be cleared away.
    pub async fn scheduler(&self, more: &[&str]) -> Scheduler {
        let authority = self.server.authority();
        let mut words = self.words();
        words.extend(["--elasticsearch-ca", &authority]);
        words.extend(more);
        Scheduler::start_with(Store::Embedded, &words).await
    }

    /// What a scheduler says that cannot start so, with these arguments besides.
    pub async fn refusal(&self, more: &[&str]) -> String {
        let mut command = tokio::process::Command::new(settings::binary("fairlead"));
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(self.words())
            .args(more)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let ended = tokio::time::timeout(REFUSAL_LIMIT, command.output()).await;
        let output = ended
            .unwrap_or_else(|_| panic!("{command:?} goes on"))
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{text}");
        assert!(text.contains("hint:"), "{text}");
        text
    }

    /// Runs `fairlead` with the store and login behind its words, and with more variables.
    pub fn fairlead(&self, variables: &[(&str, &str)], words: &[&str]) -> Ran {
        let authority = self.server.authority();
        let mut all = words.to_vec();
        all.extend(self.words());
        all.extend(["--elasticsearch-ca", &authority]);
        command::fairlead(self.folder.path(), variables, &all)
    }
}
