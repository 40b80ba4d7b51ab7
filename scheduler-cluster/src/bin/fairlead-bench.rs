//! `fairlead-bench`: how fast fairlead is beside Elasticsearch alone, measured in one run.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;
use fairlead_cluster::bench::BenchArgs;

// What is measured in this process allocates as the scheduler does.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    // One thread: what it starts runs on the core that it was given.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(args.run(&say))?;
    io::stdout().write_all(report.as_bytes())?;
    Ok(())
}

fn say(what: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr(), "{what}");
}
