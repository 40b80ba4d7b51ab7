//! The proxy configuration that a site can use, with the real HAProxy: only addresses are replaced.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use fairlead_tests::{
    Agent, Http, Replicas, browser, eventually, reaper, scheduler::free_port, settings,
};
use reqwest::Method;
use tempfile::TempDir;

use crate::load::{Load, all_end_well};

const CONFIG: &str = "scheduler-cluster/deploy/haproxy.cfg";

/// A HAProxy in front of replicas.
struct Proxy {
    child: Child,
    url: String,
    _folder: TempDir,
}

/// Returns the program, which must exist.
fn haproxy() -> PathBuf {
    let mut places = settings::search_path();
    places.push("/usr/sbin".into());
    let found = places.into_iter().map(|place| place.join("haproxy"));
    let mut found = found.filter(|path| path.is_file());
    found.next().expect(
        "no haproxy to test with\n  hint: apt-get install haproxy (scripts/test does it where it may)",
    )
}

impl Proxy {
    async fn start(replicas: &Replicas) -> Self {
        let port = free_port();
        let text = fs::read_to_string(settings::project().join(CONFIG)).expect(CONFIG);
        let mut text = text.replace("bind :3000", &format!("bind 127.0.0.1:{port}"));
        // A test's process may open fewer files than a site's proxy.
        assert!(text.contains("maxconn 50000"), "{CONFIG}: maxconn");
        text = text.replace("maxconn 50000", "maxconn 200");
        for number in 1..=replicas.count {
            let (site, here) = (
                format!("server s{number} s{number}:3000"),
                format!("server s{number} 127.0.0.1:{}", replicas.port + number - 1),
            );
            assert_eq!(text.matches(&site).count(), 2, "{CONFIG}: {site}");
            text = text.replace(&site, &here);
        }
        let folder = TempDir::with_prefix("fairlead-proxy-").expect("a temporary folder");
        let path = folder.path().join("haproxy.cfg");
        fs::write(&path, text).expect("a configuration");
        let checked = Command::new(haproxy())
            .arg("-c")
            .arg("-f")
            .arg(&path)
            .output();
        let checked = checked.expect("haproxy");
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(
            checked.status.success() && !said.contains("WARNING"),
            "{said}"
        );
        let mut command = Command::new(haproxy());
        command.arg("-db").arg("-f").arg(&path);
        command
            .envs([reaper::variable()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let proxy = Self {
            child: command.spawn().expect("haproxy"),
            url: format!("http://127.0.0.1:{port}"),
            _folder: folder,
        };
        let http = Http::new(&proxy.url);
        eventually("the proxy answers", async || {
            let path = "/scheduler/v1/health";
            let reply = http
                .try_send(Method::GET, path, "", Vec::new())
                .await
                .ok()?;
            (reply.status == 200).then_some(())
        })
        .await;
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_a_client_cannot_choose_its_address() {
    let replicas = Replicas::up(3, &["--trusted-proxy", "127.0.0.1"]).await;
    let proxy = Proxy::start(&replicas).await;
    let http = Http::new(&proxy.url);
    for (n, said) in ["", "203.0.113.9", "198.51.100.1, 203.0.113.9"]
        .iter()
        .enumerate()
    {
        let mac = format!("52:54:00:11:22:{n:02x}");
        let path = format!("/boot.ipxe/mac/{mac}?wait=0");
        let booted = http.get_with(&path, &[("x-forwarded-for", *said)]).await;
        assert!(booted.status().is_success(), "{said}");
        // Each replica knows the machines that asked it.
        let mut addresses = Vec::new();
        for number in 0..replicas.count {
            let replica = Http::new(&format!("http://127.0.0.1:{}", replicas.port + number));
            let known = replica.get("/scheduler/v1/machines/unknown").await.json();
            let known = known.as_array().cloned().unwrap_or_default();
            let machine = known.iter().find(|machine| machine["mac"] == mac.as_str());
            addresses.extend(machine.map(|machine| machine["address"].clone()));
        }
        assert_eq!(addresses, ["127.0.0.1"], "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_a_restart_fails_nothing_and_a_loss_nothing_that_is_tried_again() {
    let replicas = Replicas::up(3, &[]).await;
    let proxy = Proxy::start(&replicas).await;
    let more = ["--kind", "dc", "--memory", "8g", "--wait", "5"];
    let _agents = ["host-1", "host-2", "host-3"].map(|host| Agent::start(&proxy.url, host, &more));
    let urls = [proxy.url.clone()];

    let load = Load::start(&urls, "alice");
    replicas.done(&["restart", "1"]).await;
    let restarted = load.stop().await;
    assert_eq!(restarted.failed, Vec::<String>::new());
    assert_eq!(restarted.unknown, Vec::<String>::new());

    let load = Load::start(&urls, "alice");
    replicas.done(&["kill", "2"]).await;
    load.after(40).await;
    replicas.done(&["pause", "3"]).await;
    load.after(40).await;
    replicas.done(&["resume", "3"]).await;
    let lost = load.stop().await;
    assert_eq!(lost.failed, Vec::<String>::new());

    let mut ids = restarted.ids;
    ids.extend(lost.ids);
    all_end_well(&urls, &ids).await;
}

/// A page in a browser follows one replica, and another one after its death.
#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_a_page_goes_on_when_its_replica_dies() {
    let replicas = Replicas::up(3, &[]).await;
    let proxy = Proxy::start(&replicas).await;
    let mut page = browser::node(&proxy.url, &["failover.mjs"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    let (mut says, hears) = (page.stdin.take(), page.stdout.take());
    let mut lines = BufReader::new(hears.expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let fed = line();
    let port: u16 = fed
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("no address: {fed}"));
    let number = (port - replicas.port + 1).to_string();
    replicas.done(&["kill", &number]).await;
    let dead = says.as_mut().expect("its input").write_all(b"dead\n");
    dead.expect("a line that it reads");
    let said = line();
    assert!(said.starts_with("The page goes on after"), "{said}");
    assert!(page.wait().expect("its end").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_speaks_for_a_scheduler_that_is_away() {
    let replicas = Replicas::up(3, &[]).await;
    let proxy = Proxy::start(&replicas).await;
    replicas.done(&["down"]).await;
    let http = Http::new(&proxy.url);
    let refusal = eventually("the proxy knows that nobody is there", async || {
        let reply = http.get("/scheduler/v1/jobs").await;
        (reply.status == 503).then_some(reply)
    })
    .await;
    let said: serde_json::Value = serde_json::from_str(&refusal.text).expect("JSON");
    assert_eq!(said["code"], "unavailable", "{}", refusal.text);
    assert!(said["hint"].is_string(), "{}", refusal.text);
}

/// Returns the next event of a stream. `None`: it ended.
async fn next_event(stream: &mut reqwest::Response, text: &mut String) -> Option<String> {
    loop {
        if let Some((event, rest)) = text.split_once("\n\n") {
            let (event, rest) = (event.to_owned(), rest.to_owned());
            *text = rest;
            return Some(event);
        }
        let piece = stream.chunk().await.ok()??;
        text.push_str(&String::from_utf8_lossy(&piece));
    }
}

/// Returns the id of an event.
fn id_of(event: &str) -> String {
    let id = event.lines().find_map(|line| line.strip_prefix("id: "));
    id.unwrap_or_else(|| panic!("no id in {event}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_haproxy_a_dashboard_goes_on_when_its_replica_dies() {
    const LIVE: &str = "/scheduler/v1/live";
    let replicas = Replicas::up(3, &[]).await;
    let proxy = Proxy::start(&replicas).await;
    let http = Http::new(&proxy.url);
    let mut stream = http.get_with(LIVE, &[]).await;
    let mut text = String::new();
    let first = next_event(&mut stream, &mut text).await.expect("an event");
    assert!(first.contains("event: snapshot"), "{first}");
    // Its id begins with the run of the replica that answers: its name with its port, and a part that differs between
    // runs.
    let mut id = id_of(&first);
    let run = |id: &str| id.rsplit_once('/').map(|(run, _)| run.to_owned());
    let dying = run(&id).expect("a run");
    let number = (1..=replicas.count)
        .find(|number| dying.contains(&format!("-{}.", replicas.port + number - 1)))
        .unwrap_or_else(|| panic!("{dying} is no replica"));
    replicas.done(&["kill", &number.to_string()]).await;
    // The stream ends at once, so the page need not wait for a long silence.
    while let Some(event) = next_event(&mut stream, &mut text).await {
        id = id_of(&event);
    }
    let last = [("last-event-id", id.as_str())];
    let mut again = http.get_with(LIVE, &last).await;
    assert_eq!(again.status(), 200);
    let mut text = String::new();
    let event = next_event(&mut again, &mut text).await.expect("an event");
    assert!(event.contains("event: snapshot"), "{event}");
    assert_ne!(run(&id_of(&event)), Some(dying), "another run begins anew");
}
