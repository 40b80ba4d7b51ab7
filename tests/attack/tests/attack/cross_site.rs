//! A web page attacks an open lab through a reader's browser. The scheduler tells the effect; what the page saw does
//! not count.

use fairlead_attack::{Browser, Site, browser::REBOUND};
use fairlead_tests::{Http, Scheduler, Store, Testbox, eventually, jobs};
use reqwest::Method;
use serde_json::{Value, json};

/// Returns a page that submits a job in all ways without a permission. It also asks for work as two kinds of machines,
/// and reports the end.
fn page(target: &str) -> String {
    let job =
        json!({"suite": "evil", "testbox": "dc", "script": "id > owned", "my_account": "evil"});
    format!(
        r#"<!doctype html><title>kittens</title><form method="post" enctype="text/plain" target="hidden"
  action="{target}/scheduler/v1/jobs/submit"><input name="field"></form><iframe name="hidden"></iframe>
<script>
const job = JSON.stringify({job});
const silent = (path, more) => fetch("{target}" + path, {{mode: "no-cors", ...more}}).catch(() => null);
const submit = (type) => silent("/scheduler/v1/jobs/submit", {{method: "POST", body: new Blob([job], {{type}})}});
(async () => {{
  await submit("text/plain");
  await submit("");
  navigator.sendBeacon("{target}/submit_job", job);
  document.forms[0].field.name = job.slice(0, -1) + ', "x": "';
  document.forms[0].field.value = '"}}';
  const answered = new Promise((done) => document.querySelector("iframe").addEventListener("load", done));
  document.forms[0].submit();
  await silent("/boot.ipxe/mac/52-54-00-12-34-56?arch=x86_64&hostname=evil-box&wait=0");
  await silent("/scheduler/v1/jobs/dispatch?arch=aarch64&hostname=evil-box2&wait=0");
  await answered;
  await fetch("/done");
}})();
</script>"#
    )
}

async fn opened(target: &Http, name: &str) {
    let site = Site::serve(&page(target.base())).await;
    let _browser = Browser::open(&site.url(name));
    eventually("the page has done its worst", async || {
        site.was_asked("/done").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_neither_submits_nor_takes_a_job() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let mut waiting = Vec::new();
    for arch in ["x86_64", "aarch64"] {
        let job = json!({"suite": "good", "testbox": "hw", "arch": arch, "my_account": "alice"});
        waiting.push(http.submit(&job).await.remove(0));
    }
    // The first name is another site, the second another origin of the same site.
    for name in ["localhost", "127.0.0.1"] {
        opened(&http, name).await;
    }
    let evil = http.get("/scheduler/v1/jobs?account=evil").await.json();
    assert_eq!(evil["total"], 0, "a page submitted: {evil}");
    for id in &waiting {
        assert_eq!(
            http.field(id, "job_stage").await,
            "submit",
            "a page took {id}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_turned_to_this_machine_reads_nothing() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let id = http.submit(&jobs::dc("alice")).await.remove(0);
    let rebound = http.base().replace("127.0.0.1", REBOUND);
    let shown = Browser::read(&format!("{rebound}/scheduler/v1/jobs"));
    assert!(!shown.contains(&id), "{shown}");
    assert!(shown.contains("cross_site"), "{shown}");
    let shown = Browser::read(&format!("{}/scheduler/v1/jobs", http.base()));
    assert!(shown.contains(&id), "one's own browser reads it: {shown}");
}

fn raw(head: &str) -> String {
    format!("{head}\r\nConnection: close\r\n\r\n")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// The machine, `--advertise` and `--host-name` give valid names. Requests without a name or with any address are
/// valid, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_an_open_lab_are_the_ones_it_was_told() {
    let words = [
        "--host-name",
        "lab.example.org",
        "--advertise",
        "http://s1.example.org:3000",
    ];
    let scheduler = Scheduler::start_with(Store::Embedded, &words).await;
    let http = scheduler.http();
    let ask = async |host: &str| {
        let head = format!("GET /scheduler/v1/jobs HTTP/1.1\r\nHost: {host}");
        http.raw(&raw(&head)).await
    };
    for good in [
        "127.0.0.1",
        "[::1]:3000",
        "localhost",
        "LAB.example.org:3000",
        "s1.example.org:80",
    ] {
        assert_eq!(status(&ask(good).await), "200", "{good}");
    }
    for bad in [
        "evil.example",
        "lab.example.org.evil.example",
        "127.0.0.1.evil.example:80",
    ] {
        let answer = ask(bad).await;
        assert_eq!(status(&answer), "403", "{bad}");
        let told = ["cross_site", bad, "--host-name"]
            .iter()
            .all(|word| answer.contains(word));
        assert!(told, "{answer}");
    }
    let without = http.raw(&raw("GET /scheduler/v1/jobs HTTP/1.0")).await;
    assert_eq!(status(&without), "200", "{without}");
    let by_target = raw("GET http://evil.example/scheduler/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1");
    assert_eq!(status(&http.raw(&by_target).await), "403");
}

/// Checks that requests of real compass-ci clients stay valid.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_are_no_pages_are_free() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let job = jobs::dc("alice").to_string().into_bytes();
    for kind in ["", "text/plain", "application/x-www-form-urlencoded"] {
        let path = "/scheduler/v1/jobs/submit";
        let reply = http.send(Method::POST, path, kind, job.clone()).await;
        assert_eq!(reply.status, 200, "{kind}: {}", reply.text);
    }
    let host = http.base().trim_start_matches("http://");
    let own = format!(
        "GET /scheduler/v1/jobs HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUser-Agent: Mozilla/5.0\r\nSec-Fetch-Site: same-origin"
    );
    assert_eq!(status(&http.raw(&raw(&own)).await), "200");
    let path = "/boot.ipxe/mac/52-54-00-12-34-56?arch=x86_64&hostname=box&wait=0";
    let ipxe = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: iPXE/1.21.1");
    assert_eq!(
        status(&http.raw(&raw(&ipxe)).await),
        "200",
        "it is told that there is no job"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_lab_gives_limits_but_no_roles_and_no_tokens() {
    let mut scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let path = "/scheduler/v1/accounts/evil";
    for right in [
        json!({"role": "admin"}),
        json!({"new_token": true}),
        json!({"vip": true}),
    ] {
        let refused = http.post(path, &right).await.refused(403);
        assert_eq!(refused.code.as_str(), "forbidden");
        assert!(refused.hint.contains("--auth"), "{refused:?}");
    }
    let limited = http
        .post(path, &json!({"limits": {"running": {"hard": 1}}}))
        .await;
    assert_eq!(limited.json()["my_token"], Value::Null);
    let mut testbox = Testbox::dc(&http, "host-1", 8 << 10);
    http.submit(&jobs::times(2, &jobs::dc("evil"))).await;
    assert_eq!(testbox.take_all().await.len(), 1, "the limit holds");
    // With --auth it is an account without a token, until an admin creates one.
    scheduler.stop().await;
    let root = scheduler.add_account("root", "admin");
    scheduler.add_argument("--auth");
    scheduler.restart().await;
    let admin = scheduler.http().with_token(&root);
    let made = admin.post(path, &json!({})).await.json();
    let token = made["my_token"].as_str().unwrap_or_default();
    assert!(!token.is_empty() && made["role"] == "user", "{made}");
}
