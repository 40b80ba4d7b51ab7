//! One run: start everything, work, inject faults, calm down, read the final state, judge.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use fairlead_api::{Client, ClientConfig, JobQuery};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    check::{Evidence, Final, judge},
    clocks::{Clocks, library},
    fleet::{Fleet, testboxes},
    grants,
    history::{History, Micros},
    indices::Indices,
    lanes::{Kind, Lanes},
    meters::Meters,
    nodes::Nodes,
    report::Outcome,
    submitter::submit_steadily,
};
use fairlead_cluster::{
    clock::{pause, until},
    launch::{Asked, Cluster, OwnElastic, Replica, own_fairlead},
};
use fairlead_reaper::Reaper;
use fairlead_simulation::Chance;

/// How long all works before the first fault: a fresh Elasticsearch is slow.
const WARM_UP: Duration = Duration::from_secs(15);
/// A lease: testboxes that are lost are to be noticed often in a run of minutes.
const LEASE: &str = "10s";
/// Stages of jobs that have not ended.
const OPEN: [&str; 6] = ["submit", "dispatch", "boot", "setup", "running", "post_run"];
/// Jobs read at one time in the end.
const READERS: usize = 8;
/// Jobs on a page of the list.
const PAGE: u32 = 1_000;

/// How to run.
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
    /// Of each run its own: what an earlier one left is not judged again.
    fn prefix(&self) -> String {
        format!("faults-{}-{}", self.seed, std::process::id())
    }

    /// Clocks that can be set, if that is among the faults.
    fn clocks(&self, dir: &Path) -> anyhow::Result<Option<Clocks>> {
        let Some(library) = library().filter(|_| self.kinds.contains(&Kind::ReplicaClock)) else {
            return Ok(None);
        };
        let binary = match &self.binary {
            Some(binary) => std::path::absolute(binary)?,
            None => own_fairlead()?,
        };
        if !binary.is_file() {
            // Who starts the replicas says so.
            return Ok(None);
        }
        let ports = (self.port, self.replicas);
        Ok(Some(Clocks::of(
            dir.join("clocks"),
            &library,
            &binary,
            ports,
        )?))
    }

    fn asked(&self, clocks: Option<&Clocks>) -> Asked {
        // All testboxes fail all the time.
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
            binary: clocks.map(Clocks::program).or_else(|| self.binary.clone()),
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

/// Runs, and returns the report and whether all held. Only a run that was judged leaves its folder, with logs and data.
/// Each other end leaves nothing: the cluster's reaper sees to that.
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
    let clocks = options.clocks(&dir)?;
    let mut cluster = Cluster::up(&dir, options.asked(clocks.as_ref()), reaper).await?;
    let judged = broken_and_judged(options, &mut cluster, clocks.as_ref(), say).await?;
    say("stopping all");
    cluster.down().await?;
    Ok(judged)
}

async fn broken_and_judged(
    options: &Options,
    cluster: &mut Cluster,
    clocks: Option<&Clocks>,
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
    break_things(options, (cluster, clocks), &fleet, &history).await?;
    let end = history.now();
    submitted.cancel();
    say(&format!("calm, {} s at most", options.calm_s));
    loading.join_all().await;
    let drained = drained(&client, options.calm_s, &history, end).await;
    fleet.end().await;
    metered.cancel();
    beside.join_all().await;
    say("reading what is left");
    let finals = finals(&client, &history).await?;
    let mut grants = grants::read(&logs(cluster), &history).context("the replicas' logs")?;
    grants.retain(|grant| finals.contains_key(&grant.job));
    let facts = std::mem::take(&mut *history.facts());
    let evidence = Evidence {
        facts: &facts,
        grants: &grants,
        finals: &finals,
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

/// The log of each replica, by its number.
fn logs(cluster: &Cluster) -> Vec<(u16, PathBuf)> {
    let replicas = cluster.replicas().iter();
    replicas
        .map(|one| (one.number, cluster.log(one.number)))
        .collect()
}

/// All lanes, for as long as asked; then all is on again.
async fn break_things(
    options: &Options,
    (cluster, clocks): (&mut Cluster, Option<&Clocks>),
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
        port: own.1.port,
        nodes: own.1.nodes,
        prefix: options.prefix(),
    };
    let nodes = Arc::new(Nodes::new(own.0, own.1, indices));
    let clock = async {
        let all = Duration::from_secs(options.seconds);
        over.run_until_cancelled(pause(all)).await;
        over.cancel();
    };
    let (replicas, lost, moments, (), ()) = tokio::join!(
        or_end(&over, lanes().replicas(cluster, clocks)),
        or_end(&over, lanes().nodes(Arc::clone(&nodes))),
        or_end(&over, lanes().hiccups(Arc::clone(&nodes))),
        lanes().agents(fleet),
        clock,
    );
    replicas?;
    lost?;
    moments?;
    nodes.all_on().await?;
    Ok(())
}

/// A lane that cannot go on ends the faults of all.
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

/// Waits until no job is open; how long that took.
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

/// Every job of the run as the store has it, each read in real time.
async fn finals(client: &Client, history: &History) -> anyhow::Result<BTreeMap<String, Final>> {
    let mut ids: BTreeSet<String> = history
        .facts()
        .acked
        .iter()
        .map(|one| one.job.clone())
        .collect();
    let mut query = JobQuery {
        limit: Some(PAGE),
        ..JobQuery::default()
    };
    loop {
        let page = client.jobs(&query).await?;
        ids.extend(page.jobs.into_iter().map(|job| job.job_id));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    let mut left: Vec<String> = ids.into_iter().collect();
    let mut reading = JoinSet::new();
    let mut finals = BTreeMap::new();
    loop {
        while reading.len() < READERS
            && let Some(id) = left.pop()
        {
            let client = client.clone();
            reading.spawn(async move { (client.job(&id).await, id) });
        }
        let Some(read) = reading.join_next().await else {
            return Ok(finals);
        };
        let (job, id) = read?;
        match job {
            Ok(job) => {
                finals.insert(id, final_of(&Value::Object(job)));
            }
            Err(error) if error.status() == Some(404) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn final_of(job: &Value) -> Final {
    let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
    Final {
        number: job["load_number"].as_u64().unwrap_or(0),
        stage: text("job_stage"),
        health: text("job_health"),
        attempt: job["attempt"]
            .as_u64()
            .and_then(|n| n.try_into().ok())
            .unwrap_or(0),
    }
}
