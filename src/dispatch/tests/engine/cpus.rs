//! CPUs of hosts: matched and charged beside memory.

use crate::lab::*;
use fairlead_dispatch::*;

/// A host with so many CPUs, all free.
fn with_cpus(host: &str, cpus: u32) -> Offer {
    Offer {
        free_cpus: cpus,
        total_cpus: cpus,
        jobs_max: 8,
        ..vm_host(host)
    }
}

fn needs(key: u64, cpus: u32) -> JobFacts {
    JobFacts {
        cpus,
        ..job(key, "a")
    }
}

#[test]
fn six_jobs_do_not_start_together_on_two_cpus() {
    let mut lab = Lab::new();
    lab.learn((1..7).map(|key| job(key, "a")));
    assert_eq!(lab.serve(with_cpus("h", 2)), [1, 2]);
    // The host asks again, and says that nothing is free.
    lab.offer(Offer {
        free_cpus: 0,
        ..with_cpus("h", 2)
    });
    assert_eq!(lab.claimed(), [0; 0]);
    lab.end(JobKey(1));
    assert_eq!(lab.claimed(), [0; 0], "what the host said stands");
    lab.offer(Offer {
        free_cpus: 1,
        ..with_cpus("h", 2)
    });
    assert_eq!(lab.claimed(), [3]);
}

#[test]
fn a_host_that_does_not_say_takes_jobs_of_any_number() {
    let mut lab = Lab::new();
    lab.learn([needs(1, 1_000), needs(2, 1)]);
    let offer = Offer {
        jobs_max: 8,
        ..vm_host("old")
    };
    assert_eq!(lab.serve(offer), [1, 2]);
}

#[test]
fn a_job_finds_the_one_host_with_enough_cpus_among_those_that_wait() {
    let mut lab = Lab::new();
    // More memory, and too few CPUs.
    for n in 0..100 {
        lab.offer(Offer {
            free_cpus: n % 4,
            ..with_cpus(&format!("h{n}"), 4)
        });
    }
    let fit = lab.offer(Offer {
        free_memory_mb: 2_000,
        ..with_cpus("fit", 4)
    });
    lab.learn([needs(1, 4)]);
    assert_eq!(lab.claims(), [(1, fit.0)]);
}

#[test]
fn a_hw_job_needs_a_machine_with_its_cpus() {
    let machine = |cpus| {
        saying(with_cpus("m", cpus), |about| {
            about.keys = names("hw.x86_64 hw@m");
        })
    };
    let job = JobFacts {
        cpus: 64,
        ..hw(1, "a")
    };
    let mut lab = Lab::new();
    lab.learn([job.clone()]);
    assert_eq!(lab.serve(machine(32)), [0; 0]);
    let explained = lab.engine.explain_facts(Millis(lab.now), &job);
    let reasons = &explained.hosts[0].reasons;
    let too_few = Reason::Cpus {
        needs: 64,
        free: 32,
        total: 32,
    };
    assert!(reasons.contains(&too_few), "{reasons:?}");
    assert_eq!(lab.serve(machine(64)), [1]);
}

/// Of 20,000 MB and 4 CPUs, a job of 1,000 MB and 4 CPUs takes all.
#[test]
fn a_job_is_charged_for_the_larger_one_of_its_shares() {
    let mut lab = Lab::new();
    let all = |key, account| JobFacts {
        cpus: 4,
        ..job(key, account)
    };
    // Two accounts that would be equal by memory: one takes all CPUs, the other a quarter of them.
    lab.learn((0..40).map(|n| all(n, "wide")));
    lab.learn((40..80).map(|n| job(n, "narrow")));
    let (mut wide, mut narrow) = (0, 0);
    for _ in 0..40 {
        let got = lab.serve(Offer {
            jobs_max: 1,
            ..with_cpus("h", 4)
        });
        let key = got[0];
        if key < 40 {
            wide += 1;
        } else {
            narrow += 1;
        }
        lab.now += 10_000;
        lab.end(JobKey(key));
    }
    assert!(narrow >= 3 * wide, "{wide} wide, {narrow} narrow");
}

#[test]
fn a_large_job_that_waits_long_gets_a_host_kept_for_its_cpus() {
    let mut lab = Lab::new();
    let offer = |free_cpus| Offer {
        free_cpus,
        ..with_cpus("h", 4)
    };
    lab.learn([needs(1, 1)]);
    assert_eq!(
        lab.serve(Offer {
            jobs_max: 1,
            ..offer(4)
        }),
        [1]
    );
    lab.learn([needs(2, 4)]);
    // Its host is never empty while others come.
    lab.now += 3_600_000;
    lab.learn([needs(3, 1)]);
    let asks = lab.offer(offer(3));
    assert_eq!(lab.claimed(), [0; 0], "job 3 would keep job 2 waiting");
    lab.on(Event::OfferWithdrawn(asks));
    lab.end(JobKey(1));
    lab.offer(offer(4));
    assert_eq!(lab.claimed(), [2]);
}
