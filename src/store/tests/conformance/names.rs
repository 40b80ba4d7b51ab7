//! Tests with many names: a request for a bounded number of names gets no more, and repeated requests find all.

use std::collections::{BTreeMap, BTreeSet};

use fairlead_store::{CountOf, Find, JobState, JobStore, Page};

use super::{numbers, state_with, submit_all};

/// Accounts and queues of the test.
const NAMES: u64 = 60;

/// `n` jobs, each with an account, a queue and a host key of its own; the first ones have a few jobs more.
fn many_names() -> Vec<JobState> {
    let own = |job: u64, name: u64| {
        state_with(job, |s| {
            s.account = format!("a{name:02}");
            s.queue = format!("q{name:02}");
            s.host_keys = vec![format!("hw@m{name:02}"), "dc.x86_64".into()];
        })
    };
    let each = (0..NAMES).map(|n| own(n + 1, n));
    let more = (0..5).flat_map(|n| (0..4).map(move |job| own(1_000 + 10 * n + job, n)));
    each.chain(more).collect()
}

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
        limit: 1,
        pairs_max: 7,
        after: None,
    }
}

pub(crate) async fn counts_name_no_more_than_is_asked_for(store: &dyn JobStore) {
    submit_all(store, many_names()).await;
    store.refresh().await.unwrap();
    let all = store.counts().await.unwrap();
    assert!(!all.partial);
    assert_eq!((all.total, all.pairs.len()), (80, 60));
    let asked = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect());
    let few = CountOf {
        names_max: Some(10),
        host_keys: asked(&["dc.x86_64", "hw@m03", "hw@nobody"]),
    };
    let some = store.count(&few).await.unwrap();
    assert!(some.partial && some.pairs.is_empty());
    assert_eq!(some.total, 80);
    let key = |key: &str, n| (key.to_owned(), n);
    assert_eq!(some.host_keys, [key("dc.x86_64", 80), key("hw@m03", 5)]);
    for (some, all) in [(&some.accounts, &all.accounts), (&some.queues, &all.queues)] {
        assert_eq!(some.len(), 10);
        assert!(some.is_sorted());
        let all: BTreeMap<_, _> = all.iter().cloned().collect();
        for (name, n) in some {
            assert!(*n > 0 && n <= &all[name], "{name}");
        }
        let largest = some.iter().filter(|(_, n)| *n == 5);
        assert_eq!(largest.count(), 5, "{some:?}");
    }
    // As many as there are.
    let enough = CountOf {
        names_max: Some(60),
        host_keys: None,
    };
    assert_eq!(store.count(&enough).await.unwrap(), all);
    let none = CountOf {
        names_max: Some(60),
        host_keys: Some(Vec::new()),
    };
    assert!(store.count(&none).await.unwrap().host_keys.is_empty());
}

/// One account with many queues: the accounts are few, and counted.
pub(crate) async fn what_is_few_is_counted_beside_what_is_many(store: &dyn JobStore) {
    let states = (1..=30).map(|n| {
        state_with(n, |s| {
            s.account = format!("a{}", n % 2);
            s.queue = format!("q{n:02}");
        })
    });
    submit_all(store, states.collect()).await;
    store.refresh().await.unwrap();
    let of = CountOf {
        names_max: Some(10),
        host_keys: None,
    };
    let counts = store.count(&of).await.unwrap();
    assert!(counts.partial);
    assert_eq!(counts.total, 30);
    assert_eq!(
        counts.accounts,
        [("a0".to_owned(), 15), ("a1".to_owned(), 15)]
    );
    assert_eq!(counts.queues.len(), 10);
}

async fn find(store: &dyn JobStore, offer: Find) -> Page {
    store.find(&[offer]).await.unwrap().remove(0)
}

pub(crate) async fn finds_take_turns_through_many_accounts(store: &dyn JobStore) {
    submit_all(store, many_names()).await;
    store.refresh().await.unwrap();
    let mut found = BTreeSet::new();
    let mut after = None;
    // Wherever it begins, and more than once around.
    for turn in 0..20 {
        let page = find(store, Find { after, ..offer() }).await;
        assert!(page.more && page.next.is_some(), "turn {turn}");
        let accounts: BTreeSet<_> = page.jobs.iter().map(|j| j.state.account.clone()).collect();
        assert!(accounts.len() >= 7, "turn {turn}: {accounts:?}");
        found.extend(accounts);
        after = page.next;
        if turn == 9 {
            assert_eq!(found.len() as u64, NAMES, "in so many turns all");
        }
    }
    // All at once, from the middle on.
    let all = Find {
        pairs_max: 60,
        after: Some(("q30".to_owned(), "a30".to_owned())),
        limit: 100,
        ..offer()
    };
    let page = find(store, all).await;
    assert_eq!(page.jobs.len(), 80);
    // Behind the last one.
    let behind = Find {
        after: Some(("zzz".to_owned(), "z".to_owned())),
        ..offer()
    };
    assert!(find(store, behind).await.jobs.len() >= 60);
}

/// The job of a high class is in each page, whosever turn it is.
pub(crate) async fn the_best_of_all_is_found_at_every_turn(store: &dyn JobStore) {
    let mut states = many_names();
    states.extend((200..400).map(|n| {
        state_with(n, |s| {
            s.account = format!("b{n}");
            s.queue.clone_from(&s.account);
        })
    }));
    states.push(state_with(500, |s| {
        s.class = 9;
        s.account = "zoe".into();
        s.queue = "vip".into();
    }));
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let mut after = None;
    for turn in 0..3 {
        let page = find(store, Find { after, ..offer() }).await;
        let found = numbers(&page.jobs);
        assert_eq!(found.first(), Some(&500), "turn {turn}");
        let once: BTreeSet<_> = found.iter().collect();
        assert_eq!(once.len(), found.len(), "each once");
        assert!(found.len() <= 7 + 64 && found.len() >= 64);
        after = page.next;
    }
}

/// Pairs whose jobs do not fit hide none that fits.
pub(crate) async fn what_does_not_fit_hides_nothing(store: &dyn JobStore) {
    let mut states: Vec<_> = (0..300)
        .map(|n| {
            state_with(n + 1, |s| {
                s.account = format!("a{n:03}");
                s.queue.clone_from(&s.account);
                s.memory_mb = 9_999;
            })
        })
        .collect();
    states.push(state_with(1_000, |s| {
        s.account = "zoe".into();
        s.queue = "zoe".into();
    }));
    submit_all(store, states).await;
    store.refresh().await.unwrap();
    let mut after = None;
    let mut found = Vec::new();
    for _ in 0..2 {
        let page = find(store, Find { after, ..offer() }).await;
        found.extend(numbers(&page.jobs));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [1_000]);
}
