//! `fairlead-bench`: measures fairlead beside its limit, Elasticsearch's own rate of the same writes.
//!
//! A machine is noisy and no two are alike, so only ratios are comparable. Each round measures Elasticsearch alone
//! ([`raw`]) and then fairlead over it ([`load`]), with the same documents. The report has both side by side. In both,
//! Elasticsearch has one core, and fairlead and the load have another.

mod cli;
mod cost;
mod engine;
mod figure;
mod history;
mod layouts;
mod load;
mod pace;
mod paced;
mod pin;
mod plots;
mod raw;
mod report;
mod run;
mod sample;
mod sharded;
mod solo;
mod stats;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use cli::BenchArgs;

// Code that is measured in this process allocates as the scheduler does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match measured(&BenchArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn measured(args: &BenchArgs) -> anyhow::Result<()> {
    // There is one thread, so everything that it starts runs on its core.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(args.run(&say))?;
    io::stdout().write_all(report.as_bytes())?;
    Ok(())
}

fn say(what: &str) {
    // The reader of stderr may be gone.
    let _ = writeln!(io::stderr(), "{what}");
}
