//! `fairlead-measure`: figures that take too long, or depend too much on the machine, to be tests.
//!
//! Each measurement is a subcommand with a module of its own. It starts real schedulers ([`lab`]), prints a table
//! ([`table`]), and panics when something is wrong. Nothing starts before the whole command line was read. All that it
//! starts ends with it, in each way of ending (`fairlead-reaper`).

#![expect(clippy::expect_used, reason = "a measurement fails by panicking")]

mod agents;
mod conflicts;
mod crowd;
mod flood;
mod hints;
mod idle;
mod lab;
mod record;
mod shares;
mod shares_replicas;
mod starvation;
mod table;
mod timers;

use clap::{CommandFactory, Parser, Subcommand};

const PLACES: &str = "\
Build the programs of the workspace in release before: they are started from the folder of this one.
Most measurements need an Elasticsearch: `ES_URL` names it.";

/// Measures real schedulers, one figure at a time
#[derive(Debug, Parser)]
#[command(name = "fairlead-measure", version, after_help = PLACES, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Agents(agents::Agents),
    Conflicts(conflicts::Conflicts),
    Crowd(crowd::Crowd),
    Flood(flood::Flood),
    #[command(hide = true)]
    FloodAttacker(flood::Attacker),
    Hints(hints::Hints),
    Idle(idle::Idle),
    Record(record::Record),
    Shares(shares::Shares),
    SharesReplicas(shares_replicas::SharesReplicas),
    Starvation(starvation::Starvation),
    Timers(timers::Timers),
}

/// Returns the command line with all subcommands.
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// Reads the command line, and measures.
///
/// # Panics
/// Panics if the measured system misbehaves, or cannot be started.
pub fn run() {
    let what = CommandLine::parse().what;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        match what {
            What::Agents(it) => it.measure().await,
            What::Conflicts(it) => it.measure().await,
            What::Crowd(it) => it.measure().await,
            What::Flood(it) => it.measure().await,
            What::FloodAttacker(it) => it.attack().await,
            What::Hints(it) => it.measure().await,
            What::Idle(it) => it.measure().await,
            What::Record(it) => it.record().await,
            What::Shares(it) => it.measure().await,
            What::SharesReplicas(it) => it.measure().await,
            What::Starvation(it) => it.measure().await,
            What::Timers(it) => it.measure().await,
        }
    });
}
