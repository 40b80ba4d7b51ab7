//! Measures the cost of an engine's decision, and that it does not grow with the known jobs.
//!
//! Each line is measured by its own process. So no line meets a heap that earlier lines have fragmented.

mod decide;
mod names;

use std::{
    hint::black_box,
    process::{Command, Stdio},
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use fairlead_dispatch::CACHE_JOBS;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use self::{
    decide::{Lab, Mix},
    names::{Came, Flood, Own, SECONDS_AFTER},
};
use super::{
    figure::{Figure, Goal, Series},
    report::{Fact, Report},
};
use fairlead_cluster::{clock::now, launch::Process};

/// Number of timed decisions. A quarter as many are made before.
const DECISIONS: u32 = 20_000;
/// Number of memory cells that are read in a cycle: 256 MB.
const FAR_CELLS: u32 = 1 << 26;
const BYTES_OF_KIB: f64 = 1_024.0;
const FAR_READS: u32 = 1 << 20;

/// The measurements.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct EngineArgs {
    /// Numbers of jobs in the engine, separated by commas, ascending
    #[arg(
        id = "engine_jobs",
        long = "engine-jobs",
        value_name = "N",
        value_delimiter = ',',
        default_value = "1000,100000,1000000"
    )]
    jobs: Vec<u64>,
    /// Number of hosts that the engine serves
    #[arg(
        id = "engine_hosts",
        long = "engine-hosts",
        value_name = "N",
        default_value_t = 10_000
    )]
    hosts: u64,
    /// Number of jobs that each have their own account, queue or machine, with the default cache
    #[arg(
        id = "engine_names",
        long = "engine-names",
        value_name = "N",
        default_value_t = 1_000_000
    )]
    names: u64,
    /// Measure one line, for the parent process
    #[arg(
        id = "engine_line",
        long = "engine-line",
        value_name = "LINE",
        hide = true
    )]
    line: Option<String>,
}

/// One line: jobs of a mix in an engine with hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    mix: Mix,
    jobs: u64,
    hosts: u64,
}

/// Measurement of a separate process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Asked {
    /// Decisions.
    Line(Line),
    /// A flood with this number of names.
    Names(Own, u64),
}

/// The results.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Took {
    median_us: f64,
    p99_us: f64,
    /// Shapes checked and entries visited by a decision.
    looks: f64,
    bytes_per_job: f64,
}

impl EngineArgs {
    /// Performs the measurement for which this process was started, if there is one.
    pub(super) fn asked_line(&self) -> Option<anyhow::Result<String>> {
        let line = self.line.as_ref()?;
        let asked = serde_json::from_str(line).map_err(|error| anyhow!("--engine-line: {error}"));
        let took = |asked| {
            let mut took = match asked {
                Asked::Line(line) => serde_json::to_string(&line.measure()?)?,
                Asked::Names(own, jobs) => {
                    serde_json::to_string(&Flood::new(own, CACHE_JOBS).run(jobs, SECONDS_AFTER))?
                }
            };
            took.push('\n');
            Ok(took)
        };
        Some(asked.and_then(took))
    }

    /// Measures all lines, each in every round.
    pub(super) fn measure(&self, rounds: u16, say: &dyn Fn(&str)) -> anyhow::Result<Report> {
        let mut report = Report::default();
        for &mix in Mix::value_variants() {
            say(&format!("the engine, {mix}"));
            let rows = self.rows(mix, rounds)?;
            report.extend(rows);
        }
        for &own in Own::value_variants() {
            say(&format!("the engine, a flood of names: {own}"));
            report.facts.extend(self.flood(own, rounds)?);
        }
        let mut far = Fact::new("a read of memory far away, ns".to_owned(), Goal::None);
        for _ in 0..rounds {
            far.push(far_read_ns());
        }
        report.facts.push(far);
        Ok(report)
    }

    fn flood(&self, own: Own, rounds: u16) -> anyhow::Result<[Fact; 2]> {
        let jobs = self.names;
        let fact = |what: &str, most: f64| {
            let what = format!("engine: {what}, each of {jobs} jobs has an own {own}");
            Fact::new(what, Goal::AtMost(most))
        };
        let mut longest = fact("ms of CPU of the longest event", 5.0);
        let mut cached = fact("most cached jobs over the limit", 2.0);
        for _ in 0..rounds {
            let came: Came = Asked::Names(own, jobs).elsewhere()?;
            longest.push(came.longest_ms);
            cached.push(came.cached);
        }
        Ok([longest, cached])
    }

    fn rows(&self, mix: Mix, rounds: u16) -> anyhow::Result<Report> {
        let sizes = self.jobs.as_slice();
        let (&most, fewer) = sizes.split_last().context("--engine-jobs: none")?;
        let (least, before) = (fewer.first().copied(), fewer.last().copied());
        let (least, before) = (least.unwrap_or(most), before.unwrap_or(most));
        let about = |what: &str| {
            let hosts = self.hosts;
            format!("engine: {what}, jobs \"{mix}\", {hosts} hosts, {most} jobs")
        };
        let figure = |what: &str, jobs: u64, most: f64| {
            Figure::new(about(what), format!("{jobs} jobs"), Goal::AtMost(most))
        };
        let fact = |what: &str, goal: Goal| Fact::new(about(what), goal);
        let mut growth = figure("µs a decision", before, 1.5);
        let mut looks = figure("shapes and entries looked at by a decision", least, 1.0);
        let mut median = fact("µs a decision, median", Goal::AtMost(5.0));
        let mut p99 = fact("µs a decision, p99", Goal::None);
        // The goal is for 200 shapes.
        let bytes = if mix == Mix::Common {
            Goal::AtMost(512.0)
        } else {
            Goal::None
        };
        let mut bytes = fact("bytes a job", bytes);
        for _ in 0..rounds {
            let hosts = self.hosts;
            let took = |jobs: u64| -> anyhow::Result<Took> {
                Asked::Line(Line { mix, jobs, hosts }).elsewhere()
            };
            let (few, some, many) = (took(least)?, took(before)?, took(most)?);
            growth.push(many.median_us, some.median_us);
            looks.push(many.looks, few.looks);
            median.push(many.median_us);
            p99.push(many.p99_us);
            bytes.push(many.bytes_per_job);
        }
        // The engine remembers where nothing fits, so the number of looks depends on how often each host has asked.
        let figures = match mix {
            Mix::Nothing => vec![growth],
            Mix::Common | Mix::Own => vec![growth, looks],
        };
        Ok(Report {
            figures,
            facts: vec![median, p99, bytes],
            ..Report::default()
        })
    }
}

impl Asked {
    /// Measures in another process.
    fn elsewhere<T: DeserializeOwned>(self) -> anyhow::Result<T> {
        let asked = serde_json::to_string(&self)?;
        let output = Command::new(std::env::current_exe()?)
            .args(["--engine-line", &asked])
            .stderr(Stdio::inherit())
            .output()?;
        anyhow::ensure!(output.status.success(), "{asked}: {}", output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Line {
    fn measure(self) -> anyhow::Result<Took> {
        let process = i32::try_from(std::process::id())
            .ok()
            .and_then(Process::find);
        let process = process.context("this process is not found")?;
        let before_kib = process.resident_kib();
        let mut lab = Lab::new(self.mix, self.jobs, self.hosts);
        let grown_kib = f64::from(process.resident_kib()) - f64::from(before_kib);
        for _ in 0..DECISIONS / 4 {
            lab.decide()?;
        }
        let (stats, claims) = (lab.stats(), lab.claims);
        let mut took_us = Series::default();
        for _ in 0..DECISIONS {
            took_us.push(lab.decide()?.as_secs_f64() * 1e6);
        }
        let (after, claims) = (lab.stats(), lab.claims - claims);
        let is_work = match self.mix {
            Mix::Nothing => claims == 0,
            Mix::Common | Mix::Own => claims > u64::from(DECISIONS) / 10,
        };
        anyhow::ensure!(is_work, "{self:?}: {claims} claims");
        let looks = after.shapes_checked + after.entries_visited
            - stats.shapes_checked
            - stats.entries_visited;
        Ok(Took {
            median_us: took_us.median(),
            p99_us: took_us.p99(),
            looks: f64::from(u32::try_from(looks)?) / f64::from(DECISIONS),
            bytes_per_job: grown_kib * BYTES_OF_KIB / f64::from(u32::try_from(self.jobs)?),
        })
    }
}

/// Returns the cost of a read that waits for the previous one, ns. A decision over many jobs and hosts takes a few
/// dozen such reads. Their cost varies twofold with the other load of the machine.
fn far_read_ns() -> f64 {
    // One cycle goes through all cells: each names the next (a linear congruential generator of full period).
    let next = |cell: u32| cell.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % FAR_CELLS;
    let cells: Vec<u32> = (0..FAR_CELLS).map(next).collect();
    let begin = now();
    let mut at = 0;
    for _ in 0..FAR_READS {
        let cell = usize::try_from(at).unwrap_or_default();
        at = cells.get(cell).copied().unwrap_or_default();
    }
    black_box(at);
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(FAR_READS)
}
