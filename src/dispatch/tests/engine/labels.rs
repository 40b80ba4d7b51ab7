//! Tests of labels inside an account's own queue: they take turns, and are one queue for all others.

use crate::lab::*;
use fairlead_dispatch::labels::slot_of;
use fairlead_dispatch::*;

/// Jobs of account `a` under these labels, ten of each, numbered from 100, 200 and so on.
fn labelled(slots: &[u8]) -> Vec<JobFacts> {
    let jobs = slots.iter().zip(1..).flat_map(|(slot, hundred)| {
        let queue = slot_of("a", *slot);
        (0..10).map(move |n| queued(&queue, job(100 * hundred + n, "a")))
    });
    jobs.collect()
}

fn queues(lab: &Lab) -> Vec<QueueReport> {
    lab.engine.queues(Millis(lab.now))
}

/// What hosts that come one by one are given; nothing of it ends.
fn given(lab: &mut Lab, many: u64) -> Vec<u64> {
    let jobs = (0..many).flat_map(|n| lab.serve(vm_host(&format!("host-{n}"))));
    jobs.collect()
}

#[test]
fn sixty_dispatches_are_halved_however_many_labels_one_account_has() {
    let mut lab = Lab::new();
    lab.learn(labelled(&[0, 1, 2, 3, 4, 5, 6, 7, 15]));
    lab.learn((0..60).map(|n| job(2_000 + n, "b")));
    let given = given(&mut lab, 60);
    let of_b = given.iter().filter(|job| **job >= 2_000).count();
    assert_eq!((given.len(), of_b), (60, 30), "{given:?}");
}

#[test]
fn labels_and_jobs_without_one_take_turns() {
    let mut lab = Lab::new();
    lab.learn((0..30).map(|n| job(n, "a")));
    lab.learn(labelled(&[3, 9]));
    let given = given(&mut lab, 12);
    let hundreds = [0, 1, 2].map(|of| given.iter().filter(|job| **job / 100 == of).count());
    assert_eq!(hundreds, [4, 4, 4], "{given:?}");
}

#[test]
fn labels_have_the_class_weight_and_limits_of_their_queue() {
    let mut policy = policy(&[("a", queue(7, 40))]);
    let allowance = Allowance {
        running_hard: Some(2),
        ..Allowance::default()
    };
    policy.queue_limits.insert("a".to_owned(), allowance);
    policy
        .account_limits
        .insert("a".to_owned(), Allowance::default());
    let mut lab = Lab::with(EngineConfig::default(), policy.clone());
    lab.learn([job(1, "b")]);
    lab.learn(labelled(&[3, 9]));
    assert_eq!(
        given(&mut lab, 3),
        [100, 200, 1],
        "a higher class, until its limit"
    );
    let report = queues(&lab);
    let shown: Vec<_> = report
        .iter()
        .map(|queue| (&*queue.name, queue.class, queue.weight, queue.running))
        .collect();
    assert_eq!(shown, [("a", 7, 40, 2), ("b", 3, 10, 1)]);
    assert_eq!(report[0].accounts, 1);
    let why = lab
        .engine
        .explain_job(Millis(lab.now), JobKey(101))
        .expect("it waits");
    assert_eq!((&*why.standing.queue, why.standing.class), ("a", 7));
    let reached = |reason: &Reason| matches!(reason, Reason::RunningLimit { of: Limited::Queue(name), held: 2, .. } if name == "a");
    assert!(why.reasons.iter().any(reached), "{:?}", why.reasons);
    // The whole queue is paused, and a job that is not here yet is told the same.
    policy.queue_limits.clear();
    policy.queues.insert(
        "a".to_owned(),
        QueuePolicy {
            paused: true,
            ..queue(7, 40)
        },
    );
    lab.on(Event::PolicyChanged(policy));
    assert_eq!(given(&mut lab, 1), [0; 0]);
    let new = queued(&slot_of("a", 12), job(7, "a"));
    let why = lab.engine.explain_facts(Millis(lab.now), &new);
    assert_eq!(
        (why.standing.queue, why.reasons),
        ("a".to_owned(), vec![Reason::QueuePaused])
    );
}

#[test]
fn a_limit_of_the_account_counts_its_labels_together() {
    let mut policy = Policy::default();
    let allowance = Allowance {
        running_hard: Some(3),
        ..Allowance::default()
    };
    policy.account_limits.insert("a".to_owned(), allowance);
    let mut lab = Lab::with(EngineConfig::default(), policy.clone());
    lab.learn(labelled(&[0, 1, 2, 3, 4]));
    assert_eq!(given(&mut lab, 5).len(), 3);
    lab.on(Event::PolicyChanged(policy));
    assert_eq!(given(&mut lab, 5), [0; 0]);
}

#[test]
fn an_explained_label_says_which_labels_are_next() {
    let mut lab = Lab::new();
    lab.learn(labelled(&[3, 9]));
    assert_eq!(given(&mut lab, 1), [100]);
    let why = lab
        .engine
        .explain_job(Millis(lab.now), JobKey(101))
        .expect("it waits");
    assert_eq!((why.ahead.labels, why.ahead.accounts), (1, 0));
}

#[test]
fn each_label_is_a_dimension_of_its_own() {
    let config = EngineConfig {
        cache_jobs_max: 64,
        ..EngineConfig::default()
    };
    let mut lab = Lab::with(config, Policy::default());
    let slots = [slot_of("a", 3), slot_of("a", 9)];
    lab.learn([job(1, "a"), queued(&slots[0], job(2, "a"))]);
    let by = [("a", 1), (&*slots[0], 500), (&*slots[1], 500)];
    let by = by.map(|(queue, jobs)| (Dimension::Queue(queue.to_owned()), jobs));
    let counts = DimensionCounts {
        total: 1_001,
        by: by
            .into_iter()
            .chain([(Dimension::Account("a".to_owned()), 1_001)])
            .collect(),
        pairs: vec![],
        host_keys: None,
        partial: false,
    };
    let pulls: Vec<Dimension> = lab
        .on(Event::CountsRefreshed(counts))
        .iter()
        .filter_map(|decision| match decision {
            Decision::Pull { dimension, .. } => Some(dimension.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        pulls.first(),
        Some(&Dimension::Queue(slots[1].clone())),
        "what is empty here comes first"
    );
    assert!(
        !pulls.contains(&Dimension::Queue("a".to_owned())),
        "all without a label is here: {pulls:?}"
    );
}
