//! Tests of the lab as a file: `fairlead plan` and `fairlead apply`.

use std::{fs, os::unix::fs::PermissionsExt};

use fairlead_tests::{Guarded, Ran, Scheduler, Store, eventually, fairlead, on_both_stores};
use serde_json::{Value, json};

on_both_stores!(
    a_lab_is_made_as_its_file_says_and_a_second_apply_does_nothing,
    accounts_are_created_only_if_the_file_says_so,
    a_wrong_file_is_refused_before_anything_is_done,
    hosts_are_registered_and_closed_by_a_file,
    a_file_says_how_long_jobs_are_kept,
);

/// An admin with a lab file.
struct Admin {
    lab: Guarded,
}

impl Admin {
    async fn new(store: Store) -> Self {
        let lab = Guarded::start(store, &[]).await;
        Self { lab }
    }

    fn scheduler(&self) -> &Scheduler {
        &self.lab.scheduler
    }

    fn write(&self, text: &str) {
        fs::write(self.scheduler().folder().join("lab.yaml"), text).expect("a lab file");
    }

    fn run(&self, words: &[&str]) -> Ran {
        let url = self.scheduler().url();
        let token = self.lab.admin.token().unwrap_or_default();
        let variables = [("FAIRLEAD_SERVER", url.as_str()), ("FAIRLEAD_TOKEN", token)];
        fairlead(self.scheduler().folder(), &variables, words)
    }

    /// Returns the output of `plan` with this exit code.
    fn plan(&self, code: i32) -> String {
        self.run(&["plan", "lab.yaml"]).expect_code(code).to_owned()
    }

    fn apply(&self) -> String {
        let ran = self.run(&["apply", "lab.yaml", "--yes"]);
        ran.expect_code(0).to_owned()
    }

    /// Waits until a list of the lab shows the changes, because it may lag behind.
    async fn settled(&self) {
        eventually("the lab is as its file says", async || {
            let ran = self.run(&["plan", "lab.yaml"]);
            (ran.code == 0 && ran.out.is_empty()).then_some(())
        })
        .await;
    }

    async fn queue(&self, name: &str) -> Option<Value> {
        let all = self.lab.admin.get("/scheduler/v1/queues").await.json();
        let all = all.as_array().cloned().unwrap_or_default();
        all.into_iter().find(|queue| queue["name"] == name)
    }
}

const QUEUES: &str = "\
queues:
  nightly:
    priority: 2
    weight: 50
    users: [ci, root]
    limits: {waiting: 100, running: {soft: 5, hard: 10}}
";

async fn a_lab_is_made_as_its_file_says_and_a_second_apply_does_nothing(store: Store) {
    let admin = Admin::new(store).await;
    let path = "/scheduler/v1/queues/other";
    let other = admin.lab.admin.post(path, &json!({"weight": 7})).await;
    assert_eq!(other.status, 200, "{}", other.text);
    admin.write(QUEUES);
    let planned = admin.plan(1);
    assert_eq!(
        planned.trim(),
        "+ queue nightly: priority 2; weight 50; users ci,root; limits.waiting hard=100; limits.running soft=5,hard=10"
    );
    let unasked = admin.run(&["apply", "lab.yaml"]);
    unasked.expect_code(2);
    assert!(unasked.err.contains("--yes"), "{}", unasked.err);
    assert_eq!(admin.apply(), planned);
    admin.settled().await;
    assert_eq!(admin.apply(), "");
    let queue = admin.queue("nightly").await.expect("the queue");
    assert_eq!(queue["limits"]["running"], json!({"soft": 5, "hard": 10}));

    admin.write(
        &QUEUES
            .replace("weight: 50", "weight: 60")
            .replace("100", "none"),
    );
    let planned = admin.run(&["plan", "lab.yaml", "--json"]);
    let planned: Value = serde_json::from_str(planned.expect_code(1)).expect("JSON");
    assert_eq!(
        planned["changes"],
        json!([{"act": "change", "kind": "queue", "name": "nightly", "fields": [
            {"field": "weight", "old": 50, "new": 60},
            {"field": "limits.waiting", "old": "hard=100", "new": "none"},
        ]}])
    );
    assert_eq!(
        admin.apply().trim(),
        "~ queue nightly: weight 50 -> 60; limits.waiting hard=100 -> none"
    );
    admin.settled().await;

    admin.write(&format!(
        "complete: queues\n{}",
        QUEUES
            .replace("weight: 50", "weight: 60")
            .replace("100", "none")
    ));
    assert_eq!(admin.plan(1).trim(), "- queue other: priority 3; weight 7");
    admin.apply();
    admin.settled().await;
    let audited = admin.scheduler().log();
    assert!(audited.contains("queue.set") && audited.contains("queue.delete"));
}

async fn accounts_are_created_only_if_the_file_says_so(store: Store) {
    let admin = Admin::new(store).await;
    admin.write("accounts:\n  ci:\n    role: user\n    vip: true\n");
    let refused = admin.run(&["apply", "lab.yaml", "--yes"]);
    refused.expect_code(2);
    let said = "lab.yaml:2: account 'ci' does not exist";
    assert!(refused.err.contains(said), "{}", refused.err);
    assert!(refused.err.contains("create: true"), "{}", refused.err);

    let file = "accounts:\n  ci: {create: true, role: user, limits: {hours: 12}}\n  rack1: {create: true, role: testbox, hosts: [rack1-*]}\n";
    admin.write(file);
    let missing = admin.run(&["apply", "lab.yaml", "--yes", "--tokens", "tokens"]);
    missing.expect_code(2);
    let tokens = admin.scheduler().folder().join("tokens");
    fs::create_dir(&tokens).expect("a folder");
    let done = admin.run(&["apply", "lab.yaml", "--yes", "--tokens", "tokens"]);
    let done = done.expect_code(0);
    let path = tokens.join("ci.token");
    assert!(done.contains("token in tokens/ci.token"), "{done}");
    let mode = fs::metadata(&path).expect("the token").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fs::read_to_string(&path).expect("the token");
    let ci = admin.scheduler().http().with_token(token.trim());
    let who = ci.get("/scheduler/v1/whoami").await.json();
    assert_eq!(
        (&who["my_account"], &who["role"]),
        (&json!("ci"), &json!("user"))
    );
    assert!(!done.contains(token.trim()), "{done}");
    assert_eq!(admin.plan(0), "");

    admin.write(
        &file
            .replace("hours: 12", "hours: none")
            .replace("rack1-*", "rack1-*, rack2-*"),
    );
    assert_eq!(
        admin.apply(),
        "~ account ci: limits.hours hard=12 -> none\n~ account rack1: hosts rack1-* -> rack1-*,rack2-*\n"
    );

    admin.write("accounts:\n  bob: {create: true}\n");
    let shown = admin.apply();
    assert!(
        shown.starts_with("+ account bob; token, shown only now: "),
        "{shown}"
    );

    admin.write("complete: accounts\naccounts:\n  ci: {}\n");
    let refused = admin.run(&["plan", "lab.yaml"]);
    refused.expect_code(2);
    assert!(
        refused.err.contains("your own account 'root'"),
        "{}",
        refused.err
    );
    admin.write("complete: accounts\naccounts:\n  ci: {}\n  root: {}\n");
    assert_eq!(
        admin.apply(),
        "- account bob: role user\n- account rack1: role testbox\n"
    );
    let who = ci.get("/scheduler/v1/whoami").await;
    assert_eq!(who.status, 200, "{}", who.text);
}

async fn a_wrong_file_is_refused_before_anything_is_done(store: Store) {
    let admin = Admin::new(store).await;
    for (more, said, hint) in [
        (
            "  b: {wieght: 3}\n",
            "lab.yaml:3: unknown key 'wieght'",
            "'weight'",
        ),
        (
            "  b: {weight: 0}\n",
            "lab.yaml:3: weight: 0 is not valid",
            "1 to 10000",
        ),
        (
            "acounts: {}\n",
            "lab.yaml:3: unknown key 'acounts'",
            "'accounts'",
        ),
        (
            "accounts: {c: {token: x}}\n",
            "lab.yaml:3: account 'c'",
            "--tokens",
        ),
        ("  b: [\n", "lab.yaml:3:6: not YAML", "brackets"),
    ] {
        admin.write(&format!("queues:\n  a: {{weight: 9}}\n{more}"));
        for command in ["plan", "apply"] {
            let ran = admin.run(&[command, "lab.yaml"]);
            ran.expect_code(2);
            assert!(
                ran.err.contains(said) && ran.err.contains(hint),
                "{}",
                ran.err
            );
        }
    }
    let gone = admin.run(&["plan", "nowhere.yaml"]);
    gone.expect_code(2);
    assert!(gone.err.contains("nowhere.yaml"), "{}", gone.err);
    assert!(admin.queue("a").await.is_none());
    // A problem that only the scheduler can detect stops the rest, and is named.
    admin.write("queues:\n  a: {weight: 9}\naccounts:\n  root: {hosts: [x]}\n");
    let refused = admin.run(&["apply", "lab.yaml", "--yes"]);
    refused.expect_code(3);
    assert!(
        refused.err.contains("0 of 2 changes done"),
        "{}",
        refused.err
    );
}

async fn hosts_are_registered_and_closed_by_a_file(store: Store) {
    let admin = Admin::new(store).await;
    let file = "hosts:\n  a66:\n    arch: aarch64\n    group: taishan\n    kinds: hw\n    memory: 64g\n    cpus: 96\n    tags: [ssd, rack1]\n    cordon: its disk is broken\n";
    admin.write(file);
    let done = admin.apply();
    assert_eq!(
        done,
        "+ host a66: arch aarch64; group taishan; kinds hw; memory_mb 65536; cpus 96; tags rack1,ssd\n~ host a66: cordon none -> its disk is broken\n"
    );
    admin.settled().await;
    admin.write(
        &file
            .replace("its disk is broken", "false")
            .replace("[ssd, rack1]", "[rack1]"),
    );
    assert_eq!(
        admin.apply(),
        "~ host a66: tags rack1,ssd -> rack1\n~ host a66: cordon its disk is broken -> none\n"
    );
    admin.settled().await;
    let host = admin.lab.admin.get("/scheduler/v1/hosts/a66").await.json();
    assert_eq!(host["group"], "taishan");
    assert!(host["closed"].is_null(), "{host}");
}

async fn a_file_says_how_long_jobs_are_kept(store: Store) {
    let admin = Admin::new(store).await;
    let path = "/scheduler/v1/retention";
    let kept = async || admin.lab.admin.get(path).await.json();
    assert_eq!(kept().await, json!({"keep_months": null, "in_force": 0}));
    admin.write("retention: {keep_months: 6}\n");
    assert_eq!(admin.apply(), "~ retention jobs: keep_months none -> 6\n");
    assert_eq!(admin.plan(0), "");
    assert_eq!(kept().await, json!({"keep_months": 6, "in_force": 6}));
    admin.write("retention: {keep_months: none}\n");
    assert_eq!(admin.apply(), "~ retention jobs: keep_months 6 -> none\n");
    let refused = admin
        .lab
        .admin
        .post(path, &json!({"keep_months": 1001}))
        .await;
    assert!(refused.refused(400).message.contains("1001 is over 1000"));
    let ann = admin.lab.user("ann").await;
    ann.get(path).await.refused(403);
    assert!(admin.scheduler().log().contains("retention.set"));
}
