//! Metrics, alerts and the dashboard of Grafana, by the real Prometheus and Alertmanager.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fairlead_tests::{
    Agent, Guarded, Http, Lab, Receiver, Scheduler, Store, eventually, header, jobs,
    on_both_stores, reaper, scheduler::free_port, settings,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Interval of rates in the dashboard. Grafana derives it from the scrape interval.
const RATE_INTERVAL: &str = "10s";

fn deployed(file: &str) -> PathBuf {
    settings::project()
        .join("scheduler-cluster/deploy/monitoring")
        .join(file)
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs promtool, which must report no problem.
fn promtool(words: &[&str], input: &str) {
    let child = Command::new("promtool")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap_or_else(|error| panic!("promtool: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && problems.trim().is_empty(),
        "promtool {words:?}: {said}{problems}"
    );
}

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn start(program: &str, words: &[String], folder: &Path) -> Self {
        let log = std::fs::File::create(folder.join(format!("{program}.log"))).expect("a log");
        let child = Command::new(program)
            .args(words)
            .current_dir(folder)
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        Self(child.unwrap_or_else(|error| panic!("{program}: {error}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A Prometheus that scrapes replicas each second, with the shipped alerts except for their delays, and an Alertmanager
/// that notifies a receiver.
struct Monitoring {
    prometheus: Http,
    _programs: [Running; 2],
    _folder: TempDir,
}

impl Monitoring {
    fn start(replicas: &[Scheduler], receiver: &Receiver) -> Self {
        let folder = TempDir::with_prefix("fairlead-monitoring-").expect("a folder");
        let path = folder.path();
        let (port, alerts_port) = (free_port(), free_port());
        let write = |name: &str, text: &str| {
            std::fs::write(path.join(name), text).expect("it can be written");
        };
        let rules = text_of(&deployed("alerts.yaml"));
        let patient = |line: &&str| !line.trim_start().starts_with("for: ");
        let hasty: Vec<&str> = rules.lines().filter(patient).collect();
        write("alerts.yaml", &hasty.join("\n"));
        let targets: Vec<String> = replicas
            .iter()
            .map(|replica| replica.url().replace("http://", ""))
            .collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yaml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [format!("127.0.0.1:{alerts_port}")]}]}]},
            "scrape_configs": [{"job_name": "fairlead", "static_configs": [{"targets": targets}]}],
        });
        write("prometheus.yaml", &config.to_string());
        let config = json!({
            "route": {"receiver": "on-call", "group_by": ["alertname"], "group_wait": "0s", "group_interval": "1s"},
            "receivers": [{"name": "on-call", "webhook_configs": [{"url": receiver.url, "send_resolved": true}]}],
        });
        write("alertmanager.yaml", &config.to_string());
        let prometheus = [
            "--config.file=prometheus.yaml".to_owned(),
            "--storage.tsdb.path=data".to_owned(),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        let alertmanager = [
            "--config.file=alertmanager.yaml".to_owned(),
            "--storage.path=alerts".to_owned(),
            "--cluster.listen-address=".to_owned(),
            format!("--web.listen-address=127.0.0.1:{alerts_port}"),
        ];
        let programs = [
            Running::start("prometheus-alertmanager", &alertmanager, path),
            Running::start("prometheus", &prometheus, path),
        ];
        Self {
            prometheus: Http::new(&format!("http://127.0.0.1:{port}")),
            _programs: programs,
            _folder: folder,
        }
    }

    /// Returns the number of series of an expression. `None`: it cannot be queried now. Prometheus listens before it
    /// has opened its database, and answers 503 until then.
    async fn series(&self, expression: &str) -> Option<usize> {
        let query = [("query", expression)];
        let query = reqwest::Url::parse_with_params("http://x/api/v1/query", query).ok()?;
        let path = format!("/api/v1/query?{}", query.query()?);
        let reply = self
            .prometheus
            .try_send(reqwest::Method::GET, &path, "", Vec::new())
            .await
            .ok()?;
        if reply.status == 503 {
            return None;
        }
        let result = reply.json();
        result["data"]["result"].as_array().map(Vec::len)
    }
}

/// Returns the alerts that a receiver got: name and status.
fn told(receiver: &Receiver) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let each = receiver.sent().into_iter().flat_map(|sent| {
        let alerts = sent.json()["alerts"].as_array().cloned();
        alerts.unwrap_or_default()
    });
    each.map(|alert| (text(&alert["labels"]["alertname"]), text(&alert["status"])))
        .collect()
}

async fn until_told(receiver: &Receiver, alerts: &[&str], status: &str) {
    eventually(&format!("{alerts:?} are {status}"), async || {
        let told = told(receiver);
        let is_told = |alert: &&str| told.contains(&((*alert).to_owned(), status.to_owned()));
        alerts.iter().all(is_told).then_some(())
    })
    .await;
}

/// Returns all expressions of the dashboard.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text_of(&deployed("grafana.json"))).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let found: Vec<String> = targets
        .filter_map(|target| target["expr"].as_str())
        .map(|text| text.replace("$__rate_interval", RATE_INTERVAL))
        .collect();
    assert!(found.len() > 25, "{found:?}");
    found
}

fn quick() -> Value {
    let fields = json!({"suite": "quick", "script": "exit 0", "need_memory": "64m"});
    jobs::with(jobs::dc("ann"), &fields)
}

#[test]
fn the_alerts_are_sound_and_pass_their_tests() {
    let rules = deployed("alerts.yaml");
    let tests = deployed("alerts.test.yaml");
    promtool(&["check", "rules", &rules.to_string_lossy()], "");
    promtool(&["test", "rules", &tests.to_string_lossy()], "");
    let page = text_of(&settings::project().join("docs/on-call.md"));
    let headings: BTreeSet<String> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase();
            let kept = text
                .chars()
                .filter(|c| c.is_alphanumeric() || " -".contains(*c));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect();
    let text = text_of(&rules);
    let runbooks = text
        .lines()
        .filter_map(|line| line.split_once("docs/on-call.md#"));
    let missing: Vec<&str> = runbooks
        .map(|(_, anchor)| anchor)
        .filter(|anchor| !headings.contains(*anchor))
        .collect();
    assert!(missing.is_empty(), "{missing:?} in {headings:?}");
}

async fn metrics_are_clean_in_both_formats(store: Store) {
    let scheduler = Scheduler::start(store).await;
    let http = scheduler.http();
    http.submit(&quick()).await;
    http.get("/nowhere").await;
    // An answer is counted after it was written, so the second one contains the first.
    http.get("/metrics").await;
    let classic = http.get("/metrics").await.text;
    promtool(&["check", "metrics"], &classic);
    for line in [
        "fairlead_build_info{version=",
        "fairlead_jobs_waiting{queue=\"ann\",reason=\"no_host\"} 1",
        "fairlead_refusals_total{code=\"not_found\"} 1",
        "fairlead_store_request_seconds_bucket{le=\"0.001\",kind=\"submit\",result=\"ok\"}",
        "fairlead_http_request_seconds_count{method=\"GET\",path=\"/metrics\",status=\"2xx\"} 1",
        "fairlead_replica_lag_seconds",
        "process_resident_memory_bytes",
    ] {
        assert!(classic.contains(line), "{line} in {classic}");
    }
    let open = [("accept", "application/openmetrics-text; version=1.0.0")];
    let open = http.get_with("/metrics", &open).await;
    let kind = header(&open, "content-type");
    let text = open.text().await.expect("text");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

on_both_stores!(metrics_are_clean_in_both_formats);

#[tokio::test(flavor = "multi_thread")]
async fn strangers_see_no_names_of_queues() {
    let lab = Guarded::start(Store::Embedded, &[]).await;
    let ann = lab.user("ann").await;
    ann.submit(&quick()).await;
    let ours = "fairlead_jobs_waiting{queue=\"ann\",reason=\"no_host\"} 1";
    let others = "fairlead_jobs_waiting{queue=\"other\",reason=\"no_host\"} 1";
    let (known, stranger) = (
        ann.get("/metrics").await.text,
        lab.nobody().get("/metrics").await.text,
    );
    assert!(known.contains(ours), "{known}");
    assert!(
        stranger.contains(others) && !stranger.contains("ann"),
        "{stranger}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lab_is_seen_in_the_dashboard_and_its_faults_reach_whoever_is_on_call() {
    let lab = Lab::new();
    let mut replicas = lab.schedulers(3, &[]).await;
    let receiver = Receiver::start(&[]).await;
    let servers: Vec<String> = replicas.iter().map(Scheduler::url).collect();
    let _agent = Agent::start(
        &servers.join(","),
        "box-1",
        &["--kind", "dc", "--memory", "4g"],
    );
    let monitoring = Monitoring::start(&replicas, &receiver);
    let all = expressions();
    eventually("each expression has an answer", async || {
        for replica in &replicas {
            replica.http().submit(&quick()).await;
        }
        for expression in &all {
            let series = monitoring.series(expression).await?;
            if series == 0 {
                return None;
            }
        }
        Some(())
    })
    .await;
    // A replica dies, and a job asks for something that no host has.
    let http = replicas[0].http();
    let huge = jobs::with(quick(), &json!({"need_memory": "900g"}));
    let huge = http.submit(&huge).await.remove(0);
    replicas[2].kill();
    let faults = ["FairleadReplicaDown", "FairleadJobsFitNoHost"];
    until_told(&receiver, &faults, "firing").await;
    replicas[2].restart().await;
    let cancelled = http
        .post(
            &format!("/scheduler/v1/jobs/{huge}/cancel"),
            &json!({"my_account": "ann"}),
        )
        .await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text);
    until_told(&receiver, &faults, "resolved").await;
    // An admin pauses the lab, and forgets it.
    for (action, status) in [("pause_lab", "firing"), ("resume_lab", "resolved")] {
        let asked = json!({"action": action});
        let shown = http.post("/scheduler/v1/previews", &asked).await.json();
        let id = shown["preview_id"].as_str().expect("an id");
        let path = format!("/scheduler/v1/previews/{id}/run");
        let begun = http.post(&path, &json!({})).await;
        assert_eq!(begun.status, 200, "{}", begun.text);
        until_told(&receiver, &["FairleadLabPaused"], status).await;
    }
    let told = told(&receiver);
    let expected: BTreeSet<&str> = faults.into_iter().chain(["FairleadLabPaused"]).collect();
    // The agent may have waited at the replica that died. Until it asks another one, its host is silent. And the disk of
    // the machine that runs the tests may be nearly full.
    let may_be = ["FairleadHostsSilent", "FairleadDataFolderFills"];
    let heard: BTreeSet<&str> = told
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !may_be.contains(name))
        .collect();
    assert_eq!(heard, expected, "nothing else is alarming");
}
