//! The answers of a busy lab against the description of the interface.

use std::collections::BTreeSet;

use fairlead_tests::{
    Http, Scheduler, Site, Store, content::Input, eventually, jobs, on_both_stores,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::described::Described;

on_both_stores!(every_field_of_every_answer_is_documented);

/// A lab with at least one event of every kind, and its answers.
struct Busy {
    http: Http,
    described: Described,
}

impl Busy {
    async fn ask(&mut self, method: &str, path: &str, at: &str, body: Option<Value>) -> Value {
        let sent: Method = method.to_uppercase().parse().expect("a method");
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let reply = self.http.send(sent, at, "application/json", body).await;
        assert_eq!(reply.status, 200, "{method} {at}: {}", reply.text);
        let answer = reply.json();
        self.described.check(method, path, &answer);
        answer
    }

    async fn get(&mut self, path: &str, at: &str) -> Value {
        self.ask("get", path, at, None).await
    }

    async fn post(&mut self, path: &str, at: &str, body: Value) -> Value {
        self.ask("post", path, at, Some(body)).await
    }

    /// Runs jobs that end successfully, badly and not at all, with retries, shards and groups.
    async fn fill(&mut self) -> (String, String) {
        let v1 = "/scheduler/v1";
        let sharded = jobs::with(
            jobs::dc("alice"),
            &json!({"shards": 2, "script": "true", "priority": 3, "category": "functional"}),
        );
        let plain = jobs::with(
            jobs::dc("alice"),
            &json!({"group": "matrix", "retry": 1, "nr_threads": 4, "milestones": "ready"}),
        );
        let both = json!([sharded, plain]);
        let path = &format!("{v1}/jobs/submit");
        let items = self.post(path, path, both.clone()).await;
        let first = items[0]["job_id"].as_str().expect("an id").to_owned();
        self.post("/submit_job", "/submit_job", json!([jobs::dc("bob")]))
            .await;
        let consume = format!("{v1}/testboxes/{{hostname}}/consume");
        let ask = json!({"session": "s", "request": 1, "kinds": ["dc"], "arch": "x86_64", "memory_mb": 65_536,
            "free_memory_mb": 65_536, "cpus": 64, "wait_s": 5, "facts": {"pci": ["8086:1521"]},
            "executors": [{"name": "process"}], "isolation": "none"});
        let mut granted = Vec::new();
        let mut request = 1;
        while granted.len() < 4 {
            let mut ask = ask.clone();
            ask["request"] = json!(request);
            ask["running"] = granted
                .iter()
                .map(|grant: &Value| {
                    json!({"job_id": grant["job_id"], "attempt": 1, "claim_token": grant["claim_token"]})
                })
                .collect();
            let at = format!("{v1}/testboxes/host-1/consume");
            let answer = self.post(&consume, &at, ask).await;
            granted.extend(answer["jobs"].as_array().expect("jobs").iter().cloned());
            request += 1;
        }
        let beat = json!({"session": "s", "running": []});
        let path = format!("{v1}/testboxes/{{hostname}}/heartbeat");
        let at = format!("{v1}/testboxes/host-1/heartbeat");
        self.post(&path, &at, beat).await;
        for (n, grant) in granted.iter().enumerate() {
            self.end(grant, n).await;
        }
        let of_bob = granted
            .iter()
            .find(|grant| grant["job"]["my_account"] == "bob");
        (
            first,
            of_bob.expect("the job of bob")["job_id"]
                .as_str()
                .expect("an id")
                .to_owned(),
        )
    }

    /// Uploads, writes and reports the end of a job. The second one fails.
    async fn end(&mut self, grant: &Value, n: usize) {
        let text = |name: &str| grant[name].as_str().expect("text").to_owned();
        let (id, token, root) = (text("job_id"), text("job_token"), text("result_root"));
        let query = format!("job_id={id}&job_token={token}&attempt=1");
        let junit = r#"<testsuite name="s" tests="2"><testcase name="a" time="0.1"/><testcase name="b"><failure/></testcase></testsuite>"#;
        for (method, name) in [("post", "junit.xml"), ("put", "notes.txt")] {
            let at = format!("{root}/{name}?{query}");
            let sent: Method = method.to_uppercase().parse().expect("a method");
            let reply = self.http.send(sent, &at, "", junit.into()).await;
            self.described
                .check(method, "/result/{path}", &reply.json());
        }
        let at = format!("/scheduler/v1/jobs/{id}/log?offset=0&attempt=1&job_token={token}");
        let reply = self.http.send(Method::POST, &at, "", b"out".to_vec()).await;
        self.described
            .check("post", "/scheduler/v1/jobs/{id}/log", &reply.json());
        let health = if n == 1 {
            "fail&exit_code=3"
        } else {
            "success"
        };
        for more in [
            "job_stage=running&milestones=ready".to_owned(),
            format!("job_stage=finish&job_health={health}&peak_memory_mb=7&cpu_ms=9"),
        ] {
            let at = format!("/scheduler/v1/jobs/{id}/update?{query}&{more}");
            let reply = self.http.send(Method::POST, &at, "", Vec::new()).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
        }
    }
}

async fn every_field_of_every_answer_is_documented(store: Store) {
    let site = Site::new();
    let providers = site.providers();
    let more = ["--providers", &providers, "--webhooks-to", "127.0.0.1:*"];
    let scheduler = Scheduler::start_with(store, &more).await;
    site.serve(&[scheduler.url()]);
    let http = scheduler.http();
    let document = the_document(&scheduler).await;
    let described = Described {
        document,
        seen: BTreeSet::new(),
        problems: Vec::new(),
    };
    let mut busy = Busy { http, described };
    let (parent, ended) = busy.fill().await;
    look_at_jobs(&mut busy, &parent, &ended).await;
    look_at_content(&mut busy, &ended).await;
    look_at_the_lab(&mut busy).await;
    set_the_lab(&mut busy).await;
    look_at_pools(&mut busy).await;
    look_at_the_dashboard(&mut busy).await;
    let described = busy.described;
    assert!(
        described.problems.is_empty(),
        "{}",
        described.problems.join("\n")
    );
    // These operations need a machine that boots by itself, a cluster, or a receiver.
    let elsewhere = [
        "get /scheduler/v1/submits/{submit}/events",
        "post /scheduler/v1/jobs/{id}/wait_peer",
        // Only pages of the scheduler use the login.
        "post /scheduler/v1/login",
    ];
    let unseen: Vec<String> = described
        .all()
        .into_iter()
        .filter(|one| !described.seen.contains(one) && !elsewhere.contains(&one.as_str()))
        .collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

/// Returns the description of the interface. It is sent compressed if accepted, and not again to clients that have it.
async fn the_document(scheduler: &Scheduler) -> Value {
    let (http, url) = (scheduler.http(), scheduler.url());
    let host = url.trim_start_matches("http://");
    let ask = async |header: &str| {
        let asked = format!(
            "GET /openapi.json HTTP/1.1\r\nHost: {host}\r\n{header}Connection: close\r\n\r\n"
        );
        let answer = http.raw(&asked).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    };
    let (plain, document) = ask("").await;
    assert!(!plain.contains("content-encoding"), "{plain}");
    assert!(plain.contains("content-type: application/json"), "{plain}");
    let (packed, bytes) = ask("Accept-Encoding: gzip\r\n").await;
    assert!(packed.contains("content-encoding: gzip"), "{packed}");
    assert!(bytes.len() < document.len() / 2, "{packed}");
    let tag = plain.lines().find_map(|line| line.strip_prefix("etag: "));
    let tag = tag.expect("a tag");
    let (known, nothing) = ask(&format!("If-None-Match: {tag}\r\n")).await;
    assert!(known.starts_with("HTTP/1.1 304"), "{known}");
    assert_eq!(nothing, "");
    serde_json::from_str(&document).expect("JSON")
}

/// Requests the answers for the dashboard.
async fn look_at_the_dashboard(busy: &mut Busy) {
    let v1 = "/scheduler/v1";
    for name in ["overview", "series", "audit"] {
        let path = format!("{v1}/{name}");
        busy.get(&path, &path).await;
    }
    let path = format!("{v1}/previews");
    let asked = json!({"action": "weights", "weights": {"alice": 20}});
    let shown = busy.post(&path, &path, asked).await;
    let id = shown["preview_id"].as_str().expect("an id");
    let (path, at) = (format!("{path}/{{preview}}"), format!("{path}/{id}"));
    busy.get(&path, &at).await;
    let (path, at) = (format!("{path}/run"), format!("{at}/run"));
    busy.post(&path, &at, json!({})).await;
}

/// Requests the answers about pools of machines.
async fn look_at_pools(busy: &mut Busy) {
    let v1 = "/scheduler/v1";
    let path = format!("{v1}/scaling");
    for method in ["post", "put"] {
        busy.ask(method, &path, &path, Some(json!({"quota": 5})))
            .await;
    }
    busy.get(&path, &path).await;
    let path = format!("{v1}/pools/{{name}}");
    let at = format!("{v1}/pools/vms");
    let machine = json!({"kinds": ["dc"], "arch": "x86_64", "memory_mb": 64, "cpus": 1});
    let pool = json!({"provider": "local", "machine": machine, "min": 1, "max": 2});
    for method in ["post", "put"] {
        busy.ask(method, &path, &at, Some(pool.clone())).await;
    }
    eventually("a decision was made", async || {
        let pool = busy.http.get(&at).await.json();
        (pool["machines"] != json!([])).then_some(())
    })
    .await;
    busy.get(&path, &at).await;
    busy.get(&format!("{v1}/pools"), &format!("{v1}/pools"))
        .await;
    let path = format!("{path}/decisions");
    busy.get(&path, &format!("{at}/decisions")).await;
}

/// Requests the answers about jobs.
async fn look_at_jobs(busy: &mut Busy, parent: &str, ended: &str) {
    let v1 = "/scheduler/v1";
    for id in [parent, ended] {
        busy.get(&format!("{v1}/jobs/{{id}}"), &format!("{v1}/jobs/{id}"))
            .await;
        let path = format!("{v1}/jobs/{{id}}/explain");
        busy.get(&path, &format!("{v1}/jobs/{id}/explain")).await;
        busy.get("/r/{id}", &format!("/r/{id}?format=json")).await;
    }
    let path = format!("{v1}/jobs");
    busy.get(&path, &format!("{path}?parts=all")).await;
    let job = busy.http.job(ended).await;
    let root = job["result_root"].as_str().expect("a folder");
    busy.get("/result/{path}", root).await;
    let wait = json!({"wait_on": {ended: null}});
    let path = format!("{v1}/jobs/wait");
    busy.post(&path, &path, wait).await;
    let path = format!("{v1}/jobs/{{id}}/rerun");
    let at = format!("{v1}/jobs/{ended}/rerun");
    let again = busy.post(&path, &at, json!({})).await;
    let path = format!("{v1}/jobs/rerun");
    let ids = json!({"job_ids": [ended, parent]});
    busy.post(&path, &path, ids).await;
    let path = format!("{v1}/jobs/change");
    let waiting = busy.http.submit(&json!([jobs::dc("bob")])).await;
    let change = json!({"job_ids": waiting, "hold": true, "set": {"priority": 4}});
    busy.post(&path, &path, change).await;
    let path = format!("{v1}/jobs/{{id}}");
    busy.get(&path, &format!("{v1}/jobs/{}", waiting[0])).await;
    let path = format!("{v1}/jobs/cancel");
    let ids = json!({"job_ids": [again[0]["job_id"], ended]});
    busy.post(&path, &path, ids).await;
    let suite = job["suite"].as_str().expect("a suite");
    let path = format!("{v1}/tests");
    busy.get(&path, &format!("{path}?suite={suite}")).await;
    let group = format!("{v1}/groups/{{group}}");
    busy.get(&group, &format!("{v1}/groups/matrix?account=alice"))
        .await;
    let at = format!("{v1}/groups/matrix/close?account=alice");
    let body = json!({"my_account": "alice"});
    busy.post(&format!("{group}/close"), &at, body).await;
}

/// Requests the answers about inputs, outputs and reused results.
async fn look_at_content(busy: &mut Busy, ended: &str) {
    let content = "/scheduler/v1/content";
    let input = Input::of("described");
    let path = format!("{content}/pin");
    let pin = json!({"put": "p", "chunks": [input.chunk]});
    busy.post(&path, &path, pin).await;
    let puts = [
        (
            "put",
            "chunks/{digest}",
            format!("chunks/{}", input.chunk),
            &input.bytes,
        ),
        ("post", "manifests", "manifests".to_owned(), &input.manifest),
    ];
    for (method, path, at, bytes) in puts {
        let sent: Method = method.to_uppercase().parse().expect("a method");
        let at = format!("{content}/{at}?put=p");
        let reply = busy.http.send(sent, &at, "", bytes.clone()).await;
        assert_eq!(reply.status, 200, "{at}: {}", reply.text);
        let path = format!("{content}/{path}");
        busy.described.check(method, &path, &reply.json());
    }
    let path = format!("{content}/urls");
    let urls = json!({"id": input.id, "chunks": [input.chunk]});
    busy.post(&path, &path, urls).await;
    busy.get(content, content).await;
    let path = format!("{content}/{{content}}");
    let at = format!("{content}/{}", input.id);
    busy.post(&path, &at, json!({"until": "+2d"})).await;
    busy.get(&path, &at).await;
    for care in ["collect", "check"] {
        let path = format!("{content}/{care}");
        busy.post(&path, &path, json!({})).await;
    }
    let reuse = "/scheduler/v1/reuse";
    let settings = json!({
        "salt": "s", "audit_percent": 0, "performance": ["bench*"],
        "suites": [{"suite": "unit*", "within": "14d"}],
    });
    for method in ["post", "put"] {
        busy.ask(method, reuse, reuse, Some(settings.clone())).await;
    }
    busy.get(reuse, reuse).await;
    let path = "/scheduler/v1/jobs/{id}/reuse";
    busy.get(path, &format!("/scheduler/v1/jobs/{ended}/reuse"))
        .await;
    let keyed = jobs::with(jobs::dc("alice"), &json!({"reuse": "1d"}));
    let keyed = busy.http.submit(&keyed).await.remove(0);
    let at = format!("/scheduler/v1/jobs/{keyed}/reuse");
    busy.ask("delete", path, &at, None).await;
}

/// Changes settings of the whole lab, and submits a job that meets a rule.
async fn set_the_lab(busy: &mut Busy) {
    let v1 = "/scheduler/v1";
    let rule = json!({"name": "r", "if": "suite == 'ruled'", "then": {"priority": 3}});
    let path = format!("{v1}/rules");
    for method in ["post", "put"] {
        let body = json!({ "rules": [rule] });
        busy.ask(method, &path, &path, Some(body)).await;
    }
    busy.get(&path, &path).await;
    let job = jobs::with(jobs::dc("alice"), &json!({"suite": "ruled"}));
    let path = format!("{v1}/jobs/submit");
    let items = busy.post(&path, &path, json!([job])).await;
    let id = items[0]["job_id"].as_str().expect("an id");
    let path = format!("{v1}/jobs/{{id}}");
    busy.get(&path, &format!("{v1}/jobs/{id}")).await;
    let path = format!("{v1}/retention");
    for method in ["post", "put"] {
        let body = json!({ "keep_months": 12 });
        busy.ask(method, &path, &path, Some(body)).await;
    }
    busy.get(&path, &path).await;
}

/// Requests the answers about timers, webhooks, queues, hosts, accounts and the replica.
async fn look_at_the_lab(busy: &mut Busy) {
    let v1 = "/scheduler/v1";
    let timer = jobs::with(jobs::dc("alice"), &json!({"timer": "t", "every": "1h"}));
    let timers = format!("{v1}/timers");
    busy.post(&timers, &timers, timer.clone()).await;
    busy.get(&timers, &format!("{timers}?account=alice")).await;
    let one = format!("{timers}/{{timer}}");
    let at = format!("{timers}/t?account=alice");
    busy.get(&one, &at).await;
    busy.post(&one, &at, timer).await;
    for act in ["pause", "resume"] {
        let at = format!("{timers}/t/{act}?account=alice");
        busy.post(&format!("{one}/{act}"), &at, json!({})).await;
    }
    let path = format!("{v1}/webhooks");
    busy.get(&path, &path).await;
    let test =
        json!({"url": "http://127.0.0.1:9/x", "secret": "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"});
    let path = format!("{v1}/webhooks/test");
    busy.post(&path, &path, test).await;
    let queue = format!("{v1}/queues/{{name}}");
    let at = format!("{v1}/queues/nightly");
    let policy = json!({"weight": 3, "users": ["alice"], "limits": {"running": {"hard": 9}}});
    busy.post(&queue, &at, policy).await;
    busy.ask("put", &queue, &at, Some(json!({"priority": 4})))
        .await;
    let path = format!("{v1}/queues");
    busy.get(&path, &path).await;
    let path = format!("{v1}/usage");
    busy.get(&path, &path).await;
    let host = format!("{v1}/hosts/{{hostname}}");
    let registered =
        json!({"arch": "x86_64", "memory": "64g", "mac": "ec-f4-bb-00-00-01", "tags": "gpu"});
    busy.post(&host, &format!("{v1}/hosts/box-1"), registered)
        .await;
    let close = json!({"reason": "broken fan", "drain": true});
    let keep = json!({"accounts": ["alice"], "until": "+2h", "reason": "a demo"});
    for (act, body) in [
        ("cordon", close),
        ("uncordon", json!({})),
        ("reserve", keep),
    ] {
        let at = format!("{v1}/hosts/host-1/{act}");
        busy.post(&format!("{host}/{act}"), &at, body).await;
        busy.get(&host, &format!("{v1}/hosts/host-1")).await;
    }
    let path = format!("{v1}/hosts");
    busy.get(&path, &path).await;
    for act in ["unreserve", "reset"] {
        let at = format!("{v1}/hosts/host-1/{act}");
        busy.post(&format!("{host}/{act}"), &at, json!({})).await;
    }
    for path in ["machines/unknown", "whoami", "accounts", "version"] {
        let path = format!("{v1}/{path}");
        busy.get(&path, &path).await;
    }
    let path = format!("{v1}/accounts/{{my_account}}");
    let at = format!("{v1}/accounts/carol");
    let limits = json!({"limits": {"waiting": {"hard": 100}}});
    busy.post(&path, &at, limits).await;
    let (path, at) = (format!("{path}/notify"), format!("{at}/notify"));
    let notify = json!({"url": "http://127.0.0.1:9/hook", "on": ["failed", "passed_again"]});
    busy.post(&path, &at, notify).await;
    busy.get(&path, &at).await;
    for path in ["/", "/scheduler/v1/health"] {
        let health = busy
            .http
            .get_with(path, &[("accept", "application/json")])
            .await;
        let health = health.text().await.expect("a body");
        let health: Value = serde_json::from_str(&health).expect("JSON");
        assert_eq!(health["well"], true, "{health}");
        busy.described.check("get", path, &health);
    }
}
