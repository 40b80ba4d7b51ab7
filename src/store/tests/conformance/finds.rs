//! Tests of finds: the jobs that an offer could take.

use fairlead_job::{Alternative, Stage};
use fairlead_store::{Find, JobState, JobStore};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};

use super::{numbers, state, state_with, submit_all};

fn offer() -> Find {
    Find {
        host: "h1".to_owned(),
        keys: vec!["dc.x86_64".into()],
        arch: "x86_64".into(),
        free_memory_mb: 2_000,
        free_cpus: None,
        tags: vec![],
        devices: vec![],
        accounts: vec![],
        limit: 100,
        pairs_max: u32::MAX,
        after: None,
    }
}

async fn found(store: &dyn JobStore, offer: Find) -> Vec<u64> {
    let page = store.find(&[offer]).await.unwrap().remove(0);
    assert!(!page.more);
    numbers(&page.jobs)
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

fn alternative(tags: &[&str], not_tags: &[&str]) -> Alternative {
    Alternative {
        tags: strings(tags),
        not_tags: strings(not_tags),
    }
}

/// Jobs of which each differs from the first in what it requires.
fn jobs_of_each_predicate() -> Vec<JobState> {
    vec![
        state(1),
        state_with(2, |s| {
            s.memory_mb = 2_000;
            s.account = "guest".into();
        }),
        state_with(3, |s| s.memory_mb = 2_001),
        state_with(4, |s| {
            s.arch = "x86_64".into();
            s.account = "guest".into();
        }),
        state_with(5, |s| s.arch = "aarch64".into()),
        state_with(6, |s| s.tags = strings(&["ssd"])),
        state_with(7, |s| s.tags = strings(&["ssd", "10g"])),
        state_with(8, |s| s.devices = strings(&["gpu"])),
        state_with(9, |s| {
            s.tags = strings(&["ssd"]);
            s.devices = strings(&["gpu", "fpga"]);
        }),
        state_with(10, |s| s.host_keys = strings(&["hw@a66", "hw@a67"])),
        state_with(13, |s| {
            s.host_keys = strings(&["vm.x86_64"]);
            s.not_on = strings(&["h0", "h1"]);
        }),
        state_with(14, |s| {
            s.host_keys = strings(&["vm.x86_64"]);
            s.not_on = strings(&["h2"]);
        }),
        state_with(15, |s| {
            s.host_keys = strings(&["dc.riscv64"]);
            s.cpus = 4;
        }),
        state_with(16, |s| s.host_keys = strings(&["dc.riscv64"])),
        state_with(17, |s| {
            s.host_keys = strings(&["dc.tags"]);
            s.not_tags = strings(&["old", "slow"]);
        }),
        state_with(18, |s| {
            s.host_keys = strings(&["dc.tags"]);
            s.any_of = vec![
                alternative(&["nvme"], &[]),
                alternative(&["ssd", "raid"], &["old"]),
            ];
        }),
        state_with(19, |s| {
            s.host_keys = strings(&["dc.tags"]);
            s.any_of = vec![alternative(&[], &["old", "ssd"])];
        }),
        state_with(11, |s| s.ready = false),
        state_with(12, |s| s.stage = Stage::Running),
    ]
}

/// Offers, and the jobs that each of them may take.
fn offers_of_each_predicate() -> Vec<(Find, Vec<u64>)> {
    let with_cpus = |free_cpus| Find {
        keys: strings(&["dc.riscv64"]),
        free_cpus,
        ..offer()
    };
    let with_tags = |tags: &[&str]| Find {
        keys: strings(&["dc.tags"]),
        tags: strings(tags),
        ..offer()
    };
    vec![
        (with_tags(&[]), vec![17, 19]),
        (with_tags(&["ssd", "raid"]), vec![17, 18]),
        (with_tags(&["ssd"]), vec![17]),
        (with_tags(&["raid", "old", "ssd"]), vec![]),
        (with_tags(&["nvme", "old"]), vec![18]),
        (with_tags(&["nvme", "slow"]), vec![18, 19]),
        (with_cpus(None), vec![15, 16]),
        (with_cpus(Some(4)), vec![15, 16]),
        (with_cpus(Some(3)), vec![16]),
        (with_cpus(Some(1)), vec![16]),
        (with_cpus(Some(0)), vec![]),
        (
            Find {
                free_memory_mb: 1_023,
                ..offer()
            },
            vec![],
        ),
        (
            Find {
                free_memory_mb: 2_001,
                ..offer()
            },
            vec![1, 2, 3, 4],
        ),
        (
            Find {
                arch: "aarch64".into(),
                ..offer()
            },
            vec![1, 2, 5],
        ),
        (
            Find {
                arch: String::new(),
                ..offer()
            },
            vec![1, 2],
        ),
        (
            Find {
                tags: strings(&["ssd"]),
                ..offer()
            },
            vec![1, 2, 4, 6],
        ),
        (
            Find {
                tags: strings(&["10g", "x", "ssd"]),
                ..offer()
            },
            vec![1, 2, 4, 6, 7],
        ),
        (
            Find {
                devices: strings(&["gpu"]),
                ..offer()
            },
            vec![1, 2, 4, 8],
        ),
        (
            Find {
                tags: strings(&["ssd"]),
                devices: strings(&["fpga", "gpu"]),
                ..offer()
            },
            vec![1, 2, 4, 6, 8, 9],
        ),
        (
            Find {
                keys: strings(&["hw@a67", "hw@zz"]),
                ..offer()
            },
            vec![10],
        ),
        (
            Find {
                keys: strings(&["hw@a67", "dc.x86_64", "hw@a66"]),
                ..offer()
            },
            vec![1, 2, 4, 10],
        ),
        (
            Find {
                keys: vec![],
                ..offer()
            },
            vec![],
        ),
        (
            Find {
                keys: strings(&["vm.x86_64"]),
                ..offer()
            },
            vec![14],
        ),
        (
            Find {
                host: "h9".to_owned(),
                keys: strings(&["vm.x86_64"]),
                ..offer()
            },
            vec![13, 14],
        ),
        (
            Find {
                accounts: strings(&["guest", "nobody"]),
                ..offer()
            },
            vec![2, 4],
        ),
    ]
}

pub(crate) async fn finds_hold_every_predicate(store: &dyn JobStore) {
    submit_all(store, jobs_of_each_predicate()).await;
    store.refresh().await.unwrap();
    assert_eq!(found(store, offer()).await, [1, 2, 4]);
    let offers = offers_of_each_predicate();
    let requests: Vec<Find> = offers.iter().map(|(offer, _)| offer.clone()).collect();
    let pages = store.find(&requests).await.unwrap();
    for ((offer, wanted), page) in offers.iter().zip(pages) {
        assert_eq!(&numbers(&page.jobs), wanted, "{offer:?}");
    }
}

pub(crate) async fn finds_give_each_queue_its_best(store: &dyn JobStore) {
    // 40 queues; one is far longer and better than all others, the best of each does not fit.
    let mut states = vec![];
    for n in 1..=400_u64 {
        states.push(state_with(n, |s| {
            s.class = 9;
            s.queue = "long".into();
            s.account = "greedy".into();
        }));
    }
    for n in 401..=600_u64 {
        states.push(state_with(n, |s| {
            s.queue = format!("q{:02}", n % 40);
            s.account = s.queue.clone();
            s.priority = i16::try_from(600 - n).unwrap();
            s.memory_mb = if n <= 440 { 9_999 } else { 1_000 };
        }));
    }
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let page = store
        .find(&[Find {
            limit: 1,
            ..offer()
        }])
        .await
        .unwrap()
        .remove(0);
    let wanted: Vec<u64> = std::iter::once(1).chain(441..=480).collect();
    assert_eq!(numbers(&page.jobs), wanted);
    assert!(page.more);
}

pub(crate) async fn finds_limit_a_queue_and_account(store: &dyn JobStore) {
    let states = (1..=30)
        .map(|n| {
            state_with(n, |s| {
                s.queue = if n <= 20 {
                    "shared".into()
                } else {
                    "own".into()
                };
                s.account = format!("a{}", n % 3);
            })
        })
        .collect();
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let page = store
        .find(&[Find {
            limit: 2,
            ..offer()
        }])
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        numbers(&page.jobs),
        [1, 2, 3, 4, 5, 6, 21, 22, 23, 24, 25, 26]
    );
    assert!(page.more);
    let page = store
        .find(&[Find {
            limit: 10,
            ..offer()
        }])
        .await
        .unwrap()
        .remove(0);
    assert_eq!((page.jobs.len(), page.more), (30, false));
}

const TAGS: [&str; 4] = ["a", "b", "c", "d"];

/// The tags of a set of bits.
fn tags_of(bits: u64) -> Vec<String> {
    let with = |number: &usize| bits >> number & 1 == 1;
    let numbers = (0..TAGS.len()).filter(with);
    numbers.map(|number| TAGS[number].to_owned()).collect()
}

/// What a job asks of the tags of a host, as bits.
#[derive(Debug, Clone)]
struct Asks {
    tags: u64,
    not_tags: u64,
    any_of: Vec<(u64, u64)>,
}

impl Asks {
    fn some() -> impl Strategy<Value = Self> {
        let some = || proptest::bits::u64::masked(0b1111);
        let few = move || (some(), some()).prop_map(|(one, other)| one & other);
        let any_of = proptest::collection::vec((few(), few()), 0..=4);
        (few(), few(), any_of).prop_map(|(tags, not_tags, any_of)| Self {
            tags,
            not_tags,
            any_of,
        })
    }

    fn is_met(&self, has: u64) -> bool {
        let meets = |tags, not_tags| has & tags == tags && has & not_tags == 0;
        let mut any_of = self.any_of.iter();
        meets(self.tags, self.not_tags)
            && (self.any_of.is_empty() || any_of.any(|(tags, not_tags)| meets(*tags, *not_tags)))
    }

    fn state(&self, number: u64) -> JobState {
        state_with(number, |s| {
            s.tags = tags_of(self.tags);
            s.not_tags = tags_of(self.not_tags);
            let alternative = |(tags, not_tags): &(u64, u64)| Alternative {
                tags: tags_of(*tags),
                not_tags: tags_of(*not_tags),
            };
            s.any_of = self.any_of.iter().map(alternative).collect();
        })
    }
}

pub(crate) async fn finds_by_random_tags_equal_a_naive_model(store: &dyn JobStore) {
    let jobs = proptest::collection::vec(Asks::some(), 100);
    let jobs = jobs.new_tree(&mut TestRunner::default()).unwrap().current();
    let numbered = || (1..).zip(&jobs);
    let states = numbered().map(|(number, job)| job.state(number));
    submit_all(store, states.collect()).await;
    store.refresh().await.unwrap();
    for has in 0..16 {
        let fitting = numbered().filter(|(_, job)| job.is_met(has));
        let expected: Vec<u64> = fitting.map(|(number, _)| number).collect();
        let offer = Find {
            tags: tags_of(has),
            ..offer()
        };
        let mut found = found(store, offer).await;
        found.sort_unstable();
        assert_eq!(found, expected, "{:?} of {jobs:?}", tags_of(has));
    }
}
