//! The command line: runs many seeds, or replays one with its whole history.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use clap::Args;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Counts, Options, Outcome, simulate};

/// So many of the last lines of a failed seed's history are shown.
const LAST_LINES: usize = 60;

/// Simulates replicas, hosts, users and faults in virtual time, and lists broken promises.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Number of seeds to run.
    #[arg(long, default_value_t = 100, conflicts_with_all = ["seed", "minutes"])]
    seeds: u64,
    /// First seed [default: 1; with --minutes: random].
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
}

/// The outcome of many seeds.
#[derive(Debug, Default)]
struct Tally {
    seeds: u64,
    failed: u64,
    virtual_ms: u64,
    drained_ms_max: u64,
    counts: Counts,
}

/// Which seeds are left.
#[derive(Debug)]
struct Seeds {
    next: AtomicU64,
    end: u64,
    until: Option<Instant>,
    failures_left: AtomicU64,
}

impl Seeds {
    fn take(&self) -> Option<u64> {
        let in_time = self.until.is_none_or(|until| Instant::now() < until);
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        let go_on = in_time && seed < self.end && self.failures_left.load(Ordering::Relaxed) > 0;
        go_on.then_some(seed)
    }
}

impl SimulateArgs {
    fn seeds(&self) -> Seeds {
        // The standard library seeds every hasher at random.
        let fresh = || RandomState::new().build_hasher().finish() >> 20;
        let (from, many) = match (self.seed, self.minutes) {
            (Some(seed), _) => (seed, 1),
            (None, Some(_)) => (self.from.unwrap_or_else(fresh), u64::MAX),
            (None, None) => (self.from.unwrap_or(1), self.seeds),
        };
        let minutes = self
            .minutes
            .map(|it| Duration::from_secs(it.saturating_mul(60)));
        Seeds {
            next: AtomicU64::new(from),
            end: from.saturating_add(many),
            until: minutes.map(|it| Instant::now() + it),
            failures_left: AtomicU64::new(self.failures_max.max(1)),
        }
    }

    /// Runs the seeds, and prints the failures and the count. Exit code 1: a seed failed.
    pub fn run(&self) -> ExitCode {
        if self.logs {
            let filter = tracing_subscriber::EnvFilter::new("debug");
            tracing_subscriber::fmt()
                .without_time()
                .with_env_filter(filter)
                .init();
        }
        let seeds = self.seeds();
        let tally = Mutex::new(Tally::default());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.jobs_parallel.unwrap_or(processors).max(1);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| self.work(&seeds, &tally));
            }
        });
        let tally = tally.into_inner();
        print_tally(&tally);
        if tally.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    #[expect(clippy::print_stderr, reason = "a command speaks to its user")]
    fn work(&self, seeds: &Seeds, tally: &Mutex<Tally>) {
        while let Some(seed) = seeds.take() {
            let options = Options {
                replicas_max: self.replicas,
                trace: self.trace,
            };
            let outcome = match simulate(seed, options) {
                Ok(outcome) => outcome,
                Err(error) => {
                    eprintln!("seed {seed} cannot run: {error}");
                    return;
                }
            };
            let mut tally = tally.lock();
            tally.add(&outcome);
            if outcome.violation.is_some() {
                seeds.failures_left.fetch_sub(1, Ordering::Relaxed);
                self.print_failure(&outcome);
            }
        }
    }

    #[expect(clippy::print_stdout, reason = "a command speaks to its user")]
    fn print_failure(&self, outcome: &Outcome) {
        let Some((invariant, what)) = &outcome.violation else {
            return;
        };
        println!("seed {} broke {invariant}: {what}", outcome.seed);
        if !self.trace {
            let shown = outcome.last.len().saturating_sub(LAST_LINES);
            for line in outcome.last.iter().skip(shown) {
                println!("  {line}");
            }
        }
        println!("  replay it: {}", replay(outcome.seed, self.replicas));
    }
}

/// The command that runs a seed again.
pub fn replay(seed: u64, replicas: usize) -> String {
    format!("fairlead-simulate --seed {seed} --replicas {replicas} --trace")
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.failed += u64::from(outcome.violation.is_some());
        self.virtual_ms += outcome.virtual_ms;
        self.drained_ms_max = self.drained_ms_max.max(outcome.drained_ms);
        self.counts.add(outcome.counts);
    }
}

#[expect(clippy::print_stdout, reason = "a command speaks to its user")]
fn print_tally(tally: &Tally) {
    let counts = tally.counts;
    println!(
        "{} seeds, {} failed; {} s of virtual time; {} jobs acknowledged, {} claims, {} runs, {} leases lost, \
         {} grants put back, {} overlaps; {} results reused ({} waited for, {} of others), {} joins, {} audits, \
         {} keys that differ; longest drain {} ms",
        tally.seeds,
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
