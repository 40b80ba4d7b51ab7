//! `fairlead-faults`: kills and pauses real replicas, Elasticsearch nodes and testboxes by a seeded plan while jobs
//! run, and then judges the whole history. It also sets clocks wrong, takes shards from indices, and fills the data folder.
//!
//! The replicas and the nodes are processes. The testboxes are many tasks of this process, which speak the wire format
//! and record when each job ran. The judge ([`check`]) compares the answers to submitters, the runs, the uploaded files,
//! the replicas' logs and the store's final state. Entry point: [`cli::FaultsArgs::run`].
//!
//! A run that cannot start, or breaks off, leaves no process and no folder ([`run`]).

mod agent;
mod check;
mod cli;
mod clocks;
mod course;
mod disk;
mod fleet;
mod grants;
mod history;
mod indices;
mod lanes;
mod left;
mod meters;
mod nodes;
mod report;
mod rig;
mod run;
mod submitter;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use cli::FaultsArgs;
use fairlead_cluster::{launch::failure_code, signals::unless_interrupted};

/// Exit code if a promise was broken.
const BROKEN: u8 = 1;

const EXIT_CODES: &str = "\
Exit codes:
  0  every promise held
  1  a promise was broken
  2  the request is impossible; nothing was done
  5  a problem of this machine: a folder, a port, a program";

#[derive(Debug, Parser)]
#[command(name = "fairlead-faults", version, after_help = EXIT_CODES, max_term_width = 100)]
struct CommandLine {
    /// Folder of the cluster: logs and data. A new one stays only if the run ends with a report
    #[arg(long, default_value = "fairlead-cluster")]
    dir: PathBuf,
    #[command(flatten)]
    faults: FaultsArgs,
}

fn main() -> ExitCode {
    match judged(&CommandLine::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(error) => {
            remark(&format!("error: {error:#}"));
            ExitCode::from(failure_code(&error))
        }
    }
}

fn judged(line: &CommandLine) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let run = unless_interrupted(line.faults.run(&line.dir, remark));
    let (report, held) = runtime.block_on(run)?;
    writeln!(io::stdout().lock(), "{}", report.trim_end())?;
    Ok(held)
}

/// Prints a remark. A closed stderr is no error.
fn remark(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <CommandLine as clap::CommandFactory>::command().debug_assert();
    }
}
