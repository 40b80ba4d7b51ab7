//! Question: what does a decision cost, and does it grow with the number of cached jobs?
//!
//! A decision is one offer served and its claim committed: the next job found, taken out and charged. The end of
//! the job and the arrival of another, which keep the sizes as they are, are not timed. Distributions:
//! *common*: 200 shapes (vm, dc and hw on two architectures, 1 to 64 GB, some tags, some bound to a machine), the
//! nth most common 1/n as often as the first; 300 accounts, the nth with 1/n of the first one's jobs. *own*: the
//! same accounts, every job a shape of its own by memory, tags or machine. *nothing*: the 200 shapes, but none fits
//! any host, for want of memory, tags or architecture. Every host has asked before. Inputs are seeded. Without `--bench` the sizes are tiny.

#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use criterion::Criterion;
use fairlead_dispatch::{
    About, Decision, Engine, EngineConfig, Event, JobFacts, JobKey, Kind, Millis, Offer, OfferKey,
    Policy, Version,
};
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Hosts × jobs in the table.
const JOBS: [u64; 3] = [1_000, 100_000, 1_000_000];
const HOSTS: [u64; 3] = [10, 1_000, 10_000];
const ACCOUNTS: u64 = 300;
const SHAPES: u64 = 200;
const MIXES: [Mix; 3] = [Mix::Common, Mix::Own, Mix::Nothing];
const CELL: &str = "--cell";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    Common,
    Own,
    Nothing,
}

/// A seeded generator.
struct Seed(u64);

impl Seed {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    /// 0 most often, the nth 1/n as often.
    fn skewed(&mut self, n: u64) -> u64 {
        let span = self.below(n) + 1;
        self.below(span)
    }
}

struct Bench {
    engine: Engine,
    hosts: Vec<Offer>,
    held: Vec<Option<JobKey>>,
    mix: Mix,
    seed: Seed,
    now: u64,
    next_job: u64,
    next_offer: u64,
    out: Vec<Decision>,
    claims: u64,
}

impl Bench {
    fn new(mix: Mix, jobs: u64, hosts: u64) -> Self {
        let config = EngineConfig {
            cache_jobs_max: u32::MAX,
            ..EngineConfig::default()
        };
        let mut bench = Self {
            engine: Engine::new(config, Policy::default()),
            hosts: (0..hosts).map(|n| host(n, mix)).collect(),
            held: (0..hosts).map(|_| None).collect(),
            mix,
            seed: Seed(1),
            now: 1_000_000,
            next_job: 1,
            next_offer: 1,
            out: Vec::new(),
            claims: 0,
        };
        // Every host has asked before: what it says of itself is known.
        for at in 0..bench.hosts.len() {
            let key = OfferKey(bench.next_offer);
            bench.next_offer += 1;
            if let Some(host) = bench.hosts.get(at).cloned() {
                bench.on(Event::HostOffers(Offer { key, ..host }));
            }
            bench.on(Event::OfferWithdrawn(key));
        }
        for _ in 0..jobs.div_ceil(1_000) {
            let batch = (0..1_000.min(jobs)).map(|_| bench.job()).collect();
            bench.on(Event::JobsLearned(batch));
        }
        bench
    }

    fn on(&mut self, event: Event) {
        self.out.clear();
        self.engine.on(Millis(self.now), event, &mut self.out);
    }

    fn job(&mut self) -> JobFacts {
        let n = self.next_job;
        self.next_job += 1;
        let account = format!("account{}", self.seed.skewed(ACCOUNTS));
        let shape = self.seed.skewed(SHAPES);
        let mut facts = common(n, account, shape, self.hosts.len() as u64);
        match self.mix {
            Mix::Common => {}
            Mix::Own => own(&mut facts, n),
            Mix::Nothing => match shape % 3 {
                0 => facts.memory_mb = 4_000_000,
                1 => facts.tags.push("nobody-has-it".to_owned()),
                _ => facts.arch.replace_range(.., "riscv64"),
            },
        }
        facts
    }

    /// One decision of a host's; answers how long it took.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    fn decide(&mut self) -> Duration {
        let at = self.seed.below(self.hosts.len() as u64) as usize;
        self.now += 1;
        if let Some(job) = self.held[at].take() {
            self.on(Event::JobEnded {
                job,
                ran: true,
                at: Millis(u64::MAX),
            });
        }
        let key = OfferKey(self.next_offer);
        self.next_offer += 1;
        let event = Event::HostOffers(Offer {
            key,
            waits_until: Millis(self.now),
            ..self.hosts[at].clone()
        });
        self.out.clear();
        let begun = Instant::now();
        self.engine.on(Millis(self.now), event, &mut self.out);
        if let Some(Decision::Claim {
            job,
            offer,
            version,
        }) = self.out.first().cloned()
        {
            let version = Version {
                seq_no: version.seq_no + 1,
                ..version
            };
            self.engine.on(
                Millis(self.now),
                Event::ClaimCommitted {
                    job,
                    offer,
                    version,
                },
                &mut self.out,
            );
            self.claims += 1;
            self.held[at] = Some(job);
        }
        let took = begun.elapsed();
        assert!(
            self.out.iter().any(
                |decision| matches!(decision, Decision::Answer { offer, .. } if *offer == key)
            )
        );
        if self.held[at].is_some() {
            let job = self.job();
            self.on(Event::JobsLearned(vec![job]));
        }
        took
    }
}

fn common(n: u64, account: String, shape: u64, hosts: u64) -> JobFacts {
    let bound = (shape % 10 == 9).then_some(shape % hosts);
    // What is bound to a machine is of its kind.
    let like = bound.unwrap_or(shape / 4);
    let arch = if like % 4 == 3 { "aarch64" } else { "x86_64" };
    let (kind, name) = match like % 3 {
        2 => (Kind::Hw, "hw"),
        _ if shape.is_multiple_of(2) => (Kind::Vm, "vm"),
        _ => (Kind::Dc, "dc"),
    };
    let key = match bound {
        Some(machine) => format!("{name}.{arch}@h{machine}"),
        None => format!("{name}.{arch}"),
    };
    let tags = if shape % 7 == 6 {
        vec![format!("tag{}", shape % 4)]
    } else {
        vec![]
    };
    JobFacts {
        not_on: vec![],
        key: JobKey(n),
        version: Version {
            primary_term: 1,
            seq_no: n,
        },
        queue: account.clone(),
        account,
        suite: format!("suite{}", shape % 50),
        priority: 0,
        kind,
        arch: arch.to_owned(),
        host_keys: vec![key],
        memory_mb: 1_000 << (shape / 16 % 7),
        tags,
        devices: vec![],
        cache_dirs: vec![],
        timeout_s: 3_600,
        submitted: Millis(0),
        not_before: Millis(0),
    }
}

/// Makes a job's shape its own.
fn own(facts: &mut JobFacts, n: u64) {
    match n % 3 {
        0 => facts.memory_mb = 500 + (n % 100_000) as u32,
        1 => facts.tags.extend(
            (0..20)
                .filter(|bit| n >> bit & 1 == 1)
                .map(|bit| format!("tag{bit}")),
        ),
        _ => facts.host_keys.push(format!("machine{n}")),
    }
}

fn host(n: u64, mix: Mix) -> Offer {
    let arch = if n % 4 == 3 { "aarch64" } else { "x86_64" };
    let keys = if n % 3 == 2 {
        vec![
            format!("hw.{arch}"),
            format!("hw@h{n}"),
            format!("hw.{arch}@h{n}"),
            format!("hw@group{}", n % 10),
        ]
    } else {
        ["vm", "dc"]
            .iter()
            .flat_map(|kind| [format!("{kind}.{arch}"), format!("{kind}.{arch}@h{n}")])
            .collect()
    };
    let total_memory_mb = 64_000 << (n % 4);
    let tags = if mix != Mix::Own {
        4
    } else if n % 8 < 4 {
        20
    } else {
        12
    };
    Offer {
        key: OfferKey(0),
        host: format!("h{n}"),
        free_memory_mb: total_memory_mb,
        total_memory_mb,
        owed: vec![],
        jobs_max: 1,
        waits_until: Millis(0),
        about: Arc::new(About {
            accounts: vec![],
            group: format!("group{}", n % 10),
            arch: arch.to_owned(),
            keys,
            tags: (0..tags).map(|tag| format!("tag{tag}")).collect(),
            devices: vec![],
            cache_dirs: vec![],
        }),
    }
}

/// Memory of this process, bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0_u64)
        * 4_096
}

/// Prints one line of the table.
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn cell(mix: Mix, jobs: u64, hosts: u64, rounds: usize) {
    let before = resident();
    let mut bench = Bench::new(mix, jobs, hosts);
    let bytes = resident().saturating_sub(before) / jobs;
    for _ in 0..rounds / 4 {
        bench.decide();
    }
    let (stats, claims) = (bench.engine.stats(), bench.claims);
    let mut took: Vec<Duration> = (0..rounds).map(|_| bench.decide()).collect();
    took.sort_unstable();
    let after = bench.engine.stats();
    let claimed = bench.claims - claims;
    assert!(
        if mix == Mix::Nothing {
            claimed == 0
        } else {
            claimed * 10 > rounds as u64
        },
        "{claimed}"
    );
    let us = |at: usize| took[at.min(rounds - 1)].as_nanos() / 10;
    let shown = |at| format!("{}.{:02}", us(at) / 100, us(at) % 100);
    let each = |after: u64, before: u64| (after - before) / rounds as u64;
    println!(
        "{:8} {jobs:<8} {hosts:<7} {:8} {:8} {:8} {:<7} {:<7} {bytes:<9}  {claimed} of {rounds} claimed",
        format!("{mix:?}"),
        shown(rounds / 2),
        shown(rounds * 99 / 100),
        shown(rounds - 1),
        each(after.shapes_checked, stats.shapes_checked),
        each(after.entries_visited, stats.entries_visited),
    );
}

/// What a read costs that waits for the one before it, anywhere in 256 MB: a decision over many jobs and hosts is
/// a few dozen of these, and they differ twofold with what else the machine does.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn far_read() -> Duration {
    const CELLS: usize = 1 << 26;
    const READS: u32 = 1 << 20;
    // One cycle through all: each names the next.
    let mut next: Vec<u32> = (0..CELLS as u32).collect();
    let mut seed = Seed(1);
    for at in (1..CELLS).rev() {
        next.swap(at, seed.below(at as u64) as usize);
    }
    let begun = Instant::now();
    let last = (0..READS).fold(0, |at, _| next[at as usize]);
    black_box(last);
    begun.elapsed() / READS
}

/// Prints the table, each line from a process of its own: none meets a heap that the ones before it have
/// fragmented, as no scheduler does. Of several processes for one line it is the quickest one's: what else the
/// machine does only adds.
#[expect(clippy::print_stdout, reason = "the table is the result")]
fn table(jobs: &[u64], hosts: &[u64], rounds: usize, tries: usize) -> std::io::Result<()> {
    println!(
        "mix      jobs     hosts   median   p99      max      checks  visits  bytes/job  (µs; a decision)"
    );
    for mix in MIXES {
        for hosts in hosts {
            for jobs in jobs {
                let mut lines = Vec::new();
                for _ in 0..tries {
                    lines.push(line_of(mix, *jobs, *hosts, rounds)?);
                }
                let by_median = |a: &&String, b: &&String| median_in(a).total_cmp(&median_in(b));
                println!(
                    "{}",
                    lines
                        .iter()
                        .min_by(by_median)
                        .map_or("", |line| line.trim_end())
                );
            }
        }
    }
    Ok(())
}

/// One line of the table, from another process.
fn line_of(mix: Mix, jobs: u64, hosts: u64, rounds: usize) -> std::io::Result<String> {
    let output = Command::new(std::env::current_exe()?)
        .arg(CELL)
        .arg(format!("{mix:?}"))
        .args([jobs.to_string(), hosts.to_string(), rounds.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    assert!(
        output.status.success(),
        "{mix:?} {jobs} {hosts}: {}",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn median_in(line: &str) -> f64 {
    let word = line.split_whitespace().nth(3);
    word.and_then(|word| word.parse().ok()).unwrap_or(f64::MAX)
}

/// The line of the table that this process is to print: `--cell MIX JOBS HOSTS ROUNDS`.
fn asked_cell() -> Option<(Mix, u64, u64, usize)> {
    let mut args = std::env::args().skip_while(|arg| arg != CELL).skip(1);
    let name = args.next()?;
    let mix = MIXES.into_iter().find(|mix| format!("{mix:?}") == name)?;
    let mut number = || args.next()?.parse().ok();
    let (jobs, hosts) = (number()?, number()?);
    Some((mix, jobs, hosts, usize::try_from(number()?).ok()?))
}

#[expect(clippy::print_stdout, reason = "the table is the result")]
fn main() -> std::io::Result<()> {
    if let Some((mix, jobs, hosts, rounds)) = asked_cell() {
        cell(mix, jobs, hosts, rounds);
        return Ok(());
    }
    let full = std::env::args().any(|arg| arg == "--bench");
    let (jobs, hosts) = if full {
        (&JOBS[..], &HOSTS[..])
    } else {
        (&[300][..], &[10][..])
    };
    let (rounds, tries) = if full { (20_000, 3) } else { (200, 1) };
    table(jobs, hosts, rounds, tries)?;
    if full {
        println!("a far read: {} ns", far_read().as_nanos());
    }
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let mut bench = Bench::new(Mix::Common, if full { 100_000 } else { 300 }, 1_000);
    criterion.bench_function(
        "decide, and replace the job: 100,000 jobs, 1,000 hosts",
        |runs| {
            runs.iter(|| black_box(bench.decide()));
        },
    );
    criterion.final_summary();
    Ok(())
}
