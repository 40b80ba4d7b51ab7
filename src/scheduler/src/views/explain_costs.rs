//! Constraints of a waiting job, and how many more known hosts could run it without each of them.

use std::collections::BTreeSet;

use fairlead_api::ConstraintCost;
use fairlead_dispatch::{COMPARED_MAX, JobFacts, More};
use fairlead_job::{TboxType, units::counted};
use fairlead_store::JobState;

use crate::views::ViewFlow;

/// Most constraints that an explanation names.
const COSTS_MAX: usize = 8;
/// Most architectures of hosts that are tried for a job that is bound to one.
const ARCHS_MAX: usize = 8;
/// Kinds of testboxes, as host keys name them.
const KINDS: [TboxType; 3] = [TboxType::Hw, TboxType::Vm, TboxType::Dc];

/// A job without one of its constraints.
#[derive(Debug, Clone)]
pub(super) struct Without {
    /// The constraint as a job file says it.
    constraint: String,
    /// What else there is to say of the hosts that it keeps out.
    says: Says,
    pub(super) facts: JobFacts,
}

/// What is said of the hosts that a constraint keeps out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    /// The memory of the largest.
    Memory,
    /// The CPUs of the largest.
    Cpus,
}

impl ViewFlow {
    /// The job without each of its constraints, at most [`COMPARED_MAX`].
    pub(super) fn without_each(&self, state: &JobState, facts: &JobFacts) -> Vec<Without> {
        let mut archs = BTreeSet::new();
        self.lab.hosts.each(|_, host| {
            if archs.len() < ARCHS_MAX {
                archs.insert(host.arch.clone());
            }
        });
        let mut all = of_place(state, facts, &archs);
        all.extend(of_size(facts));
        all.extend(of_lists(facts));
        all.truncate(COMPARED_MAX);
        all
    }
}

fn without(
    constraint: impl Into<String>,
    facts: &JobFacts,
    give_up: impl FnOnce(&mut JobFacts),
) -> Without {
    let mut facts = facts.clone();
    give_up(&mut facts);
    Without {
        constraint: constraint.into(),
        says: Says::Nothing,
        facts,
    }
}

/// Architecture and testbox: host keys name both.
fn of_place(state: &JobState, facts: &JobFacts, archs: &BTreeSet<String>) -> Vec<Without> {
    let mut all = Vec::new();
    if !facts.arch.is_empty() {
        all.push(without(format!("arch: {}", facts.arch), facts, |job| {
            let own = std::mem::take(&mut job.arch);
            let of_arch = format!(".{own}");
            for other in archs.iter().filter(|arch| **arch != own) {
                let other = format!(".{other}");
                let keys = facts.host_keys.iter();
                let keys = keys.map(|key| key.replacen(&of_arch, &other, 1));
                job.host_keys.extend(keys);
            }
        }));
    }
    let one = BTreeSet::from([facts.arch.clone()]);
    let its = if facts.arch.is_empty() { archs } else { &one };
    let is_named = facts.host_keys.iter().any(|key| key.contains('@'));
    let kinds = if is_named {
        vec![state.tbox_type]
    } else {
        KINDS.to_vec()
    };
    all.push(without(testbox_of(state), facts, |job| {
        let of_kind = |kind: TboxType| {
            its.iter()
                .map(move |arch| format!("{}.{arch}", kind.as_str()))
        };
        job.host_keys.extend(kinds.into_iter().flat_map(of_kind));
    }));
    all
}

/// What binds a job to machines, a group or a kind of testbox, as its file says it.
fn testbox_of(state: &JobState) -> String {
    let places = state.host_keys.iter();
    let places: Vec<&str> = places
        .filter_map(|key| key.split_once('@').map(|(_, place)| place))
        .collect();
    let is_testbox =
        |place: &&str| state.testbox == **place || state.testbox.ends_with(&format!("--{place}"));
    match places.as_slice() {
        [] => format!("testbox: {}", state.testbox),
        [place] if is_testbox(place) => format!("testbox: {}", state.testbox),
        places => {
            let more = if places.len() > 3 { ", …" } else { "" };
            let first = places.get(..3).unwrap_or(places).join(", ");
            format!("target_machines: [{first}{more}]")
        }
    }
}

/// Memory and CPUs.
fn of_size(facts: &JobFacts) -> Vec<Without> {
    let mut all = Vec::new();
    if facts.memory_mb > 0 {
        let constraint = format!("need_memory: {} MB", facts.memory_mb);
        all.push(Without {
            says: Says::Memory,
            ..without(constraint, facts, |job| job.memory_mb = 0)
        });
    }
    if facts.cpus > 1 {
        all.push(Without {
            says: Says::Cpus,
            ..without(format!("need_cpus: {}", facts.cpus), facts, |job| {
                job.cpus = 0;
            })
        });
    }
    all
}

/// Tags, devices, alternatives, and hosts that it avoids.
fn of_lists(facts: &JobFacts) -> Vec<Without> {
    let mut all = Vec::new();
    if !facts.not_on.is_empty() {
        all.push(without("retry_elsewhere", facts, |job| job.not_on.clear()));
    }
    if !facts.any_of.is_empty() {
        all.push(without("any_of", facts, |job| job.any_of.clear()));
    }
    for tag in &facts.tags {
        let constraint = format!("tags: [{tag}]");
        all.push(without(constraint, facts, |job| {
            job.tags.retain(|one| one != tag);
        }));
    }
    for device in &facts.devices {
        let constraint = format!("sched.devices: [{device}]");
        all.push(without(constraint, facts, |job| {
            job.devices.retain(|one| one != device);
        }));
    }
    for tag in &facts.not_tags {
        let constraint = format!("not_tags: [{tag}]");
        all.push(without(constraint, facts, |job| {
            job.not_tags.retain(|one| one != tag);
        }));
    }
    all
}

/// What the constraints cost, the most helpful to give up first. Those that cost nothing are left out.
pub(super) fn costs(withouts: &[Without], more: &[More]) -> Vec<ConstraintCost> {
    let pairs = withouts.iter().zip(more);
    let pairs = pairs.filter(|(_, more)| more.able > 0 || more.ready > 0);
    let mut costs: Vec<ConstraintCost> =
        pairs.map(|(without, more)| cost(without, *more)).collect();
    costs.sort_by(|a, b| {
        let rank = |cost: &ConstraintCost| (cost.more_able, cost.more_ready);
        rank(b).cmp(&rank(a)).then(a.constraint.cmp(&b.constraint))
    });
    costs.truncate(COSTS_MAX);
    costs
}

fn cost(without: &Without, more: More) -> ConstraintCost {
    let constraint = &without.constraint;
    let hosts = |many: u64| counted(many, "more host", "more hosts");
    let mut words = match (more.able, more.ready) {
        (0, ready) => format!("{} could run it now without `{constraint}`", hosts(ready)),
        (able, 0) => format!("{} without `{constraint}`, none of them now", hosts(able)),
        (able, ready) => format!("{} without `{constraint}`, {ready} now", hosts(able)),
    };
    let size = match without.says {
        Says::Memory if more.able > 0 => Some(format!("{} MB", more.most_mb)),
        Says::Cpus if more.able > 0 => Some(counted(more.most_cpus, "CPU", "CPUs")),
        Says::Nothing | Says::Memory | Says::Cpus => None,
    };
    if let Some(size) = size {
        words = format!("{words}; the largest of them has {size}");
    }
    ConstraintCost {
        constraint: constraint.clone(),
        more_able: more.able,
        more_ready: more.ready,
        words,
    }
}

#[cfg(test)]
mod tests {
    use fairlead_store::{StoredJob, Version};

    use super::*;
    use crate::testing::{flows, state};
    use fairlead_known::hosts::Host;
    use fairlead_lifecycle::engine_facts::facts;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn facts_of(state: &JobState) -> JobFacts {
        facts(&StoredJob {
            version: Version::default(),
            state: state.clone(),
        })
    }

    #[tokio::test]
    async fn each_constraint_is_given_up_alone() {
        let (_data, flows) = flows().await;
        for (name, arch) in [("a", "x86_64"), ("b", "aarch64")] {
            let host = Host {
                arch: arch.to_owned(),
                ..Host::default()
            };
            flows
                .hosts
                .lab
                .hosts
                .update(name, |known| *known = host)
                .unwrap();
        }
        let job = JobState {
            arch: "x86_64".to_owned(),
            cpus: 4,
            tags: names(&["gpu", "ssd"]),
            not_tags: names(&["old"]),
            devices: names(&["nic"]),
            not_on: names(&["bad"]),
            ..state(1)
        };
        let all = flows.views.without_each(&job, &facts_of(&job));
        let constraints: Vec<&str> = all.iter().map(|one| one.constraint.as_str()).collect();
        assert_eq!(
            constraints,
            [
                "arch: x86_64",
                "testbox: dc",
                "need_memory: 1024 MB",
                "need_cpus: 4",
                "retry_elsewhere",
                "tags: [gpu]",
                "tags: [ssd]",
                "sched.devices: [nic]",
                "not_tags: [old]",
            ]
        );
        let of = |n: usize| &all[n].facts;
        assert_eq!(of(0).arch, "");
        assert_eq!(of(0).host_keys, ["dc.x86_64", "dc.aarch64"]);
        assert!(of(1).host_keys.contains(&"vm.x86_64".to_owned()));
        assert_eq!((of(2).memory_mb, of(3).cpus), (0, 0));
        assert_eq!(of(5).tags, ["ssd"]);
        assert_eq!(of(5).devices, ["nic"], "only one is given up");
    }

    #[tokio::test]
    async fn machines_of_a_job_are_named_as_its_file_does() {
        let named = |testbox: &str, keys: &[&str]| {
            testbox_of(&JobState {
                testbox: testbox.to_owned(),
                host_keys: names(keys),
                ..state(1)
            })
        };
        assert_eq!(named("a66", &["hw@a66"]), "testbox: a66");
        assert_eq!(named("dc--h1", &["dc.x86_64@h1"]), "testbox: dc--h1");
        let machines = ["dc.x86_64@a", "dc.x86_64@b", "dc.x86_64@c", "dc.x86_64@d"];
        assert_eq!(named("dc", &machines), "target_machines: [a, b, c, …]");
    }

    #[test]
    fn the_most_helpful_constraint_comes_first() {
        let job = facts_of(&state(1));
        let withouts = ["tags: [a]", "tags: [b]", "tags: [c]", "tags: [d]"];
        let mut withouts: Vec<Without> = withouts.map(|it| without(it, &job, |_| ())).into();
        withouts[1].says = Says::Memory;
        let more = |able, ready| More {
            able,
            ready,
            most_mb: 4_000,
            most_cpus: 1,
        };
        let costs = costs(&withouts, &[more(1, 0), more(2, 2), more(0, 0), more(0, 1)]);
        let words: Vec<&str> = costs.iter().map(|cost| cost.words.as_str()).collect();
        assert_eq!(
            words,
            [
                "2 more hosts without `tags: [b]`, 2 now; the largest of them has 4000 MB",
                "1 more host without `tags: [a]`, none of them now",
                "1 more host could run it now without `tags: [d]`",
            ]
        );
    }
}
