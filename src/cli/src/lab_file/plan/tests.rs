//! Tests of plans: what differs, in words and in requests.

use fairlead_api::ClosedView;

use super::*;

fn queue_view() -> QueueView {
    let view = json!({
        "name": "nightly", "priority": 2, "weight": 100, "paused": false, "waiting": 0, "running": 0,
        "share_permille": 0, "set": true, "users": ["a", "b"], "limits": {"waiting": {"hard": 5}},
    });
    serde_json::from_value(view).unwrap()
}

fn entry<T>(name: &str, wanted: T) -> Entry<T> {
    Entry {
        name: name.to_owned(),
        line: 1,
        wanted,
    }
}

fn words(lab: &WantedLab, present: &Present) -> Vec<String> {
    plan(lab, present).iter().map(Change::words).collect()
}

#[test]
fn only_what_differs_is_shown_and_sent() {
    let change: QueueChange = serde_json::from_value(
        json!({"priority": 2, "weight": 50, "users": ["a", "b"], "limits": {"waiting": {}}}),
    )
    .unwrap();
    let lab = WantedLab {
        queues: vec![
            entry("nightly", change),
            entry(
                "new",
                QueueChange {
                    weight: Some(3),
                    ..QueueChange::default()
                },
            ),
        ],
        ..WantedLab::default()
    };
    let present = Present {
        queues: vec![queue_view()],
        ..Present::default()
    };
    assert_eq!(
        words(&lab, &present),
        [
            "~ queue nightly: weight 100 -> 50; limits.waiting hard=5 -> none",
            "+ queue new: weight 3"
        ]
    );
    let Request::SetQueue(sent) = &plan(&lab, &present)[0].request else {
        panic!()
    };
    assert_eq!(
        json!(sent),
        json!({"weight": 50, "limits": {"waiting": {}}})
    );
}

#[test]
fn a_complete_section_removes_what_it_does_not_name() {
    let present = Present {
        queues: vec![queue_view()],
        accounts: vec![AccountView {
            my_account: "old".to_owned(),
            role: "user".to_owned(),
            ..AccountView::default()
        }],
        ..Present::default()
    };
    assert_eq!(words(&WantedLab::default(), &present), [""; 0]);
    let lab = WantedLab {
        complete: vec![("queues".to_owned(), 1), ("accounts".to_owned(), 1)],
        ..WantedLab::default()
    };
    assert_eq!(
        words(&lab, &present),
        [
            "- queue nightly: priority 2; weight 100",
            "- account old: role user"
        ]
    );
}

#[test]
fn rules_are_replaced_by_one_request() {
    let rule = |name: &str, queue: &str| SubmitRule {
        name: name.to_owned(),
        condition: "kind == 'vm'".to_owned(),
        then: Map::from_iter([("queue".to_owned(), json!(queue))]),
    };
    let lab = |rules: Vec<SubmitRule>| WantedLab {
        rules: Some(rules),
        ..WantedLab::default()
    };
    let present = Present {
        rules: vec![rule("a", "x"), rule("b", "x"), rule("c", "x")],
        ..Present::default()
    };
    for (wanted, expected) in [
        (vec![rule("a", "x"), rule("b", "x"), rule("c", "x")], vec![]),
        (
            vec![rule("b", "y"), rule("c", "x")],
            vec![
                r#"~ rule b: then {"queue":"x"} -> {"queue":"y"}"#,
                r#"- rule a: if kind == 'vm'; then {"queue":"x"}"#,
            ],
        ),
        (
            vec![rule("b", "x"), rule("a", "x"), rule("c", "x")],
            vec!["~ rule b: place 2 -> 1", "~ rule a: place 1 -> 2"],
        ),
        (
            vec![
                rule("a", "x"),
                rule("n", "z"),
                rule("b", "x"),
                rule("c", "x"),
            ],
            vec![r#"+ rule n: place 2; if kind == 'vm'; then {"queue":"z"}"#],
        ),
    ] {
        let lab = lab(wanted.clone());
        let changes = plan(&lab, &present);
        let words: Vec<String> = changes.iter().map(Change::words).collect();
        assert_eq!(
            words[..words.len().min(expected.len())],
            expected[..words.len().min(expected.len())],
            "{words:?}"
        );
        let sent = changes.iter().filter(|change| {
            change.request
                == Request::SetRules(Some(SubmitRules {
                    rules: wanted.clone(),
                }))
        });
        assert_eq!(sent.count(), usize::from(!expected.is_empty()));
    }
}

#[test]
fn reused_results_change_by_one_request_that_keeps_the_rest() {
    let suite = |suite: &str| SuiteReuse {
        suite: suite.to_owned(),
        within: "14d".to_owned(),
    };
    let present = Present {
        reuse: ReuseSettings {
            salt: "a".to_owned(),
            suites: vec![suite("ltp*")],
            ..ReuseSettings::default()
        },
        ..Present::default()
    };
    let lab = |suites: Vec<SuiteReuse>| WantedLab {
        reuse: Some(ReuseChange {
            audit_percent: Some(5),
            suites: Some(suites),
            ..ReuseChange::default()
        }),
        ..WantedLab::default()
    };
    let changed = lab(vec![suite("build"), suite("ltp*")]);
    assert_eq!(
        words(&changed, &present),
        ["~ reuse results: audit_percent none -> 5; suites ltp*=14d -> build=14d,ltp*=14d"]
    );
    let sent = plan(&changed, &present).remove(0).request;
    let expected = ReuseSettings {
        audit_percent: Some(5),
        suites: vec![suite("build"), suite("ltp*")],
        ..present.reuse.clone()
    };
    assert_eq!(sent, Request::SetReuse(expected.clone()));
    let present = Present {
        reuse: expected,
        ..Present::default()
    };
    assert_eq!(words(&changed, &present), [""; 0]);
}

#[test]
fn a_suspect_host_stays_suspect() {
    let mut view = HostView {
        hostname: "h".to_owned(),
        memory_mb: 1024,
        ..HostView::default()
    };
    let open = Host {
        cordon: Some(Cordon::Open),
        ..Host::default()
    };
    let lab = WantedLab {
        hosts: vec![entry("h", open)],
        ..WantedLab::default()
    };
    for (how, expected) in [
        ("suspect", vec![]),
        ("cordon", vec!["~ host h: cordon broken -> none"]),
    ] {
        view.closed = Some(ClosedView {
            how: how.to_owned(),
            reason: "broken".to_owned(),
            ..ClosedView::default()
        });
        let present = Present {
            hosts: vec![view.clone()],
            ..Present::default()
        };
        assert_eq!(words(&lab, &present), expected);
    }
}
