//! One run: start everything, work, inject faults, calm down, read the final state, judge.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use fairlead_api::{Client, ClientConfig, JobQuery};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    check::{Evidence, judge},
    fleet::{Fleet, testboxes},
    history::{History, Micros},
    indices::Indices,
    lanes::{Kind, Lanes},
    left::Left,
    meters::Meters,
    nodes::Nodes,
    report::Outcome,
    rig::Rig,
    submitter::submit_steadily,
};
use fairlead_cluster::{
    clock::{pause, until},
    launch::{Asked, Cluster, OwnElastic, Replica},
};
use fairlead_reaper::Reaper;
use fairlead_simulation::Chance;

/// Time of normal work before the first fault, because a fresh Elasticsearch is slow.
const WARM_UP: Duration = Duration::from_secs(15);
/// Lease of the run. It is short, so that lost testboxes are detected often in a run of minutes.
const LEASE: &str = "10s";
/// Stages of unfinished jobs.
const OPEN: [&str; 6] = ["submit", "dispatch", "boot", "setup", "running", "post_run"];

/// Options of a run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) dir: PathBuf,
    pub(super) seconds: u64,
    pub(super) calm_s: u64,
    pub(super) seed: u64,
    pub(super) kinds: BTreeSet<Kind>,
    pub(super) replicas: u16,
    pub(super) port: u16,
    pub(super) nodes: u16,
    pub(super) elasticsearch_port: u16,
    pub(super) agents: usize,
    pub(super) rate: u32,
    pub(super) binary: Option<PathBuf>,
}

impl Options {
    /// Returns the index prefix of this run. Each run has its own, so that data of an earlier run is not judged again.
    fn prefix(&self) -> String {
        format!("faults-{}-{}", self.seed, std::process::id())
    }

    fn asked(&self, rig: &Rig) -> Asked {
        // All testboxes have failures all the time.
        let more = [
            "--log-format",
            "json",
            "--lease",
            LEASE,
            "--suspect-after",
            "0",
        ];
        Asked {
            replicas: Some(self.replicas),
            port: Some(self.port),
            own_elasticsearch: Some(OwnElastic {
                nodes: self.nodes,
                port: self.elasticsearch_port,
            }),
            index_prefix: Some(self.prefix()),
            binary: rig.program().or_else(|| self.binary.clone()),
            more: Some(more.map(str::to_owned).into()),
            ..Asked::default()
        }
    }

    fn setting(&self) -> [(&'static str, String); 6] {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.word()).collect();
        let kinds = if kinds.is_empty() {
            "none".to_owned()
        } else {
            kinds.join(", ")
        };
        [
            ("seed", self.seed.to_string()),
            ("faults", format!("{} s of {kinds}", self.seconds)),
            ("replicas", format!("{}, lease {LEASE}", self.replicas)),
            (
                "Elasticsearch",
                format!("{} nodes, fault detection 2 s x 3", self.nodes),
            ),
            ("testboxes", self.agents.to_string()),
            (
                "load",
                format!("{} jobs a second of 1 to 3 s each", self.rate),
            ),
        ]
    }
}

/// Runs, and returns the report and true if all rules held. Only a run that was judged leaves its folder, with logs and
/// data. After any other end the cluster's reaper removes everything. A data folder on its own file system disappears
/// with each end.
pub(super) async fn run(options: &Options, say: &impl Fn(&str)) -> anyhow::Result<(String, bool)> {
    let dir = std::path::absolute(&options.dir)?;
    let reaper = Reaper::start()?;
    if !dir.exists() {
        reaper.removes(&dir)?;
    }
    say(&format!(
        "seed {}: starting Elasticsearch and the replicas",
        options.seed
    ));
    let rig = Rig::set_up(options, &dir, &reaper)?;
    let mut cluster = Cluster::up(&dir, options.asked(&rig), reaper).await?;
    let judged = broken_and_judged(options, &mut cluster, &rig, say).await?;
    say("stopping all");
    cluster.down().await?;
    Ok(judged)
}

async fn broken_and_judged(
    options: &Options,
    cluster: &mut Cluster,
    rig: &Rig,
    say: &impl Fn(&str),
) -> anyhow::Result<(String, bool)> {
    let history = Arc::new(History::begin());
    let urls: Vec<String> = cluster.replicas().iter().map(Replica::url).collect();
    let client = Client::new(ClientConfig::new(urls.clone()))?;
    let meters = Arc::new(Meters::default());
    let (submitted, metered) = (CancellationToken::new(), CancellationToken::new());
    let mut beside = JoinSet::new();
    for url in urls.clone() {
        beside.spawn(Arc::clone(&meters).watch(url, metered.clone()));
    }
    let fleet = Fleet::start(options.agents, &urls, &history)?;
    let load = submit_steadily(
        urls.clone(),
        Arc::clone(&history),
        options.rate,
        Chance::new(options.seed, 100),
        submitted.clone(),
    );
    let mut loading = JoinSet::new();
    loading.spawn(load);
    say("warming up");
    pause(WARM_UP).await;
    let begin = history.now();
    say(&format!("faults for {} s", options.seconds));
    break_things(options, (cluster, rig), &fleet, &history).await?;
    let end = history.now();
    submitted.cancel();
    say(&format!("calm, {} s at most", options.calm_s));
    loading.join_all().await;
    let drained = drained(&client, options.calm_s, &history, end).await;
    fleet.end().await;
    metered.cancel();
    beside.join_all().await;
    say("reading what is left");
    let left = Left::read(&client, &logs(cluster), &history).await?;
    let facts = std::mem::take(&mut *history.facts());
    let evidence = Evidence {
        facts: &facts,
        grants: &left.grants,
        finals: &left.finals,
        files: &left.files,
        testboxes: &testboxes(options.agents),
        faulty: (begin, end),
    };
    let breaches = judge(&evidence);
    let outcome = Outcome {
        evidence: &evidence,
        breaches: &breaches,
        totals: &meters.totals(),
        setting: &options.setting(),
        drained,
    };
    Ok((outcome.markdown(), breaches.is_empty() && drained.is_some()))
}

/// Returns the log of each replica, by its number.
fn logs(cluster: &Cluster) -> Vec<(u16, PathBuf)> {
    let replicas = cluster.replicas().iter();
    replicas
        .map(|one| (one.number, cluster.log(one.number)))
        .collect()
}

/// Runs all lanes for the requested time, and then switches everything on again.
async fn break_things(
    options: &Options,
    (cluster, rig): (&mut Cluster, &Rig),
    fleet: &Fleet,
    history: &Arc<History>,
) -> anyhow::Result<()> {
    let over = CancellationToken::new();
    let lanes = || Lanes {
        kinds: options.kinds.clone(),
        seed: options.seed,
        history: Arc::clone(history),
        over: over.clone(),
    };
    let own = cluster.elastic()?.context("no Elasticsearch of its own")?;
    let indices = Indices {
        own: own.1,
        prefix: options.prefix(),
    };
    let nodes = Arc::new(Nodes::new(own.0, own.1, indices));
    let clock = async {
        let all = Duration::from_secs(options.seconds);
        over.run_until_cancelled(pause(all)).await;
        over.cancel();
    };
    let (replicas, filled, lost, moments, (), ()) = tokio::join!(
        or_end(&over, lanes().replicas(cluster, rig.clocks.as_ref())),
        or_end(&over, lanes().folder(rig.disk.as_ref())),
        or_end(&over, lanes().nodes(Arc::clone(&nodes))),
        or_end(&over, lanes().hiccups(Arc::clone(&nodes))),
        lanes().agents(fleet),
        clock,
    );
    replicas?;
    filled.context("the file system of the data folder")?;
    lost?;
    moments?;
    nodes.all_on().await?;
    Ok(())
}

/// Ends the faults of all lanes if one lane cannot go on.
async fn or_end<E>(
    over: &CancellationToken,
    lane: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let done = lane.await;
    if done.is_err() {
        over.cancel();
    }
    done
}

/// Waits until no job is open. Returns the duration.
async fn drained(
    client: &Client,
    limit_s: u64,
    history: &History,
    since: Micros,
) -> Option<Micros> {
    let open = JobQuery {
        stage: OPEN.map(str::to_owned).into(),
        limit: Some(1),
        ..JobQuery::default()
    };
    let limit = Duration::from_secs(limit_s);
    let all_ended = async || {
        let page = client.jobs(&open).await.ok()?;
        (page.total == 0).then_some(())
    };
    until(Duration::from_millis(500), limit, all_ended).await?;
    Some(history.now().saturating_sub(since))
}
