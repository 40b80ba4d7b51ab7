//! Tests with a flood of names: each job has its own account, queue or host key. The work of an event is bounded (I7),
//! and no job starves (C1, I6).

use crate::lab::*;
use fairlead_dispatch::*;

/// Waiting jobs that are kept.
const CACHE: u64 = 10_000;
/// More jobs than fit, by far.
const JOBS: u64 = 60_000;
/// Jobs of one event.
const BATCH: u64 = 100;

#[derive(Debug, Clone, Copy)]
enum Own {
    Account,
    Queue,
    HostKey,
}

const ALL: [Own; 3] = [Own::Account, Own::Queue, Own::HostKey];

fn lab() -> Lab {
    let config = EngineConfig {
        cache_jobs_max: u32::try_from(CACHE).expect("small"),
        ..EngineConfig::default()
    };
    Lab::with(config, Policy::default())
}

/// Job `n` of the flood, which no host is large enough for.
fn flood(own: Own, n: u64) -> JobFacts {
    let large = |account: &str| JobFacts {
        memory_mb: 1_000_000,
        ..job(n, account)
    };
    match own {
        Own::Account => large(&format!("a{n}")),
        Own::Queue => queued(&format!("q{n}"), large("mallory")),
        Own::HostKey => JobFacts {
            host_keys: names(&format!("hw@m{n}")),
            ..large("mallory")
        },
    }
}

/// What a store answers that has `jobs` of the flood and `more` jobs of account `victim`.
fn counts(own: Own, jobs: u64, more: u64) -> Event {
    let most = u64::from(NAMES_MAX);
    let name = |prefix: &str, n: u64| format!("{prefix}{n}");
    let account = |name: String, jobs| (Dimension::Account(name), jobs);
    let queue = |name: String, jobs| (Dimension::Queue(name), jobs);
    let mut by = vec![(Dimension::HostKey("vm.x86_64".to_owned()), jobs + more)];
    let first = 0..jobs.min(most);
    match own {
        Own::Account => {
            by.extend(first.clone().map(|n| account(name("a", n), 1)));
            by.extend(first.map(|n| queue(name("a", n), 1)));
        }
        Own::Queue => {
            by.push(account("mallory".to_owned(), jobs));
            by.push(account("victim".to_owned(), more));
            by.extend(first.map(|n| queue(name("q", n), 1)));
        }
        Own::HostKey => {
            by = vec![
                account("mallory".to_owned(), jobs),
                account("victim".to_owned(), more),
                queue("mallory".to_owned(), jobs),
                queue("victim".to_owned(), more),
                (Dimension::HostKey("vm.x86_64".to_owned()), more),
            ];
        }
    }
    Event::CountsRefreshed(DimensionCounts {
        total: jobs + more,
        by,
        pairs: Vec::new(),
        partial: !matches!(own, Own::HostKey) && jobs > most,
        host_keys: Some(vec!["vm.x86_64".to_owned()]),
    })
}

/// The finds that were begun: where each begins, and of how many pairs it asks.
fn finds(lab: &Lab) -> Vec<(OfferKey, Option<FindPlace>, u32)> {
    let find = |decision: &Decision| match decision {
        Decision::Find {
            offer,
            after,
            pairs_max,
            ..
        } => Some((*offer, after.clone(), *pairs_max)),
        _ => None,
    };
    lab.out.iter().filter_map(find).collect()
}

/// Each event looked at all accounts for each job that was evicted, and evicted none of them.
#[test]
fn an_event_evicts_what_it_brought_at_bounded_cost_however_many_names_there_are() {
    for own in ALL {
        let mut lab = lab();
        lab.on_unchecked(counts(own, JOBS, 0));
        let (mut looks, mut worst) = (0, 0);
        for first in (0..JOBS).step_by(usize::try_from(BATCH).expect("small")) {
            lab.now += 10;
            let jobs = (first..first + BATCH).map(|n| flood(own, n));
            lab.on_unchecked(Event::JobsLearned(jobs.collect()));
            let stats = lab.engine.stats();
            worst = worst.max(stats.eviction_looks - looks);
            looks = stats.eviction_looks;
            assert!(stats.cached_jobs <= 2 * CACHE, "{own:?}: {stats:?}");
        }
        let stats = lab.engine.stats();
        // A plan looks at all accounts, and at all groups of jobs of one; an eviction at a few.
        assert!(worst <= 4 * CACHE + 16 * BATCH, "{own:?}: {worst} looks");
        assert!(looks <= 40 * JOBS, "{own:?}: {looks} looks in all");
        assert!(stats.cached_jobs <= CACHE + BATCH, "{own:?}: {stats:?}");
        let names = stats.names + stats.members + stats.queues;
        assert!(names <= 8 * CACHE + 30_000, "{own:?}: {stats:?}");
        lab.engine.sanity_check();
    }
}

/// All that had ever been heard of was kept for ever.
#[test]
fn names_that_nobody_uses_any_more_are_forgotten() {
    let mut lab = Lab::new();
    for n in 0..100_000 {
        lab.on_unchecked(Event::JobsLearned(vec![flood(Own::Account, n)]));
        lab.on_unchecked(Event::JobGone(JobKey(n), version(2)));
    }
    let stats = lab.engine.stats();
    assert!(
        stats.members <= 20_000 && stats.queues <= 20_000,
        "{stats:?}"
    );
    assert!(stats.names <= 40_000, "{stats:?}");
    lab.engine.sanity_check();
}

/// The jobs that nobody can count are found by turns.
#[test]
fn finds_take_turns_through_the_names_that_are_not_counted() {
    let mut lab = lab();
    lab.on_unchecked(counts(Own::Account, JOBS, 1));
    let offer = lab.offer(vm_host("h"));
    let place = |n: u64| Some((format!("a{n}"), format!("a{n}")));
    let mut after = None;
    for turn in 1..=10 {
        let [(of, began, pairs_max)] = finds(&lab).try_into().expect("one find");
        assert_eq!((of, began), (offer, after), "turn {turn}");
        assert!(pairs_max <= NAMES_MAX);
        after = place(turn);
        lab.learn([flood(Own::Account, turn)]);
        lab.on(Event::FindEnded {
            offer,
            needs_mb: 1_000_000,
            next: after.clone(),
        });
        assert!(lab.claims().is_empty(), "nothing fits");
    }
    lab.learn([job(1_000_000, "victim")]);
    let mut claims = lab.claims();
    lab.on(Event::FindEnded {
        offer,
        needs_mb: 1_000,
        next: None,
    });
    claims.extend(lab.claims());
    assert_eq!(claims, [(1_000_000, offer.0)]);
}

#[test]
fn a_find_that_saw_all_in_vain_is_not_repeated() {
    let mut lab = lab();
    lab.on_unchecked(counts(Own::Account, JOBS, 0));
    let offer = lab.offer(vm_host("h"));
    assert_eq!(finds(&lab).len(), 1);
    lab.on(find_ended(offer));
    assert!(finds(&lab).is_empty());
    lab.now += 1_500;
    lab.on_unchecked(counts(Own::Account, JOBS, 0));
    assert!(finds(&lab).is_empty(), "nothing new was counted");
}

/// A key that nobody had asked for when the store counted: that says nothing of it.
#[test]
fn a_new_host_s_own_key_is_looked_for_before_it_is_counted() {
    let mut lab = lab();
    lab.on_unchecked(counts(Own::HostKey, JOBS, 0));
    let asked = saying(vm_host("h"), |about| about.keys = names("vm.x86_64"));
    let known = lab.offer(asked);
    assert!(finds(&lab).is_empty(), "nothing waits under its key");
    let own = saying(vm_host("new"), |about| about.keys = names("hw@m5"));
    let new = lab.offer(own);
    let begun: Vec<_> = finds(&lab).into_iter().map(|find| find.0).collect();
    assert_eq!(begun, [new]);
    assert_ne!(known, new);
}

/// The jobs of a machine that hosts offer stay, whatever else has a machine of its own.
#[test]
fn the_last_job_under_a_key_that_a_host_offers_is_not_evicted() {
    let mut lab = lab();
    lab.on_unchecked(counts(Own::HostKey, JOBS, 0));
    lab.offer(saying(vm_host("h"), |about| about.keys = names("hw@m7")));
    for first in (0..JOBS).step_by(1_000) {
        let jobs = (first..first + 1_000).map(|n| flood(Own::HostKey, n));
        lab.on_unchecked(Event::JobsLearned(jobs.collect()));
    }
    let is_here = |n| lab.engine.explain_job(Millis(lab.now), JobKey(n)).is_some();
    assert!(is_here(7));
    assert!((JOBS - 1_000..JOBS).step_by(100).any(|n| !is_here(n)));
}

/// Of the accounts that are counted each keeps a job, of the others none needs to.
#[test]
fn the_last_job_of_an_account_that_is_counted_is_not_evicted() {
    let mut lab = lab();
    lab.on_unchecked(counts(Own::Account, JOBS, 0));
    for first in (0..JOBS).step_by(1_000) {
        let jobs = (first..first + 1_000).map(|n| flood(Own::Account, n));
        lab.on_unchecked(Event::JobsLearned(jobs.collect()));
    }
    let is_here = |n| lab.engine.explain_job(Millis(lab.now), JobKey(n)).is_some();
    assert!((0..u64::from(NAMES_MAX)).step_by(100).all(is_here));
}

/// Each look of a host passed all queues whose jobs it cannot have.
#[test]
fn a_host_s_look_does_not_pass_all_queues_of_a_flood() {
    let pick = |jobs: u64| {
        let mut lab = Lab::new();
        let elsewhere = |n: u64| JobFacts {
            host_keys: names("vm.aarch64"),
            ..job(n, &format!("a{n}"))
        };
        for first in (0..jobs).step_by(1_000) {
            let jobs = (first..first + 1_000).map(elsewhere);
            lab.on_unchecked(Event::JobsLearned(jobs.collect()));
        }
        let these = (0..20).map(|n| job(1_000_000 + n, &format!("b{n}")));
        lab.on_unchecked(Event::JobsLearned(these.collect()));
        let before = lab.engine.stats().entries_visited;
        lab.offer_unchecked(vm_host("h"));
        assert_eq!(lab.claimed(), [1_000_000]);
        lab.engine.stats().entries_visited - before
    };
    assert_eq!(pick(1_000), pick(30_000));
}
