//! Tests of loaded hosts, with real agents whose machines a test plays by files, and with testboxes that it plays itself.

use std::fs;

use fairlead_tests::{Agent, Http, Scheduler, Store, Testbox, eventually, jobs, on_both_stores};
use serde_json::{Value, json};
use tempfile::TempDir;

on_both_stores!(a_job_waits_for_a_calm_host_and_explain_says_why);

/// A machine of 16 GB as an agent sees it.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(TempDir::with_prefix("fairlead-machine-").expect("a temporary folder"));
        machine.is(20, 0);
        machine
    }

    /// Sets the used memory and the CPU pressure, percent.
    fn is(&self, used: u64, pressure: u64) {
        let total_kb = 16 << 20;
        let available_kb = total_kb * (100 - used) / 100;
        let memory = format!("MemTotal: {total_kb} kB\nMemAvailable: {available_kb} kB\n");
        let cpu = format!("some avg10={pressure}.00 avg60=0.00 avg300=0.00 total=0\n");
        self.put("proc/pressure/cpu", &cpu);
        self.put("proc/meminfo", &memory);
    }

    /// Replaces a file atomically, like the kernel's own files.
    fn put(&self, file: &str, text: &str) {
        let file = self.0.path().join(file);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        let next = file.with_extension("next");
        fs::write(&next, text).expect("a file");
        fs::rename(next, file).expect("a file");
    }

    /// Starts an agent on it that runs as many jobs as a test creates.
    fn agent(&self, scheduler: &Scheduler, host: &str) -> Agent {
        let root = self.root();
        let more = [
            "--kind",
            "vm,dc",
            "--memory",
            "8g",
            "--cpus",
            "64",
            "--loaded-rest",
            "1",
        ];
        let more = more.iter().copied().chain(["--load-root", root.as_str()]);
        Agent::start(&scheduler.url(), host, &more.collect::<Vec<_>>())
    }

    fn root(&self) -> String {
        self.0.path().display().to_string()
    }
}

async fn host(http: &Http, name: &str) -> Option<Value> {
    let reply = http.get(&format!("/scheduler/v1/hosts/{name}")).await;
    (reply.status == 200).then(|| reply.json())
}

/// Waits until a host asks for work, loaded or not as requested.
async fn is_seen(http: &Http, name: &str, loaded: bool) {
    let what = format!("{name} is loaded: {loaded}");
    eventually(&what, async || {
        let host = host(http, name).await?;
        (host["state"] == "waiting" && host["load"]["loaded"] == loaded).then_some(())
    })
    .await;
}

/// Waits until a host that asks for work has reported this pressure, percent.
async fn is_pressed(http: &Http, name: &str, pressure: u64) {
    let what = format!("{name} has a pressure of {pressure} %");
    eventually(&what, async || {
        let host = host(http, name).await?;
        let told = &host["load"]["cpu_pressure_percent"];
        (host["state"] == "waiting" && *told == pressure).then_some(())
    })
    .await;
}

/// Returns the host of a job, once it has ended.
async fn ran_on(http: &Http, id: &str) -> String {
    eventually("the job has ended", async || {
        let job = http.job(id).await;
        let host = job["host_machine"]
            .as_str()
            .or_else(|| job["host"].as_str());
        (job["job_stage"] == "finish").then(|| host.unwrap_or_default().to_owned())
    })
    .await
}

fn short() -> Value {
    jobs::with(jobs::dc("alice"), &json!({"script": "exit 0"}))
}

async fn hosts_of(http: &Http, count: usize) -> Vec<String> {
    let ids = http.submit(&jobs::times(count, &short())).await;
    let mut hosts = Vec::new();
    for id in &ids {
        hosts.push(ran_on(http, id).await);
    }
    hosts
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_go_elsewhere_while_a_machine_has_no_memory_and_return_afterwards() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let (first, second) = (Machine::new(), Machine::new());
    let _agents = [
        first.agent(&scheduler, "h1"),
        second.agent(&scheduler, "h2"),
    ];
    is_seen(&http, "h1", false).await;
    is_seen(&http, "h2", false).await;
    first.is(93, 0);
    is_seen(&http, "h1", true).await;
    let shown = host(&http, "h1").await.expect("a host");
    assert_eq!(shown["free_memory_mb"], 0, "{shown}");
    assert_eq!(hosts_of(&http, 12).await, ["h2"; 12]);
    let metrics = http.get("/metrics").await.text;
    assert!(metrics.contains("fairlead_hosts_loaded 1\n"), "{metrics}");
    // The load moves to the other host.
    second.is(95, 0);
    is_seen(&http, "h2", true).await;
    first.is(30, 0);
    is_seen(&http, "h1", false).await;
    assert_eq!(hosts_of(&http, 12).await, ["h1"; 12]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pressure_orders_hosts_and_never_keeps_a_job_off() {
    let scheduler = Scheduler::start(Store::Embedded).await;
    let http = scheduler.http();
    let (first, second) = (Machine::new(), Machine::new());
    first.is(20, 97);
    let _pressed = first.agent(&scheduler, "h1");
    is_seen(&http, "h1", false).await;
    assert_eq!(hosts_of(&http, 3).await, ["h1"; 3], "it is the only one");
    let _calm = second.agent(&scheduler, "h2");
    is_seen(&http, "h1", false).await;
    is_seen(&http, "h2", false).await;
    assert_eq!(hosts_of(&http, 1).await, ["h2"]);
    // The load moves to the other host, while both wait for work.
    second.is(20, 97);
    first.is(20, 3);
    for (host, pressure) in [("h1", 3), ("h2", 97)] {
        is_pressed(&http, host, pressure).await;
    }
    assert_eq!(hosts_of(&http, 1).await, ["h1"]);
}

async fn a_job_waits_for_a_calm_host_and_explain_says_why(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    let mut loaded = Testbox::dc(&http, "h1", 8 << 10);
    loaded.is_loaded(93);
    let mut calm = Testbox::dc(&http, "h2", 1 << 10);
    let ids = http.submit(&jobs::times(2, &jobs::dc("alice"))).await;
    assert_eq!(calm.take_all().await.len(), 1);
    // The calm host is full, and it is still the better place.
    assert!(loaded.ask(1).await.is_empty());
    let waits = ids
        .iter()
        .find(|id| calm.held().iter().all(|held| held.job_id != **id));
    let id = waits.expect("one waits");
    let path = format!("/scheduler/v1/jobs/{id}/explain");
    let told = http.get(&path).await.text;
    assert!(
        told.contains("it is loaded: 93 % of its memory is in use; it gets no jobs until it is below 80 % for 30 s"),
        "{told}"
    );
    let idle = http.get("/scheduler/v1/hosts/h1").await.text;
    assert!(idle.contains("it is loaded: 93 %"), "{idle}");
    // All hosts are loaded, so the job does not wait forever.
    calm.is_loaded(99);
    calm.heartbeat().await;
    let got = loaded.ask(60).await;
    assert_eq!(got.first().map(|grant| &grant.job_id), Some(id));
}
