//! Tests of coverage: accounts whose best jobs are in memory need no find (C3).

use crate::lab::*;
use fairlead_dispatch::*;
use std::ops::Range;

fn account(name: &str) -> Dimension {
    Dimension::Account(name.to_owned())
}

/// So many jobs wait, by account, each in the account's own queue.
fn counted(of: &[(&str, u64)]) -> Event {
    let total = of.iter().map(|(_, jobs)| jobs).sum();
    let key = (Dimension::HostKey("vm.x86_64".to_owned()), total);
    let accounts = of.iter().map(|(name, jobs)| (account(name), *jobs));
    let pairs = of
        .iter()
        .map(|(name, jobs)| ((*name).to_owned(), (*name).to_owned(), *jobs));
    Event::CountsRefreshed(DimensionCounts {
        total,
        by: accounts.chain([key]).collect(),
        pairs: pairs.collect(),
        partial: false,
        host_keys: None,
    })
}

/// A page with these jobs of an account.
fn page(name: &str, keys: Range<u64>, more: bool) -> Event {
    let last = JobKey(keys.end - 1);
    let reached = Reached {
        queue: name.to_owned(),
        account: name.to_owned(),
        priority: 0,
        key: last,
    };
    Event::PullEnded {
        dimension: account(name),
        page: Some(PulledPage {
            jobs: keys.map(|key| job(key, name)).collect(),
            reached: vec![reached],
            last: Some(at(last.0)),
            more,
        }),
    }
}

pub(crate) fn at(key: u64) -> Cursor {
    Cursor {
        class: QueuePolicy::default().priority,
        priority: 0,
        key: JobKey(key),
    }
}

fn finds(lab: &Lab) -> Vec<Vec<String>> {
    let find = |decision: &Decision| match decision {
        Decision::Find { accounts, .. } => Some(accounts.clone()),
        _ => None,
    };
    lab.out.iter().filter_map(find).collect()
}

fn pulls(lab: &Lab) -> Vec<(Dimension, u32, Option<Cursor>)> {
    let pull = |decision: &Decision| match decision {
        Decision::Pull {
            dimension,
            limit,
            after,
        } => Some((dimension.clone(), *limit, *after)),
        _ => None,
    };
    let mut pulls: Vec<_> = lab.out.iter().filter_map(pull).collect();
    pulls.retain(|(dimension, ..)| matches!(dimension, Dimension::Account(_)));
    pulls
}

/// Pulls that come of these many hosts, each of which takes a job of account a.
fn asked_by(lab: &mut Lab, hosts: Range<u64>) -> Vec<(Dimension, u32, Option<Cursor>)> {
    let mut asked = Vec::new();
    for n in hosts {
        lab.offer(saying(vm_host(&format!("h{n}")), |about| {
            about.accounts = names("a");
        }));
        asked.extend(pulls(lab));
    }
    asked
}

/// A cache of 64 with the first 20 of 1,000 jobs of each of two accounts.
fn two_accounts() -> Lab {
    let mut lab = Lab::with(
        EngineConfig {
            cache_jobs_max: 64,
            ..EngineConfig::default()
        },
        Policy::default(),
    );
    lab.on(Event::NewsRead);
    lab.on(counted(&[("a", 1_000), ("b", 1_000)]));
    assert_eq!(
        pulls(&lab),
        [(account("a"), 32, None), (account("b"), 32, None)]
    );
    lab.on(page("a", 0..20, true));
    lab.on(page("b", 100..120, true));
    lab
}

#[test]
fn who_finds_the_best_jobs_of_all_accounts_here_is_served_without_a_find() {
    let mut lab = two_accounts();
    let offer = lab.offer(vm_host("h"));
    assert_eq!((finds(&lab).len(), lab.claims()), (0, vec![(0, offer.0)]));
}

#[test]
fn a_find_is_for_the_accounts_alone_whose_best_jobs_are_not_here() {
    let mut lab = two_accounts();
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 1_000)]));
    let first = lab.offer(vm_host("h"));
    assert_eq!(finds(&lab), [names("c")]);
    lab.on(find_ended(first));
    // A host for which nothing fits of what is here of two accounts.
    let small = Offer {
        free_memory_mb: 500,
        ..vm_host("small")
    };
    lab.offer(small);
    assert_eq!(finds(&lab), [names("a b c")]);
}

#[test]
fn of_an_account_that_is_whole_here_nothing_better_is_found() {
    let mut lab = two_accounts();
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 3)]));
    lab.on(page("c", 200..203, false));
    let mut claimed = Vec::new();
    for n in 0..3 {
        lab.offer(saying(vm_host(&format!("h{n}")), |about| {
            about.accounts = names("c");
        }));
        claimed.extend(lab.claimed());
    }
    assert_eq!(claimed, [200, 201, 202]);
    // All three are gone, and the count does not know it yet.
    lab.now += 1_001;
    lab.offer(saying(vm_host("late"), |about| about.accounts = names("c")));
    assert_eq!(finds(&lab).len(), 0);
}

#[test]
fn what_was_missed_or_evicted_may_be_better() {
    let mut lab = two_accounts();
    lab.on(Event::NewsMissed);
    lab.offer(vm_host("h"));
    assert_eq!(finds(&lab), [names("a b")]);

    let mut lab = two_accounts();
    // 30 better ones of a third account push the last ones of the others out, but not the first.
    lab.learn((0..30).map(|key| job(key + 1_000, "c")));
    lab.offer(vm_host("h"));
    assert_eq!(
        finds(&lab).len(),
        0,
        "what c has was learned, and counted as nothing"
    );
    lab.learn((30..1_000).map(|key| job(key + 1_000, "a")));
    lab.now += 1_001;
    lab.offer(vm_host("other"));
    assert_eq!(finds(&lab).len(), 0, "the deepest ones went, not the best");
}

#[test]
fn nothing_is_known_for_long_without_news() {
    let mut lab = two_accounts();
    lab.now += 4_999;
    lab.offer(vm_host("h"));
    assert_eq!(finds(&lab).len(), 0);
    lab.now += 1_001;
    lab.offer(vm_host("other"));
    assert_eq!(finds(&lab), [Vec::<String>::new()], "of all");
}

#[test]
fn a_pull_that_was_under_way_when_news_were_missed_proves_nothing() {
    let mut lab = two_accounts();
    lab.on(Event::NewsMissed);
    lab.on(counted(&[("a", 1_001), ("b", 1_000)]));
    assert_eq!(pulls(&lab)[0], (account("a"), 16, None));
    lab.on(Event::NewsMissed);
    lab.on(page("a", 0..20, true));
    lab.offer(vm_host("h"));
    assert_eq!(finds(&lab), [names("a b")]);
}

#[test]
fn a_pull_of_an_account_that_lost_jobs_meanwhile_proves_what_is_before_them() {
    let mut lab = two_accounts();
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 1_000)]));
    assert_eq!(pulls(&lab), [(account("c"), 21, None)]);
    lab.learn((0..60).map(|key| job(key + 1_000, "c")));
    lab.on(page("c", 200..221, true));
    lab.offer(vm_host("h"));
    assert_eq!(finds(&lab).len(), 0, "what went was behind them");
}

#[test]
fn an_account_of_which_little_is_left_is_read_on_behind_its_last_job_at_once() {
    let mut lab = two_accounts();
    let asked = asked_by(&mut lab, 0..12);
    assert_eq!(asked, [(account("a"), 36, Some(at(19)))]);
    lab.on(page("a", 20..42, true));
    lab.on(counted(&[("a", 900), ("b", 1_000)]));
    assert_eq!(pulls(&lab), [], "there is enough");
    // The store says that this was the last page.
    let asked = asked_by(&mut lab, 12..40);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].2, Some(at(41)));
    lab.on(page("a", 42..43, false));
    lab.on(Event::Tick);
    assert_eq!(pulls(&lab), []);
}

#[test]
fn an_account_is_read_from_its_beginning_again_after_a_while() {
    let mut lab = two_accounts();
    lab.on(counted(&[("a", 1_001), ("b", 1_000)]));
    assert_eq!(pulls(&lab), [], "changes bring what is new");
    lab.now += 30_000;
    lab.on(Event::NewsRead);
    lab.on(counted(&[("a", 1_002), ("b", 1_000)]));
    assert_eq!(pulls(&lab), [(account("a"), 16, None)]);
    lab.on(page("a", 0..16, true));
    lab.offer(vm_host("h"));
    assert_eq!(finds(&lab).len(), 0);
}

#[test]
fn a_pull_that_the_store_did_not_answer_is_made_again() {
    let mut lab = two_accounts();
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 9)]));
    assert_eq!(pulls(&lab), [(account("c"), 27, None)]);
    lab.on(Event::PullEnded {
        dimension: account("c"),
        page: None,
    });
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 9)]));
    assert_eq!(pulls(&lab), [(account("c"), 27, None)]);
}

#[test]
fn counts_that_lag_behind_are_no_reason_to_pull_everything_unless_they_go_on() {
    let mut lab = Lab::new();
    let of = |jobs| counted(&[("a", jobs)]);
    let all = |lab: &Lab| {
        let pull = |decision: &&Decision| matches!(decision, Decision::Pull { .. });
        lab.out.iter().filter(pull).count()
    };
    lab.on(Event::NewsRead);
    lab.on(of(100));
    assert_eq!(all(&lab), 1);
    let jobs = (0..100).map(|key| job(key, "a")).collect();
    lab.on(Event::PullEnded {
        dimension: Dimension::All,
        page: Some(PulledPage {
            jobs,
            ..PulledPage::default()
        }),
    });
    let mut pulls = Vec::new();
    for n in 0..7 {
        lab.offer(vm_host(&format!("h{n}")));
        assert_eq!(finds(&lab).len(), 0, "all is here");
        lab.on(of(100 + n));
        pulls.push(all(&lab));
    }
    assert_eq!(pulls, [0, 0, 0, 0, 0, 0, 1], "the first one agrees");
    // Where nothing goes on it is looked at again at once.
    lab.on(Event::PullEnded {
        dimension: Dimension::All,
        page: None,
    });
    lab.on(of(93));
    assert_eq!(all(&lab), 1);
}

#[test]
fn an_account_that_is_whole_here_but_counts_more_is_pulled_again() {
    let mut lab = two_accounts();
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 3)]));
    assert_eq!(pulls(&lab), [(account("c"), 30, None)]);
    lab.on(page("c", 200..203, false));
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 3)]));
    assert_eq!(pulls(&lab), [], "all is here");
    lab.on(counted(&[("a", 1_000), ("b", 1_000), ("c", 4)]));
    assert_eq!(pulls(&lab), [(account("c"), 30, None)]);
}

/// A page of more jobs than one event tells of comes in several: what is evicted between them is not known, all else is.
#[test]
fn what_is_evicted_while_a_page_comes_in_ends_what_is_known_there() {
    let mut lab = Lab::with(
        EngineConfig {
            cache_jobs_max: 64,
            ..EngineConfig::default()
        },
        Policy::default(),
    );
    lab.on(counted(&[("a", 500), ("b", 500)]));
    lab.on(Event::NewsRead);
    lab.learn((1_000..1_040).map(|n| job(n, "b")));
    lab.learn((0..100).map(|n| job(n, "a")));
    lab.on(Event::PullEnded {
        dimension: Dimension::Account("a".to_owned()),
        page: Some(PulledPage {
            jobs: Vec::new(),
            reached: vec![Reached {
                queue: "a".to_owned(),
                account: "a".to_owned(),
                priority: 0,
                key: JobKey(99),
            }],
            last: Some(at(99)),
            more: true,
        }),
    });
    // All of "b" is asked for, and of "a" nothing: its first ones are here and known.
    let offer = lab.offer(vm_host("h"));
    assert_eq!(finds(&lab), [["b"]]);
    lab.on(find_ended(offer));
    assert_eq!(lab.claimed().len(), 1);
    lab.engine.sanity_check();
}
