//! `fairlead replay swf FILE`: what the engine would have done with the jobs of a trace, in virtual time.

use std::{fs::File, path::PathBuf};

use clap::ValueEnum;
use fairlead_replay::{Accounts, Estimates, Measures, Rules, measure, replay, swf};
use serde::Serialize;

use crate::{
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper},
};

/// The kinds of traces.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Replay a trace in the Standard Workload Format on one machine, as it is or compressed by gzip
    Swf(SwfArgs),
}

#[derive(Debug, clap::Args)]
struct SwfArgs {
    /// The trace
    file: PathBuf,
    /// Processors of the machine; jobs that need more are left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    units: u32,
    /// What the engine expects of run times; several are shown side by side
    #[arg(long, value_enum, value_delimiter = ',', default_value = "requested")]
    estimates: Vec<EstimatesArg>,
    /// Whose jobs they are; several are shown side by side
    #[arg(long, value_enum, value_delimiter = ',', default_value = "users")]
    accounts: Vec<AccountsArg>,
    /// How long the first job waits before the machine is kept for it, milliseconds; 0: it never is
    #[arg(long, value_name = "MS", default_value_t = 900_000)]
    reserve_after_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum EstimatesArg {
    /// What users asked for
    Requested,
    /// What jobs really took
    Actual,
    /// What the user's earlier jobs took
    Learned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum AccountsArg {
    /// Each user has an account of equal weight
    Users,
    /// All jobs are of one account: first come, first served
    One,
}

/// The figures of one way of replaying a trace.
#[derive(Debug, Serialize)]
struct Replayed {
    accounts: AccountsArg,
    estimates: EstimatesArg,
    reserve_after_ms: u64,
    left_out: usize,
    #[serde(flatten)]
    measures: Measures,
}

pub(crate) fn run(args: &ReplayArgs, context: &Context) -> anyhow::Result<u8> {
    let What::Swf(args) = &args.what;
    let shown = args.file.display();
    let file = File::open(&args.file).map_err(|error| {
        let problem = format!("cannot read '{shown}': {error}");
        Failure::local(problem, "check the path and its permissions")
    })?;
    let jobs = swf::read(file).map_err(|error| {
        let problem = format!("'{shown}' is no trace: {error}");
        Failure::usage(
            problem,
            "a trace has 18 numbers in each line, see the Parallel Workloads Archive",
        )
    })?;
    let mut all = Vec::new();
    for accounts in &args.accounts {
        for estimates in &args.estimates {
            let rules = Rules {
                units: args.units,
                estimates: match estimates {
                    EstimatesArg::Requested => Estimates::Requested,
                    EstimatesArg::Actual => Estimates::Actual,
                    EstimatesArg::Learned => Estimates::Learned,
                },
                accounts: match accounts {
                    AccountsArg::Users => Accounts::Users,
                    AccountsArg::One => Accounts::One,
                },
                reserve_after_ms: args.reserve_after_ms,
            };
            let (outcomes, left_out) = replay(&jobs, &rules);
            all.push(Replayed {
                accounts: *accounts,
                estimates: *estimates,
                reserve_after_ms: args.reserve_after_ms,
                left_out,
                measures: measure(&outcomes, args.units),
            });
        }
    }
    context.print(&all, |all| text(all, context.output.paper()))?;
    Ok(exit::OK)
}

/// A value as it is written on the command line.
fn word(value: &impl ValueEnum) -> String {
    let said = value.to_possible_value();
    said.map_or_else(String::new, |said| said.get_name().to_owned())
}

/// The figures side by side.
fn text(all: &[Replayed], paper: Paper) -> String {
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
