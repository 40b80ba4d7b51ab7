//! Tests of access: accounts and tokens, own jobs only, secrets.

use std::path::PathBuf;

use fairlead_tests::{Guarded, Http, Scheduler, Store, Testbox, jobs, on_both_stores, settings};
use reqwest::Method;
use serde_json::{Value, json};

on_both_stores!(
    row_06_vip_is_a_right_and_idle_is_kept,
    row_15_only_the_owner_and_admins_act,
    row_15_names_keep_apart_in_the_open_too,
    row_15_a_job_token_is_for_its_job_only,
    row_16_secrets_are_readable_by_nobody,
    an_account_is_listed_right_after_it_was_added,
);

/// A scheduler that checks tokens, and clients of an admin, two users and a testbox account.
struct Lab {
    scheduler: Scheduler,
    admin: Http,
    alice: Http,
    bob: Http,
    testbox: Http,
}

impl Lab {
    async fn start(store: Store) -> Self {
        let guarded = Guarded::start(store, &[]).await;
        Self {
            alice: guarded.user("alice").await,
            bob: guarded.user("bob").await,
            testbox: guarded.testbox("box", &["*"]).await,
            admin: guarded.admin,
            scheduler: guarded.scheduler,
        }
    }
}

/// Regression: over Elasticsearch a list lagged behind by a refresh.
async fn an_account_is_listed_right_after_it_was_added(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    for n in 0..5 {
        let path = format!("/scheduler/v1/accounts/new-{n}");
        assert_eq!(http.post(&path, &json!({})).await.status, 200);
        let all = http.get("/scheduler/v1/accounts").await;
        assert!(all.text.contains(&format!("new-{n}")), "{}", all.text);
    }
}

async fn row_06_vip_is_a_right_and_idle_is_kept(store: Store) {
    let lab = Lab::start(store).await;
    let vip = jobs::with(jobs::dc("alice"), &json!({"queue": "vip"}));
    let refused = lab.alice.submit_items(&vip).await.remove(0);
    assert_eq!(refused.job_id, "0");
    assert_eq!(refused.code, "forbidden", "{refused:?}");

    let path = "/scheduler/v1/accounts/alice";
    lab.alice
        .post(path, &json!({"vip": true}))
        .await
        .refused(403);
    assert_eq!(
        lab.admin.post(path, &json!({"vip": true})).await.status,
        200
    );
    let id = lab.alice.submit(&vip).await.remove(0);
    assert_eq!(lab.alice.field(&id, "queue").await, "vip");

    let idle = jobs::with(jobs::dc("bob"), &json!({"queue": "idle"}));
    let id = lab.bob.submit(&idle).await.remove(0);
    assert_eq!(lab.bob.field(&id, "queue").await, "idle");
}

async fn row_15_only_the_owner_and_admins_act(store: Store) {
    let lab = Lab::start(store).await;
    let nobody = lab.scheduler.http();
    let wrong = nobody.with_token("0123456789abcdef");
    let ids = lab.alice.submit(&jobs::times(4, &jobs::dc("alice"))).await;
    let path = |what: &str| format!("/scheduler/v1/jobs/{}/{what}", ids[0]);

    for client in [&nobody, &wrong] {
        client
            .post("/scheduler/v1/jobs/submit", &jobs::dc("alice"))
            .await
            .refused(401);
        client
            .post(&path("cancel"), &json!({"my_account": "alice"}))
            .await
            .refused(401);
        client.get("/scheduler/v1/jobs").await.refused(401);
        client.get(&path("log")).await.refused(401);
        // The account is checked before the request.
        client.get("/scheduler/v1/jobs/x/log").await.refused(401);
        let mut testbox = Testbox::dc(client, "host-1", 8 << 10);
        testbox.next_request(0);
        testbox.send().await.refused(401);
    }
    for what in ["cancel", "terminate"] {
        lab.bob.post(&path(what), &json!({})).await.refused(403);
    }
    // Naming another account does not help, and a submit in its name is refused.
    lab.bob
        .post(&path("cancel"), &json!({"my_account": "alice"}))
        .await
        .refusal();
    let foreign = lab.bob.submit_items(&jobs::dc("alice")).await.remove(0);
    let told = ["forbidden", "unauthorized"].contains(&foreign.code.as_str());
    assert!(told && foreign.job_id == "0", "{foreign:?}");
    // A user is not a testbox, a testbox is not a user, and neither is an admin.
    let mut testbox = Testbox::dc(&lab.bob, "host-1", 8 << 10);
    testbox.next_request(0);
    testbox.send().await.refused(403);
    let queue = "/scheduler/v1/queues/alice";
    for client in [&lab.bob, &lab.testbox] {
        client
            .post(queue, &json!({"weight": 100}))
            .await
            .refused(403);
        client.get("/scheduler/v1/accounts").await.refused(403);
    }
    assert_eq!(lab.alice.field(&ids[0], "job_stage").await, "submit");
    // The owner and the admin may.
    assert_eq!(
        lab.alice.post(&path("cancel"), &json!({})).await.status,
        200
    );
    let other = format!("/scheduler/v1/jobs/{}/cancel", ids[1]);
    assert_eq!(lab.admin.post(&other, &json!({})).await.status, 200);
    // compass-ci's clients send account and token in the body.
    let accounts = lab
        .admin
        .get("/scheduler/v1/accounts")
        .await
        .json()
        .to_string();
    assert!(
        accounts.contains("alice")
            && !accounts.contains("my_token")
            && !accounts.contains("token_hash"),
        "{accounts}"
    );
}

async fn row_15_names_keep_apart_in_the_open_too(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let path = format!("/scheduler/v1/jobs/{id}/cancel");
    http.post(&path, &json!({"my_account": "bob"}))
        .await
        .refused(403);
    assert_eq!(http.field(&id, "job_stage").await, "submit");
    assert_eq!(
        http.post(&path, &json!({"my_account": "alice"}))
            .await
            .status,
        200
    );
}

async fn row_15_a_job_token_is_for_its_job_only(store: Store) {
    let lab = Lab::start(store).await;
    lab.alice.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    let mut testbox = Testbox::dc(&lab.testbox, "host-1", 8 << 10);
    let grants = testbox.take_all().await;
    let (mine, other) = (&grants[0], &grants[1]);
    let nobody = lab.scheduler.http();
    let finish = "job_stage=finish&job_health=success";
    for token in ["", "x", other.job_token.as_str()] {
        let path = format!(
            "/scheduler/v1/jobs/{}/update?attempt=1&job_token={token}&{finish}",
            mine.job_id
        );
        let reply = nobody.post(&path, &Value::Null).await;
        assert!(
            [401, 403, 409].contains(&reply.status),
            "{}: {}",
            reply.status,
            reply.text
        );
        reply.refusal();
    }
    let upload = async |folder: &str, id: &str, token: &str| {
        let path = format!("{folder}/out.txt?job_id={id}&job_token={token}");
        nobody.send(Method::POST, &path, "", b"42\n".to_vec()).await
    };
    upload(&other.result_root, &mine.job_id, &mine.job_token)
        .await
        .refusal();
    upload(&mine.result_root, &mine.job_id, &other.job_token)
        .await
        .refusal();
    upload("/result/elsewhere", &mine.job_id, &mine.job_token)
        .await
        .refusal();
    for climbing in ["/..", "/%2e%2e", "/a/../..", "/..%2f.."] {
        let folder = format!("{}{climbing}", mine.result_root);
        upload(&folder, &mine.job_id, &mine.job_token)
            .await
            .refusal();
    }
    let stored = upload(&mine.result_root, &mine.job_id, &mine.job_token).await;
    assert!((200..300).contains(&stored.status), "{}", stored.text);
    let file = format!("{}/out.txt", mine.result_root);
    let read = lab.alice.get(&file).await;
    assert_eq!((read.status, read.text.as_str()), (200, "42\n"));
    upload(&mine.result_root, &mine.job_id, &mine.job_token)
        .await
        .refused(409);
}

const SECRET: &str = "Zq7-not-for-you-Zq7";

async fn row_16_secrets_are_readable_by_nobody(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let fields = json!({"secrets": {"root_password": SECRET}, "my_email": "a@example.org"});
    let id = http
        .submit(&jobs::with(jobs::dc("alice"), &fields))
        .await
        .remove(0);
    let mut testbox = Testbox::dc(&http, "host-1", 2 << 10);
    let grant = testbox.take().await;
    assert_eq!(
        grant.job["secrets"]["root_password"], SECRET,
        "the testbox needs them"
    );
    for path in [
        format!("/{id}/secrets.yaml"),
        format!("/srv/scheduler/pending-jobs/{id}/secrets.yaml"),
        format!("/scheduler/v1/jobs/{id}"),
        format!("/scheduler/v1/jobs/{id}?fields=secrets,job_token,my_email"),
        format!("/scheduler/v1/jobs/{id}/explain"),
        format!("/scheduler/v1/jobs/{id}/log"),
        "/scheduler/v1/jobs".to_owned(),
        "/scheduler/v1/hosts/host-1".to_owned(),
        "/scheduler/v1/debug/dispatch".to_owned(),
    ] {
        let reply = http.get(&path).await;
        for hidden in [SECRET, &grant.job_token, &grant.claim_token] {
            assert!(!reply.text.contains(hidden), "{path}: {}", reply.text);
        }
    }
    testbox.finish(&grant).await;
    assert!(!scheduler.log().contains(SECRET), "it is in the log");
    assert_eq!(scheduler.files_with(SECRET), Vec::<PathBuf>::new());
    if store == Store::Elasticsearch {
        let elasticsearch = Http::new(&settings::elasticsearch()[0]);
        let seen = format!("/{}*/_refresh?expand_wildcards=all", scheduler.prefix());
        let reply = elasticsearch
            .send(Method::POST, &seen, "", Vec::new())
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let path = format!(
            "/{}*/_search?size=100&expand_wildcards=all",
            scheduler.prefix()
        );
        let all = elasticsearch.get(&path).await;
        assert!(
            all.text.contains(&id) && !all.text.contains(SECRET),
            "{}",
            all.text
        );
    }
}
