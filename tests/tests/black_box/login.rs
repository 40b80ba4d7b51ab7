//! Tests of how people say who they are, and in which lab.

use std::os::unix::fs::PermissionsExt;

use fairlead_tests::{Guarded, Ran, Scheduler, Store, fairlead, on_terminal};
use serde_json::Value;
use tempfile::TempDir;

/// A lab with tokens, and the folder of a user with a token.
struct Person {
    scheduler: Scheduler,
    token: String,
    home: TempDir,
}

impl Person {
    async fn new(name: &str) -> Self {
        let guarded = Guarded::start(Store::Embedded, &[]).await;
        let user = guarded.user(name).await;
        let token = user.token().expect("a token").to_owned();
        let scheduler = guarded.scheduler;
        let home = TempDir::with_prefix("fairlead-login-").expect("a folder");
        Self {
            scheduler,
            token,
            home,
        }
    }

    fn run(&self, variables: &[(&str, &str)], words: &[&str]) -> Ran {
        fairlead(self.home.path(), variables, words)
    }

    fn is_known_as(&self, name: &str, variables: &[(&str, &str)], words: &[&str]) -> Value {
        let ran = self.run(variables, words);
        let shown: Value = serde_json::from_str(ran.expect_code(0)).expect("JSON");
        assert_eq!(shown["account"], name, "{shown}");
        shown
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_checked_kept_and_used() {
    let ann = Person::new("ann").await;
    let url = ann.scheduler.url();
    let server = [("FAIRLEAD_SERVER", url.as_str())];
    ann.run(&server, &["whoami"]).expect_code(3);
    let wrong = ann.run(&server, &["login", "--token", "wrong"]);
    wrong.expect_code(3);
    // Typed text is not shown.
    let typed = format!("{}\r", ann.token);
    let ran = on_terminal(ann.home.path(), &server, &["login"], 120, &typed);
    assert!(ran.expect_code(0).contains("you are ann"), "{}", ran.out);
    assert!(ran.out.contains("token for http"), "{}", ran.out);
    let path = ann.home.path().join("config/fairlead/token");
    let mode = std::fs::metadata(&path)
        .expect("the token")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let shown = ann.is_known_as("ann", &server, &["whoami", "--json"]);
    assert_eq!(shown["role"], "user", "{shown}");
    assert!(
        shown["token_from"]
            .as_str()
            .expect("text")
            .contains("token"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn several_labs_have_names() {
    let (ann, bob) = (Person::new("ann").await, Person::new("bob").await);
    for (lab, of) in [("home", &ann), ("ci", &bob)] {
        let url = of.scheduler.url();
        let words = [
            "login", "--lab", lab, "--server", &url, "--token", &of.token,
        ];
        ann.run(&[], &words).expect_code(0);
    }
    ann.is_known_as("ann", &[], &["whoami", "--lab", "home", "--json"]);
    ann.is_known_as("bob", &[], &["whoami", "--lab", "ci", "--json"]);
    ann.is_known_as("bob", &[("FAIRLEAD_LAB", "ci")], &["whoami", "--json"]);
    // The command line overrides the environment: no token is sent to a lab that it is not for.
    let variables = [
        ("FAIRLEAD_SERVER", "http://127.0.0.1:9"),
        ("FAIRLEAD_TOKEN", ann.token.as_str()),
    ];
    ann.is_known_as("bob", &variables, &["whoami", "--lab", "ci", "--json"]);
    let said = ann.run(&variables, &["whoami", "--lab", "ci"]);
    assert_eq!(
        said.err.matches("--lab ci wins over").count(),
        1,
        "{}",
        said.err
    );
    let none = ann.run(&[], &["jobs", "--lab", "cli"]);
    none.expect_code(2);
    assert!(none.err.contains("known: ci, home"), "{}", none.err);
    let new = ann.run(&[], &["login", "--lab", "third", "--token", "x"]);
    assert!(new.err.contains("server of lab 'third'"), "{}", new.err);
    let bad = ann.run(&[], &["jobs", "--lab", "../x"]);
    assert!(bad.err.contains("no name of a lab"), "{}", bad.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nearer_token_wins_and_addresses_are_read_with_sense() {
    let ann = Person::new("ann").await;
    let url = ann.scheduler.url();
    let file = ann.home.path().join("mine");
    std::fs::write(&file, &ann.token).expect("a token file");
    let file = file.to_str().expect("a path");
    let variables = [
        ("FAIRLEAD_SERVER", url.as_str()),
        ("FAIRLEAD_TOKEN", "wrong"),
    ];
    let ran = ann.run(&variables, &["whoami", "--token-file", file]);
    assert!(ran.expect_code(0).contains("ann"), "{}", ran.out);
    let told = ran.err.matches("--token-file wins over FAIRLEAD_TOKEN");
    assert_eq!(told.count(), 1, "{}", ran.err);
    let port = url.rsplit(':').next().expect("a port");
    let bare = ann.run(&[], &["jobs", "--server", port]);
    bare.expect_code(2);
    assert!(bare.err.contains("names no host"), "{}", bare.err);
    let tls = url.replace("http:", "https:");
    let mixed = ann.run(&[], &["jobs", "--server", &tls]);
    mixed.expect_code(4);
    assert!(mixed.err.contains("write http://"), "{}", mixed.err);
}
