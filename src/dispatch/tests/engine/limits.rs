//! Tests of limits of accounts and queues: how many jobs run at one time, and which accounts go last.

use crate::lab::*;
use fairlead_dispatch::*;

fn hard(most: u64) -> Allowance {
    Allowance {
        running_hard: Some(most),
        ..Allowance::default()
    }
}

fn soft(most: u64) -> Allowance {
    Allowance {
        running_soft: Some(most),
        ..Allowance::default()
    }
}

fn of_account(account: &str, allowance: Allowance) -> Policy {
    let mut policy = Policy::default();
    policy.account_limits.insert(account.to_owned(), allowance);
    policy
}

fn lab(policy: Policy) -> Lab {
    Lab::with(EngineConfig::default(), policy)
}

fn host(n: u64) -> Offer {
    vm_host(&format!("h{n}"))
}

#[test]
fn an_account_has_no_more_jobs_than_it_may_in_whatever_queues() {
    let mut lab = lab(of_account("a", hard(2)));
    lab.learn([job(1, "a"), queued("shared", job(2, "a")), job(3, "a")]);
    let offers = [0, 1, 2].map(|n| lab.offer(host(n)));
    let why = lab.engine.explain_job(Millis(lab.now), JobKey(3));
    let of = Limited::Account("a".to_owned());
    let reached = Reason::RunningLimit {
        of,
        held: 2,
        limit: 2,
    };
    assert_eq!(why.map(|why| why.reasons), Some(vec![reached]));
    // Others go on; a job that another replica dispatched counts, and so does its end.
    lab.learn([job(4, "b")]);
    assert_eq!(lab.claims(), [(4, offers[2].0)]);
    let waiting = lab.offer(host(3));
    lab.commit(JobKey(1), offers[0]);
    assert!(lab.claims().is_empty());
    lab.end(JobKey(1));
    assert_eq!(lab.claims(), [(3, waiting.0)], "at once");
}

#[test]
fn a_queue_has_no_more_jobs_than_it_may_of_whatever_accounts() {
    let mut policy = Policy::default();
    policy.queue_limits.insert("shared".to_owned(), hard(1));
    let mut lab = lab(policy);
    lab.learn([queued("shared", job(1, "a")), queued("shared", job(2, "b"))]);
    let offers = [0, 1].map(|n| lab.offer(host(n)));
    lab.learn([job(3, "b")]);
    assert_eq!(lab.claims(), [(3, offers[1].0)]);
    let last = lab.offer(host(2));
    assert!(lab.claims().is_empty());
    lab.refuse(JobKey(1), offers[0], Refusal::Gone);
    assert_eq!(
        lab.claims(),
        [(2, offers[0].0)],
        "a claim that failed counts no more"
    );
    lab.on(Event::PolicyChanged(Policy::default()));
    lab.learn([queued("shared", job(5, "a"))]);
    assert_eq!(lab.claims(), [(5, last.0)], "there is no limit any more");
}

#[test]
fn over_a_soft_limit_an_account_goes_behind_others_of_its_class_and_yet_runs() {
    let mut lab = lab(of_account("a", soft(1)));
    lab.learn((0..4).map(|n| job(n, "a")));
    assert_eq!(lab.serve(host(0)), [0]);
    lab.learn([queued("idle", job(10, "c"))]);
    assert_eq!(lab.serve(host(1)), [1], "classes stay what they are");
    lab.learn((20..22).map(|n| job(n, "b")));
    assert_eq!(lab.serve(host(2)), [20]);
    assert_eq!(
        lab.serve(host(3)),
        [21],
        "though it has as much as a by now"
    );
    let why = lab.engine.explain_job(Millis(lab.now), JobKey(2));
    assert!(why.is_some_and(|why| why.reasons.is_empty() && why.behind.len() == 1));
    assert_eq!(lab.serve(host(4)), [2], "nobody else wants it");
    for n in 0..3 {
        lab.end(JobKey(n));
    }
    lab.learn([job(22, "b")]);
    assert_eq!(lab.serve(host(5)), [3], "it has less than b again");
}

#[test]
fn who_has_had_all_waits_until_there_is_more() {
    let spent = Allowance {
        spent: true,
        ..Allowance::default()
    };
    let mut lab = lab(of_account("a", spent));
    lab.learn([job(1, "a")]);
    let offer = lab.offer(host(0));
    assert!(lab.claims().is_empty());
    lab.on(Event::PolicyChanged(of_account("a", soft(0))));
    assert_eq!(lab.claims(), [(1, offer.0)]);
}

#[test]
fn waiting_jobs_are_summed_up_by_queue_and_by_what_keeps_them_back() {
    let mut policy = of_account("a", hard(1));
    let paused = QueuePolicy {
        paused: true,
        ..QueuePolicy::default()
    };
    policy.queues.insert("held".to_owned(), paused);
    let mut lab = lab(policy.clone());
    lab.learn([job(1, "a"), job(2, "a"), job(3, "b"), job(4, "b")]);
    lab.learn([queued("held", job(5, "b"))]);
    let impossible = JobFacts {
        memory_mb: u32::MAX,
        ..job(6, "b")
    };
    lab.learn([impossible]);
    let by_reason = |lab: &Lab| -> Vec<(String, WaitReason, u64)> {
        let all = lab.engine.waiting_by_reason();
        all.into_iter()
            .map(|((queue, why), jobs)| (queue, why, jobs))
            .collect()
    };
    let of = |queue: &str, why, jobs| (queue.to_owned(), why, jobs);
    // No host is known yet.
    let all = by_reason(&lab);
    assert!(all.contains(&of("b", WaitReason::NoHost, 3)), "{all:?}");
    let offer = lab.offer(host(0));
    assert_eq!(lab.claims(), [(1, offer.0)]);
    let expected = [
        of("a", WaitReason::Limit, 1),
        of("b", WaitReason::NoHost, 1),
        of("b", WaitReason::Host, 2),
        of("held", WaitReason::Paused, 1),
    ];
    assert_eq!(by_reason(&lab), expected);
    policy.paused = true;
    lab.on(Event::PolicyChanged(policy));
    let all = by_reason(&lab);
    assert!(
        all.iter().all(|(_, why, _)| *why == WaitReason::Paused),
        "{all:?}"
    );
}

#[test]
fn what_may_begin_is_told_as_it_would_be_dispatched() {
    let mut policy = of_account("a", hard(2));
    policy.queue_limits.insert("one".to_owned(), hard(1));
    policy.account_limits.insert("spent".to_owned(), {
        Allowance {
            spent: true,
            ..Allowance::default()
        }
    });
    let paused = QueuePolicy {
        paused: true,
        ..QueuePolicy::default()
    };
    policy.queues.insert("later".to_owned(), paused);
    let mut lab = lab(policy.clone());
    let asked = |engine: &Engine, jobs: &[(&str, &str)]| {
        let mut admission = engine.admission();
        let one = |(queue, account): &(&str, &str)| admission.admit(queue, account);
        jobs.iter().map(one).collect::<Vec<bool>>()
    };
    let jobs = [
        ("a", "a"),
        ("a/3", "a"),
        ("b", "a"),
        ("one", "b"),
        ("one", "c"),
        ("later", "b"),
        ("spent", "spent"),
        ("b", "b"),
    ];
    let admitted = [true, true, false, true, false, false, false, true];
    assert_eq!(asked(&lab.engine, &jobs), admitted);
    // What hosts have uses limits up.
    lab.learn([queued("one", job(1, "a"))]);
    let offer = lab.offer(host(1));
    assert_eq!(lab.claims(), [(1, offer.0)]);
    let admitted = [true, false, false, false, false, false, false, true];
    assert_eq!(asked(&lab.engine, &jobs), admitted);
    policy.paused = true;
    lab.on(Event::PolicyChanged(policy));
    assert_eq!(asked(&lab.engine, &jobs), [false; 8]);
}
