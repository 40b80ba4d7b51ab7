//! Jobs that a lab ran, given to the engine again: with the lab's policy, or with another one.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_dispatch::{
    CPUS_UNCHECKED, EngineConfig, HostProperties, JobFacts, JobKey, JobRequirements, Kind, Millis,
    Policy, QueuePolicy, Version, labels,
};

use crate::{
    Ran,
    world::{self, Host, Load},
};

/// Interval at which a host asks for work if nothing changes there, ms.
const ASKS_EVERY_MS: u64 = 60_000;
/// Maximum number of jobs in one answer: as many as an agent asks for.
const ANSWER_JOBS: u32 = 64;
/// Expected run time of a job whose suite has not run yet, seconds.
const EXPECTED_S: u64 = 3_600;

/// A job of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastJob {
    /// Account that was charged.
    pub account: String,
    /// Queue, as the engine knows it. It may be a label of one.
    pub queue: String,
    /// Suite of the job.
    pub suite: String,
    /// Priority inside the account.
    pub priority: i16,
    /// Kind of its testbox.
    pub kind: Kind,
    /// Keys of which a host must offer one. Never empty.
    pub host_keys: Vec<String>,
    /// Memory that it took, MB.
    pub memory_mb: u32,
    /// CPUs that it took.
    pub cpus: u32,
    /// Time at which it could run, UTC epoch ms.
    pub ready_ms: u64,
    /// Time at which a host got it, UTC epoch ms.
    pub dispatch_ms: u64,
    /// Time of its end, UTC epoch ms.
    pub end_ms: u64,
    /// Host that had it.
    pub host: String,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// Jobs that ran, in the order of their submits.
    pub ran: Vec<Ran>,
    /// Number of jobs that never started.
    pub left_out: usize,
}

/// Returns the class of a queue by a policy.
pub fn class_of(policy: &Policy, queue: &str) -> u8 {
    let named = policy.queues.get(labels::queue_of(queue));
    named.map_or_else(|| QueuePolicy::default().priority, |queue| queue.priority)
}

/// Returns the recorded history. `policy` gives the classes.
pub fn as_it_was(jobs: &[PastJob], hosts: &[Host], policy: &Policy) -> Past {
    let mut names = Names::default();
    let ran = jobs.iter().map(|job| {
        let host = hosts.iter().find(|host| host.name == job.host);
        let host = host.or_else(|| hosts.iter().find(|host| could_run(job, host)));
        names.ran(job, job.dispatch_ms, host, policy)
    });
    let mut ran: Vec<Ran> = ran.collect();
    ran.sort_by_key(|ran| ran.submit_ms);
    Past { ran, left_out: 0 }
}

/// Returns the history that these hosts and this policy would have produced. Classes of the answer are those of
/// `classes`, so that answers with different policies can be compared. The same input gives the same answer.
pub fn would_have_been(
    jobs: &[PastJob],
    hosts: &[Host],
    policy: &Policy,
    classes: &Policy,
) -> Past {
    let fits = |job: &&PastJob| hosts.iter().any(|host| could_run(job, host));
    let mut fitting: Vec<&PastJob> = jobs.iter().filter(fits).collect();
    fitting.sort_by_key(|job| job.ready_ms);
    let load = |job: &&PastJob| Load {
        submit_ms: job.ready_ms,
        run_ms: job.end_ms.saturating_sub(job.dispatch_ms).max(1),
        memory_mb: job.memory_mb,
        cpus: job.cpus,
    };
    let loads: Vec<Load> = fitting.iter().map(load).collect();
    let rules = world::Rules {
        config: EngineConfig::default(),
        policy: policy.clone(),
        asks_every_ms: ASKS_EVERY_MS,
        answer_jobs: ANSWER_JOBS,
        learns: true,
    };
    let starts = world::run(rules, hosts, &loads, |n| facts(fitting[n]));
    let mut names = Names::default();
    let begun = fitting.iter().zip(&starts).filter_map(|(job, start)| {
        let start = start.as_ref()?;
        let host = hosts.get(start.host);
        Some(names.ran(job, start.at_ms, host, classes))
    });
    let ran: Vec<Ran> = begun.collect();
    Past {
        left_out: jobs.len().saturating_sub(ran.len()),
        ran,
    }
}

/// Names that many jobs share.
#[derive(Default)]
struct Names(BTreeMap<String, Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(name) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = Arc::from(name);
        self.0.insert(name.to_owned(), Arc::clone(&shared));
        shared
    }

    fn ran(&mut self, job: &PastJob, start_ms: u64, host: Option<&Host>, policy: &Policy) -> Ran {
        Ran {
            submit_ms: job.ready_ms,
            start_ms: start_ms.max(job.ready_ms),
            run_ms: job.end_ms.saturating_sub(job.dispatch_ms),
            amount: host.map_or(1.0, |host| part_of(job, host)),
            account: self.shared(&job.account),
            queue: self.shared(labels::queue_of(&job.queue)),
            class: class_of(policy, &job.queue),
        }
    }
}

/// Returns the largest share of a host that a job takes, 0 to 1.
fn part_of(job: &PastJob, host: &Host) -> f64 {
    if job.kind == Kind::Hw {
        return 1.0;
    }
    let part = |of: u32, all: u32| f64::from(of) / f64::from(all.max(1));
    let memory = part(job.memory_mb, host.memory_mb);
    let cpus = if host.cpus == CPUS_UNCHECKED {
        0.0
    } else {
        part(job.cpus, host.cpus)
    };
    memory.max(cpus).min(1.0)
}

/// Returns true if an empty host could run a job.
fn could_run(job: &PastJob, host: &Host) -> bool {
    let requirements = JobRequirements {
        account: Some(&job.account),
        arch: &String::new(),
        keys: &job.host_keys,
        tags: &[],
        not_tags: &[],
        any_of: &[],
        devices: &[],
        not_on: &[],
        memory_mb: job.memory_mb,
        cpus: job.cpus,
    };
    let properties = HostProperties {
        name: &host.name,
        arch: &host.about.arch,
        keys: &host.about.keys,
        tags: &host.about.tags,
        devices: &host.about.devices,
        accounts: &host.about.accounts,
        memory_mb: host.memory_mb,
        cpus: host.cpus,
    };
    requirements.first_unmet_by(&properties).is_none()
}

fn facts(job: &PastJob) -> JobFacts {
    JobFacts {
        key: JobKey(0),
        version: Version {
            primary_term: 0,
            seq_no: 0,
        },
        account: job.account.clone(),
        queue: job.queue.clone(),
        suite: job.suite.clone(),
        class: 0,
        priority: job.priority,
        kind: job.kind,
        arch: String::new(),
        host_keys: job.host_keys.clone(),
        memory_mb: job.memory_mb,
        cpus: job.cpus,
        tags: Vec::new(),
        not_tags: Vec::new(),
        any_of: Vec::new(),
        devices: Vec::new(),
        not_on: Vec::new(),
        cache_dirs: Vec::new(),
        prefer: Vec::new(),
        timeout_s: EXPECTED_S,
        submitted: Millis(0),
        not_before: Millis(0),
    }
}

#[cfg(test)]
mod tests {
    use fairlead_dispatch::About;

    use super::*;

    fn host(name: &str, kind: &str, cpus: u32) -> Host {
        let about = About {
            arch: "x86_64".to_owned(),
            keys: vec![format!("{kind}.x86_64")],
            ..About::default()
        };
        Host {
            name: name.to_owned(),
            about: Arc::new(about),
            memory_mb: 64_000,
            cpus,
            is_whole: kind == "hw",
        }
    }

    fn job(account: &str, submit_s: u64, wait_s: u64, run_s: u64) -> PastJob {
        PastJob {
            account: account.to_owned(),
            queue: account.to_owned(),
            suite: "s".to_owned(),
            priority: 0,
            kind: Kind::Dc,
            host_keys: vec!["dc.x86_64".to_owned()],
            memory_mb: 1_000,
            cpus: 4,
            ready_ms: submit_s * 1_000,
            dispatch_ms: (submit_s + wait_s) * 1_000,
            end_ms: (submit_s + wait_s + run_s) * 1_000,
            host: "a".to_owned(),
        }
    }

    fn policy(weights: &[(&str, u32, u8)]) -> Policy {
        let mut policy = Policy::default();
        for (name, weight, priority) in weights {
            let queue = QueuePolicy {
                weight: *weight,
                priority: *priority,
                ..QueuePolicy::default()
            };
            policy.queues.insert((*name).to_owned(), queue);
        }
        policy
    }

    /// Returns the number of the first started jobs that are of this account.
    fn among_first(past: &Past, account: &str, first: usize) -> usize {
        let mut ran: Vec<&Ran> = past.ran.iter().collect();
        ran.sort_by_key(|ran| ran.start_ms);
        let of = ran.into_iter().take(first);
        of.filter(|ran| &*ran.account == account).count()
    }

    #[test]
    fn what_was_is_as_it_was() {
        let hosts = [host("a", "dc", 8)];
        let past = as_it_was(
            &[job("y", 5, 3, 10), job("x", 0, 1, 10)],
            &hosts,
            &policy(&[("y", 10, 7)]),
        );
        let [first, second] = past.ran.as_slice() else {
            panic!("{past:?}");
        };
        assert_eq!(
            (&*first.account, first.wait_ms(), first.class),
            ("x", 1_000, 3)
        );
        assert_eq!((second.wait_ms(), second.class), (3_000, 7));
        assert!((first.amount - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_weight_would_have_given_more() {
        let hosts = [host("a", "dc", 4)];
        let mut jobs = Vec::new();
        for _ in 0..100 {
            jobs.push(job("x", 0, 9, 60));
            jobs.push(job("y", 0, 9, 60));
        }
        let equal = would_have_been(&jobs, &hosts, &policy(&[]), &policy(&[]));
        assert_eq!((equal.ran.len(), equal.left_out), (200, 0));
        assert!(
            (24..=26).contains(&among_first(&equal, "y", 50)),
            "{equal:?}"
        );
        let heavy = would_have_been(&jobs, &hosts, &policy(&[("y", 40, 3)]), &policy(&[]));
        assert!((38..=42).contains(&among_first(&heavy, "y", 50)));
        let first = would_have_been(&jobs, &hosts, &policy(&[("y", 10, 9)]), &policy(&[]));
        assert_eq!(among_first(&first, "y", 50), 50);
        assert!(first.ran.iter().all(|ran| ran.class == 3));
        let again = would_have_been(&jobs, &hosts, &policy(&[("y", 10, 9)]), &policy(&[]));
        assert_eq!(first, again);
    }

    #[test]
    fn hosts_have_room_for_some_and_whole_machines_for_one() {
        let jobs = vec![job("x", 0, 0, 60); 8];
        let two = [host("a", "dc", 8), host("b", "dc", 8)];
        let past = would_have_been(&jobs, &two, &policy(&[]), &policy(&[]));
        let later = past.ran.iter().filter(|ran| ran.wait_ms() == 60_000);
        assert_eq!((past.ran.len(), later.count()), (8, 4));
        let whole = PastJob {
            kind: Kind::Hw,
            host_keys: vec!["hw.x86_64".to_owned()],
            ..job("x", 0, 0, 60)
        };
        let machines = [host("a", "hw", 8), host("b", "hw", 8)];
        let past = would_have_been(&vec![whole; 4], &machines, &policy(&[]), &policy(&[]));
        let waits: Vec<u64> = past.ran.iter().map(Ran::wait_ms).collect();
        assert_eq!(waits, [0, 0, 60_000, 60_000]);
    }

    #[test]
    fn what_no_host_could_run_is_left_out() {
        let large = PastJob {
            cpus: 9,
            ..job("x", 0, 0, 60)
        };
        let other = PastJob {
            host_keys: vec!["dc.riscv64".to_owned()],
            ..job("x", 0, 0, 60)
        };
        let jobs = [large, other, job("x", 0, 0, 60)];
        let past = would_have_been(&jobs, &[host("a", "dc", 8)], &policy(&[]), &policy(&[]));
        assert_eq!((past.ran.len(), past.left_out), (1, 2));
        let none = would_have_been(&jobs, &[], &policy(&[]), &policy(&[]));
        assert_eq!((none.ran.len(), none.left_out), (0, 3));
    }
}
