//! `fairlead-bench`: its arguments, and what it starts.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;

use super::{
    engine::EngineArgs,
    figure::{At, Rate},
    history::History,
    layouts::{Alone, Layouts},
    load::{Agent, Site},
    paced::{self, Asked, Paced},
    pin, plots,
    raw::Raw,
    report::Report,
    run::{Bench, CPU_AGENTS, Plan},
    sample::Sample,
    sharded::ShardedArgs,
    solo,
};
use fairlead_cluster::{
    clock::now,
    launch::{self, Cluster, Elastic, OwnElastic, Replica},
    signals::unless_interrupted,
};
use fairlead_reaper::Reaper;

/// Measures fairlead beside Elasticsearch alone, with the same writes, in one run
///
/// Elasticsearch gets one core; fairlead and the load share another. Run nothing else meanwhile.
#[derive(Debug, Clone, clap::Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct BenchArgs {
    /// New folder for logs and data; removed at the end
    #[arg(long, value_name = "DIR", default_value = "fairlead-bench")]
    dir: PathBuf,
    /// Number of rounds; each measures everything
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Numbers of jobs that wait during a measurement, separated by commas, ascending
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1000,100000"
    )]
    waiting: Vec<usize>,
    /// Also measure with N ended jobs of the last ten months, and compare with none. Uses a second scheduler and the
    /// smallest number of waiting jobs. With `--layouts-only`: store N ended jobs in each layout first
    #[arg(long, value_name = "N", default_value_t = 0)]
    finished: usize,
    /// Number of jobs in one measurement
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    jobs: usize,
    /// Numbers of agents, separated by commas
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,64,1000"
    )]
    agents: Vec<usize>,
    /// Number of jobs to time from submit to receipt
    #[arg(long, value_name = "N", default_value_t = 200)]
    receipts: usize,
    /// Time to warm up Elasticsearch, seconds; a fresh one is many times slower
    #[arg(long, value_name = "S", default_value_t = 60)]
    warm_up: u64,
    /// Time to measure idle costs, seconds
    #[arg(long, value_name = "S", default_value_t = 20)]
    idle: u64,
    /// Numbers of replicas, separated by commas; only the first measures everything
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4")]
    replicas: Vec<u16>,
    /// Port of the first replica; the others have the next ports
    #[arg(long, value_name = "PORT", default_value_t = 3500)]
    port: u16,
    /// URL of a running Elasticsearch, which keeps its core [default: start one]
    #[arg(long, value_name = "URL")]
    elasticsearch: Option<String>,
    /// Port of the Elasticsearch to start
    #[arg(long, value_name = "PORT", default_value_t = 9500)]
    elasticsearch_port: u16,
    /// Program to measure [default: `fairlead` beside this program]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Also write the report as a Markdown file, with its plots beside it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Measure only the engine, without schedulers and Elasticsearch
    #[arg(long, group = "only")]
    engine_only: bool,
    /// Measure only equal work at one pace, in jobs a second, with each number of replicas. Each job is submitted, claimed
    /// and ended. The report tells what each replica costs, and what it asks of Elasticsearch
    #[arg(long, value_name = "RATE", group = "only", value_parser = clap::value_parser!(u32).range(1..))]
    paced: Option<u32>,
    /// Time of one measurement of `--paced`, seconds
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    paced_time: u32,
    /// Also measure `--paced` with this many dashboards open at each replica, and without them, in the same round
    #[arg(long, value_name = "N", default_value_t = 0, requires = "paced")]
    dashboards: usize,
    /// Measure only three layouts of a job, by Elasticsearch alone: state and body in two indices, in one index, and in
    /// one document
    #[arg(long, group = "only")]
    layouts_only: bool,
    /// Length of the bodies of the layouts, bytes
    #[arg(long, value_name = "N", default_value_t = 1_500)]
    body_bytes: usize,
    #[command(flatten)]
    sharded: ShardedArgs,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// More arguments for `fairlead serve` over Elasticsearch, after `--`
    #[arg(last = true, value_name = "ARGUMENTS")]
    more: Vec<String>,
}

impl BenchArgs {
    /// Measures. Returns the text to print; `say` gets each step.
    ///
    /// # Errors
    /// Fails if something could not be started, or did not do the work.
    pub(crate) async fn run(&self, say: &dyn Fn(&str)) -> anyhow::Result<String> {
        if let Some(line) = self.engine.asked_line() {
            return line;
        }
        if self.engine_only {
            return Ok(self.printed(&self.engine.measure(self.rounds, say)?));
        }
        if self.sharded.is_asked() {
            let url = self.elasticsearch.as_deref();
            let url = url.context("--sharded needs --elasticsearch")?;
            return self.sharded.measure(url, say).await;
        }
        let dir = std::path::absolute(&self.dir)?;
        fs::create_dir(&dir).with_context(|| format!("--dir {}", dir.display()))?;
        let reaper = Reaper::start()?;
        reaper.removes(&dir)?;
        match &self.elasticsearch {
            Some(url) => self.over(&dir, url, &reaper, say).await,
            None => unless_interrupted(Box::pin(self.over_own(&dir, &reaper, say))).await,
        }
    }

    /// Measures with an Elasticsearch that is started for it.
    async fn over_own(
        &self,
        dir: &Path,
        reaper: &Reaper,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<String> {
        say("starting Elasticsearch");
        pin::to(pin::ELASTICSEARCH)?;
        let elastic = Elastic::below(dir, Some(reaper))?;
        elastic.ends_with(reaper)?;
        let own = OwnElastic {
            nodes: 1,
            port: self.elasticsearch_port,
        };
        let urls = elastic.start(own).await?;
        pin::to(pin::OTHERS)?;
        let url = urls.into_iter().next().unwrap_or_default();
        self.over(dir, &url, reaper, say).await
    }

    /// Measures with this Elasticsearch.
    async fn over(
        &self,
        dir: &Path,
        elasticsearch: &str,
        reaper: &Reaper,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<String> {
        let place = Place {
            dir,
            elasticsearch,
            reaper,
            prefix: format!("bench-{}", std::process::id()),
            raw: Raw::new(elasticsearch)?,
        };
        // The indices in a foreign Elasticsearch are removed in any case.
        let measured = unless_interrupted(Box::pin(self.measure(&place, say))).await;
        let forgotten = place.raw.forget(&place.prefix).await;
        let report = measured?;
        forgotten?;
        if let Some(path) = &self.report {
            let words: Vec<String> = std::env::args().skip(1).collect();
            let command = format!("fairlead-bench {}", words.join(" "));
            let plots = plots::draw_all(path, &report.figures, self.first())?;
            fs::write(path, report.document(path, &plots, &command))?;
        }
        Ok(self.printed(&report))
    }

    fn printed(&self, report: &Report) -> String {
        if self.json {
            format!("{:#}\n", report.json())
        } else {
            report.text()
        }
    }

    async fn measure(&self, place: &Place<'_>, say: &dyn Fn(&str)) -> anyhow::Result<Report> {
        // The indices of Elasticsearch alone are created by a scheduler; afterwards nothing else uses them.
        let cluster = self.up(place, "alone", 1).await?;
        let alone = &cluster.settings().index_prefix;
        let sample = Sample::take(&site_of(&cluster)?, &place.raw, alone).await?;
        let binary = cluster.replicas().first().map(|one| one.binary.clone());
        cluster.down().await?;
        let elasticsearch = place.raw.processes().await?;
        let alone = Alone {
            raw: &place.raw,
            sample: &sample,
            elasticsearch: &elasticsearch,
        };
        if self.layouts_only {
            return self.layouts(alone, say).await;
        }
        if let Some(rate) = self.paced {
            return self.paced(place, alone, rate, say).await;
        }
        let mut report = Report::default();
        for (nth, &replicas) in self.replicas.iter().enumerate() {
            say(&format!("{replicas} replicas"));
            let plan = self.plan(replicas, nth == 0);
            let mut cluster = self.up(place, &format!("at-{replicas}"), replicas).await?;
            let site = site_of(&cluster)?;
            let mut bench = Bench {
                agents: self.agents(),
                elasticsearch: elasticsearch.clone(),
                plan: &plan,
                cluster: &mut cluster,
                site: &site,
                raw: &place.raw,
                sample: &sample,
                say,
            };
            let mut waiting = 0;
            if nth == 0 && self.finished > 0 {
                let (now_waiting, measured) = self.history(place, &mut bench).await?;
                waiting = now_waiting;
                report.extend(measured);
            }
            report.extend(bench.run(waiting).await?);
            if nth == 0 {
                report.extend(bench.layouts().await?);
            }
            cluster.down().await?;
        }
        say("the embedded store");
        let solo = solo::Place {
            dir: place.dir.join("solo"),
            binary: binary.context("no replica")?,
            port: self.port,
            reaper: place.reaper,
        };
        let measured = solo.measure(self.rounds.into(), self.jobs);
        report.facts.extend(measured.await?);
        report.extend(self.engine.measure(self.rounds, say)?);
        Ok(report)
    }

    /// Measures only the layouts, beside this number of ended jobs.
    async fn layouts(&self, alone: Alone<'_>, say: &dyn Fn(&str)) -> anyhow::Result<Report> {
        let mut layouts = Layouts::new(alone, self.body_bytes).await?;
        say("warming up");
        let begin = now();
        while begin.elapsed() < Duration::from_secs(self.warm_up) {
            let few = self.jobs.div_ceil(10);
            layouts.measure(alone, few, false).await?;
        }
        if self.finished > 0 {
            layouts.fill(alone, self.finished, say).await?;
        }
        for round in 1..=self.rounds {
            say(&format!("round {round} of {}", self.rounds));
            layouts.measure(alone, self.jobs, true).await?;
        }
        layouts.report(alone).await
    }

    /// Measures only equal work at one pace, with each number of replicas.
    async fn paced(
        &self,
        place: &Place<'_>,
        alone: Alone<'_>,
        rate: u32,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<Report> {
        let (mut report, mut asked) = (Report::default(), Asked::default());
        for (nth, &replicas) in self.replicas.iter().enumerate() {
            say(&format!("{replicas} replicas"));
            let cluster = self.up(place, &format!("at-{replicas}"), replicas).await?;
            let plan = self.plan(replicas, nth == 0);
            let mut paced = Paced {
                plan: paced::Plan {
                    rate,
                    seconds: self.paced_time,
                    rounds: self.rounds,
                    waiting: plan.waiting.first().copied().unwrap_or_default(),
                    warm_up: plan.warm_up,
                    dashboards: self.dashboards,
                },
                cluster: &cluster,
                alone,
                say,
                agents: (0..paced::AGENTS).map(Agent::new).collect(),
            };
            let measured = paced.run(&mut asked).await?;
            cluster.down().await?;
            report.extend(measured);
        }
        report.tables.push(asked.table());
        Ok(report)
    }

    /// Measures beside many finished jobs, which another scheduler of the same Elasticsearch has. Returns the number of
    /// jobs that wait afterwards.
    async fn history(
        &self,
        place: &Place<'_>,
        bench: &mut Bench<'_>,
    ) -> anyhow::Result<(usize, Report)> {
        (bench.say)(&format!("{} jobs have ended", self.finished));
        let others = self.replicas.iter().copied().max().unwrap_or_default();
        let mut cluster = self.up_at(place, "history", 1, self.port + others).await?;
        let site = site_of(&cluster)?;
        let prefix = cluster.settings().index_prefix.clone();
        let number = cluster.replicas().first().context("no replica")?.number;
        let work = async {
            let history = History::new(bench.sample, &prefix, self.finished)?;
            let (indices, finished) = (history.indices(), self.finished);
            // A running scheduler would take in all of them as news.
            cluster.stop(number).await?;
            let filled = place.raw.fill(&indices, finished, |n| history.create(n));
            filled.await?;
            cluster.restart(number).await?;
            let mut old = Bench {
                agents: self.agents(),
                elasticsearch: bench.elasticsearch.clone(),
                plan: bench.plan,
                cluster: &mut cluster,
                site: &site,
                raw: bench.raw,
                sample: bench.sample,
                say: bench.say,
            };
            bench.beside_history(&mut old, finished).await
        };
        let measured = work.await?;
        cluster.down().await?;
        Ok(measured)
    }

    /// Returns enough agents for all measurements.
    fn agents(&self) -> Vec<Agent> {
        let most = self.agents.iter().copied().max().unwrap_or(1);
        (0..most).map(Agent::new).collect()
    }

    /// Returns the base state of the lab, of which one value changes at a time.
    fn first(&self) -> At {
        let least = |numbers: &[usize]| numbers.first().copied().unwrap_or_default();
        let agents = if self.agents.contains(&CPU_AGENTS) {
            CPU_AGENTS
        } else {
            least(&self.agents)
        };
        At {
            rate: Rate::Dispatches(agents),
            waiting: least(&self.waiting),
            replicas: self.replicas.first().copied().unwrap_or_default(),
        }
    }

    /// Returns the plan for a number of replicas. Only the first one is measured with all numbers of waiting jobs, the
    /// others with the smallest.
    fn plan(&self, replicas: u16, is_first: bool) -> Plan {
        let most = if is_first { self.waiting.len() } else { 1 };
        Plan {
            replicas,
            rounds: self.rounds.into(),
            waiting: self.waiting.iter().copied().take(most).collect(),
            jobs: self.jobs,
            agents: self.agents.clone(),
            receipts: self.receipts,
            body_bytes: self.body_bytes,
            warm_up: Duration::from_secs(if is_first { self.warm_up } else { 0 }),
            idle: Duration::from_secs(self.idle),
        }
    }

    async fn up(&self, place: &Place<'_>, name: &str, replicas: u16) -> anyhow::Result<Cluster> {
        self.up_at(place, name, replicas, self.port).await
    }

    async fn up_at(
        &self,
        place: &Place<'_>,
        name: &str,
        replicas: u16,
        port: u16,
    ) -> anyhow::Result<Cluster> {
        let asked = launch::Asked {
            replicas: Some(replicas),
            port: Some(port),
            elasticsearch: Some(vec![place.elasticsearch.to_owned()]),
            index_prefix: Some(format!("{}-{name}", place.prefix)),
            binary: self.binary.clone(),
            more: Some(self.more.clone()),
            ..launch::Asked::default()
        };
        Ok(Cluster::up(&place.dir.join(name), asked, Reaper::start()?).await?)
    }
}

/// Places of the benchmark's parts.
struct Place<'a> {
    dir: &'a Path,
    elasticsearch: &'a str,
    /// Ends the processes outside the cluster.
    reaper: &'a Reaper,
    /// Prefix of the names of all indices.
    prefix: String,
    raw: Raw,
}

fn site_of(cluster: &Cluster) -> anyhow::Result<Site> {
    Site::new(cluster.replicas().iter().map(Replica::url).collect())
}
