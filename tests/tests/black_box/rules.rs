//! Tests of submit rules: what they change, what they cannot give, and how admins set and people try them.

use std::fs;

use fairlead_tests::{
    Guarded, Http, Lab, Ran, Scheduler, Store, eventually, fairlead, jobs, on_both_stores,
};
use serde_json::{Value, json};

on_both_stores!(
    the_first_rule_that_a_job_meets_changes_it,
    a_rule_gives_no_right_and_limits_count_on_its_outcome,
    a_dry_run_tells_what_the_rules_would_do,
    rules_are_set_by_admins_and_checked_whole,
    a_lab_file_sets_the_rules,
    jobs_that_run_again_meet_the_rules,
);

const PATH: &str = "/scheduler/v1/rules";

fn rule(name: &str, condition: &str, then: &Value) -> Value {
    json!({"name": name, "if": condition, "then": then})
}

async fn set(admin: &Http, rules: &[Value]) {
    let reply = admin.post(PATH, &json!({ "rules": rules })).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(
        reply.json()["rules"].as_array().map(Vec::len),
        Some(rules.len())
    );
}

async fn open_queue(admin: &Http, name: &str, more: &Value) {
    let body = jobs::with(json!({"users": "all"}), more);
    let reply = admin
        .post(&format!("/scheduler/v1/queues/{name}"), &body)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

async fn the_first_rule_that_a_job_meets_changes_it(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    open_queue(&http, "nightly", &json!({})).await;
    let rules = [
        rule(
            "lkp",
            "suite ~ 'lkp.*' and account == 'ci'",
            &json!({"queue": "nightly", "priority": 2}),
        ),
        rule(
            "big",
            "kind == 'dc' and param.size == 9",
            &json!({"need_memory": "32M", "tags": ["ssd"]}),
        ),
        rule("all-ci", "account == 'ci'", &json!({"priority": -5})),
    ];
    set(&http, &rules).await;
    let job = |account: &str, fields: Value| jobs::with(jobs::dc(account), &fields);
    let all = json!([
        job("ci", json!({"suite": "lkp-a", "size": 9})),
        job(
            "ci",
            json!({"suite": "b", "size": 9, "memory": "16M", "need_memory": null})
        ),
        job("ci", json!({"suite": "b"})),
        job(
            "ann",
            json!({"suite": "lkp-a", "submit_rule": {"rule": "forged"}})
        ),
    ]);
    let items = http.submit_items(&all).await;
    let applied: Vec<_> = items
        .iter()
        .map(|item| item.rule.as_ref().map(|rule| rule.rule.as_str()))
        .collect();
    assert_eq!(applied, [Some("lkp"), Some("big"), Some("all-ci"), None]);
    let shown = async |n: usize| http.job(&items[n].job_id).await;
    let first = shown(0).await;
    assert_eq!(
        (&first["queue"], &first["priority"]),
        (&json!("nightly"), &json!(2))
    );
    assert_eq!(
        first["submit_rule"],
        json!({"rule": "lkp", "changes": {
            "queue": {"submitted": null, "now": "nightly"}, "priority": {"submitted": null, "now": 2},
        }})
    );
    let second = shown(1).await;
    assert_eq!(
        (&second["memory_mb"], &second["tags"]),
        (&json!(32), &json!(["ssd"]))
    );
    assert_eq!(
        second["submit_rule"]["changes"]["need_memory"]["submitted"],
        "16M"
    );
    assert_eq!(shown(2).await["priority"], -5);
    let fourth = shown(3).await;
    assert!(
        fourth["submit_rule"].is_null() && fourth["queue"] == "ann",
        "{fourth}"
    );
}

async fn a_rule_gives_no_right_and_limits_count_on_its_outcome(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let (ann, bob) = (lab.user("ann").await, lab.user("bob").await);
    open_queue(&lab.admin, "release", &json!({"users": ["bob"]})).await;
    open_queue(
        &lab.admin,
        "small",
        &json!({"limits": {"waiting": {"hard": 0}}}),
    )
    .await;
    let rules = [
        rule("to-vip", "suite == 'v'", &json!({"queue": "vip"})),
        rule("to-release", "suite == 'r'", &json!({"queue": "release"})),
        rule("to-small", "suite == 's'", &json!({"queue": "small"})),
    ];
    set(&lab.admin, &rules).await;
    let of = |account: &str, suite: &str| jobs::with(jobs::dc(account), &json!({ "suite": suite }));
    for (suite, code, name) in [
        ("v", "forbidden", "to-vip"),
        ("r", "forbidden", "to-release"),
        ("s", "quota", "to-small"),
    ] {
        let item = ann.submit_items(&of("ann", suite)).await.remove(0);
        assert_eq!(
            (item.job_id.as_str(), item.code.as_str()),
            ("0", code),
            "{item:?}"
        );
        assert!(
            item.hint
                .contains(&format!("submit rule '{name}' changed queue")),
            "{item:?}"
        );
        assert_eq!(item.rule.expect("the rule").rule, name);
    }
    let id = bob.submit(&of("bob", "r")).await.remove(0);
    assert_eq!(bob.field(&id, "queue").await, "release");
    let changed = lab
        .admin
        .post("/scheduler/v1/accounts/ann", &json!({"vip": true}))
        .await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let id = ann.submit(&of("ann", "v")).await.remove(0);
    assert_eq!(ann.field(&id, "queue").await, "vip");
}

fn run(scheduler: &Scheduler, account: &str, words: &[&str]) -> Ran {
    let url = scheduler.url();
    let variables = [
        ("FAIRLEAD_SERVER", url.as_str()),
        ("FAIRLEAD_ACCOUNT", account),
    ];
    fairlead(scheduler.folder(), &variables, words)
}

async fn a_dry_run_tells_what_the_rules_would_do(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    open_queue(&http, "release", &json!({"users": ["bob"]})).await;
    set(
        &http,
        &[
            rule("night", "suite == 'n'", &json!({"priority": 7})),
            rule("release", "suite == 'v'", &json!({"queue": "release"})),
        ],
    )
    .await;
    let file = "suite: n\nscript: 'true'\ntestbox: dc\nneed_memory: 16M\n---\nsuite: v\nscript: 'true'\ntestbox: dc\n---\nsuite: x\nscript: 'true'\n";
    fs::write(scheduler.folder().join("job.yaml"), file).expect("a job file");
    let ran = run(&scheduler, "ann", &["submit", "--dry-run=lab", "job.yaml"]);
    let told = ran.expect_code(3);
    for line in [
        "job.yaml: job 1 of 3 would be accepted; rule night: priority none -> 7",
        "job.yaml: job 2 of 3 would be refused: account 'ann' may not use queue 'release' (forbidden); rule release: queue none -> release",
        "job.yaml: job 3 of 3 would be accepted",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    let ran = run(
        &scheduler,
        "ann",
        &["submit", "--dry-run=lab", "--json", "job.yaml"],
    );
    let told: Value = serde_json::from_str(ran.expect_code(3)).expect("JSON");
    assert_eq!(told["jobs"][0]["rule"]["rule"], "night");
    assert_eq!(told["jobs"][0]["job_id"], "");
    // A submit reports the rule as well.
    let words = ["submit", "job.yaml"];
    let ran = run(&scheduler, "eve", &words);
    ran.expect_code(3);
    let said = "and others like it: rule night: priority none -> 7";
    assert!(ran.err.contains(said), "{}", ran.err);
    // The local dry run needs no scheduler, and none of them stored anything.
    let ran = fairlead(
        scheduler.folder(),
        &[("FAIRLEAD_SERVER", "http://127.0.0.1:1")],
        &["submit", "--dry-run", "job.yaml"],
    );
    ran.expect_code(0);
    let id = http.submit(&jobs::dc("ann")).await.remove(0);
    eventually("the job is listed", async || {
        let listed = http.get("/scheduler/v1/jobs?account=ann").await.json();
        let listed = listed["jobs"].as_array().cloned().unwrap_or_default();
        (listed.len() == 1 && listed[0]["job_id"] == id.as_str()).then_some(())
    })
    .await;
}

async fn rules_are_set_by_admins_and_checked_whole(store: Store) {
    let lab = Guarded::start(store, &[]).await;
    let ann = lab.user("ann").await;
    let good = rule("a", "suite == 'x'", &json!({"priority": 1}));
    ann.post(PATH, &json!({"rules": [good]})).await.refused(403);
    ann.get(PATH).await.refused(403);
    lab.nobody().get(PATH).await.refused(401);
    set(&lab.admin, std::slice::from_ref(&good)).await;
    for (bad, said) in [
        (
            rule("b", "suite = 'x'", &json!({"priority": 1})),
            "rule 'b': if: column 7",
        ),
        (
            rule("b", "suite ~ '(x'", &json!({"priority": 1})),
            "unclosed group",
        ),
        (
            rule("b", "suite == 'x'", &json!({"my_account": "root"})),
            "unknown field 'my_account'",
        ),
        (
            rule("b", "suite == 'x'", &json!({"priority": 1000})),
            "rule 'b': then: priority",
        ),
        (
            rule("a", "suite == 'x'", &json!({"priority": 1})),
            "'a' is there twice",
        ),
        (json!({"name": "b", "iff": "x", "then": {}}), "iff"),
    ] {
        let refused = lab
            .admin
            .post(PATH, &json!({"rules": [good, bad]}))
            .await
            .refused(400);
        assert!(refused.message.contains(said), "{refused:?}");
        assert!(!refused.hint.is_empty(), "{refused:?}");
    }
    let kept = lab.admin.get(PATH).await.json();
    assert_eq!(kept, json!({"rules": [good]}));
    assert!(lab.scheduler.log().contains("rules.set"));
}

const LAB: &str = "\
queues:
  nightly: {users: all}
rules:
  - name: lkp
    if: suite ~ 'lkp.*' and account == 'ci'
    then: {queue: nightly, priority: 2}
  - name: rest
    if: not kind == 'hw'
    then: {priority: -1}
";

async fn a_lab_file_sets_the_rules(store: Store) {
    let mut scheduler = Scheduler::start(store).await;
    let write = |scheduler: &Scheduler, text: &str| {
        fs::write(scheduler.folder().join("lab.yaml"), text).expect("a lab file");
    };
    write(&scheduler, LAB);
    let done = run(&scheduler, "", &["apply", "lab.yaml", "--yes"]);
    let lines = done.expect_code(0);
    assert_eq!(
        lines,
        "+ queue nightly: users all\n\
         + rule lkp: place 1; if suite ~ 'lkp.*' and account == 'ci'; then {\"queue\":\"nightly\",\"priority\":2}\n\
         + rule rest: place 2; if not kind == 'hw'; then {\"priority\":-1}\n"
    );
    eventually("the lab is as its file says", async || {
        let ran = run(&scheduler, "", &["plan", "lab.yaml"]);
        (ran.code == 0 && ran.out.is_empty()).then_some(())
    })
    .await;
    // The rules survive a restart.
    scheduler.stop().await;
    scheduler.restart().await;
    let http = scheduler.http();
    let job = jobs::with(jobs::dc("ci"), &json!({"suite": "lkp-x"}));
    let id = http.submit(&job).await.remove(0);
    assert_eq!(http.field(&id, "queue").await, "nightly");
    write(&scheduler, "queues:\n  nightly: {users: all}\nrules: []\n");
    let done = run(&scheduler, "", &["apply", "lab.yaml", "--yes"]);
    assert_eq!(done.expect_code(0).lines().count(), 2, "{}", done.out);
    assert_eq!(http.get(PATH).await.json(), json!({"rules": []}));
    write(
        &scheduler,
        "rules:\n  - name: a\n    if: suit == 'x'\n    then: {queue: q}\n",
    );
    let refused = run(&scheduler, "", &["plan", "lab.yaml"]);
    refused.expect_code(2);
    assert!(
        refused
            .err
            .contains("lab.yaml:3: rule 'a': if: column 1: unknown field 'suit'"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("did you mean 'suite'?"),
        "{}",
        refused.err
    );
}

async fn jobs_that_run_again_meet_the_rules(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("ann")).await.remove(0);
    let path = |what: &str| format!("/scheduler/v1/jobs/{id}/{what}?my_account=ann");
    http.post(&path("cancel"), &json!({})).await;
    for priority in [3, 4] {
        let then = json!({ "priority": priority });
        set(&http, &[rule("r", "account == 'ann'", &then)]).await;
        let again = http.post(&path("rerun"), &json!({})).await.json();
        assert_eq!(again[0]["rule"]["rule"], "r", "{again}");
        let job = http
            .job(again[0]["job_id"].as_str().unwrap_or_default())
            .await;
        assert_eq!(job["priority"], priority);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_knows_the_rules_within_seconds() {
    let lab = Lab::new();
    let replicas = lab.schedulers(2, &[]).await;
    let (one, two) = (replicas[0].http(), replicas[1].http());
    set(&one, &[rule("r", "suite == 'x'", &json!({"priority": 3}))]).await;
    let job = jobs::with(jobs::dc("ann"), &json!({"suite": "x"}));
    eventually("the other replica applies the rule", async || {
        let id = two.submit(&job).await.remove(0);
        (two.job(&id).await["priority"] == 3).then_some(())
    })
    .await;
}
