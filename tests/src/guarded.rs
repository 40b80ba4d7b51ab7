//! A scheduler that checks tokens, and accounts of every role at it.

use serde_json::{Value, json};

use crate::{Http, Scheduler, Store, fairlead};

/// A lab with `--auth`, and its first admin.
pub struct Guarded {
    /// Scheduler of the lab.
    pub scheduler: Scheduler,
    /// Client of the admin.
    pub admin: Http,
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guarded")
    }
}

impl Guarded {
    /// Creates the admin in the store, as an operator does, and starts the scheduler with `--auth` and more arguments.
    pub async fn start(store: Store, more: &[&str]) -> Self {
        let mut scheduler = Scheduler::prepared(store, more);
        let token = scheduler.add_account("root", "admin");
        scheduler.add_argument("--auth");
        scheduler.restart().await;
        let admin = scheduler.http().with_token(&token);
        Self { scheduler, admin }
    }

    /// Runs `fairlead` directly on the store. It must succeed.
    pub fn command(scheduler: &Scheduler, words: &[&str]) -> String {
        let store = scheduler.store_arguments();
        let words: Vec<&str> = words
            .iter()
            .copied()
            .chain(store.iter().map(String::as_str))
            .collect();
        let ran = fairlead(scheduler.folder(), &[], &words);
        ran.expect_code(0).to_owned()
    }

    /// Creates an account, and returns a client with its token.
    pub async fn account(&self, name: &str, fields: &Value) -> Http {
        let path = format!("/scheduler/v1/accounts/{name}");
        let account = self.admin.post(&path, fields).await.json();
        let token = account["my_token"].as_str().unwrap_or_default();
        self.scheduler.http().with_token(token)
    }

    /// Creates a testbox account that names these hosts.
    pub async fn testbox(&self, name: &str, hosts: &[&str]) -> Http {
        let fields = json!({"role": "testbox", "hosts": hosts});
        self.account(name, &fields).await
    }

    /// Creates a user.
    pub async fn user(&self, name: &str) -> Http {
        self.account(name, &json!({"role": "user"})).await
    }

    /// Returns a client without a token.
    pub fn nobody(&self) -> Http {
        self.scheduler.http()
    }
}
