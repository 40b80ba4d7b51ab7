//! Elasticsearch as sites run it: TLS with an authority of the site's own, users and API keys, and a role
//! with no more rights than are needed.

use std::fs;

use fairlead_tests::{
    Agent, Http, Replicas, Secured, eventually, jobs,
    secured::{Login, role, run_role},
};
use reqwest::Method;
use serde_json::{Value, json};

/// Submits a job, has a real agent run it, and finds it again. Queues and accounts are kept, and a restart loses
/// nothing. No secret is in the log.
async fn all_of_it_works(login: &Login<'_>) {
    let mut scheduler = login.scheduler(&[]).await;
    let http = scheduler.http();
    let _agent = Agent::start(
        &scheduler.url(),
        "host-1",
        &["--kind", "dc", "--memory", "4g"],
    );
    let job = jobs::with(jobs::dc("alice"), &json!({"script": "echo done"}));
    let waits = jobs::with(jobs::dc("alice"), &json!({"need_memory": "900g"}));
    let ids = http.submit(&json!([job, waits])).await;
    ended_well(&http, &ids[0]).await;
    let queue = http
        .post("/scheduler/v1/queues/alice", &json!({"weight": 30}))
        .await;
    assert_eq!(queue.status, 200, "{}", queue.text);
    let account = http
        .post("/scheduler/v1/accounts/alice", &json!({"limits": {}}))
        .await;
    assert_eq!(account.status, 200, "{}", account.text);
    scheduler.stop().await;
    scheduler.restart().await;
    assert_eq!(http.field(&ids[0], "job_health").await, "success");
    assert_eq!(http.field(&ids[1], "job_stage").await, "submit");
    let found = http.get("/scheduler/v1/jobs?stage=finish").await;
    assert!(found.text.contains(&ids[0]), "{}", found.text);
    let health = http.get("/scheduler/v1/health").await;
    assert_eq!(health.status, 200, "{}", health.text);
    assert!(!scheduler.log().contains("secret-"), "{}", scheduler.log());
}

async fn ended_well(http: &Http, id: &str) {
    eventually("the job ends", async || {
        (http.field(id, "job_stage").await == "finish").then_some(())
    })
    .await;
    assert_eq!(http.field(id, "job_health").await, "success");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_role_of_the_guide_may_do_all_of_it() {
    all_of_it_works(&Secured::shared().user().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_with_the_role_of_the_guide_may_do_all_of_it() {
    all_of_it_works(&Secured::shared().key().await).await;
}

/// The role that only runs is enough after another user has set up the lab, for example by creating the first account.
#[tokio::test(flavor = "multi_thread")]
async fn who_runs_need_not_be_who_sets_up() {
    let server = Secured::shared();
    let setter = server.user().await;
    let runner = server.user_of(&setter.prefix, &run_role()).await;
    let authority = server.authority();
    let words = runner.refusal(&["--elasticsearch-ca", &authority]).await;
    assert!(
        words.contains("template") && words.contains("manage_index_templates"),
        "{words}"
    );
    let root = setter.fairlead(&[], &["account", "add", "root", "--role", "admin"]);
    root.expect_code(0);
    all_of_it_works(&runner).await;
}

/// Tests a lab with an index for each kind of small documents. Its move needs one more right, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_lab_of_before_is_moved_by_who_may_manage_it() {
    let server = Secured::shared();
    let setter = server.user().await;
    let old = format!("/{}-queues", setter.prefix);
    let fields = json!({"mappings": {"properties": {"id": {"type": "keyword"}}}});
    server.ask(Method::PUT, &old, &fields).await;
    let queue = json!({"id": "alice", "format": 1, "updated_ms": 1, "body": {"weight": 30}});
    let path = format!("{old}/_doc/alice");
    server.ask(Method::PUT, &path, &queue).await;
    let authority = server.authority();
    let words = setter.refusal(&["--elasticsearch-ca", &authority]).await;
    assert!(words.contains("manage on the prefix"), "{words}");
    let mut more = role();
    let rights = more["indices"][0]["privileges"].as_array_mut();
    rights.expect("privileges").push(json!("manage"));
    let manager = server.user_of(&setter.prefix, &more).await;
    let root = manager.fairlead(&[], &["account", "add", "root", "--role", "admin"]);
    root.expect_code(0);
    let runner = server.user_of(&setter.prefix, &run_role()).await;
    let scheduler = runner.scheduler(&[]).await;
    let queues = scheduler.http().get("/scheduler/v1/queues").await.json();
    let mut queues = queues.as_array().expect("queues").iter();
    let alice = queues.find(|queue| queue["name"] == "alice");
    assert_eq!(alice.expect("the queue")["weight"], 30);
}

/// Regression: `keep_months` was accepted, but nothing was ever deleted.
#[tokio::test(flavor = "multi_thread")]
async fn months_are_deleted_only_by_who_may() {
    let server = Secured::shared();
    let login = server.user().await;
    let path = "/scheduler/v1/retention";
    let keep = |months: u32| json!({ "keep_months": months });
    let put = |http: Http, months| async move {
        let body = keep(months).to_string().into_bytes();
        http.send(Method::PUT, path, "application/json", body).await
    };
    let health = async |http: &Http| http.get("/scheduler/v1/health").await.text;
    let scheduler = login.scheduler(&[]).await;
    let refused = put(scheduler.http(), 12).await.refused(409);
    assert!(refused.message.contains("delete_index"), "{refused:?}");
    assert_eq!(put(scheduler.http(), 0).await.status, 200, "for ever");
    assert!(!health(&scheduler.http()).await.contains("delete_index"));
    let mut more = role();
    let rights = more["indices"][0]["privileges"].as_array_mut();
    rights.expect("privileges").push(json!("delete_index"));
    let other = server.user().await;
    let may = server.user_of(&other.prefix, &more).await;
    let may = may.scheduler(&[]).await;
    assert_eq!(put(may.http(), 12).await.status, 200);
    // The log and health of each replica report its own settings.
    let own = server.user().await;
    let scheduler = own.scheduler(&["--keep-months", "12"]).await;
    eventually("it says so at its start", async || {
        let told = health(&scheduler.http()).await;
        (told.contains("delete_index") && scheduler.log().contains("delete_index")).then_some(())
    })
    .await;
}

/// Checks that the launcher's records are enough to restart a replica, and hold no secret.
#[tokio::test(flavor = "multi_thread")]
async fn the_launchers_replicas_log_in() {
    let server = Secured::shared();
    let login = server.user().await;
    let authority = server.authority();
    let mut store = login.words();
    store.extend(["--elasticsearch-ca", &authority]);
    let replicas = Replicas::up_on(&login.prefix, &store, 2, &[]).await;
    replicas.done(&["restart", "1"]).await;
    assert_eq!(replicas.status().await.1, 0);
    let known = fs::read_to_string(replicas.folder().join("cluster.json"));
    let known = known.expect("what is remembered");
    assert!(!known.contains("secret-"), "{known}");
    replicas.done(&["down"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_that_are_none_are_refused_at_the_start() {
    let server = Secured::shared();
    let mut login = server.user().await;
    let authority = server.authority();
    let trusted = ["--elasticsearch-ca", authority.as_str()];
    let told = |words: &str, said: &[&str]| {
        for said in said {
            assert!(words.contains(said), "no '{said}' in {words}");
        }
        assert!(!words.contains("secret-"), "{words}");
    };
    // No trusted authority signed it: neither a public one, nor its own certificate.
    let words = login.refusal(&[]).await;
    told(&words, &["invalid peer certificate", "--elasticsearch-ca"]);
    let other = authority.replace("ca.crt", "node.crt");
    let words = login.refusal(&["--elasticsearch-ca", &other]).await;
    told(&words, &["invalid peer certificate", "--elasticsearch-ca"]);
    login.secret("--elasticsearch-password-file", "secret-of-another");
    let words = login.refusal(&trusted).await;
    told(&words, &["refuses user", "--elasticsearch-password-file"]);
    let mut key = server.key().await;
    key.secret("--elasticsearch-api-key-file", "c2VjcmV0LTpub25l");
    let words = key.refusal(&trusted).await;
    told(
        &words,
        &["refuses the API key", "--elasticsearch-api-key-file"],
    );
    assert!(!words.contains("c2VjcmV0"), "{words}");
    let words = server.nobody().refusal(&trusted).await;
    told(&words, &["without a login", "--elasticsearch-user"]);
    // A key from the environment beside a user is a mistake of the command line.
    let words = ["account", "add", "root"];
    let both = login.fairlead(&[("FAIRLEAD_ELASTICSEARCH_API_KEY", "c2VjcmV0")], &words);
    both.expect_code(2);
    told(&both.err, &["an API key", "hint:"]);
}

/// Tests a password that changes under a scheduler. It reports that, refuses requests, and goes on by itself when it
/// can.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_good_no_more_is_told_and_waited_for() {
    let server = Secured::shared();
    let login = server.user().await;
    let scheduler = login.scheduler(&[]).await;
    let http = scheduler.http();
    let job = json!([jobs::dc("alice")]);
    let ids = http.submit(&job).await;
    let change = async |password: &str| {
        let path = format!("/_security/user/{}/_password", login.user);
        let body = json!({"password": password});
        server.ask(Method::POST, &path, &body).await;
    };
    let health = async |status: u16| {
        eventually("health follows", async || {
            let reply = http.get("/scheduler/v1/health").await;
            (reply.status == status).then_some(reply.text)
        })
        .await
    };
    change("secret-new").await;
    let words = health(503).await;
    assert!(
        words.contains("401") && words.contains(&login.user),
        "{words}"
    );
    let refused = http.post("/scheduler/v1/jobs/submit", &job).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    change(&format!("secret-{}", login.user)).await;
    health(200).await;
    http.submit(&job).await;
    assert_eq!(http.field(&ids[0], "job_stage").await, "submit");
    assert!(!scheduler.log().contains("secret-"), "{}", scheduler.log());
}

/// Checks that each right of the roles is needed. Without it, the start names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_lacking_is_named_at_the_start() {
    let server = Secured::shared();
    let authority = server.authority();
    let mut missing = Vec::new();
    for right in names(&run_role()["cluster"]) {
        missing.push((without(&role(), "/cluster", &right), right));
    }
    for right in names(&run_role()["indices"][0]["privileges"]) {
        missing.push((without(&role(), "/indices/0/privileges", &right), right));
    }
    let right = "manage_index_templates".to_owned();
    missing.push((without(&role(), "/cluster", &right), right));
    assert_eq!(missing.len(), 7);
    for (role, right) in missing {
        let prefix = format!("t-{}", fairlead_tests::clock::unique());
        let login = server.user_of(&prefix, &role).await;
        let words = login.refusal(&["--elasticsearch-ca", &authority]).await;
        assert!(words.contains(&right), "no '{right}' in {words}");
        assert!(words.contains("guide"), "{words}");
    }
    // The rights of one lab do not apply in another.
    let mut login = server.user_of("t-other", &role()).await;
    login.prefix = "t-mine".to_owned();
    let words = login.refusal(&["--elasticsearch-ca", &authority]).await;
    assert!(words.contains("t-mine-jobs-*"), "{words}");
}

fn names(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list of rights");
    let names = list.iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn without(role: &Value, place: &str, right: &str) -> Value {
    let mut role = role.clone();
    let rights = role.pointer_mut(place).expect("a list of rights");
    let rights = rights.as_array_mut().expect("a list of rights");
    rights.retain(|one| one != right);
    role
}
