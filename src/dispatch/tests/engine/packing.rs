//! Tests of packing: jobs go to the machine of a pool that was used last, so that the others fall idle.

use crate::lab::*;
use fairlead_dispatch::*;
use std::collections::{BTreeMap, BTreeSet};

/// A machine of a pool whose last job ended then.
fn elastic(host: &str, used_last: u64) -> Offer {
    Offer {
        used_last: Some(used_last),
        ..vm_host(host)
    }
}

#[test]
fn jobs_pack_on_the_machine_of_a_pool_that_was_used_last() {
    let mut lab = Lab::new();
    let new = lab.offer(elastic("new", 0));
    let long_ago = lab.offer(elastic("long-ago", 5));
    let just = lab.offer(Offer {
        free_memory_mb: 5_000,
        ..elastic("just", 9)
    });
    let fixed = lab.offer(Offer {
        free_memory_mb: 1_000,
        ..vm_host("fixed")
    });
    lab.learn((0..4).map(|n| job(n, "a")));
    assert_eq!(
        lab.claims(),
        [(0, fixed.0), (1, just.0), (2, long_ago.0), (3, new.0)]
    );
}

#[test]
fn a_large_job_gets_a_machine_of_a_pool_however_many_that_were_used_later_are_small() {
    let mut lab = Lab::new();
    for n in 0..40 {
        lab.offer(Offer {
            free_memory_mb: 4_000 + n,
            ..elastic(&format!("small{n}"), 100)
        });
    }
    let large = lab.offer(elastic("large", 1));
    lab.learn([JobFacts {
        memory_mb: 20_000,
        ..job(1, "a")
    }]);
    assert_eq!(lab.claims(), [(1, large.0)]);
}

#[test]
fn affinity_and_load_come_before_packing() {
    let mut lab = Lab::new();
    let pressed = HostLoad {
        cpu_pressure_percent: 90,
        ..HostLoad::default()
    };
    let just = lab.offer(Offer {
        load: Some(pressed),
        jobs_max: 2,
        ..elastic("just", 9)
    });
    let holder = lab.offer(saying(elastic("holder", 1), |about| {
        about.cache_dirs = names("d");
    }));
    lab.learn([JobFacts {
        prefer: names("d"),
        ..job(1, "a")
    }]);
    assert_eq!(lab.claims(), [(1, holder.0)]);
    // What its last job left is no load of an idle machine; one that has a job stands behind.
    let idle = lab.offer(elastic("idle", 2));
    lab.learn([job(2, "a"), job(3, "a")]);
    assert_eq!(lab.claims(), [(2, just.0), (3, idle.0)]);
}

/// Hosts that had a job, of ten that ask, when two jobs a minute come for an hour and take 50 s each.
fn used_of_ten(asks: impl Fn(&str, u64) -> Offer) -> usize {
    let mut lab = Lab::new();
    let mut used = BTreeSet::new();
    let mut running: Vec<(u64, u64, String)> = vec![];
    let mut offers = BTreeMap::new();
    for n in 0..10 {
        let host = format!("h{n}");
        offers.insert(lab.offer(asks(&host, 0)), host);
    }
    for n in 0..120 {
        lab.now += 30_000;
        let now = lab.now;
        for (end, job, host) in running.extract_if(.., |(end, ..)| *end <= now) {
            lab.end(JobKey(job));
            used.insert(host.clone());
            let offer = asks(&host, end);
            offers.insert(lab.offer(offer), host);
        }
        lab.learn([job(n, "a")]);
        let [(job, offer)] = lab.claims()[..] else {
            panic!("job {n} goes to one host");
        };
        lab.commit(JobKey(job), OfferKey(offer));
        let host = offers.remove(&OfferKey(offer)).expect("an open offer");
        running.push((lab.now + 50_000, job, host));
    }
    used.len()
}

#[test]
fn machines_of_a_pool_fall_idle_and_fixed_hosts_share_the_work() {
    assert_eq!(used_of_ten(elastic), 2);
    assert_eq!(used_of_ten(|host, _| vm_host(host)), 10);
}
