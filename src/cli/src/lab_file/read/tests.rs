//! Tests of lab files: what they say, and what is refused with its line.

use super::*;
use crate::reuse_settings::words_of;

fn parsed(text: &str) -> Result<WantedLab, Failure> {
    let at = At(Path::new("lab.yaml"));
    lab(at, &at.parse(text)?)
}

#[test]
fn sections_are_read() {
    let lab = parsed(
        "complete: [queues]\nqueues:\n  nightly:\n    priority: 2\n    users: [b, a]\n    background_share: 2.5%\n    \
         limits: {waiting: 100, running: {soft: 1, hard: 2}, hours: none, shards: 5}\naccounts:\n  ci: {create: true, role: user}\n\
         hosts:\n  a66: {memory: 64g, tags: [x], cordon: false}\n",
    )
    .unwrap();
    let queue = &lab.queues[0];
    assert_eq!((queue.name.as_str(), queue.line), ("nightly", 3));
    let named = QueueUsers::Named(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(queue.wanted.users, Some(named));
    assert_eq!(queue.wanted.background_permille, Some(25));
    assert_eq!(queue.wanted.limits.hours, Some(Bounds::default()));
    assert!(lab.accounts[0].wanted.create);
    assert_eq!(lab.hosts[0].wanted.fields["memory_mb"], json!(65536));
    assert_eq!(lab.hosts[0].wanted.cordon, Some(Cordon::Open));
    assert_eq!(lab.is_complete("queues"), Some(1));
    assert_eq!(parsed("# nothing\n").unwrap(), WantedLab::default());
}

#[test]
fn reused_results_are_read_in_order() {
    let text = "reuse:\n  salt:\n  audit_percent: 0\n  performance: fio*\n  suites: {ltp-io: 1h, ltp*: 14d, build: 60}\n";
    let reuse = parsed(text).unwrap().reuse.unwrap();
    let words: Vec<String> = reuse.suites.unwrap().iter().map(words_of).collect();
    assert_eq!(words, ["ltp-io=1h", "ltp*=14d", "build=60"]);
    assert_eq!(
        (reuse.salt, reuse.audit_percent, reuse.performance),
        (Some(String::new()), Some(0), Some(vec!["fio*".to_owned()]))
    );
    let long = format!("reuse:\n  salt: {}\n", "x".repeat(257));
    refused(&long, 2, "257 bytes", "shorten");
    for (text, line, value, hint) in [
        ("reuse: {slat: x}\n", 1, "'slat'", "'salt'"),
        ("reuse:\n  audit_percent: 101\n", 2, "101", "0 to 100"),
        ("reuse:\n  suites:\n    ltp: 400d\n", 3, "400d", "366d"),
        ("reuse:\n  suites:\n    ltp: soon\n", 3, "soon", "14d"),
        ("reuse:\n  suites: [ltp]\n", 2, "a list", "a map"),
        ("reuse:\n  performance: {}\n", 2, "a map", "list"),
    ] {
        refused(text, line, value, hint);
    }
    let many: Vec<String> = (0..101).map(|n| format!("s{n}")).collect();
    let many = format!("reuse: {{performance: [{}]}}\n", many.join(", "));
    refused(&many, 1, "101 entries", "patterns");
}

fn refused(text: &str, line: u64, value: &str, hint: &str) {
    let failure = parsed(text).unwrap_err();
    let said = failure.to_string();
    let place = format!("lab.yaml:{line}: ");
    assert!(said.starts_with(&place), "{text}: {said}");
    assert!(failure.message.contains(value), "{text}: {said}");
    assert!(failure.hint.contains(hint), "{text}: {said}");
}

#[test]
fn wrong_rules_are_refused_with_line_value_and_hint() {
    for (text, line, value, hint) in [
        ("rules: {}\n", 1, "a map", "a list"),
        (
            "rules:\n  - name: a\n    if: suit == 'x'\n    then: {queue: q}\n",
            3,
            "column 1: unknown field 'suit'",
            "'suite'",
        ),
        (
            "rules:\n  - name: a\n    if: suite == 'x'\n    then: {quue: q}\n",
            3,
            "'quue'",
            "'queue'",
        ),
        (
            "rules:\n  - name: a\n    then: {queue: q}\n",
            2,
            "without if",
            "EXPRESSION",
        ),
        (
            "rules:\n  - {name: a, if: kind == 'vm', then: {queue: q}}\n  - {name: a, if: kind == 'dc', then: {queue: q}}\n",
            3,
            "'a' is there twice",
            "its own",
        ),
    ] {
        refused(text, line, value, hint);
    }
}

#[test]
fn what_is_wrong_is_refused_with_line_value_and_hint() {
    for (text, line, value, hint) in [
        ("quues: {}\n", 1, "'quues'", "'queues'"),
        ("queues:\n  a:\n    wieght: 3\n", 3, "'wieght'", "'weight'"),
        ("queues:\n  a:\n    weight: 0\n", 3, "0", "1 to 10000"),
        ("queues:\n  a:\n    weight: many\n", 3, "'many'", "1 to"),
        ("queues:\n  a:\n    priority: 10\n", 3, "10", "0 to 9"),
        ("queues:\n  a: {}\n", 2, "'a'", "weight"),
        ("queues:\n  'a b': {weight: 1}\n", 2, "a b", ""),
        (
            "queues:\n  a:\n    background_share: 51%\n",
            3,
            "'51%'",
            "50%",
        ),
        ("queues:\n  a:\n    limits: {hours: -1}\n", 3, "-1", "none"),
        (
            "queues:\n  a:\n    limits:\n      waiting: {soft: 9, hard: 2}\n",
            4,
            "a map",
            "at most",
        ),
        ("accounts:\n  a: {role: root}\n", 2, "'root'", "testbox"),
        ("accounts:\n  a:\n    token: x\n", 3, "'a'", "--tokens"),
        ("hosts:\n  a: {cpus: 0}\n", 2, "0", "65536"),
        ("complete: hosts\n", 1, "'hosts'", "forget"),
        ("retention: {keep_months: 1001}\n", 1, "1001", "0 to 1000"),
        ("retention: {keep: 1}\n", 1, "'keep'", "keep_months"),
        ("queues: 3\n", 1, "3", "a map"),
    ] {
        refused(text, line, value, hint);
    }
    let twice = parsed("queues: {}\nqueues: {}\n").unwrap_err();
    let place = "lab.yaml:2:1: key 'queues' is set twice";
    assert!(twice.message.starts_with(place), "{twice}");
}
