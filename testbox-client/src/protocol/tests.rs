//! Tests of the core, event by event.

use std::time::Duration;

use fairlead_api::{
    ConsumeAnswer, ConsumeRequest, ErrorCode, Grant, HeartbeatAnswer, HeartbeatRequest, JobUpdate,
    Renewal, StopOrder,
};
use fairlead_job::Stage;
use serde_json::json;

use super::*;
use crate::{
    Kinds,
    testing::{DC, config, grant},
};

mod load;

const SECOND: Duration = Duration::from_secs(1);

/// A core with a clock, and its actions.
struct Bench {
    core: Core,
    now: Time,
    done: Vec<Action>,
}

impl Bench {
    fn new(kinds: Kinds) -> Self {
        let host = config("http://x", kinds, "/tmp").host(
            "first",
            "instance",
            "none",
            (Vec::new(), Vec::new()),
            crate::facts::Facts::new(),
        );
        let mut bench = Self {
            core: Core::new(host, Time::ZERO, 7),
            now: Time::ZERO,
            done: Vec::new(),
        };
        bench.feed(Event::Wake);
        bench
    }

    fn feed(&mut self, event: Event) {
        self.core.handle(self.now, event);
        while let Some(action) = self.core.next_action() {
            self.done.push(action);
        }
        let wakes = self.core.wakes_at();
        assert!(wakes.is_none_or(|at| at > self.now), "{wakes:?} is past");
    }

    /// Lets time pass, with a wake-up whenever one is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.core.wakes_at().filter(|at| *at <= end) {
            self.now = at;
            self.feed(Event::Wake);
        }
        self.now = end;
    }

    /// Removes and returns the first action that `wanted` accepts.
    fn take<T>(&mut self, wanted: impl Fn(&Action) -> Option<T>) -> Option<T> {
        let at = self
            .done
            .iter()
            .position(|action| wanted(action).is_some())?;
        wanted(&self.done.remove(at))
    }

    fn asks(&mut self) -> Option<(u64, ConsumeRequest)> {
        self.take(|action| match action {
            Action::AskForWork { call, request } => Some((*call, request.clone())),
            _ => None,
        })
    }

    fn beats(&mut self) -> Option<(u64, HeartbeatRequest)> {
        self.take(|action| match action {
            Action::Heartbeat { call, request } => Some((*call, request.clone())),
            _ => None,
        })
    }

    fn starts(&mut self) -> Option<u16> {
        self.take(|action| match action {
            Action::Start(grant) => Some(grant.attempt),
            _ => None,
        })
    }

    /// Returns the next message for the job.
    fn tells(&mut self, job_id: &str, attempt: u16) -> Option<Word> {
        let its = key(job_id, attempt);
        self.take(|action| match action {
            Action::Tell { key, word } if *key == its => Some(word.clone()),
            _ => None,
        })
    }

    fn grants(&mut self, call: u64, jobs: Vec<Grant>) {
        let answer = Ok(answer(jobs));
        self.feed(Event::Work { call, answer });
    }

    fn fails(&mut self, call: u64, failure: Failure) {
        let answer = Err(failure);
        self.feed(Event::Work { call, answer });
    }
}

fn key(job_id: &str, attempt: u16) -> Key {
    (job_id.to_owned(), attempt)
}

fn job(job_id: &str) -> Grant {
    grant(job_id, json!({}))
}

fn attempt(attempt: u16) -> Grant {
    Grant {
        attempt,
        ..job("7")
    }
}

fn answer(jobs: Vec<Grant>) -> ConsumeAnswer {
    ConsumeAnswer {
        lease_ms: 60_000,
        heartbeat_ms: 10_000,
        jobs,
        stop: Vec::new(),
    }
}

fn beaten(renewed: Vec<Renewal>) -> HeartbeatAnswer {
    HeartbeatAnswer {
        lease_ms: 60_000,
        heartbeat_ms: 10_000,
        stop: Vec::new(),
        renewed,
    }
}

fn conflict(code: ErrorCode) -> Failure {
    Failure::refused(409, Some(code), "conflict")
}

fn is_forget(word: Option<Word>) -> bool {
    let stop = word.and_then(|word| match word {
        Word::Stop(stop) => Some(stop.why),
        _ => None,
    });
    matches!(stop, Some(Why::Forget { .. }))
}

#[test]
fn a_request_without_an_answer_is_repeated_and_one_that_is_behind_is_not() {
    let mut bench = Bench::new(DC);
    let (call, first) = bench.asks().unwrap();
    assert_eq!((first.request, first.jobs_max), (1, 64));
    bench.fails(call, Failure::lost("line cut"));
    assert_eq!(bench.asks(), None);
    bench.pass(SECOND);
    let (call, again) = bench.asks().unwrap();
    assert_eq!(again, first);
    bench.fails(call, conflict(ErrorCode::Conflict));
    bench.pass(SECOND);
    assert_eq!(bench.asks().unwrap().1.request, 2);
    let lost = |action: &Action| matches!(action, Action::Lost(_)).then_some(());
    assert!(bench.take(lost).is_some() && bench.take(lost).is_none());
}

#[test]
fn a_newer_request_replaces_one_that_offers_less_and_both_answers_are_read() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    let (second, request) = bench.asks().unwrap();
    assert_eq!((request.request, request.free_memory_mb), (2, 900));
    assert_eq!(request.seen, None);
    let (key, faulty) = (key("1", 1), false);
    bench.feed(Event::Over { key, faulty });
    let (third, request) = bench.asks().unwrap();
    assert_eq!((request.request, request.free_memory_mb), (3, 1000));
    assert_eq!(request.seen, Some(1), "the answer to 2 is not read yet");
    bench.grants(second, vec![job("2")]);
    assert_eq!(bench.asks(), None, "the scheduler has counted it off");
    bench.grants(third, Vec::new());
    let (_, request) = bench.asks().unwrap();
    let named: Vec<_> = request.running.iter().map(|job| &job.job_id).collect();
    assert_eq!(named, ["1", "2"]);
}

#[test]
fn an_answer_that_was_not_read_is_told_by_the_next_request() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    let (second, _) = bench.asks().unwrap();
    let (key, faulty) = (key("1", 1), false);
    bench.feed(Event::Over { key, faulty });
    let (_, third) = bench.asks().unwrap();
    bench.fails(second, Failure::lost("line cut"));
    let (_, fourth) = bench.asks().unwrap();
    assert_eq!((third.request, fourth.request), (3, 4));
    assert_eq!(fourth.seen, Some(2));
}

#[test]
fn another_session_that_was_heard_of_ends_this_one() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.fails(call, conflict(ErrorCode::SessionOver));
    let asked = |action: &Action| matches!(action, Action::NewSession).then_some(());
    assert!(bench.take(asked).is_some());
    bench.pass(SECOND);
    assert_eq!(bench.asks(), None, "it has no session");
    bench.feed(Event::Session("second".to_owned()));
    let (_, request) = bench.asks().unwrap();
    assert_eq!(request.session, "second");
    assert_eq!((request.request, request.seen), (1, None));
}

#[test]
fn a_host_that_another_agent_has_is_asked_for_less_often() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.fails(call, conflict(ErrorCode::HostConflict));
    bench.pass(SECOND / 4);
    assert_eq!(bench.asks(), None);
    bench.pass(SECOND);
    assert!(bench.asks().is_some());
}

#[test]
fn only_the_first_answer_can_say_that_the_agent_is_unwelcome() {
    let unwelcome = |action: &Action| matches!(action, Action::Unwelcome(_)).then_some(());
    let forbidden = || Failure::refused(403, None, "who are you?");
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.fails(call, forbidden().mended());
    assert_eq!(bench.take(unwelcome), None);
    bench.pass(SECOND);
    let (call, _) = bench.asks().unwrap();
    bench.fails(call, forbidden());
    assert_eq!(bench.take(unwelcome), Some(()));
    bench.pass(SECOND);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, Vec::new());
    let (call, _) = bench.asks().unwrap();
    bench.fails(call, forbidden());
    assert_eq!(bench.take(unwelcome), None);
}

#[test]
fn attempts_of_a_job_never_run_at_once() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![attempt(1), attempt(2), attempt(3)]);
    assert_eq!((bench.starts(), bench.starts()), (Some(1), None));
    assert!(is_forget(bench.tells("7", 1)));
    for (over, next) in [(1, Some(2)), (2, Some(3)), (3, None)] {
        let (key, faulty) = (key("7", over), false);
        bench.feed(Event::Over { key, faulty });
        assert_eq!(bench.starts(), next);
    }
    assert!(is_forget(bench.tells("7", 2)), "a newer one was granted");
    assert_ne!(bench.tells("7", 3), None, "it may deliver");
    assert!(
        bench
            .done
            .iter()
            .all(|action| !matches!(action, Action::Start(_)))
    );
}

#[test]
fn a_job_whose_earlier_attempt_breaks_off_begins_all_the_same() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![attempt(1), attempt(2)]);
    assert_eq!(bench.starts(), Some(1));
    let key = key("7", 1);
    bench.feed(Event::Gone { key });
    assert_eq!(bench.starts(), Some(2));
}

#[test]
fn what_does_not_fit_is_turned_away_and_not_named() {
    let mut bench = Bench::new(Kinds::Hw);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1"), job("2"), job("1")]);
    assert_eq!((bench.starts(), bench.starts()), (Some(1), None));
    let turned = bench.take(|action| match action {
        Action::TurnAway { grant, room } => Some((grant.job_id.clone(), room.slots)),
        _ => None,
    });
    assert_eq!(turned, Some(("2".to_owned(), 0)));
    let (_, beat) = bench.beats().unwrap();
    assert_eq!(beat.running.len(), 1);
}

/// Each heartbeat replaces the previous one, so it must name all jobs. Otherwise it would give up the others.
#[test]
fn the_heartbeat_of_a_job_at_its_limit_names_all_jobs() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1"), job("2"), job("3")]);
    let (before, _) = bench.beats().unwrap();
    bench.feed(Event::AtLimit { key: key("1", 1) });
    let (_, beat) = bench.beats().unwrap();
    assert_eq!(beat.running.len(), 3);
    bench.feed(Event::AtLimit { key: key("2", 1) });
    let (call, _) = bench.beats().unwrap();
    let renewal = Renewal {
        job_id: "2".to_owned(),
        attempt: 1,
        left_s: 40,
    };
    bench.feed(Event::Beat {
        call: before,
        answer: Ok(beaten(vec![renewal.clone()])),
    });
    assert_eq!(bench.tells("2", 1), None, "it was sent before");
    let answer = Ok(beaten(vec![renewal]));
    bench.feed(Event::Beat { call, answer });
    assert_eq!(bench.tells("1", 1), Some(Word::Limit(None)));
    let left = Some(Duration::from_secs(40));
    assert_eq!(bench.tells("2", 1), Some(Word::Limit(left)));
    assert_eq!(bench.tells("3", 1), None);
}

#[test]
fn a_job_at_its_limit_waits_for_no_scheduler_that_is_away() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    bench.feed(Event::AtLimit { key: key("1", 1) });
    bench.pass(SECOND);
    assert_eq!(bench.tells("1", 1), None);
    bench.pass(2 * SECOND);
    assert_eq!(bench.tells("1", 1), Some(Word::Limit(None)));
}

#[test]
fn a_machine_that_could_not_begin_a_job_rests_and_says_that_it_lives() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    let (call, _) = bench.asks().unwrap();
    let (its, faulty) = (key("1", 1), true);
    bench.feed(Event::Over { key: its, faulty });
    bench.feed(Event::Gone { key: key("1", 1) });
    bench.grants(call, Vec::new());
    assert_eq!(bench.asks(), None);
    bench.pass(SECOND);
    assert!(bench.asks().is_some());
}

#[test]
fn orders_reach_the_jobs_that_run_and_the_strongest_stands() {
    let order = |health: &str| StopOrder {
        job_id: "1".to_owned(),
        attempt: 1,
        health: health.to_owned(),
        reason: "so".to_owned(),
        grace_s: 100_000,
    };
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    for (health, is_told) in [("terminate", true), ("oom", false), ("", true)] {
        let (call, _) = bench.asks().unwrap();
        let answer = Ok(ConsumeAnswer {
            stop: vec![order(health)],
            ..answer(Vec::new())
        });
        bench.feed(Event::Work { call, answer });
        let told = bench.tells("1", 1);
        assert_eq!(told.is_some(), is_told, "{health}: {told:?}");
        if let Some(Word::Stop(stop)) = told {
            assert_eq!(stop.grace, Duration::from_hours(1), "no longer");
        }
        bench.pass(SECOND);
    }
}

/// The scheduler orders the agent to forget a job that a request names while the report of its end is in transit.
#[test]
fn an_order_that_is_repeated_is_not_asked_for_in_a_loop() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    let (its, faulty) = (key("1", 1), false);
    bench.feed(Event::Over { key: its, faulty });
    let mut requests = 0;
    let end = bench.now + 10 * SECOND;
    while bench.now < end {
        if let Some((call, _)) = bench.asks() {
            requests += 1;
            let answer = Ok(ConsumeAnswer {
                stop: vec![StopOrder {
                    job_id: "1".to_owned(),
                    attempt: 1,
                    health: String::new(),
                    reason: "it has ended".to_owned(),
                    grace_s: 0,
                }],
                ..answer(Vec::new())
            });
            bench.feed(Event::Work { call, answer });
        }
        bench.pass(Duration::from_millis(10));
    }
    assert!((10..=30).contains(&requests), "{requests} in 10 s");
}

#[test]
fn what_is_refused_about_a_job_ends_it() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    let (its, stage, more) = (key("1", 1), Stage::Boot, JobUpdate::default());
    bench.feed(Event::Stage {
        key: its,
        stage,
        more: Box::new(more),
    });
    let report = bench.take(|action| match action {
        Action::Report { call, update, .. } => Some((*call, update.clone())),
        _ => None,
    });
    let (call, update) = report.unwrap();
    assert_eq!(update.attempt, Some(1));
    assert_eq!(update.job_token.as_deref(), Some("token"));
    bench.feed(Event::Reported {
        key: key("1", 1),
        call,
        answer: Err(conflict(ErrorCode::WrongStage)),
    });
    assert!(is_forget(bench.tells("1", 1)));
}

#[test]
fn a_stopping_agent_asks_for_nothing_and_beats_until_all_is_home() {
    let mut bench = Bench::new(DC);
    let (call, _) = bench.asks().unwrap();
    bench.grants(call, vec![job("1")]);
    let (beat, _) = bench.beats().unwrap();
    bench.done.clear();
    bench.feed(Event::Stop);
    assert_eq!(
        bench.take(|action| (*action == Action::HangUp).then_some(())),
        Some(())
    );
    assert!(matches!(bench.tells("1", 1), Some(Word::Stop(_))));
    bench.feed(Event::Beat {
        call: beat,
        answer: Err(Failure::lost("line cut")),
    });
    bench.pass(100 * SECOND);
    assert!(bench.beats().is_some());
    assert_eq!(bench.asks(), None);
    bench.feed(Event::Gone { key: key("1", 1) });
    assert_eq!(bench.core.jobs().count(), 0);
}

#[test]
fn the_same_events_bring_the_same_actions() {
    let run = || {
        let mut bench = Bench::new(DC);
        for _ in 0..20 {
            if let Some((call, _)) = bench.asks() {
                bench.fails(call, Failure::lost("line cut"));
            }
            bench.pass(SECOND);
        }
        (bench.core.wakes_at(), bench.done)
    };
    assert_eq!(run(), run());
}
