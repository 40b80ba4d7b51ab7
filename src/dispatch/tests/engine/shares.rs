//! Tests of shares of testbox time (I5), in a simulated lab in virtual time.

use crate::lab::*;
use fairlead_dispatch::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One simulated machine.
#[derive(Clone)]
struct Machine {
    offer: Offer,
    /// Its speed in thousandths: a job's work takes longer on a slow one.
    speed: u64,
    used_mb: u32,
    asks: Option<OfferKey>,
}

/// Jobs of one account that never run out.
#[derive(Clone)]
struct Backlog {
    account: &'static str,
    queue: &'static str,
    suite: &'static str,
    memory_mb: u32,
    keys: &'static str,
    kind: Kind,
    /// Work of a job, from and to, ms.
    work_ms: (u64, u64),
}

struct Sim {
    lab: Lab,
    machines: Vec<Machine>,
    backlogs: Vec<Backlog>,
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// job → (backlog, machine, began, work)
    jobs: BTreeMap<u64, (usize, usize, u64, u64)>,
    next: u64,
    seed: u64,
    /// Host share × ms by account, since the last reset.
    busy: BTreeMap<&'static str, u64>,
    since: u64,
}

/// Nine labels of account `a`.
const NINE_LABELS: [&str; 9] = [
    "a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7", "a/15",
];

/// Waiting jobs kept of each backlog.
const AHEAD: usize = 30;

impl Sim {
    fn new(machines: Vec<Offer>, backlogs: Vec<Backlog>, policy: Policy) -> Self {
        let machine = |offer| Machine {
            offer,
            speed: 1_000,
            used_mb: 0,
            asks: None,
        };
        let mut sim = Self {
            lab: Lab::with(
                EngineConfig {
                    cache_jobs_max: 1_000_000,
                    ..EngineConfig::default()
                },
                policy,
            ),
            machines: machines.into_iter().map(machine).collect(),
            backlogs,
            ends: BinaryHeap::new(),
            jobs: BTreeMap::new(),
            next: 0,
            seed: 7,
            busy: BTreeMap::new(),
            since: 0,
        };
        for backlog in 0..sim.backlogs.len() {
            let jobs: Vec<JobFacts> = (0..AHEAD).map(|_| sim.new_job(backlog)).collect();
            sim.lab.on_unchecked(Event::JobsLearned(jobs));
        }
        for machine in 0..sim.machines.len() {
            sim.ask(machine);
        }
        sim
    }

    fn random(&mut self, from: u64, to: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        from + (self.seed >> 33) % (to - from + 1)
    }

    fn new_job(&mut self, backlog: usize) -> JobFacts {
        let of = self.backlogs[backlog].clone();
        let work = self.random(of.work_ms.0, of.work_ms.1);
        self.next += 1;
        self.jobs.insert(self.next, (backlog, 0, 0, work));
        JobFacts {
            kind: of.kind,
            memory_mb: of.memory_mb,
            host_keys: names(of.keys),
            suite: of.suite.to_owned(),
            submitted: Millis(self.lab.now),
            ..queued(of.queue, job(self.next, of.account))
        }
    }

    fn ask(&mut self, machine: usize) {
        let Machine {
            offer,
            used_mb,
            asks,
            ..
        } = self.machines[machine].clone();
        if asks.is_some() || used_mb >= offer.total_memory_mb {
            return;
        }
        let free_memory_mb = offer.total_memory_mb - used_mb;
        let key = self.lab.offer_unchecked(Offer {
            free_memory_mb,
            ..offer
        });
        self.machines[machine].asks = Some(key);
        self.follow();
    }

    /// Commits what was claimed, and starts what was answered.
    fn follow(&mut self) {
        let mut out = self.lab.out.clone();
        while !out.is_empty() {
            let mut more = vec![];
            for decision in out {
                match decision {
                    Decision::Claim { job, offer, .. } => {
                        more.extend(self.lab.commit_unchecked(job, offer).to_vec());
                    }
                    Decision::Answer { offer, jobs } => self.start(offer, &jobs),
                    _ => {}
                }
            }
            out = more;
        }
    }

    fn start(&mut self, offer: OfferKey, jobs: &[JobKey]) {
        let at = self
            .machines
            .iter()
            .position(|machine| machine.asks == Some(offer))
            .expect("an open offer");
        self.machines[at].asks = None;
        let now = self.lab.now;
        let mut learned = vec![];
        for key in jobs {
            let (backlog, _, _, work) = self.jobs[&key.0];
            self.jobs.insert(key.0, (backlog, at, now, work));
            let took = work * 1_000 / self.machines[at].speed;
            self.ends.push(Reverse((now + took, key.0)));
            self.machines[at].used_mb += self.load(backlog, at);
            learned.push(self.new_job(backlog));
        }
        self.lab.on_unchecked(Event::JobsLearned(learned));
        assert!(self.lab.claims().is_empty() || !self.lab.out.is_empty());
        self.follow();
    }

    fn load(&self, backlog: usize, machine: usize) -> u32 {
        let of = &self.backlogs[backlog];
        if of.kind == Kind::Hw {
            self.machines[machine].offer.total_memory_mb
        } else {
            of.memory_mb
        }
    }

    /// Lets time pass until `until`, and answers what each account had of it since the last call.
    fn run(&mut self, for_ms: u64) -> BTreeMap<&'static str, u64> {
        let until = self.lab.now + for_ms;
        self.since = self.lab.now;
        self.busy.clear();
        for machine in 0..self.machines.len() {
            self.ask(machine);
        }
        while let Some(Reverse((at, job))) = self
            .ends
            .peek()
            .copied()
            .filter(|Reverse((at, _))| *at <= until)
        {
            self.ends.pop();
            self.lab.now = at;
            let (backlog, machine, began, _) = self.jobs.remove(&job).expect("a job that runs");
            self.note(backlog, machine, began, at);
            self.machines[machine].used_mb -= self.load(backlog, machine);
            self.lab.on_unchecked(Event::JobEnded {
                job: JobKey(job),
                version: version(u64::MAX),
                ran: true,
                at: Millis(u64::MAX),
            });
            self.follow();
            // A host with room has an open offer that says less than it has now.
            self.machines[machine].asks = None;
            self.ask(machine);
        }
        self.lab.now = until;
        let running: Vec<(usize, usize, u64)> = self
            .ends
            .iter()
            .map(|Reverse((_, job))| self.jobs[job])
            .map(|(b, m, began, _)| (b, m, began))
            .collect();
        for (backlog, machine, began) in running {
            self.note(backlog, machine, began, until);
        }
        self.lab.engine.sanity_check();
        self.busy.clone()
    }

    fn note(&mut self, backlog: usize, machine: usize, began: u64, until: u64) {
        let share = u64::from(self.load(backlog, machine)) * 1_000
            / u64::from(self.machines[machine].offer.total_memory_mb);
        let ms = until - began.max(self.since);
        *self.busy.entry(self.backlogs[backlog].account).or_default() += share * ms / 1_000;
    }
}

/// Each account's part is its weight's part within 5 %, plus `slack_ms` of one host.
fn check(busy: &BTreeMap<&'static str, u64>, weights: &[(&str, u64)], slack_ms: u64, what: &str) {
    let total: u64 = busy.values().sum();
    let all: u64 = weights.iter().map(|(_, weight)| weight).sum();
    for (account, weight) in weights {
        let due = total * weight / all;
        let got = busy.get(account).copied().unwrap_or(0);
        assert!(
            got.abs_diff(due) <= due / 20 + slack_ms,
            "{what}: {account} got {got} of {due} ms: {busy:?}"
        );
    }
}

fn hw_jobs(account: &'static str) -> Backlog {
    Backlog {
        account,
        queue: account,
        suite: "s",
        memory_mb: 1_000,
        keys: "hw.x86_64",
        kind: Kind::Hw,
        work_ms: (2_000, 5_000),
    }
}

fn vm_jobs(account: &'static str) -> Backlog {
    Backlog {
        keys: "vm.x86_64",
        kind: Kind::Vm,
        memory_mb: 4_000,
        ..hw_jobs(account)
    }
}

fn three_to_one() -> Policy {
    policy(&[("a", queue(3, 30)), ("b", queue(3, 10))])
}

#[test]
fn three_to_one_on_one_machine() {
    let mut sim = Sim::new(
        vec![hw_host("m")],
        vec![hw_jobs("a"), hw_jobs("b")],
        three_to_one(),
    );
    for window in 0..10 {
        check(
            &sim.run(80_000),
            &[("a", 3), ("b", 1)],
            5_000,
            &format!("window {window}"),
        );
    }
}

/// Two machines and a host of 20 GB, two accounts with jobs for both.
fn acceptance(memory_mb: u32, windows: u64, ms: u64, slack_ms: u64) {
    let machine = |name| Offer {
        total_memory_mb: memory_mb,
        free_memory_mb: memory_mb,
        ..hw_host(name)
    };
    let lab = vec![
        machine("m1"),
        machine("m2"),
        Offer {
            jobs_max: 100,
            ..vm_host("v")
        },
    ];
    let jobs = vec![hw_jobs("a"), hw_jobs("b"), vm_jobs("a"), vm_jobs("b")];
    let mut sim = Sim::new(lab, jobs, three_to_one());
    sim.run(10_000);
    for window in 0..windows {
        check(
            &sim.run(ms),
            &[("a", 3), ("b", 1)],
            slack_ms,
            &format!("{memory_mb} MB, window {window}"),
        );
    }
}

#[test]
fn three_to_one_on_two_machines_and_a_vm_host() {
    for memory_mb in [8_000, 20_000, 64_000, 500_000] {
        acceptance(memory_mb, 5, 240_000, 5_000);
    }
}

#[test]
fn invented_names_buy_no_share_of_the_time() {
    let labelled = |queue| Backlog {
        queue,
        ..hw_jobs("a")
    };
    let mut jobs = vec![hw_jobs("b")];
    jobs.extend(NINE_LABELS.map(labelled));
    let mut sim = Sim::new(vec![hw_host("m"), hw_host("n")], jobs, Policy::default());
    for window in 0..5 {
        check(
            &sim.run(120_000),
            &[("a", 1), ("b", 1)],
            10_000,
            &format!("nine labels beside one queue, window {window}"),
        );
    }
}

#[test]
fn wrong_expectations_do_not_swing_the_shares() {
    // The two accounts' jobs share a suite, but one's take 300 times as long: what is learned fits neither.
    let short = Backlog {
        work_ms: (100, 300),
        ..vm_jobs("a")
    };
    let long = Backlog {
        work_ms: (30_000, 90_000),
        ..vm_jobs("b")
    };
    let hosts = (0..4)
        .map(|n| Offer {
            jobs_max: 100,
            ..vm_host(["h0", "h1", "h2", "h3"][n])
        })
        .collect();
    let mut sim = Sim::new(hosts, vec![short, long], policy(&[]));
    sim.run(600_000);
    for window in 0..3 {
        check(
            &sim.run(1_200_000),
            &[("a", 1), ("b", 1)],
            90_000,
            &format!("window {window}"),
        );
    }
}

#[test]
fn uneven_hosts_and_four_weights() {
    let accounts = [("a", 40), ("b", 30), ("c", 20), ("d", 10)];
    let backlogs = accounts.map(|(account, _)| vm_jobs(account)).to_vec();
    let weights: Vec<(&str, QueuePolicy)> = accounts
        .iter()
        .map(|(name, weight)| (*name, queue(3, *weight)))
        .collect();
    let hosts = ["h0", "h1", "h2"]
        .map(|name| Offer {
            jobs_max: 100,
            ..vm_host(name)
        })
        .to_vec();
    let mut sim = Sim::new(hosts, backlogs, policy(&weights));
    sim.machines[0].speed = 250;
    sim.machines[2].speed = 4_000;
    sim.run(60_000);
    let weights = accounts.map(|(name, weight)| (name, u64::from(weight)));
    for window in 0..5 {
        check(
            &sim.run(400_000),
            &weights,
            5_000,
            &format!("window {window}"),
        );
    }
}

#[test]
fn a_new_weight_acts_at_once() {
    let mut sim = Sim::new(
        vec![hw_host("m")],
        vec![hw_jobs("a"), hw_jobs("b")],
        three_to_one(),
    );
    check(&sim.run(200_000), &[("a", 3), ("b", 1)], 5_000, "before");
    sim.lab.on_unchecked(Event::PolicyChanged(policy(&[
        ("a", queue(3, 10)),
        ("b", queue(3, 40)),
    ])));
    check(&sim.run(200_000), &[("a", 1), ("b", 4)], 5_000, "after");
}

#[test]
fn accounts_of_a_shared_queue_get_equal_time_and_the_queue_its_weight() {
    let shared = |account| Backlog {
        queue: "shared",
        ..vm_jobs(account)
    };
    let slow = Backlog {
        work_ms: (10_000, 20_000),
        suite: "slow",
        ..shared("b")
    };
    let hosts = ["h0", "h1"]
        .map(|name| Offer {
            jobs_max: 100,
            ..vm_host(name)
        })
        .to_vec();
    let policy = policy(&[("shared", queue(3, 20)), ("c", queue(3, 10))]);
    let mut sim = Sim::new(hosts, vec![shared("a"), slow, vm_jobs("c")], policy);
    sim.run(100_000);
    check(
        &sim.run(600_000),
        &[("a", 1), ("b", 1), ("c", 1)],
        20_000,
        "shared",
    );
}

#[test]
fn long_absence_gives_no_credit_and_wipes_no_debt() {
    let mut sim = Sim::new(
        vec![hw_host("m")],
        vec![hw_jobs("a"), hw_jobs("b")],
        policy(&[]),
    );
    let late = hw_jobs("late");
    sim.run(4_000_000);
    sim.backlogs.push(late);
    let jobs: Vec<JobFacts> = (0..AHEAD).map(|_| sim.new_job(2)).collect();
    sim.lab.on_unchecked(Event::JobsLearned(jobs));
    check(
        &sim.run(200_000),
        &[("a", 1), ("b", 1), ("late", 1)],
        5_000,
        "late",
    );
}
