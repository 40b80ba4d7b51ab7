//! Tests that each rule finds its violations, and nothing else.

use super::{
    super::history::{Acked, Finish, Upload},
    *,
};

const S: Micros = 1_000_000;

fn run(job: &str, attempt: u16, host: &str, start: Micros, end: Micros) -> Interval {
    Interval {
        job: job.to_owned(),
        attempt,
        token: format!("{job}-{attempt}"),
        host: host.to_owned(),
        memory_mb: 1024,
        start,
        end: Some(end),
    }
}

fn grant(job: &str, attempt: u16, host: &str, replica: u16, at: Micros) -> GrantLine {
    GrantLine {
        at,
        replica,
        host: host.to_owned(),
        session: "s".to_owned(),
        request: at,
        job: job.to_owned(),
        attempt: u64::from(attempt),
        token: format!("{job}-{attempt}"),
    }
}

fn ended(number: u64, attempt: u16) -> Final {
    Final {
        number,
        stage: "finish".to_owned(),
        health: "success".to_owned(),
        readiness: "uploaded".to_owned(),
        attempt,
    }
}

fn upload(job: &str, attempt: u16, acked: bool) -> Upload {
    Upload {
        job: job.to_owned(),
        attempt,
        path: format!("{job}-{attempt}"),
        bytes: 5,
        acked,
    }
}

/// A run in which job `a` was lost once and then ended well.
struct Case {
    facts: Facts,
    grants: Vec<GrantLine>,
    finals: BTreeMap<String, Final>,
    files: BTreeMap<String, bool>,
}

impl Case {
    fn good() -> Self {
        let mut facts = Facts::default();
        facts.acked.push(Acked {
            job: "a".to_owned(),
            number: 1,
            vip: false,
            hw: true,
            at: 0,
        });
        facts.unknown.push(2);
        facts.intervals = vec![
            run("a", 1, "box", S, 3 * S),
            run("a", 2, "host", 3 * S, 5 * S),
        ];
        facts.finishes_sent = vec![
            ("a".to_owned(), 1),
            ("a".to_owned(), 2),
            ("b".to_owned(), 1),
        ];
        facts.finishes.push(finish("a", 2, true));
        facts.finishes.push(finish("a", 1, false));
        facts.uploads = vec![
            upload("a", 1, false),
            upload("a", 2, true),
            upload("b", 1, true),
        ];
        let finals = [("a", ended(1, 2)), ("b", ended(2, 1))];
        Self {
            facts,
            grants: vec![grant("a", 1, "box", 1, S), grant("a", 2, "host", 2, 3 * S)],
            finals: finals.map(|(job, end)| (job.to_owned(), end)).into(),
            files: ["a-2", "b-1"].map(|path| (path.to_owned(), true)).into(),
        }
    }

    fn rules_broken(&self) -> Vec<&'static str> {
        let testboxes = [("box", true, 4096), ("host", false, 2048)];
        let testboxes = testboxes.map(|(host, hw, memory_mb)| Testbox {
            host: host.to_owned(),
            hw,
            memory_mb,
        });
        let evidence = Evidence {
            facts: &self.facts,
            grants: &self.grants,
            finals: &self.finals,
            files: &self.files,
            testboxes: &testboxes,
            faulty: (0, 9 * S),
        };
        let mut rules: Vec<_> = judge(&evidence)
            .into_iter()
            .map(|breach| breach.rule)
            .collect();
        rules.dedup();
        rules
    }

    /// Expects that the change by `spoil` breaks rule `number` and no other.
    fn breaks(number: usize, spoil: impl FnOnce(&mut Self)) {
        let mut case = Self::good();
        spoil(&mut case);
        assert_eq!(case.rules_broken(), [RULES[number].0]);
    }
}

fn finish(job: &str, attempt: u16, confirmed: bool) -> Finish {
    Finish {
        job: job.to_owned(),
        attempt,
        confirmed,
        at: 5 * S,
    }
}

#[test]
fn a_good_run_breaks_no_rule() {
    assert_eq!(Case::good().rules_broken(), Vec::<&str>::new());
}

#[test]
fn a_lost_job_and_one_that_stays_open_are_found() {
    Case::breaks(0, |case| {
        case.facts.finishes.clear();
        case.finals.remove("a");
    });
    Case::breaks(0, |case| {
        case.facts.finishes.clear();
        let stays = case.finals.get_mut("a").unwrap();
        stays.stage = "running".to_owned();
        stays.health = "unknown".to_owned();
    });
}

#[test]
fn a_refused_submit_that_was_done_and_one_done_twice_are_found() {
    Case::breaks(1, |case| case.facts.refused.push(2));
    Case::breaks(1, |case| case.finals.get_mut("b").unwrap().number = 1);
}

#[test]
fn a_confirmed_end_that_is_forgotten_doubled_or_made_up_is_found() {
    Case::breaks(2, |case| case.finals.get_mut("a").unwrap().attempt = 1);
    Case::breaks(2, |case| case.facts.finishes.push(finish("a", 1, true)));
    Case::breaks(2, |case| {
        case.facts.finishes_sent.retain(|(job, _)| job != "b");
    });
}

#[test]
fn a_file_that_is_gone_or_cut_off_is_found() {
    Case::breaks(3, |case| {
        case.files.remove("a-2");
    });
    Case::breaks(3, |case| {
        case.files.insert("b-1".to_owned(), false);
    });
}

#[test]
fn a_job_that_is_wrong_about_its_file_is_found() {
    Case::breaks(4, |case| case.facts.uploads[1].acked = false);
    Case::breaks(4, |case| {
        case.finals.get_mut("a").unwrap().readiness = "incomplete".to_owned();
    });
}

#[test]
fn overlapping_runs_are_found() {
    // It is the same attempt twice, so that no other rule is broken.
    Case::breaks(5, |case| {
        case.facts.intervals.push(run("c", 1, "box", 6 * S, 8 * S));
        case.facts.intervals.push(run("c", 1, "host", 7 * S, 8 * S));
    });
}

#[test]
fn a_grant_of_a_job_that_runs_is_found() {
    Case::breaks(6, |case| case.grants.push(grant("a", 3, "box", 3, 4 * S)));
}

#[test]
fn two_jobs_on_one_machine_and_too_many_on_a_host_are_found() {
    Case::breaks(7, |case| {
        case.facts.intervals.push(run("c", 1, "box", 2 * S, 3 * S));
    });
    Case::breaks(7, |case| {
        case.facts.intervals.push(run("c", 1, "host", 4 * S, 5 * S));
        case.facts.intervals.push(run("d", 1, "host", 4 * S, 5 * S));
    });
    Case::breaks(7, |case| case.facts.overgranted.push("x".to_owned()));
}

#[test]
fn a_request_that_two_replicas_answered_differently_is_found() {
    Case::breaks(8, |case| {
        for (job, replica) in [("c", 1), ("d", 2)] {
            let given = grant(job, 1, "host", replica, 6 * S);
            case.grants.push(given);
            case.facts.intervals.push(run(job, 1, "host", 6 * S, 7 * S));
        }
    });
}

#[test]
fn a_long_gap_is_found_and_measured() {
    let case = Case::good();
    let evidence = Evidence {
        facts: &case.facts,
        grants: &case.grants,
        finals: &case.finals,
        files: &case.files,
        testboxes: &[],
        faulty: (0, 14 * S),
    };
    assert_eq!(longest_gap(&evidence), (11 * S, 3 * S));
    assert_eq!(judge(&evidence).len(), 1);
}

#[test]
fn a_vip_job_that_is_passed_over_is_counted() {
    let mut case = Case::good();
    case.facts.acked.push(Acked {
        job: "v".to_owned(),
        number: 9,
        vip: true,
        hw: true,
        at: 0,
    });
    let count = |case: &Case| {
        overtaken(&Evidence {
            facts: &case.facts,
            grants: &case.grants,
            finals: &case.finals,
            files: &case.files,
            testboxes: &[],
            faulty: (0, S),
        })
    };
    assert_eq!(
        count(&case),
        0,
        "within three seconds nobody need know of it"
    );
    case.grants[0].at = 4 * S;
    case.grants[1].at = 5 * S;
    assert_eq!(count(&case), 1);
    case.grants.insert(0, grant("v", 1, "box", 1, 2 * S));
    assert_eq!(count(&case), 0);
}
