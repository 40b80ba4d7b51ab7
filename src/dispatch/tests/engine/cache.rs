//! Tests of the partial cache: pulls, finds, eviction (C1, C2, C3, I7).

use crate::known::at;
use crate::lab::*;
use fairlead_dispatch::*;

fn small_cache(jobs: u32) -> Lab {
    Lab::with(
        EngineConfig {
            cache_jobs_max: jobs,
            ..EngineConfig::default()
        },
        Policy::default(),
    )
}

fn counts(total: u64, by: &[(Dimension, u64)]) -> Event {
    Event::CountsRefreshed(DimensionCounts {
        total,
        by: by.to_vec(),
        pairs: Vec::new(),
        partial: false,
        host_keys: None,
    })
}

fn account(name: &str) -> Dimension {
    Dimension::Account(name.to_owned())
}

fn queue_of(name: &str) -> Dimension {
    Dimension::Queue(name.to_owned())
}

fn host_key(name: &str) -> Dimension {
    Dimension::HostKey(name.to_owned())
}

fn pulls(lab: &Lab) -> Vec<(Dimension, u32)> {
    let pull = |decision: &Decision| match decision {
        Decision::Pull {
            dimension, limit, ..
        } => Some((dimension.clone(), *limit)),
        _ => None,
    };
    lab.out.iter().filter_map(pull).collect()
}

fn finds(lab: &Lab) -> Vec<u64> {
    let find = |decision: &Decision| match decision {
        Decision::Find { offer, .. } => Some(offer.0),
        _ => None,
    };
    lab.out.iter().filter_map(find).collect()
}

/// A cache of 64 that holds 64 of 1,000 jobs, and knows it.
fn partial() -> Lab {
    let mut lab = small_cache(64);
    lab.learn((0..100).map(|n| job(n, "a")));
    lab.on(counts(
        1_000,
        &[
            (account("a"), 1_000),
            (queue_of("a"), 1_000),
            (host_key("vm.x86_64"), 1_000),
        ],
    ));
    lab
}

#[test]
fn everything_is_pulled_at_once_if_it_fits() {
    let mut lab = small_cache(1_000);
    lab.on(counts(5, &[(account("a"), 5)]));
    assert_eq!(pulls(&lab), [(Dimension::All, 1_000)]);
    lab.on(counts(5, &[(account("a"), 5)]));
    assert!(pulls(&lab).is_empty(), "one in flight a dimension");
    lab.learn((0..5).map(|n| job(n, "a")));
    lab.on(pull_ended(Dimension::All, false));
    lab.on(counts(5, &[(account("a"), 5)]));
    assert!(pulls(&lab).is_empty());
}

/// No store answers with more than 10,000 jobs: a larger cache was never whole after a start, and the same first
/// page was read each second.
#[test]
fn everything_that_is_more_than_a_page_is_pulled_page_by_page() {
    let mut lab = small_cache(1_000_000);
    let read = |lab: &mut Lab, keys: std::ops::Range<u64>, more| {
        let last = keys.end - 1;
        lab.on_unchecked(Event::PullEnded {
            dimension: Dimension::All,
            page: Some(PulledPage {
                jobs: keys.map(|n| job(n, "a")).collect(),
                reached: Vec::new(),
                last: Some(at(last)),
                more,
            }),
        });
    };
    let asked = |lab: &Lab| {
        let pull = |decision: &Decision| match decision {
            Decision::Pull {
                dimension: Dimension::All,
                limit,
                after,
            } => Some((*limit, *after)),
            _ => None,
        };
        lab.out.iter().filter_map(pull).collect::<Vec<_>>()
    };
    let all = counts(25_000, &[(account("a"), 25_000)]);
    lab.on(all.clone());
    assert_eq!(asked(&lab), [(10_000, None)]);
    read(&mut lab, 0..10_000, true);
    assert_eq!(asked(&lab), [(10_000, Some(at(9_999)))]);
    lab.on(all.clone());
    assert_eq!(asked(&lab), [], "it is under way");
    read(&mut lab, 10_000..20_000, true);
    assert_eq!(asked(&lab), [(10_000, Some(at(19_999)))]);
    read(&mut lab, 20_000..25_000, false);
    assert_eq!(asked(&lab), [], "that was all");
    lab.on(all);
    assert_eq!(asked(&lab), [], "and it is here");
    assert_eq!(lab.engine.stats().cached_jobs, 25_000);
    lab.offer(vm_host("h"));
    let nothing: [u64; 0] = [];
    assert_eq!(finds(&lab), nothing, "nothing is to be found");
}

#[test]
fn else_dimensions_are_pulled_empty_ones_first_and_boundedly() {
    let config = EngineConfig {
        cache_jobs_max: 64,
        pulls_in_flight_max: 2,
        ..EngineConfig::default()
    };
    let mut lab = Lab::with(config, Policy::default());
    lab.learn((0..10).map(|n| job(n, "a")));
    let by = [
        (account("a"), 500),
        (account("b"), 300),
        (account("c"), 10),
        (queue_of("a"), 10),
    ];
    lab.on(counts(1_000, &by));
    // 64 less 10 are 27 for each of the other accounts; of queues the same jobs have room again.
    assert_eq!(pulls(&lab), [(account("b"), 27), (account("c"), 27)]);
    lab.learn([job(100, "b")]);
    lab.on(pull_ended(account("b"), true));
    assert_eq!(
        pulls(&lab),
        [(account("a"), 10)],
        "the queue has what was counted"
    );
    lab.learn([job(101, "c")]);
    for dimension in [account("a"), account("c")] {
        lab.on(pull_ended(dimension, true));
    }
    lab.on(counts(1_000, &by));
    assert!(pulls(&lab).is_empty(), "no news");
    lab.on(counts(
        1_001,
        &[
            (account("a"), 501),
            (account("b"), 300),
            (account("c"), 10),
            (queue_of("a"), 10),
        ],
    ));
    assert_eq!(pulls(&lab), [(account("a"), 10)]);
}

/// With 300 accounts whose jobs come and go the store was asked 600 times a second.
#[test]
fn of_what_is_here_only_some_dimensions_are_pulled_for_their_news_in_turn() {
    let config = EngineConfig {
        cache_jobs_max: 1_000,
        pulls_in_flight_max: 1_000,
        ..EngineConfig::default()
    };
    let mut lab = Lab::with(config, Policy::default());
    let accounts: Vec<String> = (100..200).map(|n| format!("a{n}")).collect();
    let each = 10;
    let here = accounts.iter().zip(0..).flat_map(|(account, n)| {
        let keys = n * each..(n + 1) * each;
        keys.map(|key| job(key, account)).collect::<Vec<_>>()
    });
    lab.learn(here.collect::<Vec<_>>());
    let mut pulled = |jobs: u64| {
        let both = |account: &String| [(self::account(account), jobs), (queue_of(account), jobs)];
        let by: Vec<_> = accounts.iter().flat_map(both).collect();
        lab.on(counts(100 * jobs, &by));
        let pulled: Vec<Dimension> = pulls(&lab).into_iter().map(|(of, _)| of).collect();
        for dimension in &pulled {
            let dimension = dimension.clone();
            lab.on(pull_ended(dimension, true));
        }
        pulled
    };
    let mut all = Vec::new();
    for second in 0..4 {
        let some = pulled(100 + second);
        assert!(some.len() <= 32);
        all.extend(some);
    }
    all.sort_unstable();
    all.dedup();
    let each: Vec<Dimension> = accounts.iter().map(|name| account(name)).collect();
    assert_eq!(
        all, each,
        "each once, as the account's, not as the queue's too"
    );
}

#[test]
fn the_longest_queue_loses_its_deepest_jobs_and_nobody_the_last() {
    let mut lab = small_cache(64);
    let only_here = JobFacts {
        host_keys: names("vm.x86_64@rare"),
        ..job(5_000, "a")
    };
    lab.learn([only_here, job(6_000, "lonely")]);
    lab.learn((0..1_000).map(|n| job(n, "a")));
    lab.learn((2_000..2_010).map(|n| job(n, "b")));
    assert_eq!(lab.engine.stats().cached_jobs, 64);
    let waits = |lab: &Lab, key| lab.engine.explain_job(Millis(0), JobKey(key)).is_some();
    assert!(waits(&lab, 5_000) && waits(&lab, 6_000) && (2_000..2_010).all(|key| waits(&lab, key)));
    assert!((0..52).all(|key| waits(&lab, key)) && !waits(&lab, 52));
}

#[test]
fn a_cache_of_nothing_but_last_ones_is_still_bounded() {
    let mut lab = small_cache(64);
    lab.learn((0..1_000).map(|n| job(n, &format!("a{n}"))));
    assert_eq!(lab.engine.stats().cached_jobs, 128);
}

#[test]
fn an_offer_is_served_after_a_find_when_not_everything_is_here() {
    let mut lab = partial();
    let offer = lab.offer(vm_host("h"));
    assert_eq!((finds(&lab), lab.claims()), (vec![offer.0], vec![]));
    lab.learn([queued("vip", job(900, "late"))]);
    assert!(lab.claims().is_empty(), "before the find has ended");
    lab.on(find_ended(offer));
    assert_eq!(lab.claims(), [(900, offer.0)]);
    let second = lab.offer(vm_host("other"));
    assert_eq!(
        (finds(&lab), lab.claimed()),
        (vec![], vec![0]),
        "the same find, less than a second ago"
    );
    lab.now += 1_001;
    let third = lab.offer(vm_host("third"));
    assert_eq!(finds(&lab), [third.0]);
    assert!(second < third);
}

/// Each job that a host takes changes its free memory: it had a find for each.
#[test]
fn a_host_with_about_as_much_memory_is_served_without_a_find_of_its_own_unless_nothing_fits() {
    let mut lab = partial();
    let with = |host: &str, free_memory_mb| Offer {
        free_memory_mb,
        ..vm_host(host)
    };
    let first = lab.offer(with("h1", 10_000));
    let meanwhile = lab.offer(with("h2", 9_500));
    assert_eq!(finds(&lab), Vec::<u64>::new(), "one is on its way");
    lab.on(find_ended(first));
    assert_eq!(lab.claims(), [(0, first.0), (1, meanwhile.0)]);
    lab.offer(with("h3", 9_000));
    assert_eq!((finds(&lab), lab.claimed()), (vec![], vec![2]));
    let much_less = lab.offer(with("h4", 5_000));
    assert_eq!((finds(&lab), lab.claimed()), (vec![much_less.0], vec![]));
    lab.on(find_ended(much_less));
    assert_eq!(lab.claims(), [(3, much_less.0)]);
    // Nothing that is here fits: what fits a slightly larger host brings nothing either.
    let small = lab.offer(with("h5", 999));
    assert_eq!(finds(&lab), [small.0]);
    lab.on(find_ended(small));
    assert!(lab.claims().is_empty());
    let smaller = lab.offer(with("h6", 990));
    assert_eq!((finds(&lab), lab.claimed()), (vec![smaller.0], vec![]));
}

/// Sixty hosts that held some jobs each had a find of their own: each reads all that waits.
#[test]
fn what_is_best_for_a_host_is_best_for_a_smaller_one_that_it_fits() {
    let mut lab = partial();
    let with = |host: &str, free_memory_mb| Offer {
        free_memory_mb,
        ..vm_host(host)
    };
    let first = lab.offer(with("h1", 10_000));
    let small = lab.offer(with("h2", 2_000));
    assert_eq!(
        finds(&lab),
        Vec::<u64>::new(),
        "it may be served by the first one's"
    );
    lab.on(Event::FindEnded {
        offer: first,
        needs_mb: 1_500,
        next: None,
    });
    assert_eq!(lab.claims(), [(0, first.0), (1, small.0)]);
    lab.offer(with("h3", 1_500));
    assert_eq!((finds(&lab), lab.claimed()), (vec![], vec![2]));
    let smaller = lab.offer(with("h4", 1_200));
    assert_eq!((finds(&lab), lab.claimed()), (vec![smaller.0], vec![]));
    let larger = lab.offer(with("h5", 12_000));
    assert_eq!((finds(&lab), lab.claimed()), (vec![larger.0], vec![]));
}

#[test]
fn equal_offers_share_a_find_and_finds_are_capped() {
    let config = EngineConfig {
        cache_jobs_max: 64,
        finds_per_second_max: 2,
        ..EngineConfig::default()
    };
    let mut lab = Lab::with(config, Policy::default());
    let by: Vec<(Dimension, u64)> = (0..4).map(|n| (host_key(&format!("k{n}")), 250)).collect();
    lab.on(counts(1_000, &by));
    let mut offers = vec![];
    let mut begun = vec![];
    for n in 0..8 {
        let keys = vec![format!("k{}", n % 4), format!("own{n}")];
        offers.push(lab.offer(saying(vm_host(&format!("h{n}")), |about| {
            about.keys = keys;
        })));
        begun.extend(finds(&lab));
        lab.now += 1;
    }
    assert_eq!(begun, [offers[0].0, offers[1].0]);
    lab.learn((0..2).map(|n| JobFacts {
        host_keys: names("k0"),
        ..job(n, "a")
    }));
    lab.on(find_ended(offers[0]));
    assert_eq!(
        lab.claims(),
        [(0, offers[0].0), (1, offers[4].0)],
        "both had waited for it"
    );
    let wake = lab.now - 8 + 1_000;
    lab.now = wake;
    lab.on(Event::Tick);
    assert_eq!(finds(&lab), [offers[2].0], "the longest waiting");
}

#[test]
fn an_offer_without_its_find_in_time_is_served_from_what_there_is() {
    let mut lab = partial();
    let offer = lab.offer(vm_host("h"));
    assert!(lab.claims().is_empty());
    assert_eq!(lab.wake(), Some(lab.now + 1_000));
    lab.pass(1_000);
    assert_eq!(lab.claims(), [(0, offer.0)]);
}

#[test]
fn an_offer_whose_time_is_up_is_served_before_it_is_answered() {
    let mut lab = partial();
    let waits_until = Millis(lab.now + 300);
    let offer = lab.offer(Offer {
        waits_until,
        ..vm_host("h")
    });
    lab.pass(300);
    assert_eq!((lab.claims(), lab.answers()), (vec![(0, offer.0)], vec![]));
}

#[test]
fn a_find_in_vain_is_remembered_until_news() {
    let mut lab = small_cache(64);
    let tagged = |total| counts(1_000, &[(host_key("vm.x86_64"), total)]);
    lab.on(tagged(1_000));
    let offer = lab.offer(vm_host("h"));
    assert_eq!(finds(&lab), [offer.0]);
    lab.on(find_ended(offer));
    assert!(lab.claims().is_empty() && lab.answers().is_empty());
    lab.now += 1_500;
    lab.on(tagged(1_000));
    assert!(finds(&lab).is_empty(), "nothing new under its keys");
    lab.on(Event::NewsMissed);
    lab.on(tagged(1_000));
    assert_eq!(
        finds(&lab),
        [offer.0],
        "equal counts may hide what was missed"
    );
    lab.on(find_ended(offer));
    lab.now += 1_500;
    lab.on(tagged(1_000));
    assert!(finds(&lab).is_empty(), "nothing new again");
    lab.on(tagged(1_001));
    assert_eq!(finds(&lab), [offer.0]);
    lab.learn([job(7, "a")]);
    assert_eq!(lab.claims(), [(7, offer.0)], "it waits all the same");
}

/// A host waited ten seconds for a job that was submitted a moment before it asked: the store counted it only after
/// the find had begun, which was then taken for one that knew of it.
#[test]
fn a_find_in_vain_says_nothing_of_what_was_counted_after_it_had_begun() {
    let mut lab = small_cache(64);
    let tagged = |total| counts(total, &[(host_key("vm.x86_64"), total)]);
    lab.on(tagged(1_000));
    let offer = lab.offer(vm_host("h"));
    assert_eq!(finds(&lab), [offer.0]);
    lab.on(tagged(1_001));
    lab.on(find_ended(offer));
    assert!(lab.claims().is_empty());
    lab.now += 1_001;
    lab.on(tagged(1_001));
    assert_eq!(finds(&lab), [offer.0], "one more was counted meanwhile");
    lab.on(find_ended(offer));
    // The host asks anew while that is fresh, and more were counted by then.
    lab.on(tagged(1_002));
    lab.on(Event::OfferWithdrawn(offer));
    let again = lab.offer(vm_host("h"));
    assert!(finds(&lab).is_empty() && lab.claims().is_empty());
    lab.now += 1_001;
    lab.on(tagged(1_002));
    assert_eq!(finds(&lab), [again.0]);
}

#[test]
fn no_find_when_the_store_has_nothing_for_the_host() {
    let mut lab = small_cache(64);
    lab.on(counts(1_000, &[(host_key("hw.x86_64"), 1_000)]));
    lab.offer(vm_host("h"));
    assert!(finds(&lab).is_empty());
}

#[test]
fn counts_that_agree_release_who_waits() {
    let mut lab = partial();
    let offer = lab.offer(vm_host("h"));
    assert!(lab.claims().is_empty());
    lab.on(counts(64, &[(host_key("vm.x86_64"), 64)]));
    assert_eq!(lab.claims(), [(0, offer.0)]);
    lab.offer(vm_host("other"));
    assert!(finds(&lab).is_empty());
}

#[test]
fn what_a_find_brings_is_not_evicted_before_it_is_given() {
    let mut lab = partial();
    let host = saying(vm_host("rare"), |about| {
        about.keys = names("vm.x86_64 vm.x86_64@rare");
        about.tags = names("rare");
    });
    let offer = lab.offer(Offer {
        free_memory_mb: 100,
        ..host
    });
    assert_eq!(finds(&lab), [offer.0]);
    lab.learn([JobFacts {
        memory_mb: 100,
        tags: names("rare"),
        ..job(999, "a")
    }]);
    lab.on(find_ended(offer));
    assert_eq!(lab.claims(), [(999, offer.0)]);
}
