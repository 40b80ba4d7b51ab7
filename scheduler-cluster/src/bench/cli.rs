//! `fairlead-bench`: its arguments, and what it starts.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;

use super::{
    load::Site,
    pin,
    raw::Raw,
    report::Fact,
    run::{Bench, Plan},
    sample::Sample,
};
use crate::launch::{Asked, Cluster, Elastic, OwnElastic, Replica};

/// Measures fairlead beside Elasticsearch alone, with the same writes, in one run
///
/// Elasticsearch gets one core, fairlead and the load another. Nothing else should run beside it.
#[derive(Debug, Clone, clap::Parser)]
#[command(version, max_term_width = 100)]
pub struct BenchArgs {
    /// A new folder for logs and data; removed when all is measured
    #[arg(long, value_name = "DIR", default_value = "fairlead-bench")]
    dir: PathBuf,
    /// Rounds; each measures all
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// How many jobs wait all the while, with commas, ascending
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1000,100000"
    )]
    waiting: Vec<usize>,
    /// Jobs of one measurement
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    jobs: usize,
    /// Numbers of agents, with commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,64,1000"
    )]
    agents: Vec<usize>,
    /// Jobs whose way from submit to receipt is timed
    #[arg(long, value_name = "N", default_value_t = 200)]
    receipts: usize,
    /// How long Elasticsearch is warmed up, seconds: a fresh one is many times slower
    #[arg(long, value_name = "S", default_value_t = 60)]
    warm_up: u64,
    /// Replicas
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: u16,
    /// Port of the first
    #[arg(long, value_name = "PORT", default_value_t = 3500)]
    port: u16,
    /// An Elasticsearch that runs, which stays where it runs [default: one of its own]
    #[arg(long, value_name = "URL")]
    elasticsearch: Option<String>,
    /// Port of an Elasticsearch of its own
    #[arg(long, value_name = "PORT", default_value_t = 9500)]
    elasticsearch_port: u16,
    /// The program [default: `fairlead` beside this one]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Prints JSON for programs
    #[arg(long)]
    json: bool,
}

impl BenchArgs {
    /// Measures. Returns what is to be printed; `say` hears of each step.
    ///
    /// # Errors
    /// Something could not be started, or did not do the work.
    pub async fn run(&self, say: &dyn Fn(&str)) -> anyhow::Result<String> {
        let dir = std::path::absolute(&self.dir)?;
        fs::create_dir(&dir).with_context(|| format!("--dir {}", dir.display()))?;
        let measured = match &self.elasticsearch {
            Some(url) => self.over(&dir, url, say).await,
            None => self.over_own(&dir, say).await,
        }?;
        fs::remove_dir_all(&dir)?;
        Ok(measured)
    }

    /// Measures over an Elasticsearch that is started for it.
    async fn over_own(&self, dir: &Path, say: &dyn Fn(&str)) -> anyhow::Result<String> {
        say("starting Elasticsearch");
        pin::to(pin::ELASTICSEARCH)?;
        let elastic = Elastic::below(dir)?;
        let own = OwnElastic {
            nodes: 1,
            port: self.elasticsearch_port,
        };
        let urls = elastic.start(own).await?;
        pin::to(pin::OTHERS)?;
        let url = urls.into_iter().next().unwrap_or_default();
        let measured = self.over(dir, &url, say).await;
        elastic.stop().await?;
        measured
    }

    /// Measures over this Elasticsearch.
    async fn over(
        &self,
        dir: &Path,
        elasticsearch: &str,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<String> {
        let prefix = format!("bench-{}", std::process::id());
        let raw = Raw::new(elasticsearch)?;
        let measured = self.measure(dir, elasticsearch, &prefix, &raw, say).await;
        raw.forget(&prefix).await?;
        measured
    }

    async fn measure(
        &self,
        dir: &Path,
        elasticsearch: &str,
        prefix: &str,
        raw: &Raw,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<String> {
        // Its indices are the scheduler's own, made by itself, and nothing else looks at them.
        let alone = format!("{prefix}-alone");
        let cluster = self.up(&dir.join("alone"), elasticsearch, &alone).await?;
        let site = site_of(&cluster)?;
        let sample = Sample::take(&site, raw, &alone).await?;
        cluster.down().await?;
        let cluster = self
            .up(&dir.join("replicas"), elasticsearch, prefix)
            .await?;
        let site = site_of(&cluster)?;
        let plan = Plan {
            rounds: self.rounds.into(),
            waiting: self.waiting.clone(),
            jobs: self.jobs,
            agents: self.agents.clone(),
            receipts: self.receipts,
            warm_up: Duration::from_secs(self.warm_up),
        };
        let bench = Bench {
            plan: &plan,
            site: &site,
            raw,
            sample: &sample,
            say,
            runs: Cell::default(),
        };
        let measured = bench.run().await;
        let resident: Vec<f64> = cluster.replicas().iter().map(resident_mb).collect();
        cluster.down().await?;
        let mut report = measured?;
        report
            .facts
            .extend(resident.into_iter().enumerate().map(|(n, value)| Fact {
                what: format!("resident memory of replica {}, MB", n + 1),
                value,
            }));
        Ok(if self.json {
            format!("{:#}\n", report.json())
        } else {
            report.text()
        })
    }

    async fn up(&self, dir: &Path, elasticsearch: &str, prefix: &str) -> anyhow::Result<Cluster> {
        let asked = Asked {
            replicas: Some(self.replicas),
            port: Some(self.port),
            elasticsearch: Some(vec![elasticsearch.to_owned()]),
            index_prefix: Some(prefix.to_owned()),
            binary: self.binary.clone(),
            ..Asked::default()
        };
        Ok(Cluster::up(dir, asked).await?)
    }
}

fn site_of(cluster: &Cluster) -> anyhow::Result<Site> {
    Site::new(cluster.replicas().iter().map(Replica::url).collect())
}

/// Memory of a replica's process now, MB; 0 when it is gone.
fn resident_mb(replica: &Replica) -> f64 {
    let pid = replica.process.as_ref().map_or(0, |process| process.pid);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kb.map_or(0.0, |kb: f64| kb / 1_024.0)
}
