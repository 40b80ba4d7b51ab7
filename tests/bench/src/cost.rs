//! Costs without dispatch: memory, processor time, the counts request, a start.

use std::time::Duration;

use anyhow::Context;
use fairlead_job::JobId;
use fairlead_store::{ElasticConfig, ElasticStore, JobStore};

use super::{
    figure::Goal,
    load::{Agent, Site},
    raw::cpu_s,
    report::Fact,
};
use fairlead_cluster::{
    clock::{now, pause},
    launch::{Cluster, Process},
};

const KIB_OF_MB: f64 = 1_024.0;
/// Typical searches of people: all jobs, one account's, running ones, failed ones, one suite's oldest.
const SEARCHES: [&str; 5] = [
    "limit=100",
    "limit=100&account=account7",
    "limit=100&stage=running",
    "limit=100&health=fail",
    "limit=100&suite=bench&order=oldest",
];
/// A hundred days, in seconds.
const LONG_AGO_S: u64 = 100 * 86_400;
/// Time limit of a start.
const START_TIME: Duration = Duration::from_mins(1);
/// Interval between tries of an agent whose scheduler is not running yet.
const TRY_EVERY: Duration = Duration::from_millis(10);

/// Costs of all rounds with one number of waiting jobs.
#[derive(Debug)]
pub(super) struct Costs {
    resident: Fact,
    idle: Fact,
    idle_elasticsearch: Fact,
    counts: Fact,
    search: Fact,
    start: Fact,
}

impl Costs {
    pub(super) fn new(beside: &str) -> Self {
        let fact = |what: &str, goal: Goal| Fact::new(format!("{what}, {beside}"), goal);
        Self {
            resident: fact("resident memory of a replica, MB", Goal::AtMost(150.0)),
            idle: fact(
                "processor time of a replica while idle, % of a core",
                Goal::AtMost(2.0),
            ),
            idle_elasticsearch: fact("of Elasticsearch meanwhile, % of a core", Goal::None),
            counts: fact("the counts request, ms", Goal::AtMost(50.0)),
            search: fact("the slowest search of people, ms", Goal::AtMost(200.0)),
            start: fact(
                "from a replica's start to its first dispatch, ms",
                Goal::AtMost(3_000.0),
            ),
        }
    }

    pub(super) fn all(self) -> [Fact; 6] {
        [
            self.resident,
            self.idle,
            self.idle_elasticsearch,
            self.counts,
            self.search,
            self.start,
        ]
    }

    /// Measures the memory of the first replica, which has worked until now.
    pub(super) fn measure_memory(&mut self, cluster: &Cluster) -> anyhow::Result<()> {
        let kib = first(cluster)?.resident_kib();
        self.resident.push(f64::from(kib) / KIB_OF_MB);
        Ok(())
    }

    /// Measures the idle costs once more. `recent` is the id of some job.
    pub(super) async fn measure_idle(
        &mut self,
        (cluster, site): (&Cluster, &Site),
        elasticsearch: &[Process],
        idle: Duration,
        recent: JobId,
    ) -> anyhow::Result<()> {
        let process = first(cluster)?;
        let before = (process.cpu(), cpu_s(elasticsearch), now());
        pause(idle).await;
        let seconds = before.2.elapsed().as_secs_f64();
        let used = process.cpu().saturating_sub(before.0).as_secs_f64();
        self.idle.push(used / seconds * 100.0);
        let elasticsearch = cpu_s(elasticsearch) - before.1;
        self.idle_elasticsearch
            .push(elasticsearch / seconds * 100.0);
        self.counts.push(counted_ms(cluster).await?);
        self.search.push(searched_ms(site, recent).await?);
        Ok(())
    }

    /// Measures one more start: the first replica is killed and restarted, and one job is taken.
    pub(super) async fn measure_start(
        &mut self,
        (cluster, site, agent): (&mut Cluster, &Site, &mut Agent),
    ) -> anyhow::Result<()> {
        self.start.push(started_ms(cluster, site, agent).await?);
        Ok(())
    }
}

/// Returns the measured process.
fn first(cluster: &Cluster) -> anyhow::Result<&Process> {
    let first = cluster.replicas().first().context("no replica")?;
    first.process.as_ref().context("a replica does not run")
}

/// Returns the time in which the store counts the waiting jobs, ms.
async fn counted_ms(cluster: &Cluster) -> anyhow::Result<f64> {
    let settings = cluster.settings();
    let store = ElasticStore::open(ElasticConfig {
        urls: settings.elasticsearch.clone(),
        index_prefix: settings.index_prefix.clone(),
        ..ElasticConfig::default()
    })
    .await?;
    let begin = now();
    store.counts().await?;
    Ok(begin.elapsed().as_secs_f64() * 1_000.0)
}

/// Returns the time of the slowest of some job lists, ms.
async fn searched_ms(site: &Site, recent: JobId) -> anyhow::Result<f64> {
    // The last search is for one suite's jobs of long ago.
    let long_ago = JobId::first_of(recent.born_s().saturating_sub(LONG_AGO_S));
    let long_ago = format!("limit=100&suite=bench&after={long_ago}");
    let searches = SEARCHES.into_iter().chain([long_ago.as_str()]);
    let mut slowest = 0.0_f64;
    for search in searches {
        let begin = now();
        site.list(search).await?;
        slowest = slowest.max(begin.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(slowest)
}

/// Returns the time from the start of the first replica's process until an agent has a job.
async fn started_ms(cluster: &mut Cluster, site: &Site, agent: &mut Agent) -> anyhow::Result<f64> {
    let number = cluster.replicas().first().context("no replica")?.number;
    cluster.kill(number).await?;
    let begin = now();
    cluster.start(number)?;
    while agent.ask(site, 1, 1).await.unwrap_or(0) == 0 {
        anyhow::ensure!(
            begin.elapsed() < START_TIME,
            "replica {number} dispatches nothing"
        );
        pause(TRY_EVERY).await;
    }
    let took = begin.elapsed();
    cluster.wait_ready(number).await?;
    agent.finish_all(site).await?;
    Ok(took.as_secs_f64() * 1_000.0)
}
