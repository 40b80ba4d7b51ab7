//! Tests of expressions: what they mean, what is refused and where, and that any text is one or the other.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{JobFields, SiteDefaults, Spec};

fn job() -> Spec {
    let job = json!({
        "suite": "lkp-tests", "testbox": "vm-2p8g", "arch": "aarch64", "priority": 2, "tags": ["ssd", "rack1"],
        "nr_threads": 16, "debug": true, "fio": {"bs": "4k"}, "script": "true",
    });
    match job {
        Value::Object(job) => job,
        _ => Spec::new(),
    }
}

fn holds(text: &str) -> bool {
    let expression: Expression = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let spec = job();
    let fields = JobFields::parse(&spec, &SiteDefaults::default()).unwrap();
    expression.holds(&spec, &fields, "ci")
}

#[test]
fn a_job_meets_what_is_true_of_it() {
    for (text, is_met) in [
        ("suite == 'lkp-tests'", true),
        ("suite ~ 'lkp.*' and account == 'ci'", true),
        ("suite ~ 'lkp'", false),
        ("suite ~ 'a|lkp-tests'", true),
        ("suite ~ 'lkp|tests'", false),
        ("suite != \"other\"", true),
        ("queue == 'ci'", true),
        (
            "kind == 'vm' and testbox == 'vm-2p8g' and arch == 'aarch64'",
            true,
        ),
        ("priority == 2.0", true),
        ("priority != 2", false),
        ("tags == 'ssd' and tags == 'rack1'", true),
        ("tags != 'nvme'", true),
        ("tags != 'ssd'", false),
        ("tags ~ 'rack\\d'", true),
        ("param.nr_threads == 16 and param.debug == true", true),
        ("param.fio.bs == '4k'", true),
        ("param.nothing == ''", false),
        ("param.nothing != 'x'", true),
        ("param.nothing ~ '.*'", false),
        ("not param.nothing ~ '.*'", true),
        ("suite == 'x' or suite == 'y' or kind == 'vm'", true),
        ("suite == 'x' and suite == 'y' or kind == 'vm'", true),
        ("suite == 'x' and (suite == 'y' or kind == 'vm')", false),
        ("not (suite == 'x')", true),
        ("not not suite == 'x'", false),
        ("not suite == 'x' and kind == 'dc'", false),
    ] {
        assert_eq!(holds(text), is_met, "{text}");
    }
}

#[test]
fn what_is_no_expression_is_refused_with_its_place() {
    let deep = format!("{}suite == 'x'{}", "(".repeat(33), ")".repeat(33));
    let long = format!("suite == '{}'", "x".repeat(1000));
    for (text, place, message) in [
        ("", "column 1", "the end where a field"),
        ("suit == 'x'", "column 1", "unknown field 'suit'"),
        ("nr_threads == 4", "column 1", "unknown field 'nr_threads'"),
        (
            "suite = 'x'",
            "column 7",
            "'=' is not known in an expression",
        ),
        ("suite =~ 'x'", "column 7", "'=~'"),
        ("suite == x", "column 10", "x where a text in quotes"),
        ("suite == 'x", "column 10", "without its closing"),
        (
            "suite == 'x' kind == 'vm'",
            "column 14",
            "kind where the end",
        ),
        ("suite ==", "column 9", "the end where a text"),
        ("(suite == 'x'", "column 14", "the end where ')'"),
        ("suite == 'x')", "column 13", ") where the end"),
        ("suite ~ '(x'", "column 9", "unclosed group"),
        ("suite ~ 'a)|(b'", "column 9", "is not a pattern"),
        (
            "suite ~ '(a{1000}){1000}'",
            "column 9",
            "bytes when compiled",
        ),
        ("suite == 'x'\nand kind = 'y'", "line 2, column 10", "'='"),
        ("suite == 'x' && kind == 'vm'", "column 14", "'&&'"),
        (&deep, "column 33", "more than 32 levels"),
        (&long, "column 1", "the limit is 1000"),
    ] {
        let refused = text.parse::<Expression>().unwrap_err();
        let told = refused.to_string();
        assert!(
            told.starts_with(place) && told.contains(message),
            "{text}: {told}"
        );
        assert!(!refused.hint.is_empty(), "{text}");
    }
}

/// Words that expressions are made of, so that many texts get far.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "suite",
        "kind",
        "tags",
        "param.a",
        "param.a.b",
        "==",
        "!=",
        "~",
        "and",
        "or",
        "not",
        "(",
        ")",
        "'x'",
        "\"y.*\"",
        "'(a'",
        "3",
        "-1.5",
        "true",
        "\\",
        "'",
        "\n",
        ";",
        "=~",
        "é",
    ]);
    prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_refused_with_a_place_or_evaluates(text in prop_oneof![any::<String>(), words(), "[()a-z'\"=!~ .0-9]{0,200}"]) {
        match text.parse::<Expression>() {
            Ok(expression) => {
                let spec = job();
                let fields = JobFields::parse(&spec, &SiteDefaults::default()).unwrap();
                let holds = expression.holds(&spec, &fields, "ci");
                prop_assert_eq!(Node::Not(Box::new(expression.0.clone())).holds(super::super::expression::Job { spec: &spec, fields: &fields, account: "ci" }), !holds);
            }
            Err(error) => {
                prop_assert!(error.line >= 1 && error.column >= 1);
                prop_assert!(!error.message.is_empty() && !error.hint.is_empty());
            }
        }
    }

    #[test]
    fn a_text_with_doubled_not_means_the_same(text in words()) {
        if let Ok(plain) = text.parse::<Expression>() {
            let spec = job();
            let fields = JobFields::parse(&spec, &SiteDefaults::default()).unwrap();
            if let Ok(doubled) = format!("not not ({text})").parse::<Expression>() {
                prop_assert_eq!(doubled.holds(&spec, &fields, "ci"), plain.holds(&spec, &fields, "ci"));
            }
        }
    }
}
