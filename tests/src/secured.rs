//! An Elasticsearch with TLS and logins: one node for all tests of a process.

use std::{fs, process::Stdio, sync::OnceLock, time::Duration};

use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Ran, Scheduler, Server, Store, clock, command, reaper, settings};

/// Role that may set up and run a lab of prefix `fairlead`.
const ROLE: &str = include_str!("../../scheduler-cluster/deploy/elasticsearch-role.json");
/// Role that may only run a lab that another user has set up.
const RUN_ROLE: &str = include_str!("../../scheduler-cluster/deploy/elasticsearch-role-run.json");

/// Time for a scheduler that must not start to report it.
const REFUSAL_LIMIT: Duration = Duration::from_mins(1);

/// The server, and its superuser.
#[derive(Debug)]
pub struct Secured {
    server: Server,
    url: String,
    password: String,
    client: Client,
}

/// A user who logs in with a role over indices of one prefix.
#[derive(Debug)]
pub struct Login<'a> {
    server: &'a Secured,
    /// Prefix of the names of the indices.
    pub prefix: String,
    /// Name of the user. Empty: an API key.
    pub user: String,
    /// Folder of the files with secrets.
    folder: TempDir,
    /// Arguments of the login.
    words: Vec<String>,
}

impl Secured {
    /// Returns the server of this process. The first call starts it.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Secured> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let server = Server::start(&["--security"]);
        let authority = Certificate::from_pem(server.read("tls/ca.crt").as_bytes());
        let authority = authority.unwrap_or_else(|error| panic!("the authority: {error}"));
        // Each test has its own runtime, so a kept connection would outlive its driver.
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

    /// Returns a file with the authority's certificate.
    pub fn authority(&self) -> String {
        let path = self.server.path("tls/ca.crt");
        path.to_string_lossy().into_owned()
    }

    /// Sends a request as the superuser.
    ///
    /// # Panics
    /// Panics if the answer is not a success.
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

    /// Creates a user with the role that sets up and runs, and with its own indices.
    pub async fn user(&self) -> Login<'_> {
        self.user_of(&format!("t-{}", clock::unique()), &role())
            .await
    }

    /// Creates a user with this role over indices of this prefix.
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

    /// Returns a login without credentials.
    pub fn nobody(&self) -> Login<'_> {
        Login::new(self, "t-nobody")
    }

    /// Creates an API key with the role that sets up and runs, and with its own indices.
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

/// Returns the role that sets up and runs.
pub fn role() -> Value {
    serde_json::from_str(ROLE).unwrap_or_else(|error| panic!("elasticsearch-role.json: {error}"))
}

/// Returns the role that runs a lab that another user has set up.
pub fn run_role() -> Value {
    serde_json::from_str(RUN_ROLE)
        .unwrap_or_else(|error| panic!("elasticsearch-role-run.json: {error}"))
}

/// Returns a role for another prefix, as the guide creates it.
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

    /// Passes a secret by a file. A second call replaces it.
    pub fn secret(&mut self, flag: &str, secret: &str) {
        let path = self.folder.path().join(flag.trim_start_matches('-'));
        fs::write(&path, format!("{secret}\n"))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if !self.words.iter().any(|word| word == flag) {
            let path = path.to_string_lossy().into_owned();
            self.words.extend([flag.to_owned(), path]);
        }
    }

    /// Returns all arguments that name the store and log in.
    pub fn words(&self) -> Vec<&str> {
        let mut words = vec!["--elasticsearch", &self.server.url];
        words.extend(["--index-prefix", &self.prefix]);
        words.extend(self.words.iter().map(String::as_str));
        words
    }

    /// Starts a scheduler with this login. Its arguments name all of its store, so nothing must be cleaned up.
    pub async fn scheduler(&self, more: &[&str]) -> Scheduler {
        let authority = self.server.authority();
        let mut words = self.words();
        words.extend(["--elasticsearch-ca", &authority]);
        words.extend(more);
        Scheduler::start_with(Store::Embedded, &words).await
    }

    /// Returns the message of a scheduler that cannot start with this login and these arguments.
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

    /// Runs `fairlead` with the arguments of store and login, and with more variables.
    pub fn fairlead(&self, variables: &[(&str, &str)], words: &[&str]) -> Ran {
        let authority = self.server.authority();
        let mut all = words.to_vec();
        all.extend(self.words());
        all.extend(["--elasticsearch-ca", &authority]);
        command::fairlead(self.folder.path(), variables, &all)
    }
}
