//! The command line: runs many seeds, or replays one with its whole history.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use clap::Args;
use tokio::time::Instant;

use super::{Counts, Options, Outcome, fresh_from, simulate_all, workers};

/// Number of history lines that are shown of a failed seed.
const LAST_LINES: usize = 60;

/// Simulates replicas, hosts, users and faults in virtual time, and lists broken promises.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Number of seeds to run.
    #[arg(long, default_value_t = 100, conflicts_with_all = ["seed", "minutes"])]
    seeds: u64,
    /// First seed [default: 1; with --minutes: a random fresh one, and labs of all kinds].
    #[arg(long)]
    from: Option<u64>,
    /// Run seeds for N minutes, instead of a number of seeds.
    #[arg(long)]
    minutes: Option<u64>,
    /// Run only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print the whole history. Needs --seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Also print the logs of the replicas. Needs --seed.
    #[arg(long, requires = "seed")]
    logs: bool,
    /// Maximum number of replicas in a seed.
    #[arg(long, default_value_t = Options::default().replicas_max)]
    replicas: usize,
    /// Number of seeds to run in parallel [default: one per processor].
    #[arg(long)]
    jobs_parallel: Option<usize>,
    /// Stop after N failed seeds.
    #[arg(long, default_value_t = 10)]
    failures_max: u64,
    /// Also write each failed seed with the end of its history to a file in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Result of many seeds.
#[derive(Debug, Default)]
struct Tally {
    seeds: u64,
    last: u64,
    failed: u64,
    virtual_ms: u64,
    drained_ms_max: u64,
    counts: Counts,
}

impl SimulateArgs {
    /// Returns the first seed, and the maximum number of seeds.
    fn range(&self) -> (u64, u64) {
        // The standard library seeds every hasher randomly.
        let fresh = || fresh_from(RandomState::new().build_hasher().finish());
        match (self.seed, self.minutes) {
            (Some(seed), _) => (seed, 1),
            (None, Some(_)) => (self.from.unwrap_or_else(fresh), u64::MAX),
            (None, None) => (self.from.unwrap_or(1), self.seeds),
        }
    }

    /// Runs the seeds, and prints the failures and the count. Exit code 1: a seed failed. 2: seeds could not run, or a
    /// failed one could not be written.
    #[expect(clippy::print_stderr, reason = "a command speaks to its user")]
    pub fn run(&self) -> ExitCode {
        if self.logs {
            let filter = tracing_subscriber::EnvFilter::new("debug");
            tracing_subscriber::fmt()
                .without_time()
                .with_env_filter(filter)
                .init();
        }
        match self.tally() {
            Ok(tally) if tally.failed == 0 => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }

    fn tally(&self) -> io::Result<Tally> {
        let (from, many) = self.range();
        let minutes = self.minutes.map(|it| it.saturating_mul(60));
        let until = minutes.map(|s| Instant::now() + Duration::from_secs(s));
        let failures_left = AtomicU64::new(self.failures_max.max(1));
        let seeds = (from..from.saturating_add(many)).take_while(|_| {
            until.is_none_or(|until| Instant::now() < until)
                && failures_left.load(Ordering::Relaxed) > 0
        });
        let options = Options {
            replicas_max: self.replicas,
            trace: self.trace,
        };
        let (mut tally, mut kept) = (Tally::default(), Ok(()));
        let parallel = self.jobs_parallel.unwrap_or_else(workers);
        simulate_all(seeds, parallel, options, |outcome| {
            tally.add(outcome);
            if let Some(broken) = outcome.broken(self.replicas) {
                let left = failures_left.load(Ordering::Relaxed);
                failures_left.store(left.saturating_sub(1), Ordering::Relaxed);
                self.print_failure(outcome, &broken);
                if let Some(folder) = &self.keep
                    && let Err(error) = keep(folder, outcome, &broken)
                {
                    kept = Err(error);
                }
            }
        })?;
        print_tally(from, &tally);
        kept.map(|()| tally)
    }

    #[expect(clippy::print_stdout, reason = "a command speaks to its user")]
    fn print_failure(&self, outcome: &Outcome, broken: &str) {
        println!("{broken}");
        if !self.trace {
            let shown = outcome.last.len().saturating_sub(LAST_LINES);
            for line in outcome.last.iter().skip(shown) {
                println!("  {line}");
            }
        }
    }
}

impl Outcome {
    /// Returns the broken promise and the command that runs the seed again, in two lines. `None`: all promises were
    /// kept.
    pub fn broken(&self, replicas_max: usize) -> Option<String> {
        let (invariant, what) = self.violation.as_ref()?;
        let seed = self.seed;
        Some(format!(
            "seed {seed} broke {invariant}: {what}\n  replay it: fairlead-simulate --seed {seed} --replicas {replicas_max} --trace"
        ))
    }
}

/// Writes a failed seed with the end of its history into a folder, which is created if missing.
fn keep(folder: &Path, outcome: &Outcome, broken: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("seed-{}.txt", outcome.seed));
    fs::write(path, format!("{broken}\n{}\n", outcome.last.join("\n")))
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.last = self.last.max(outcome.seed);
        self.failed += u64::from(outcome.violation.is_some());
        self.virtual_ms += outcome.virtual_ms;
        self.drained_ms_max = self.drained_ms_max.max(outcome.drained_ms);
        self.counts.add(outcome.counts);
    }
}

#[expect(clippy::print_stdout, reason = "a command speaks to its user")]
fn print_tally(from: u64, tally: &Tally) {
    let counts = tally.counts;
    println!(
        "{} seeds from {from} to {}, {} failed; {} s of virtual time; {} jobs acknowledged, {} claims, {} runs, {} leases lost, \
         {} grants put back, {} overlaps; {} results reused ({} waited for, {} of others), {} joins, {} audits, \
         {} keys that differ; longest drain {} ms",
        tally.seeds,
        tally.last,
        tally.failed,
        tally.virtual_ms / 1000,
        counts.acknowledged,
        counts.claims,
        counts.runs,
        counts.lost,
        counts.given_back,
        counts.overlaps,
        counts.reused,
        counts.shared,
        counts.reused_of_others,
        counts.joins,
        counts.audits,
        counts.differing,
        tally.drained_ms_max,
    );
}
