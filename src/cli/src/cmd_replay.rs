//! `fairlead replay`: gives the jobs of a trace or of a lab to the engine, and arrivals to the scaler, in virtual time.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use fairlead_replay::{
    Accounts, Course, Estimates, Law, Measures, Rules, Scaled, Scaling, arrivals, measure, plots,
    replay, scale_with_course, swf,
};
use serde::Serialize;

use crate::{
    context::Context,
    exit::{self, Failure},
    replaying::{self, HistoryArgs, write_plot},
    table::{Grid, Paper},
};

/// Maximum boot time, seconds.
const BOOT_S_MAX: u64 = 86_400;

/// The kinds of traces.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    what: ReplayAction,
}

#[derive(Debug, clap::Subcommand)]
enum ReplayAction {
    /// Replay a trace in the Standard Workload Format on one machine, as it is or compressed by gzip
    Swf(SwfArgs),
    /// Replay arrivals of shards on pools of machines that come and go
    Scaling(ScalingArgs),
    /// Replay the jobs that the lab ran, with the policy of now and with changes of it
    History(HistoryArgs),
}

#[derive(Debug, clap::Args)]
struct SwfArgs {
    /// The trace
    file: PathBuf,
    /// Processors of the machine; jobs that need more are left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    units: u32,
    /// Run times that the engine expects; several are shown side by side, and are a list with --json
    #[arg(long, value_enum, value_delimiter = ',', default_value = "requested")]
    estimates: Vec<Estimates>,
    /// Accounts of the jobs; several are shown side by side
    #[arg(long, value_enum, value_delimiter = ',', default_value = "users")]
    accounts: Vec<Accounts>,
    /// How long the first job waits before the machine is kept for it, milliseconds; 0: it never is
    #[arg(long, value_name = "MS", default_value_t = 900_000)]
    reserve_after_ms: u64,
    /// Draw waits and shares into this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ScalingArgs {
    /// A table with the head `submit_s,group,suite,run_s`: a pool for each group, and a machine runs one shard at a time
    #[arg(long, value_name = "FILE")]
    arrivals: PathBuf,
    /// Seconds from the request of a machine to its first question, for example 120..300
    #[arg(long, value_name = "FROM..TO", value_parser = boot_of)]
    boot_s: (u64, u64),
    /// Most machines of all pools together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    quota: u32,
    /// Rule that decides the number of machines; several are shown side by side, and are a list with --json
    #[arg(long, value_enum, value_delimiter = ',', default_value = "queue_time")]
    law: Vec<Law>,
    /// Machines that each pool keeps
    #[arg(long, value_name = "N", default_value_t = 2)]
    min: u32,
    /// How long shards should wait at most, seconds; never less than a boot and a minute
    #[arg(long, value_name = "N", default_value_t = 180)]
    target_s: u64,
    /// Make estimates wrong by this factor
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = factor_of)]
    estimate_factor: f64,
    /// For the times of boots
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw machines and waits into this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Results of one replay of a trace.
#[derive(Debug, Serialize)]
struct Replayed {
    accounts: Accounts,
    estimates: Estimates,
    reserve_after_ms: u64,
    left_out: usize,
    #[serde(flatten)]
    measures: Measures,
}

/// Results of one law.
#[derive(Debug, Serialize)]
struct Grown {
    law: Law,
    #[serde(flatten)]
    figures: Scaled,
}

pub(crate) async fn run(args: &ReplayArgs, context: &Context) -> anyhow::Result<u8> {
    let paper = context.output.paper();
    match &args.what {
        ReplayAction::Swf(args) => print(context, &replayed(args)?, |all| traces(all, paper))?,
        ReplayAction::Scaling(args) => print(context, &scaled(args)?, |all| laws(all, paper))?,
        ReplayAction::History(args) => replaying::run(args, context).await?,
    }
    Ok(exit::OK)
}

/// Prints JSON: one run as an object, several as a list.
fn print<T: Serialize>(
    context: &Context,
    all: &[T],
    text: impl FnOnce(&[T]) -> String,
) -> anyhow::Result<()> {
    match all {
        [one] if context.json => context.print(one, |_| String::new()),
        _ => context.print(&all, |all| text(all)),
    }
}

fn replayed(args: &SwfArgs) -> Result<Vec<Replayed>, Failure> {
    let jobs = swf::read(open(&args.file)?).map_err(|error| {
        let hint = "a trace has 18 numbers in each line, see the Parallel Workloads Archive";
        Failure::usage(
            format!("'{}' is no trace: {error}", args.file.display()),
            hint,
        )
    })?;
    let mut all = Vec::new();
    let mut drawn = Vec::new();
    for accounts in &args.accounts {
        for estimates in &args.estimates {
            let rules = Rules {
                units: args.units,
                estimates: *estimates,
                accounts: *accounts,
                reserve_after_ms: args.reserve_after_ms,
            };
            let (outcomes, left_out) = replay(&jobs, &rules);
            if args.plot.is_some() {
                let name = format!("accounts {}, estimates {}", word(accounts), word(estimates));
                drawn.push((name, plots::of_trace(&outcomes)));
            }
            all.push(Replayed {
                accounts: *accounts,
                estimates: *estimates,
                reserve_after_ms: args.reserve_after_ms,
                left_out,
                measures: measure(&outcomes, args.units),
            });
        }
    }
    if let Some(path) = &args.plot {
        let runs = drawn.iter().map(|(name, ran)| plots::Run {
            name: name.clone(),
            ran,
        });
        let runs: Vec<plots::Run<'_>> = runs.collect();
        write_plot(&plots::waits(&title(&args.file), &runs, "processors"), path)?;
    }
    Ok(all)
}

/// Returns the name of a file, as the title of its chart.
fn title(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    format!("Replay of {}", name.display())
}

fn scaled(args: &ScalingArgs) -> Result<Vec<Grown>, Failure> {
    let shards = arrivals::read(open(&args.arrivals)?).map_err(|error| {
        let shown = args.arrivals.display();
        let hint = "for example a line 'submit_s,group,suite,run_s', then '12.5,linux,unit,40'";
        Failure::usage(format!("'{shown}' has no arrivals: {error}"), hint)
    })?;
    let (from_s, to_s) = args.boot_s;
    let replayed = args.law.iter().map(|law| {
        let scaling = Scaling {
            law: *law,
            boot_ms: (from_s * 1_000, to_s * 1_000),
            quota: args.quota,
            min: args.min,
            target_ms: args.target_s.saturating_mul(1_000),
            estimate_factor: args.estimate_factor,
            seed: args.seed,
        };
        let (figures, course) = scale_with_course(&shards, &scaling);
        let grown = Grown { law: *law, figures };
        (grown, course)
    });
    let replayed: Vec<(Grown, Course)> = replayed.collect();
    if let Some(path) = &args.plot {
        let drawn = replayed.iter();
        let laws = drawn.map(|(grown, course)| (word(&grown.law), &grown.figures, course));
        let laws: Vec<_> = laws.collect();
        write_plot(&plots::machines(&title(&args.arrivals), &laws), path)?;
    }
    Ok(replayed.into_iter().map(|(grown, _)| grown).collect())
}

fn open(path: &PathBuf) -> Result<File, Failure> {
    File::open(path).map_err(|error| {
        let problem = format!("cannot read '{}': {error}", path.display());
        Failure::local(problem, "check the path and its permissions")
    })
}

/// Parses `120..300`, or `120` for both.
fn boot_of(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let seconds = |part: &str| {
        let number = part.trim().parse::<u64>().ok();
        number.filter(|seconds| (1..=BOOT_S_MAX).contains(seconds))
    };
    let both = seconds(from)
        .zip(seconds(to))
        .filter(|(from, to)| from <= to);
    both.ok_or_else(|| format!("write seconds from 1 to {BOOT_S_MAX}, for example 120..300"))
}

fn factor_of(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|factor| (0.01..=100.0).contains(factor));
    number.ok_or_else(|| "write a number from 0.01 to 100".to_owned())
}

/// Returns a value as written on the command line.
fn word(value: &impl ValueEnum) -> String {
    let said = value.to_possible_value();
    said.map_or_else(String::new, |said| said.get_name().to_owned())
}

/// Returns the results side by side.
fn traces(all: &[Replayed], paper: Paper) -> String {
    let mut grid = Grid::new(&[
        "ACCOUNTS",
        "ESTIMATES",
        ">JOBS",
        ">SLOWDOWN",
        ">MEAN WAIT",
        ">P50",
        ">P95",
        ">P99",
        ">USE",
    ]);
    for Replayed {
        accounts,
        estimates,
        measures,
        ..
    } in all
    {
        let waits = &measures.waits;
        grid.row([
            word(accounts),
            word(estimates),
            measures.jobs.to_string(),
            format!("{:.1}", measures.bounded_slowdown),
            format!("{:.0} s", waits.mean_s),
            format!("{} s", waits.p50_s),
            format!("{} s", waits.p95_s),
            format!("{} s", waits.p99_s),
            format!("{:.0} %", 100.0 * measures.use_of_units),
        ]);
    }
    grid.render(paper)
}

/// Returns the laws side by side.
fn laws(all: &[Grown], paper: Paper) -> String {
    let mut grid = Grid::new(&[
        "LAW",
        ">SHARDS",
        ">P50",
        ">P95",
        ">P99",
        ">MACHINE HOURS",
        ">BUSY HOURS",
        ">LAUNCHES",
        ">FLIPS",
    ]);
    for Grown { law, figures } in all {
        grid.row([
            word(law),
            figures.jobs.to_string(),
            format!("{:.0} s", figures.p50_s),
            format!("{:.0} s", figures.p95_s),
            format!("{:.0} s", figures.p99_s),
            format!("{:.1}", figures.machine_hours),
            format!("{:.1}", figures.busy_hours),
            figures.launches.to_string(),
            figures.flips.to_string(),
        ]);
    }
    grid.render(paper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_are_seconds_from_to() {
        assert_eq!(boot_of("120..300"), Ok((120, 300)));
        assert_eq!(boot_of("90"), Ok((90, 90)));
        for wrong in ["", "..", "300..120", "0..5", "1..9999999", "a..b", "-1"] {
            assert!(boot_of(wrong).unwrap_err().contains("120..300"), "{wrong}");
        }
        assert!(factor_of("NaN").is_err() && factor_of("0.33").is_ok());
    }
}
