//! Equal work at one pace, with each number of replicas, beside the same writes of Elasticsearch alone.
//!
//! All jobs are submitted, claimed and ended at the same rate, at the same time. Half of them are submitted one a request,
//! half 100 a request. Elasticsearch alone writes as many jobs at the same rate, in bulks of the same mean size. That
//! size is the number of writes that the indices counted, divided by the number of bulk requests that the nodes counted.

mod asked;
mod dashboards;
mod spread;

use std::time::Duration;

use anyhow::Context;
use fairlead_cluster::{
    clock::{now, pause},
    launch::{Cluster, Process, Replica},
};
use futures_util::future::try_join_all;
use parking_lot::Mutex;

pub(super) use self::asked::Asked;
use self::{
    dashboards::Dashboards,
    spread::{Spread, Took, Watched},
};
use super::{
    layouts::Alone,
    load::{Agent, Site},
    pace::{Pace, cut},
    raw::{cpu_s, versions},
    report::Report,
};

/// Number of agents.
pub(super) const AGENTS: usize = 64;
/// Number of jobs that an agent takes at a time.
const EACH: usize = 8;
/// Number of clients that submit one job in a request. The next constant is the number of those that submit many.
const CLIENTS: usize = 64;
const BATCH_CLIENTS: usize = 8;
const BATCH: usize = 100;
/// Number of clients of Elasticsearch alone.
const RAW_CLIENTS: usize = 64;
/// Number of jobs in one request when the queue is filled.
const FILL: usize = 1_000;
const FILLERS: usize = 4;
/// Time until the changes of the last second have been read. They belong to the measurement.
const SETTLE: Duration = Duration::from_secs(1);
/// Time without work in which idle replicas are measured.
const IDLE: Duration = Duration::from_secs(5);
/// Duration of one measurement while Elasticsearch warms up, seconds.
const WARM_UP_S: u32 = 5;

/// Extent of the measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Jobs a second.
    pub(super) rate: u32,
    /// Duration of one measurement, seconds.
    pub(super) seconds: u32,
    pub(super) rounds: u16,
    /// Number of jobs that wait before the first one is claimed.
    pub(super) waiting: usize,
    /// Time for which Elasticsearch is warmed up.
    pub(super) warm_up: Duration,
    /// Number of open dashboards at each replica, in a second measurement of each round.
    pub(super) dashboards: usize,
}

/// Replicas that are measured.
pub(super) struct Paced<'a> {
    pub(super) plan: Plan,
    pub(super) cluster: &'a Cluster,
    pub(super) alone: Alone<'a>,
    pub(super) say: &'a dyn Fn(&str),
    pub(super) agents: Vec<Agent>,
}

impl Paced<'_> {
    /// Runs all rounds. The table of requests gets columns of these replicas.
    pub(super) async fn run(&mut self, asked: &mut Asked) -> anyhow::Result<Report> {
        let urls: Vec<String> = self.cluster.replicas().iter().map(Replica::url).collect();
        let all = Site::new(urls.clone())?;
        all.submit_many(FILLERS, self.plan.waiting, FILL).await?;
        let rate = self.plan.rate;
        let mut spreads = vec![Spread::new(rate, urls.len(), false)];
        if urls.len() > 1 {
            spreads.push(Spread::new(rate, urls.len(), true));
        }
        let one = Site::new(urls.iter().take(1).cloned().collect())?;
        let mut watched = Watched::new(rate, urls.len(), self.plan.dashboards);
        (self.say)("warming up");
        let begin = now();
        loop {
            let took = self.measure(&all, WARM_UP_S).await?;
            self.write_alone(&took, 0.0).await?;
            if begin.elapsed() >= self.plan.warm_up {
                break;
            }
        }
        let idle = self.idle().await?;
        for round in 1..=self.plan.rounds {
            for spread in &mut spreads {
                let (rounds, what) = (self.plan.rounds, spread.what());
                (self.say)(&format!("round {round} of {rounds}: {what}"));
                let site = if spread.has_idle() { &one } else { &all };
                let took = self.measure(site, self.plan.seconds).await?;
                let alone_s = self.write_alone(&took, idle).await?;
                spread.push(&took, alone_s);
                asked.push(spread.what(), spread.replicas(), took);
            }
            if self.plan.dashboards > 0 {
                // The order of both measurements alternates, so that warm-up helps both.
                for is_open in [round % 2 == 0, round % 2 == 1] {
                    let open = if is_open { self.plan.dashboards } else { 0 };
                    (self.say)(&format!("round {round}: {open} dashboards"));
                    let streams = Dashboards::open(&urls, open).await?;
                    let took = self.measure(&all, self.plan.seconds).await?;
                    streams.close()?;
                    watched.push(&took, is_open);
                }
            }
        }
        let mut report = Report::default();
        for spread in spreads {
            report.extend(spread.report());
        }
        report.extend(watched.report());
        Ok(report)
    }

    /// Submits, claims and ends jobs for this number of seconds.
    async fn measure(&mut self, site: &Site, seconds: u32) -> anyhow::Result<Took> {
        let rate = self.plan.rate;
        let pace = Pace::new(f64::from(rate));
        // Both halves consist of whole requests.
        let half = usize::try_from(rate * seconds / 2)?.next_multiple_of(BATCH);
        let prefix = &self.cluster.settings().index_prefix;
        let processes = self.cluster.replicas().iter();
        let processes = processes.map(|one| one.process.clone().context("a replica does not run"));
        let processes: Vec<Process> = processes.collect::<anyhow::Result<_>>()?;
        let used = || processes.iter().map(|one| cpu_s(std::slice::from_ref(one)));
        let elasticsearch = || cpu_s(self.alone.elasticsearch);
        let asked = self.alone.raw.stats(prefix).await?;
        let before = (elasticsearch(), used().collect::<Vec<f64>>(), now());
        let half_pace = Some(pace.share(0.5));
        let singles = site.submit_paced(CLIENTS, half, 1, half_pace);
        let batches = site.submit_paced(BATCH_CLIENTS, half, BATCH, half_pace);
        let claims = site.serve_paced(&mut self.agents, 2 * half, EACH, pace);
        tokio::try_join!(singles, batches, claims)?;
        let seconds = before.2.elapsed().as_secs_f64();
        pause(SETTLE).await;
        let replicas_s = used().zip(before.1).map(|(after, before)| after - before);
        Ok(Took {
            count: 2 * half,
            seconds,
            elasticsearch_s: elasticsearch() - before.0,
            replicas_s: replicas_s.collect(),
            asked: self.alone.raw.stats(prefix).await?.since(&asked),
        })
    }

    /// Returns the processor time of Elasticsearch in a second, seconds, while the replicas are idle.
    async fn idle(&self) -> anyhow::Result<f64> {
        let prefix = &self.cluster.settings().index_prefix;
        self.alone.raw.wait_merged(&format!("{prefix}-*")).await?;
        let (used, begin) = (cpu_s(self.alone.elasticsearch), now());
        pause(IDLE).await;
        let used = cpu_s(self.alone.elasticsearch) - used;
        Ok(used / begin.elapsed().as_secs_f64())
    }

    /// Lets Elasticsearch alone create, claim and end as many jobs at the same pace, with as many writes in a bulk.
    /// Returns its processor time, seconds, without that of idle replicas.
    async fn write_alone(&self, took: &Took, idle: f64) -> anyhow::Result<f64> {
        let Alone { raw, sample, .. } = self.alone;
        let (run, pace) = (sample.next_run(), Pace::new(f64::from(self.plan.rate)));
        let (writes, bulks) = took.asked.writes_and_bulks();
        let groups = Mutex::new(cut(took.count, writes, bulks).into_iter());
        let take = || groups.lock().next();
        let (used, begin) = (cpu_s(self.alone.elasticsearch), now());
        let client = async || {
            while let Some(group) = take() {
                pace.wait(begin, group.start).await;
                let mut states = Vec::with_capacity(group.len());
                // A job has two documents: half of the jobs fill a bulk.
                let middle = group.start + group.len().div_ceil(2);
                for half in [group.start..middle, middle..group.end] {
                    if half.is_empty() {
                        continue;
                    }
                    let lines = half.map(|n| sample.create(run, n)).collect();
                    let created = versions(vec![raw.bulk(lines).await?])?;
                    states.extend(created.into_iter().step_by(2));
                }
                let each = || group.clone().zip(&states);
                let lines = each().map(|(n, at)| sample.claim(run, n, *at)).collect();
                states = versions(vec![raw.bulk(lines).await?])?;
                let each = group.clone().zip(&states);
                let lines = each.map(|(n, at)| sample.end(run, n, *at)).collect();
                versions(vec![raw.bulk(lines).await?])?;
            }
            anyhow::Ok(())
        };
        try_join_all((0..RAW_CLIENTS).map(|_| client())).await?;
        pause(SETTLE).await;
        let idle_s = idle * begin.elapsed().as_secs_f64();
        Ok(cpu_s(self.alone.elasticsearch) - used - idle_s)
    }
}
