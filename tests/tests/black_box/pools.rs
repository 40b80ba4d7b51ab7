//! Tests of pools of machines that come and go, with real agents as machines.

use std::collections::BTreeSet;

use fairlead_tests::{Http, Scheduler, Site, Store, Testbox, jobs, on_both_stores, until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

on_both_stores!(
    a_burst_gets_machines_that_go_again,
    a_provider_that_fails_is_told_and_bad_pools_are_refused,
    jobs_pack_so_that_machines_fall_idle,
    jobs_that_no_host_runs_and_that_may_begin_get_machines,
);

/// Time for machines to start, run jobs and go, seconds. Decisions are made every 15 s.
const LIMIT_S: u64 = 300;

async fn set(http: &Http, name: &str, fields: Value) -> Value {
    let machine = json!({"kinds": ["dc"], "arch": "x86_64", "memory_mb": 512});
    let pool = jobs::with(
        json!({"provider": "local", "machine": machine, "min": 0, "max": 4, "boot_s": 5}),
        &fields,
    );
    let said = http
        .post(&format!("/scheduler/v1/pools/{name}"), &pool)
        .await;
    assert_eq!(said.status, 200, "{}", said.text);
    said.json()
}

async fn pool(http: &Http, name: &str) -> Value {
    http.get(&format!("/scheduler/v1/pools/{name}"))
        .await
        .json()
}

async fn submitted(http: &Http, many: usize) -> Vec<String> {
    let job = jobs::with(
        jobs::dc("alice"),
        &json!({"need_memory": "256m", "arch": "x86_64", "script": "sleep 1"}),
    );
    http.submit(&jobs::times(many, &job)).await
}

async fn a_burst_gets_machines_that_go_again(store: Store) {
    let site = Site::new();
    let scheduler = Scheduler::start_with(store, &["--providers", &site.providers()]).await;
    site.serve(&[scheduler.url()]);
    let http = scheduler.http();
    set(&http, "vms", json!({})).await;
    // No host is known, but there is no warning, because the pool has such machines.
    let ids = submitted(&http, 12).await;
    let explained = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[11]))
        .await;
    assert!(
        explained
            .text
            .contains("a machine of pool vms could run it"),
        "{}",
        explained.text
    );
    for id in &ids {
        let job = until("the job has ended", LIMIT_S, async || {
            let job = http.get(&format!("/scheduler/v1/jobs/{id}")).await.json();
            (job["job_stage"] == "finish").then_some(job)
        })
        .await;
        assert_eq!(
            (&job["job_health"], &job["attempt"]),
            (&json!("success"), &json!(1)),
            "{job}"
        );
    }
    until("all machines are gone", LIMIT_S, async || {
        let pool = pool(&http, "vms").await;
        let hosts = http.get("/scheduler/v1/hosts").await.json();
        let gone = pool["machines"] == json!([]) && hosts == json!([]);
        gone.then_some(())
    })
    .await;
    let started = site.started();
    let each: BTreeSet<&String> = started.iter().collect();
    assert_eq!(
        each.len(),
        started.len(),
        "a machine was made twice: {started:?}"
    );
    assert!((1..=4).contains(&started.len()), "{started:?}");
    let decisions = http.get("/scheduler/v1/pools/vms/decisions").await.json();
    let of = |field: &str| -> BTreeSet<String> {
        let all = decisions.as_array().into_iter().flatten();
        let names = all.flat_map(|one| one[field].as_array().cloned().unwrap_or_default());
        let first = |name: Value| {
            name.as_str()
                .unwrap_or_default()
                .split(':')
                .next()
                .map(str::to_owned)
        };
        names.filter_map(first).collect()
    };
    let all: BTreeSet<String> = started.iter().cloned().collect();
    assert_eq!(
        (of("added"), of("retired")),
        (all.clone(), all),
        "{decisions}"
    );
    let first = decisions
        .as_array()
        .and_then(|all| all.last())
        .cloned()
        .unwrap_or_default();
    assert_eq!(
        (&first["number"], &first["waiting"]),
        (&json!(1), &json!(12)),
        "{first}"
    );
    assert!(
        first["sentence"]
            .as_str()
            .is_some_and(|words| words.contains("12 jobs wait")),
        "{first}"
    );
    let gone = http
        .send(Method::DELETE, "/scheduler/v1/pools/vms", "", Vec::new())
        .await;
    assert_eq!(gone.status, 200, "{}", gone.text);
}

async fn a_provider_that_fails_is_told_and_bad_pools_are_refused(store: Store) {
    let site = Site::new();
    site.script(
        "providers/broken",
        "echo 'the account is over its quota' >&2; exit 1",
    );
    let scheduler = Scheduler::start_with(store, &["--providers", &site.providers()]).await;
    let http = scheduler.http();
    set(&http, "vms", json!({"provider": "broken", "min": 1})).await;
    let ids = submitted(&http, 1).await;
    until("the pool tells of its provider", LIMIT_S, async || {
        let pool = pool(&http, "vms").await;
        let problem = pool["problem"].as_str().unwrap_or_default().to_owned();
        problem
            .contains("the account is over its quota")
            .then_some(())
    })
    .await;
    let explained = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[0]))
        .await;
    assert!(
        explained.text.contains("is over its quota"),
        "{}",
        explained.text
    );
    for (name, change, code) in [
        ("vms", json!({"provider": "none-such"}), "bad_field"),
        ("vms", json!({"provider": "../broken"}), "bad_field"),
        ("vms", json!({"min": 5}), "bad_field"),
        ("vms", json!({"law": "luck"}), "bad_field"),
        ("vms", json!({"colour": "red"}), "bad_field"),
        ("new", json!({"min": 0}), "bad_field"),
        ("*", json!({"min": 0}), "bad_name"),
    ] {
        let refused = http
            .post(&format!("/scheduler/v1/pools/{name}"), &change)
            .await;
        let told = refused.refused(400);
        assert_eq!(told.code.as_str(), code, "{name} {change}: {told}");
        assert!(!told.hint.is_empty(), "{told}");
    }
    let unknown = http.get("/scheduler/v1/pools/none").await;
    assert_eq!(unknown.refused(404).code.as_str(), "not_found");
}

/// Lets the testbox ask for work until it gets some.
async fn asks(http: &Http, asking: &mut JoinSet<Testbox>, mut testbox: Testbox) {
    let path = format!("/scheduler/v1/hosts/{}", testbox.host);
    asking.spawn(async move {
        while testbox.ask(30).await.is_empty() {}
        testbox
    });
    until("it asks for work", LIMIT_S, async || {
        let host = http.get(&path).await;
        (host.status == 200 && host.json()["state"] == "waiting").then_some(())
    })
    .await;
}

async fn jobs_pack_so_that_machines_fall_idle(store: Store) {
    let site = Site::new();
    site.script("providers/played", "exec cat >/dev/null");
    let scheduler = Scheduler::start_with(store, &["--providers", &site.providers()]).await;
    let http = scheduler.http();
    set(&http, "vms", json!({"provider": "played", "paused": true})).await;
    let mut asking = JoinSet::new();
    for n in 0..3 {
        let machine = Testbox::dc(&http, &format!("vms--{n}"), 1 << 10);
        asks(&http, &mut asking, machine).await;
    }
    let mut used = Vec::new();
    for _ in 0..5 {
        http.submit(&jobs::dc("alice")).await;
        let asked = asking.join_next().await.expect("three machines ask");
        let mut machine = asked.expect("its answers are read");
        for grant in machine.held().to_vec() {
            machine.finish(&grant).await;
        }
        used.push(machine.host.clone());
        asks(&http, &mut asking, machine).await;
    }
    let first = used.first().cloned();
    assert_eq!(used, vec![first.unwrap_or_default(); 5]);
}

/// The jobs wait beside an idle host that cannot run them, and beside jobs of a paused queue.
async fn jobs_that_no_host_runs_and_that_may_begin_get_machines(store: Store) {
    let site = Site::new();
    let scheduler = Scheduler::start_with(store, &["--providers", &site.providers()]).await;
    site.serve(&[scheduler.url()]);
    let http = scheduler.http();
    let mut asking = JoinSet::new();
    asks(&http, &mut asking, Testbox::dc(&http, "plain", 1 << 10)).await;
    let later = json!({"users": "all", "paused": true});
    let set_queue = http.post("/scheduler/v1/queues/later", &later).await;
    assert_eq!(set_queue.status, 200, "{}", set_queue.text);
    let machine = json!({"kinds": ["dc"], "arch": "x86_64", "memory_mb": 512, "tags": ["special"]});
    set(&http, "vms", json!({"machine": machine})).await;
    let job = jobs::with(
        jobs::dc("alice"),
        &json!({"need_memory": "512m", "arch": "x86_64", "tags": ["special"]}),
    );
    let paused = jobs::with(job.clone(), &json!({"queue": "later"}));
    let ids = http.submit(&jobs::times(4, &paused)).await;
    let explained = http
        .get(&format!("/scheduler/v1/jobs/{}/explain", ids[0]))
        .await;
    let words = "none is asked for while no job of its queue and account may start";
    assert!(explained.text.contains(words), "{}", explained.text);
    http.submit(&jobs::times(2, &job)).await;
    let first = until("the pool decides", LIMIT_S, async || {
        let decisions = http.get("/scheduler/v1/pools/vms/decisions").await.json();
        decisions.as_array()?.last().cloned()
    })
    .await;
    let added = first["added"].as_array().map(Vec::len);
    assert_eq!((&first["waiting"], added), (&json!(2), Some(2)), "{first}");
}
