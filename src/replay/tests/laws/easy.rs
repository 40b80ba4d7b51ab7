//! Checks the trace and the clock from outside: EASY backfilling, written for this test alone, gives what another author's
//! simulator gives.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    fs::File,
    path::{Path, PathBuf},
};

use fairlead_replay::{Accounts, Estimates, Outcome, Rules, measure, replay, swf};

use crate::day::chance;

/// EASY backfilling on one machine: the first waiting job has a reservation. Others may pass it if they end before its
/// start, or use processors that it leaves free.
struct Easy<'a> {
    jobs: &'a [swf::TraceJob],
    free: u32,
    waiting: Vec<usize>,
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    starts: BTreeMap<usize, u64>,
}

impl Easy<'_> {
    fn begin(&mut self, n: usize, now: u64) {
        self.free -= self.jobs[n].units;
        self.starts.insert(n, now);
        self.ends.push(Reverse((now + self.jobs[n].run_s, n)));
    }

    fn schedule(&mut self, now: u64) {
        while let Some(first) = self.waiting.first().copied() {
            if self.jobs[first].units > self.free {
                break;
            }
            self.waiting.remove(0);
            self.begin(first, now);
        }
        let Some(first) = self.waiting.first().copied() else {
            return;
        };
        let running = self.ends.iter().map(|Reverse((_, n))| *n);
        let mut expected: Vec<(u64, u32)> = running
            .map(|n| {
                (
                    self.starts[&n] + self.jobs[n].requested_s,
                    self.jobs[n].units,
                )
            })
            .collect();
        expected.sort_unstable();
        let (mut free, mut shadow) = (self.free, now);
        for (end, units) in expected {
            if free >= self.jobs[first].units {
                break;
            }
            free += units;
            shadow = end;
        }
        let mut spare = free - self.jobs[first].units;
        let mut n = 1;
        while let Some(candidate) = self.waiting.get(n).copied() {
            let job = self.jobs[candidate];
            let is_short = now + job.requested_s <= shadow;
            if job.units <= self.free && (is_short || job.units <= spare) {
                if !is_short {
                    spare -= job.units;
                }
                self.waiting.remove(n);
                self.begin(candidate, now);
            } else {
                n += 1;
            }
        }
    }
}

fn easy(jobs: &[swf::TraceJob], units: u32) -> Vec<Outcome> {
    let mut machine = Easy {
        jobs,
        free: units,
        waiting: Vec::new(),
        ends: BinaryHeap::new(),
        starts: BTreeMap::new(),
    };
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.submit_s);
        let end = machine.ends.peek().map(|Reverse((at, _))| *at);
        let Some(now) = arrival.into_iter().chain(end).min() else {
            break;
        };
        while let Some(Reverse((at, n))) = machine.ends.peek().copied() {
            if at > now {
                break;
            }
            machine.ends.pop();
            machine.free += jobs[n].units;
        }
        while jobs.get(next).is_some_and(|job| job.submit_s == now) {
            machine.waiting.push(next);
            next += 1;
        }
        machine.schedule(now);
    }
    let starts = machine.starts.into_iter();
    starts
        .map(|(n, start_s)| Outcome {
            job: jobs[n],
            start_s,
        })
        .collect()
}

/// Returns the folder of traces, if it exists.
fn traces() -> Option<PathBuf> {
    let named = std::env::var_os("FAIRLEAD_TRACES").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    Some(named.unwrap_or_else(beside)).filter(|folder| folder.is_dir())
}

fn small() -> Vec<swf::TraceJob> {
    let job = |n: u32| {
        let (number, units) = (u64::from(n), 1 + n * 31 % 64);
        swf::TraceJob {
            number,
            submit_s: number * 97,
            run_s: 1 + number * 7_919 % 5_000,
            units,
            requested_s: 5_000 + number % 3_000,
            user: number % 7,
        }
    };
    (1..=2_000).map(job).collect()
}

#[test]
fn easy_gives_what_another_simulator_gives() {
    let Some(folder) = traces() else {
        // Without the trace, the two simulators still agree on the jobs that can run at all.
        assert_eq!(easy(&small(), 100).len(), 2_000);
        return;
    };
    let jobs = swf::read(File::open(folder.join("KTH-SP2.swf.gz")).unwrap()).unwrap();
    let measured = measure(&easy(&jobs, 100), 100);
    assert_eq!(measured.jobs, 28_481);
    let published = 92.6;
    let off = (measured.bounded_slowdown - published).abs() / published;
    assert!(off < 0.01, "{measured:?}");
}

#[test]
fn the_engine_runs_each_job_and_never_more_than_fit() {
    for (accounts, reserve_after_ms) in [
        (Accounts::One, 1),
        (Accounts::Users, 1),
        (Accounts::Users, 900_000),
    ] {
        let jobs = small();
        let rules = Rules {
            units: 100,
            estimates: Estimates::Requested,
            accounts,
            reserve_after_ms,
        };
        let (outcomes, left_out) = replay(&jobs, &rules);
        assert_eq!((outcomes.len(), left_out), (jobs.len(), 0), "{rules:?}");
        let mut moments: Vec<(u64, i64)> = Vec::new();
        for Outcome { job, start_s } in &outcomes {
            assert!(*start_s >= job.submit_s, "{job:?}");
            moments.push((*start_s, i64::from(job.units)));
            moments.push((start_s + job.run_s, -i64::from(job.units)));
        }
        moments.sort_unstable();
        let mut used = 0;
        for (at, change) in moments {
            used += change;
            assert!(used <= 100, "{used} at {at}");
        }
    }
}

/// Returns ten days of jobs of 8 processors that keep 85 % of 128 busy, and a large job each 24 h.
fn stream(seed: u64, large: u32) -> Vec<swf::TraceJob> {
    let mut chance = chance(seed);
    let job = |submit_s, run_s, units, requested_s, user| swf::TraceJob {
        number: 0,
        submit_s,
        run_s,
        units,
        requested_s,
        user,
    };
    let mut jobs: Vec<swf::TraceJob> = Vec::new();
    let mut at = 0;
    while at < 864_000 {
        let run_s = 600 + chance(6_600);
        let requested_s = run_s * (100 + chance(100)) / 100;
        jobs.push(job(at, run_s, 8, requested_s, chance(4)));
        at += chance(574);
    }
    let days = (0..10).map(|day| job(21_600 + day * 86_400, 1_800, large, 3_600, day % 4));
    jobs.extend(days);
    jobs.sort_by_key(|job| job.submit_s);
    jobs
}

fn longest_wait_s(outcomes: &[Outcome]) -> u64 {
    measure(outcomes, 128).waits.max_s
}

/// The job that needs all of a host is the hard case. Between the end of a job and the next request of its host, nobody
/// uses the share of that job.
#[test]
fn a_job_of_a_whole_host_waits_about_as_long_as_with_easy() {
    for (seed, large) in [(1, 113), (2, 120), (3, 121), (4, 127), (5, 128)] {
        let jobs = stream(seed, large);
        let best_s = longest_wait_s(&easy(&jobs, 128));
        for (accounts, halves) in [(Accounts::One, 3), (Accounts::Users, 4)] {
            let rules = Rules {
                units: 128,
                estimates: Estimates::Requested,
                accounts,
                reserve_after_ms: 900_000,
            };
            let longest_s = longest_wait_s(&replay(&jobs, &rules).0);
            assert!(
                longest_s * 2 <= best_s * halves,
                "{large} of 128, {accounts:?}: {longest_s} s, EASY {best_s} s"
            );
        }
    }
}
