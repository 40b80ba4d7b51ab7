//! `fairlead-simulate`: runs many seeds of the simulation, or one again with its whole history.

use std::process::ExitCode;

use clap::Parser;
use fairlead_simulation::SimulateArgs;

#[derive(Debug, Parser)]
#[command(name = "fairlead-simulate", version, max_term_width = 100)]
struct CommandLine {
    #[command(flatten)]
    simulate: SimulateArgs,
}

fn main() -> ExitCode {
    CommandLine::parse().simulate.run()
}
