//! A model of replicas that hear late of each other's claims, over one backlog. It counts how many equal jobs overtake
//! one, and how often two replicas want the same job.

use crate::lab::*;
use fairlead_dispatch::*;
use std::collections::{BTreeSet, VecDeque};

/// Jobs that all replicas know.
const JOBS: u64 = 900;

const REPLICAS: [u64; 3] = [11, 22, 33];

/// Replicas over one store.
struct Shared {
    labs: Vec<Lab>,
    granted: Vec<u64>,
    taken: BTreeSet<u64>,
    /// Claims that not all have heard of: the grant's number, and the job.
    news: VecDeque<(usize, u64)>,
    conflicts: usize,
}

impl Shared {
    fn new() -> Self {
        let labs = REPLICAS.iter().map(|own| {
            let mut lab = Lab::new();
            let others = REPLICAS.into_iter().filter(|other| other != own).collect();
            lab.on(Event::PeersChanged(Peers { own: *own, others }));
            lab.learn((1..=JOBS).map(|n| job(n, "a")));
            lab
        });
        Self {
            labs: labs.collect(),
            granted: Vec::new(),
            taken: BTreeSet::new(),
            news: VecDeque::new(),
            conflicts: 0,
        }
    }

    /// A host of that replica asks, and gets a job.
    fn serve(&mut self, replica: usize, heard_after: usize) {
        while let Some((at, key)) = self.news.front().copied() {
            if at + heard_after > self.granted.len() {
                break;
            }
            self.news.pop_front();
            for lab in &mut self.labs {
                lab.on_unchecked(Event::JobGone(JobKey(key), version(2)));
            }
        }
        let Some(lab) = self.labs.get_mut(replica) else {
            return;
        };
        let host = format!("h{}", self.granted.len());
        let offer = lab.offer_unchecked(vm_host(&host));
        while let [(key, _)] = lab.claims()[..] {
            if self.taken.insert(key) {
                lab.commit_unchecked(JobKey(key), offer);
                self.news.push_back((self.granted.len(), key));
                self.granted.push(key);
                return;
            }
            self.conflicts += 1;
            lab.on_unchecked(Event::ClaimRefused {
                job: JobKey(key),
                offer,
                refusal: Refusal::Gone,
            });
        }
    }

    /// The most jobs that were granted before one that was submitted before them.
    fn overtakes(&self) -> usize {
        let before = |at: usize, key: &u64| {
            let earlier = self.granted.iter().take(at);
            earlier.filter(|other| *other > key).count()
        };
        let all = self.granted.iter().enumerate();
        all.map(|(at, key)| before(at, key)).max().unwrap_or(0)
    }
}

/// Serves all jobs. `turns`: whose hosts ask, over and over, in an order that is mixed anew each time.
fn serve_all(turns: &[usize], heard_after: usize) -> (usize, usize) {
    let mut shared = Shared::new();
    let mut mixed = 1_u64;
    while (shared.granted.len() as u64) < JOBS {
        mixed = mixed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = (mixed >> 33) as usize % turns.len();
        shared.serve(turns[at], heard_after);
    }
    (shared.overtakes(), shared.conflicts)
}

#[test]
fn few_equal_jobs_overtake_one_whoever_serves() {
    let even = [0, 1, 2];
    let one_is_slow: Vec<usize> = [0, 1].repeat(20).into_iter().chain([2]).collect();
    let two_are_slow: Vec<usize> = [0].repeat(40).into_iter().chain([1, 2]).collect();
    let cases: [(&str, &[usize], usize); 5] = [
        ("all serve", &even, 3),
        ("one is slow", &one_is_slow, 3),
        ("one serves no host", &[0, 1], 2),
        ("two are slow", &two_are_slow, 3),
        ("one serves all hosts", &[0], 1),
    ];
    let cases = cases.into_iter();
    let measured: Vec<_> = cases
        .flat_map(|(name, turns, serving)| {
            [1, 8].map(|heard_after| {
                let (most, conflicts) = serve_all(turns, heard_after);
                (name, heard_after, most, OVERTAKES_MAX * serving, conflicts)
            })
        })
        .collect();
    let holds = measured.iter().all(|(_, _, most, bound, _)| most <= bound);
    assert!(
        holds,
        "who serves, heard after claims, overtake, bound, conflicts: {measured:#?}"
    );
}

#[test]
fn a_job_says_how_many_went_before_it_here_and_elsewhere() {
    let mut lab = Lab::new();
    let [own, other, _] = REPLICAS;
    let peers = Peers {
        own,
        others: vec![other],
    };
    lab.on(Event::PeersChanged(peers.clone()));
    let is_own = |n: &u64| peers.rank(JobKey(*n)) == 0;
    let first = (1..=40).find(|n| !is_own(n)).expect("another's");
    let own: Vec<u64> = (first..=40).filter(is_own).take(2).collect();
    lab.learn(
        [first]
            .into_iter()
            .chain(own.iter().copied())
            .chain([50, 60])
            .map(|n| job(n, "a")),
    );
    assert_eq!(lab.serve(vm_host("h1")), own[..1]);
    assert_eq!(lab.serve(vm_host("h2")), own[1..]);
    let facts = job(60, "a");
    lab.on(Event::JobHeld(Box::new(Running {
        facts,
        host: "elsewhere".to_owned(),
        group: "group".to_owned(),
        total_memory_mb: 20_000,
        total_cpus: CPUS_UNCHECKED,
        since: Millis(lab.now),
    })));
    let overtaken_by = |job: u64| {
        let said = lab.engine.explain_job(Millis(lab.now), JobKey(job));
        said.expect("it waits").ahead.overtaken_by
    };
    assert_eq!((overtaken_by(first), overtaken_by(50)), (3, 1));
}
