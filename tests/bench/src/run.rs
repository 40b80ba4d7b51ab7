//! The course of a run: for each number of waiting jobs, rounds of Elasticsearch alone and fairlead over it.

use std::time::Duration;

use anyhow::Context;

use super::{
    cost::Costs,
    figure::{At, Figure, Goal, Rate},
    layouts::{Alone, Layouts},
    load::{Agent, JOBS_MAX, Site},
    raw::{Raw, cpu_s, rate},
    report::Report,
    sample::Sample,
};
use fairlead_cluster::{
    clock::now,
    launch::{Cluster, Process},
};

/// Number of created or claimed jobs in one raw bulk.
const RAW_BATCH: usize = 100;
/// Allowed time from submit to receipt beyond the raw writes, ms.
const RECEIPT_MORE_MS: f64 = 2.0;
/// Number of agents for measurements of the processor time of a claim, and for comparisons of rates.
pub(super) const CPU_AGENTS: usize = 64;
/// Maximum number of jobs in one answer.
const EACH_MAX: usize = 32;
/// Number of jobs in one request when the queue is filled.
const FILL: usize = 1_000;
const FILLERS: usize = 4;

/// Extent of the measurement.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Number of replicas.
    pub(super) replicas: u16,
    pub(super) rounds: usize,
    /// Numbers of jobs that wait during the measurements, ascending.
    pub(super) waiting: Vec<usize>,
    /// Number of jobs in one measurement.
    pub(super) jobs: usize,
    /// Numbers of agents.
    pub(super) agents: Vec<usize>,
    /// Number of receipts in one measurement.
    pub(super) receipts: usize,
    /// Length of bodies while layouts are compared, bytes.
    pub(super) body_bytes: usize,
    /// Time for which Elasticsearch is warmed up.
    pub(super) warm_up: Duration,
    /// Time without work in which idle costs are measured.
    pub(super) idle: Duration,
}

fn claims_in_bulk(agents: usize) -> usize {
    if agents == 1 { 1 } else { RAW_BATCH }
}

impl Plan {
    /// Returns a description of the lab's state during a measurement.
    fn beside(&self, waiting: usize) -> String {
        match self.replicas {
            1 => format!("{waiting} wait"),
            many => format!("{waiting} wait, {many} replicas"),
        }
    }

    fn at(&self, rate: Rate, waiting: usize) -> At {
        At {
            rate,
            waiting,
            replicas: self.replicas,
        }
    }
}

/// Figures of one number of waiting jobs.
struct Figures {
    submits: Vec<(usize, usize, Figure)>,
    dispatches: Vec<(usize, usize, Figure)>,
    receipt: Figure,
    receipt_p99: Figure,
    raw_p99: Figure,
    claim_cpu: Figure,
}

impl Figures {
    fn new(plan: &Plan, waiting: usize) -> Self {
        let beside = plan.beside(waiting);
        let submit = |clients: usize, each: usize, goal: Goal| {
            let what = format!("submits/s, {each} a request, {clients} clients, {beside}");
            let batch = if each == 1 { clients } else { RAW_BATCH };
            let of = format!("raw creates/s in bulks of {batch}");
            let figure = Figure::new(what, of, goal);
            let is_drawn = each > 1;
            let figure = if is_drawn {
                figure.drawn(plan.at(Rate::Submits, waiting))
            } else {
                figure
            };
            (clients, each, figure)
        };
        let dispatch = |agents: &usize| {
            // Every agent gets some jobs.
            let each = (plan.jobs / (*agents).max(1)).clamp(1, EACH_MAX);
            let each = if *agents == 1 { 1 } else { each };
            let what = format!("dispatches/s, {agents} agents, up to {each} an answer, {beside}");
            let goal = if *agents >= 64 {
                Goal::AtLeast(0.8)
            } else {
                Goal::None
            };
            let of = format!("raw claims/s in bulks of {}", claims_in_bulk(*agents));
            let at = plan.at(Rate::Dispatches(*agents), waiting);
            (*agents, each, Figure::new(what, of, goal).drawn(at))
        };
        Self {
            submits: vec![
                submit(1, 1, Goal::None),
                submit(8, 1, Goal::None),
                submit(64, 1, Goal::AtLeast(0.5)),
                submit(8, 100, Goal::AtLeast(0.8)),
            ],
            dispatches: plan.agents.iter().map(dispatch).collect(),
            receipt: Figure::new(
                format!("submit to receipt, p50 ms, {beside}"),
                "raw create + raw claim + 2 ms",
                Goal::AtMost(1.0),
            ),
            receipt_p99: Figure::new(
                format!("submit to receipt, p99 ms, {beside}"),
                "its p50",
                Goal::AtMost(5.0),
            ),
            raw_p99: Figure::new(
                format!("raw create + raw claim, p99 ms, {beside}"),
                "its p50",
                Goal::None,
            ),
            claim_cpu: Figure::new(
                format!("Elasticsearch's processor time a claim, µs, {beside}"),
                "of a raw claim",
                Goal::AtMost(1.25),
            ),
        }
    }

    fn all(self) -> Vec<Figure> {
        let submits = self.submits.into_iter().map(|(.., figure)| figure);
        let dispatches = self.dispatches.into_iter().map(|(.., figure)| figure);
        let rest = [self.claim_cpu, self.receipt, self.receipt_p99, self.raw_p99];
        submits.chain(dispatches).chain(rest).collect()
    }
}

/// One benchmark.
pub(super) struct Bench<'a> {
    /// Agents. They stay for the whole benchmark, like machines of a lab.
    pub(super) agents: Vec<Agent>,
    /// Processes of Elasticsearch.
    pub(super) elasticsearch: Vec<Process>,
    pub(super) plan: &'a Plan,
    pub(super) cluster: &'a mut Cluster,
    pub(super) site: &'a Site,
    pub(super) raw: &'a Raw,
    pub(super) sample: &'a Sample,
    pub(super) say: &'a dyn Fn(&str),
}

impl Bench<'_> {
    /// Measures everything. `waiting` jobs wait already.
    pub(super) async fn run(&mut self, mut waiting: usize) -> anyhow::Result<Report> {
        let mut report = Report::default();
        for (nth, &wanted) in self.plan.waiting.iter().enumerate() {
            (self.say)(&format!("{wanted} jobs wait"));
            self.fill(waiting, wanted).await?;
            waiting = wanted;
            // Elasticsearch is warm by then, but a replica that was restarted for the costs must learn of its agents.
            let warm_up = if nth == 0 {
                self.plan.warm_up
            } else {
                Duration::ZERO
            };
            self.warm_up(wanted, warm_up).await?;
            let (mut figures, mut costs) = (
                Figures::new(self.plan, wanted),
                Costs::new(&self.plan.beside(wanted)),
            );
            for round in 1..=self.plan.rounds {
                (self.say)(&format!("round {round} of {}", self.plan.rounds));
                self.round(&mut figures, wanted).await?;
                costs.measure_memory(self.cluster)?;
            }
            self.all_costs(&mut costs, wanted).await?;
            report.figures.extend(figures.all());
            report.facts.extend(costs.all());
        }
        report.figures.extend(growth(&report.figures, self.plan));
        Ok(report)
    }

    /// Measures this lab and an `old` one, whose store has many finished jobs, alternately. Returns the number of jobs
    /// that wait afterwards, the smallest one.
    pub(super) async fn beside_history(
        &mut self,
        old: &mut Bench<'_>,
        finished: usize,
    ) -> anyhow::Result<(usize, Report)> {
        let wanted = *self.plan.waiting.first().context("nothing is to wait")?;
        self.fill(0, wanted).await?;
        old.fill(0, wanted).await?;
        self.warm_up(wanted, self.plan.warm_up).await?;
        old.warm_up(wanted, old.plan.warm_up).await?;
        let beside = format!("{}, {finished} finished", self.plan.beside(wanted));
        let mut without = Figures::new(self.plan, wanted);
        let mut with = Figures::new(self.plan, wanted);
        let mut costs = Costs::new(&beside);
        for round in 1..=self.plan.rounds {
            (self.say)(&format!("round {round} of {}", self.plan.rounds));
            self.round(&mut without, wanted).await?;
            old.round(&mut with, wanted).await?;
            costs.measure_memory(old.cluster)?;
        }
        old.all_costs(&mut costs, wanted).await?;
        let pairs = with.all().into_iter().zip(without.all());
        let figures = pairs.map(|(with, without)| with.beside(without, finished));
        let report = Report {
            figures: figures.collect(),
            facts: costs.all().to_vec(),
            ..Report::default()
        };
        Ok((wanted, report))
    }

    /// Measures the idle costs after all rounds. Starts come last, because a replica that has just started knows no
    /// agents and has little in memory.
    async fn all_costs(&mut self, costs: &mut Costs, waiting: usize) -> anyhow::Result<()> {
        let recent = self.sample.job_id.parse()?;
        for round in 1..=self.plan.rounds {
            (self.say)(&format!("costs, round {round} of {}", self.plan.rounds));
            costs
                .measure_idle(
                    (self.cluster, self.site),
                    &self.elasticsearch,
                    self.plan.idle,
                    recent,
                )
                .await?;
        }
        for _ in 0..self.plan.rounds {
            let agent = self.agents.first_mut().context("no agents")?;
            let lab = (&mut *self.cluster, self.site, agent);
            costs.measure_start(lab).await?;
            // The start took one job.
            self.fill(waiting - 1, waiting).await?;
        }
        Ok(())
    }

    /// Measures the layouts of a job, in indices without ended jobs.
    pub(super) async fn layouts(&self) -> anyhow::Result<Report> {
        (self.say)("layouts of a job");
        let alone = Alone {
            raw: self.raw,
            sample: self.sample,
            elasticsearch: &self.elasticsearch,
        };
        let mut layouts = Layouts::new(alone, self.plan.body_bytes).await?;
        for _ in 0..self.plan.rounds {
            layouts.measure(alone, self.plan.jobs, true).await?;
        }
        layouts.report(alone).await
    }

    /// Warms up Elasticsearch, for at least one round. It compiles frequent code, and is many times slower until then.
    async fn warm_up(&mut self, waiting: usize, warm_up: Duration) -> anyhow::Result<()> {
        (self.say)("warming up");
        let begin = now();
        let mut unused = Figures::new(self.plan, waiting);
        loop {
            self.round(&mut unused, waiting).await?;
            if begin.elapsed() >= warm_up {
                return Ok(());
            }
        }
    }

    async fn fill(&self, there: usize, wanted: usize) -> anyhow::Result<()> {
        let missing = wanted.saturating_sub(there);
        if missing > 0 {
            self.site.submit_many(FILLERS, missing, FILL).await?;
        }
        Ok(())
    }

    /// Submits and dispatches alternately, so that the number of waiting jobs stays close to the plan.
    async fn round(&mut self, figures: &mut Figures, waiting: usize) -> anyhow::Result<()> {
        let mut there = waiting;
        let turns = figures.submits.len().max(figures.dispatches.len());
        for turn in 0..turns {
            if let Some((clients, each, figure)) = figures.submits.get_mut(turn) {
                there += self.submits(*clients, *each, figure).await?;
            }
            if let Some((agents, each, figure)) = figures.dispatches.get_mut(turn) {
                let count = self.count(*agents);
                self.fill(there, waiting.max(count)).await?;
                there = there.max(waiting.max(count));
                let cpu = (*agents == CPU_AGENTS).then_some(&mut figures.claim_cpu);
                there -= self.dispatches(*agents, *each, figure, cpu).await?;
            }
        }
        self.receipts(figures).await?;
        // Each round has the same number of waiting jobs.
        self.fill(there, waiting).await?;
        self.take_away(there.saturating_sub(waiting)).await
    }

    /// Returns the number of jobs to measure. It is smaller for a single client or agent, which waits for each.
    fn count(&self, of: usize) -> usize {
        if of == 1 {
            self.plan.jobs.div_ceil(10)
        } else {
            self.plan.jobs
        }
    }

    async fn submits(
        &self,
        clients: usize,
        each: usize,
        figure: &mut Figure,
    ) -> anyhow::Result<usize> {
        let count = self.count(clients);
        let batch = if each == 1 { clients } else { RAW_BATCH };
        let created = self
            .raw
            .create(self.sample, self.sample.next_run(), count, batch);
        let (limit, _) = created.await?;
        let ours = self.site.submit_many(clients, count, each).await?;
        figure.push(ours, limit);
        Ok(count)
    }

    async fn dispatches(
        &mut self,
        agents: usize,
        each: usize,
        figure: &mut Figure,
        cpu: Option<&mut Figure>,
    ) -> anyhow::Result<usize> {
        let (raw, run, count) = (self.raw, self.sample.next_run(), self.count(agents));
        let (_, states) = raw.create(self.sample, run, count, RAW_BATCH).await?;
        let before = cpu_s(&self.elasticsearch);
        let batch = claims_in_bulk(agents);
        let limit = raw.claim(self.sample, run, &states, batch).await?;
        let raw_cpu_s = cpu_s(&self.elasticsearch) - before;
        let all = self.agents.get_mut(..agents).context("too few agents")?;
        let used = || cpu_s(&self.elasticsearch);
        let (seconds, our_cpu_s) = self.site.dispatch(all, count, each, used).await?;
        figure.push(rate(count, seconds), limit);
        if let Some(cpu) = cpu {
            let micros_each = 1e6 / f64::from(u32::try_from(count)?);
            cpu.push(our_cpu_s * micros_each, raw_cpu_s * micros_each);
        }
        Ok(count)
    }

    async fn take_away(&mut self, surplus: usize) -> anyhow::Result<()> {
        let count = self.agents.len().min(16);
        let some = self.agents.get_mut(..count).context("no agents")?;
        self.site.dispatch(some, surplus, JOBS_MAX, || 0.0).await?;
        Ok(())
    }

    async fn receipts(&self, figures: &mut Figures) -> anyhow::Result<()> {
        let count = self.plan.receipts;
        let limit = self
            .raw
            .one_by_one(self.sample, self.sample.next_run(), count)
            .await?;
        let ours = self.site.receipts(count).await?;
        figures
            .receipt
            .push(ours.median(), limit.median() + RECEIPT_MORE_MS);
        figures.receipt_p99.push(ours.p99(), ours.median());
        figures.raw_p99.push(limit.p99(), limit.median());
        Ok(())
    }
}

/// Compares dispatches with the most and with the fewest jobs waiting. The cost must not grow with the number of
/// waiting jobs.
fn growth(figures: &[Figure], plan: &Plan) -> Option<Figure> {
    let (least, most) = (*plan.waiting.first()?, *plan.waiting.last()?);
    let of = |waiting| {
        let at = plan.at(Rate::Dispatches(CPU_AGENTS), waiting);
        figures.iter().find(|figure| figure.at == Some(at))
    };
    let (few, many) = (of(least)?, of(most).filter(|_| most > least)?);
    let mut growth = Figure::new(
        many.what.clone(),
        format!("with {least} waiting"),
        Goal::AtLeast(0.9),
    );
    let rounds = many.ours.values().iter().zip(few.ours.values());
    rounds.for_each(|(many, few)| growth.push(*many, *few));
    Some(growth)
}
