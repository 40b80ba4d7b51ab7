//! Tests from offer to answer: claims and their outcomes, withdrawn and superseded offers, stale reads.

use crate::lab::*;
use fairlead_dispatch::*;

#[test]
fn a_job_learned_later_goes_to_the_waiting_offer_at_once_and_is_answered_when_committed() {
    let mut lab = Lab::new();
    let offer = lab.offer(vm_host("h"));
    assert!(lab.answers().is_empty() && lab.claims().is_empty());
    lab.learn([job(1, "a")]);
    assert_eq!((lab.claims(), lab.answers()), (vec![(1, offer.0)], vec![]));
    lab.commit(JobKey(1), offer);
    assert_eq!(lab.answers(), [(offer.0, vec![1])]);
}

#[test]
fn an_offer_is_answered_empty_when_its_time_is_up() {
    let mut lab = Lab::new();
    let until = Millis(lab.now + 500);
    let offer = lab.offer(Offer {
        waits_until: until,
        ..vm_host("h")
    });
    assert_eq!(lab.wake(), Some(until.0));
    lab.pass(499);
    assert!(lab.answers().is_empty());
    lab.pass(1);
    assert_eq!(lab.answers(), [(offer.0, vec![])]);
    lab.learn([job(1, "a")]);
    assert!(lab.claims().is_empty());
}

#[test]
fn an_offer_that_does_not_wait_still_gets_what_there_is() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let now = Millis(lab.now);
    let offer = lab.offer(Offer {
        waits_until: now,
        ..vm_host("h")
    });
    assert_eq!((lab.claims(), lab.answers()), (vec![(1, offer.0)], vec![]));
    lab.now += 20;
    lab.refuse(JobKey(1), offer, Refusal::Gone);
    assert_eq!(lab.answers(), [(offer.0, vec![])]);
}

#[test]
fn a_job_that_goes_while_it_is_claimed_does_not_wait_again() {
    for refusal in [
        Refusal::Unavailable { until: Millis(0) },
        Refusal::Moved(job(1, "a").version),
        Refusal::Gone,
    ] {
        let mut lab = Lab::new();
        lab.learn([job(1, "a")]);
        let offer = lab.offer(vm_host("h"));
        lab.on(Event::JobGone(JobKey(1), version(2)));
        lab.refuse(JobKey(1), offer, refusal);
        assert_eq!(lab.engine.stats().cached_jobs, 0, "{refusal:?}");
    }
}

/// It was pulled, ready, before a look that lags showed it as it had been before it was.
#[test]
fn what_was_so_before_a_job_waited_does_not_take_it_away() {
    let mut lab = Lab::new();
    let at = |id, seq_no| JobFacts {
        version: version(seq_no),
        ..job(id, "a")
    };
    lab.learn([at(1, 6)]);
    lab.on(Event::JobGone(JobKey(1), version(5)));
    let offer = lab.offer(vm_host("h"));
    assert_eq!(lab.claims(), [(1, offer.0)]);
    lab.on(Event::JobGone(JobKey(1), version(5)));
    let at_once = Millis(0);
    lab.refuse(JobKey(1), offer, Refusal::Unavailable { until: at_once });
    assert_eq!(lab.engine.stats().cached_jobs, 1);
    let offer = lab.offer(vm_host("i"));
    lab.learn([at(1, 8)]);
    lab.on(Event::JobGone(JobKey(1), version(7)));
    lab.refuse(JobKey(1), offer, Refusal::Gone);
    assert_eq!(lab.claims().len(), 1, "it waits again");
}

#[test]
fn gone_is_forgotten_and_the_next_is_tried_for_the_same_offer() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a"), job(2, "a")]);
    let offer = lab.offer(vm_host("h"));
    lab.refuse(JobKey(1), offer, Refusal::Gone);
    assert_eq!((lab.claims(), lab.answers()), (vec![(2, offer.0)], vec![]));
    lab.learn([job(1, "a")]);
    assert!(
        lab.engine.explain_job(Millis(lab.now), JobKey(1)).is_none(),
        "a stale read brought it back"
    );
    lab.learn([JobFacts {
        version: version(2),
        ..job(1, "a")
    }]);
    assert_eq!(lab.engine.stats().cached_jobs, 1);
}

#[test]
fn moved_is_tried_again_at_its_new_version() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let offer = lab.offer(vm_host("h"));
    lab.refuse(JobKey(1), offer, Refusal::Moved(version(7)));
    assert!(lab.out.contains(&Decision::Claim {
        job: JobKey(1),
        version: version(7),
        offer
    }));
}

#[test]
fn unavailable_answers_empty_and_waits() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let offer = lab.offer(vm_host("h"));
    let until = Millis(lab.now + 300);
    lab.refuse(JobKey(1), offer, Refusal::Unavailable { until });
    assert_eq!(
        (lab.answers(), lab.wake()),
        (vec![(offer.0, vec![])], Some(until.0))
    );
    let second = lab.offer(vm_host("h"));
    assert!(lab.claims().is_empty());
    lab.pass(300);
    assert_eq!(lab.claims(), [(1, second.0)]);
}

#[test]
fn an_offer_gets_many_jobs_and_one_answer() {
    let mut lab = Lab::new();
    lab.learn((0..30).map(|n| JobFacts {
        memory_mb: 4_000,
        ..job(n, "a")
    }));
    let offer = lab.offer(Offer {
        jobs_max: 100,
        ..vm_host("h")
    });
    assert_eq!(lab.claimed(), [0, 1, 2, 3, 4], "20,000 MB hold five");
    lab.commit(JobKey(1), offer);
    lab.commit(JobKey(0), offer);
    lab.refuse(JobKey(3), offer, Refusal::Gone);
    assert_eq!(lab.claimed(), [5]);
    for job in [2, 4] {
        assert!(lab.commit(JobKey(job), offer).is_empty());
    }
    lab.commit(JobKey(5), offer);
    assert_eq!(
        lab.answers(),
        [(offer.0, vec![0, 1, 2, 4, 5])],
        "in the order of dispatch"
    );
}

#[test]
fn jobs_that_come_together_fill_one_answer() {
    let mut lab = Lab::new();
    let offer = lab.offer(Offer {
        jobs_max: 100,
        ..vm_host("h")
    });
    lab.learn((0..30).map(|n| JobFacts {
        memory_mb: 8_000,
        ..job(n, "a")
    }));
    assert_eq!(lab.claims(), [(0, offer.0), (1, offer.0)]);
}

#[test]
fn a_withdrawn_offer_is_not_answered_and_its_job_is_held() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let offer = lab.offer(vm_host("h"));
    lab.on(Event::OfferWithdrawn(offer));
    lab.commit(JobKey(1), offer);
    assert!(lab.answers().is_empty());
    assert_eq!(lab.engine.stats().running, 1);
    assert_eq!(lab.engine.stats().offers, 0);
}

#[test]
fn a_closing_offer_is_answered_with_what_was_claimed_for_it_and_gets_no_more() {
    let mut lab = Lab::new();
    let idle = lab.offer(vm_host("idle"));
    lab.on(Event::OfferClosing(idle));
    assert_eq!(lab.answers(), [(idle.0, vec![])]);
    lab.learn([job(1, "a")]);
    let offer = lab.offer(Offer {
        jobs_max: 10,
        ..vm_host("h")
    });
    lab.on(Event::OfferClosing(offer));
    assert!(lab.answers().is_empty(), "its claim is in flight");
    assert!(lab.learn([job(2, "a")]).is_empty());
    lab.commit(JobKey(1), offer);
    assert_eq!(lab.answers(), [(offer.0, vec![1])]);
}

#[test]
fn a_newer_offer_replaces_the_older() {
    let mut lab = Lab::new();
    let older = lab.offer(vm_host("h"));
    let newer = lab.offer(vm_host("h"));
    assert_eq!(lab.answers(), [(older.0, vec![])]);
    lab.learn([job(1, "a")]);
    assert_eq!(lab.claims(), [(1, newer.0)]);
}

#[test]
fn a_newer_offer_gets_only_what_the_older_leaves() {
    let mut lab = Lab::new();
    lab.learn((0..4).map(|n| JobFacts {
        memory_mb: 8_000,
        ..job(n, "a")
    }));
    let older = lab.offer(Offer {
        jobs_max: 1,
        ..vm_host("h")
    });
    let newer = lab.offer(Offer {
        jobs_max: 10,
        ..vm_host("h")
    });
    assert_eq!(
        lab.claims(),
        [(1, newer.0)],
        "8,000 of 20,000 MB are in flight"
    );
    lab.refuse(JobKey(0), older, Refusal::Unavailable { until: Millis(0) });
    assert_eq!(lab.answers(), [(older.0, vec![])]);
    lab.commit(JobKey(1), newer);
    assert_eq!(lab.answers(), [(newer.0, vec![1])]);
}

#[test]
fn a_held_job_is_not_brought_back_but_a_requeued_one_is() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([job(1, "a")]);
    assert_eq!(lab.engine.stats().cached_jobs, 0);
    lab.end(JobKey(1));
    lab.learn([job(1, "a")]);
    assert_eq!(lab.engine.stats().cached_jobs, 0);
    lab.learn([JobFacts {
        version: version(5_000),
        ..job(1, "a")
    }]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.learn([JobFacts {
        version: version(6_000),
        ..job(1, "a")
    }]);
    assert_eq!(lab.engine.stats().cached_jobs, 0, "it is still held");
    lab.end(JobKey(1));
    assert_eq!(lab.engine.stats().cached_jobs, 1, "told before its end was");
}

/// Another replica put the job back before the store's answer to the claim came here.
#[test]
fn a_job_that_was_put_back_while_its_claim_was_open_waits() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let offer = lab.offer(vm_host("h"));
    lab.learn([JobFacts {
        version: version(5_000),
        ..job(1, "a")
    }]);
    assert_eq!(lab.engine.stats().cached_jobs, 0, "its claim is open");
    lab.commit(JobKey(1), offer);
    assert_eq!(lab.answers(), [(offer.0, vec![1])]);
    let stats = lab.engine.stats();
    assert_eq!((stats.running, stats.cached_jobs), (0, 1));
}

#[test]
fn news_of_a_job_in_flight() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a"), job(2, "a"), job(3, "a")]);
    let offers: Vec<OfferKey> = (0..3)
        .map(|n| lab.offer(vm_host(&format!("h{n}"))))
        .collect();
    let since = Millis(lab.now - 10);
    let facts = JobFacts {
        version: version(9),
        ..job(1, "a")
    };
    let (host, group) = ("other".to_owned(), "group".to_owned());
    lab.on(Event::JobHeld(Box::new(Running {
        facts,
        host,
        group,
        total_memory_mb: 20_000,
        total_cpus: CPUS_UNCHECKED,
        since,
    })));
    lab.refuse(JobKey(1), offers[0], Refusal::Gone);
    assert_eq!(lab.engine.stats().running, 1);
    lab.on(Event::JobEnded {
        job: JobKey(2),
        version: version(u64::MAX),
        ran: false,
        at: Millis(u64::MAX),
    });
    lab.commit(JobKey(2), offers[1]);
    assert_eq!(
        (lab.answers(), lab.engine.stats().running),
        (vec![(offers[1].0, vec![2])], 1)
    );
    lab.on(Event::JobGone(JobKey(3), version(2)));
    lab.refuse(JobKey(3), offers[2], Refusal::Gone);
    assert_eq!(lab.engine.stats().in_flight, 0);
}

/// It had waited again before another host took it and it was over: the late answer to our own claim brought that back.
#[test]
fn a_job_that_waited_again_ran_and_is_gone_while_its_claim_was_open_stays_gone() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let offer = lab.offer(vm_host("h"));
    let at = |seq_no| JobFacts {
        version: version(seq_no),
        ..job(1, "a")
    };
    let elsewhere = |seq_no| {
        Event::JobHeld(Box::new(Running {
            facts: at(seq_no),
            host: "other".to_owned(),
            group: "group".to_owned(),
            total_memory_mb: 20_000,
            total_cpus: CPUS_UNCHECKED,
            since: Millis(1_000_000),
        }))
    };
    let ended = || Event::JobEnded {
        job: JobKey(1),
        version: version(u64::MAX),
        ran: true,
        at: Millis(u64::MAX),
    };
    lab.on(elsewhere(10));
    lab.on(Event::JobsLearned(vec![at(12)]));
    lab.on(ended());
    lab.on(elsewhere(14));
    lab.on(ended());
    lab.on(Event::JobGone(JobKey(1), version(15)));
    lab.refuse(JobKey(1), offer, Refusal::Gone);
    let stats = lab.engine.stats();
    assert_eq!(
        (stats.cached_jobs, stats.in_flight, stats.running),
        (0, 0, 0)
    );
}

/// What was found for the room that there is again did not count when the other job's time came.
#[test]
fn an_offer_of_one_job_gets_one_when_room_and_a_job_come_at_once() {
    let mut lab = Lab::new();
    let large = JobFacts {
        memory_mb: 15_000,
        ..job(1, "a")
    };
    let (host, group) = ("h".to_owned(), "group".to_owned());
    lab.on(Event::JobHeld(Box::new(Running {
        facts: large.clone(),
        host,
        group,
        total_memory_mb: 20_000,
        total_cpus: CPUS_UNCHECKED,
        since: Millis(lab.now),
    })));
    let offer = lab.offer(vm_host("h"));
    let later = JobFacts {
        not_before: Millis(lab.now + 25),
        ..job(3, "a")
    };
    let waits = JobFacts {
        memory_mb: large.memory_mb,
        ..job(2, "b")
    };
    lab.learn([waits, later]);
    assert!(lab.claims().is_empty());
    lab.now += 25;
    lab.on(Event::JobEnded {
        job: JobKey(1),
        version: version(u64::MAX),
        ran: true,
        at: Millis(u64::MAX),
    });
    assert_eq!(lab.claims(), [(2, offer.0)]);
}

#[test]
fn events_about_the_unknown_change_nothing() {
    let mut lab = Lab::new();
    let (job, offer) = (JobKey(9), OfferKey(9));
    for event in [
        Event::JobGone(job, version(1)),
        Event::JobEnded {
            job,
            version: version(u64::MAX),
            ran: true,
            at: Millis(u64::MAX),
        },
        Event::ClaimCommitted {
            job,
            offer,
            version: version(1),
        },
        Event::ClaimRefused {
            job,
            offer,
            refusal: Refusal::Gone,
        },
        Event::OfferClosing(offer),
        Event::OfferWithdrawn(offer),
        Event::HostLeft("nobody".to_owned()),
        find_ended(offer),
        Event::JobsLearned(vec![]),
    ] {
        assert!(lab.on(event).is_empty());
    }
    assert_eq!(lab.engine.stats(), Stats { ..Stats::default() });
}

#[test]
fn a_newer_state_heard_in_flight_is_not_lost_with_the_claim() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    let offer = lab.offer(vm_host("h"));
    lab.learn([JobFacts {
        version: version(5),
        ..job(1, "a")
    }]);
    lab.refuse(JobKey(1), offer, Refusal::Gone);
    assert!(lab.out.contains(&Decision::Claim {
        job: JobKey(1),
        version: version(5),
        offer
    }));
}

#[test]
fn a_job_taken_elsewhere_is_charged_even_if_it_was_told_gone_first() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    lab.on(Event::JobGone(JobKey(1), version(2)));
    let held = Running {
        facts: JobFacts {
            version: version(2),
            ..job(1, "a")
        },
        host: "other".to_owned(),
        group: "group".to_owned(),
        total_memory_mb: 20_000,
        total_cpus: CPUS_UNCHECKED,
        since: Millis(0),
    };
    lab.on(Event::JobHeld(Box::new(held.clone())));
    assert_eq!(lab.engine.stats().running, 1);
    lab.end(JobKey(1));
    lab.on(Event::JobHeld(Box::new(held)));
    assert_eq!(lab.engine.stats().running, 0, "it is over");
}

#[test]
fn a_host_that_left_is_forgotten_when_its_jobs_are_over() {
    let mut lab = Lab::new();
    lab.learn([job(1, "a")]);
    assert_eq!(lab.serve(vm_host("h")), [1]);
    lab.on(Event::HostLeft("h".to_owned()));
    assert!(lab.engine.hosts().is_empty());
    assert!(lab.engine.explain_host(Millis(0), "h").is_none());
    lab.end(JobKey(1));
    assert_eq!(lab.engine.stats().hosts, 0);
}
