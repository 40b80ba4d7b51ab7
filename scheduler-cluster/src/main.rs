//! The command `fairlead-cluster`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fairlead_cluster::sim::SimulateArgs;

/// Several scheduler replicas side by side.
#[derive(Debug, Parser)]
#[command(name = "fairlead-cluster", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(SimulateArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Simulate(args) => args.run(),
    }
}
