//! Tests of loaded hosts: what they get, when, and the order of hosts by what goes on there.

use crate::lab::*;
use fairlead_dispatch::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A loaded host may be compared with what it did not get again after so long, ms.
const SLACK_MS: u64 = 1_000;

fn load(loaded: bool, memory_used_percent: u8, cpu_pressure_percent: u8) -> HostLoad {
    HostLoad {
        loaded,
        memory_used_percent,
        cpu_pressure_percent,
    }
}

fn loaded(host: &str, memory_used_percent: u8) -> Offer {
    Offer {
        load: Some(load(true, memory_used_percent, 0)),
        ..vm_host(host)
    }
}

fn calm(host: &str, cpu_pressure_percent: u8) -> Offer {
    Offer {
        load: Some(load(false, 50, cpu_pressure_percent)),
        ..vm_host(host)
    }
}

/// Takes all of a host's memory.
fn large(key: u64) -> JobFacts {
    JobFacts {
        memory_mb: 20_000,
        ..job(key, "a")
    }
}

#[test]
fn a_loaded_host_gets_nothing_while_a_calm_one_could_run_the_job() {
    let mut lab = Lab::new();
    lab.learn([large(1)]);
    assert_eq!(lab.serve(calm("calm", 0)), [1]);
    lab.offer(loaded("loaded", 95));
    lab.learn([job(2, "a")]);
    // It is busy for long, and still the better place.
    for _ in 0..100 {
        lab.pass(1_000);
        assert_eq!(lab.claims(), []);
    }
    lab.end(JobKey(1));
    let offer = lab.offer(calm("calm", 0));
    assert_eq!(lab.claims(), [(2, offer.0)]);
}

#[test]
fn where_all_are_loaded_the_least_loaded_gets_a_job_after_ten_seconds() {
    let mut lab = Lab::new();
    lab.offer(loaded("much", 97));
    let least = lab.offer(loaded("least", 91));
    lab.offer(loaded("more", 93));
    lab.learn([job(1, "a")]);
    assert_eq!(lab.claims(), []);
    assert_eq!(lab.wake(), Some(lab.now + LOADED_WAIT_MS));
    lab.pass(LOADED_WAIT_MS - 1);
    assert_eq!(lab.claims(), []);
    lab.pass(1);
    assert_eq!(lab.claims(), [(1, least.0)]);
    // One that waited already is given to whoever asks first.
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    lab.pass(LOADED_WAIT_MS);
    assert_eq!(lab.serve(loaded("much", 97)), [1]);
}

#[test]
fn a_host_that_is_loaded_no_more_gets_what_waits_at_once() {
    let mut lab = Lab::new();
    lab.offer(loaded("h", 95));
    lab.learn([job(1, "a")]);
    assert_eq!(lab.claims(), []);
    // How much it has is said by its next request.
    lab.on(Event::HostLoaded {
        host: "h".to_owned(),
        load: load(false, 50, 0),
    });
    assert_eq!(lab.claims(), []);
    let offer = lab.offer(calm("h", 0));
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn a_host_that_becomes_loaded_while_it_waits_gets_no_more() {
    let mut lab = Lab::new();
    lab.offer(calm("h", 0));
    lab.on(Event::HostLoaded {
        host: "h".to_owned(),
        load: load(true, 95, 0),
    });
    let other = lab.offer(calm("other", 99));
    lab.learn([job(1, "a"), job(2, "a")]);
    assert_eq!(lab.claims(), [(1, other.0)]);
}

#[test]
fn a_whole_machine_is_never_loaded() {
    let mut lab = Lab::new();
    let offer = lab.offer(Offer {
        load: Some(load(true, 99, 99)),
        ..hw_host("h")
    });
    lab.learn([hw(1, "a")]);
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn no_job_waits_for_a_calm_host_that_is_closed_gone_or_cannot_run_it() {
    let ends = [
        Event::HostsClosed(BTreeSet::from(["calm".to_owned()])),
        Event::HostLeft("calm".to_owned()),
        Event::HostLoaded {
            host: "calm".to_owned(),
            load: load(true, 99, 0),
        },
        // It is silent for a minute.
        Event::Tick,
    ];
    for end in ends {
        let mut lab = Lab::new();
        // It asked, and does not ask now.
        assert_eq!(lab.serve(calm("calm", 0)), [0_u64; 0]);
        let offer = lab.offer(loaded("loaded", 95));
        lab.learn([job(1, "a")]);
        lab.pass(LOADED_WAIT_MS);
        assert_eq!(lab.claims(), [], "{end:?}");
        if end == Event::Tick {
            lab.now += 60_001;
        }
        lab.on(end.clone());
        assert_eq!(lab.claims(), [(1, offer.0)], "{end:?}");
    }
    let mut lab = Lab::new();
    lab.offer(saying(calm("calm", 0), |about| about.tags = names("slow")));
    let offer = lab.offer(loaded("loaded", 95));
    lab.learn([JobFacts {
        not_tags: names("slow"),
        ..job(1, "a")
    }]);
    lab.pass(LOADED_WAIT_MS);
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn a_job_goes_to_the_fewest_jobs_then_the_least_pressure_then_the_most_memory() {
    let mut lab = Lab::new();
    for (key, host) in [(1, "busy"), (2, "calm")] {
        lab.learn([job(key, "a")]);
        assert_eq!(lab.serve(calm(host, 0)), [key]);
    }
    let free = |host: &str, pressure, free_memory_mb| Offer {
        free_memory_mb,
        ..calm(host, pressure)
    };
    let busy = lab.offer(free("busy", 0, 19_000));
    let pressed = lab.offer(free("pressed", 80, 20_000));
    let small = lab.offer(free("small", 31, 10_000));
    let big = lab.offer(free("big", 38, 12_000));
    lab.learn((10..14).map(|key| job(key, "a")));
    // Pressure never keeps a job off.
    assert_eq!(
        lab.claims(),
        [(10, big.0), (11, small.0), (12, pressed.0), (13, busy.0)]
    );
}

#[test]
fn pressure_that_is_told_between_offers_orders_those_that_wait() {
    let mut lab = Lab::new();
    lab.offer(calm("first", 0));
    let second = lab.offer(calm("second", 30));
    let host = "first".to_owned();
    let load = load(false, 50, 60);
    lab.on(Event::HostLoaded { host, load });
    lab.learn([job(1, "a")]);
    assert_eq!(lab.claims(), [(1, second.0)]);
}

#[test]
fn affinity_comes_before_pressure() {
    let mut lab = Lab::new();
    let holder = lab.offer(saying(calm("holder", 99), |about| {
        about.cache_dirs = names("d");
    }));
    lab.offer(calm("other", 0));
    lab.learn([JobFacts {
        prefer: names("d"),
        ..job(1, "a")
    }]);
    assert_eq!(lab.claims(), [(1, holder.0)]);
}

#[test]
fn an_explanation_names_the_load() {
    let mut lab = Lab::new();
    lab.offer(loaded("h", 93));
    lab.learn([job(1, "a")]);
    let explain = |lab: &Lab| {
        lab.engine
            .explain_job(Millis(lab.now), JobKey(1))
            .expect("known")
    };
    let explained = explain(&lab);
    let until = Millis(lab.now + LOADED_WAIT_MS);
    assert_eq!(explained.reasons, [Reason::AllLoaded { until }]);
    let of_host = Reason::Loaded {
        memory_used_percent: 93,
    };
    assert_eq!(explained.hosts[0].reasons, std::slice::from_ref(&of_host));
    assert_eq!((explained.hosts_able, explained.hosts_ready), (1, 0));
    // There is another one, which is busy.
    lab.learn([JobFacts {
        priority: 1,
        ..large(2)
    }]);
    assert_eq!(lab.serve(calm("calm", 0)), [2]);
    let explained = explain(&lab);
    assert_eq!(explained.reasons, []);
    let of = |host: &str| {
        let verdict = explained.hosts.iter().find(|verdict| verdict.host == host);
        verdict.expect("named").reasons.clone()
    };
    assert_eq!(of("h"), [of_host]);
    let host = lab
        .engine
        .explain_host(Millis(lab.now), "h")
        .expect("known");
    assert_eq!(host.load, Some(load(true, 93, 0)));
}

/// Hosts that ask again and again, all loaded, and jobs that wait.
#[derive(Default)]
struct Crowd {
    hosts: BTreeSet<u8>,
    waiting: Vec<(u64, u64)>,
}

impl Crowd {
    fn ask(lab: &mut Lab, host: u8) {
        lab.offer(loaded(&format!("h{host}"), 91 + host));
    }

    /// Runs what was claimed, and lets its hosts ask again, until nothing is claimed.
    fn run(&mut self, lab: &mut Lab) {
        let mut claims = lab.claims();
        while let Some((job, offer)) = claims.pop() {
            self.waiting.retain(|(key, _)| *key != job);
            lab.commit(JobKey(job), OfferKey(offer));
            claims.extend(lab.claims());
            lab.end(JobKey(job));
            claims.extend(lab.claims());
            for host in self.hosts.clone() {
                Self::ask(lab, host);
                claims.extend(lab.claims());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_job_never_waits_longer_than_ten_seconds_because_of_load_alone(
        steps in proptest::collection::vec((0_u64..9_000, any::<bool>(), 0_u8..4), 1..30),
    ) {
        let mut lab = Lab::new();
        let mut crowd = Crowd::default();
        for (key, (ms, comes, host)) in (1..).zip(steps) {
            if comes {
                crowd.waiting.push((key, lab.now));
                lab.learn([job(key, "a")]);
            } else {
                crowd.hosts.insert(host);
                Crowd::ask(&mut lab, host);
            }
            crowd.run(&mut lab);
            for _ in 0..ms / SLACK_MS {
                lab.pass(SLACK_MS);
                crowd.run(&mut lab);
                for (key, since) in crowd.waiting.iter().filter(|_| !crowd.hosts.is_empty()) {
                    let waited_ms = lab.now - since;
                    prop_assert!(waited_ms < LOADED_WAIT_MS + SLACK_MS, "{} waited {} ms", key, waited_ms);
                }
            }
        }
    }
}
