//! Tests that fields take the values that the table says, and that the reference says the same.

use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::Path};

use serde_json::{Value, json};

use super::*;
use crate::{SiteDefaults, Spec, SubmitLimits, dry_run};

/// With this variable the tables of the reference are written, not only compared.
const WRITE: &str = "FAIRLEAD_WRITE_DOCS";
/// The page of the reference, below this crate.
const PAGE: &str = "../../docs/user-reference.md";
/// The first lines of its tables of fields. An empty line ends each.
const HEAD: &str = "| field | value | meaning | default |\n|---|---|---|---|\n";

/// A number as people read it: `65,536`.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        let left = digits.len() - nth;
        if left.is_multiple_of(3) && text.ends_with(|c: char| c.is_ascii_digit()) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn words(kind: Kind) -> String {
    let words = match kind {
        Kind::Name => "name",
        Kind::Text => "text",
        Kind::Names => "list of names",
        Kind::Switch => "`true` or `false`",
        Kind::Whole(least, most) => return format!("{} to {}", grouped(least), grouped(most)),
        Kind::Memory => "memory",
        Kind::Duration => "duration",
        Kind::Moment => "time",
        Kind::Map => "map",
        Kind::Words(words) => words,
        Kind::Free => "any",
    };
    words.to_owned()
}

/// A table of the reference.
fn table(has: impl Fn(&Field) -> bool) -> String {
    let mut rows = String::from(HEAD);
    let told = FIELDS.iter().filter(|field| !field.help.is_empty());
    for field in told.filter(|field| has(field)) {
        let Field {
            name,
            help,
            default,
            ..
        } = field;
        let kind = words(field.kind);
        writeln!(rows, "| `{name}` | {kind} | {help} | {default} |").unwrap();
    }
    rows
}

#[test]
fn the_reference_has_the_fields_of_the_table() {
    let of_timer = |field: &Field| field.is(Use::Schedule) || field.name == "timer";
    let tables = [table(|field| !of_timer(field)), table(of_timer)];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let mut parts = page.split(HEAD);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for (part, table) in parts.by_ref().zip(tables) {
        let (_, after) = part.split_once("\n\n").expect("the end of a table");
        made.push_str(&table);
        made.push('\n');
        made.push_str(after);
    }
    assert_eq!(page.matches(HEAD).count(), 2, "tables of {PAGE}");
    if made != page && env::var_os(WRITE).is_some() {
        fs::write(&path, &made).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap();
    assert!(
        made == page,
        "{PAGE} differs from the table of fields; {WRITE}=1 writes it"
    );
}

#[test]
fn each_field_has_one_row_and_no_two_uses_that_exclude_each_other() {
    let names: BTreeSet<&str> = FIELDS.iter().map(|field| field.name).collect();
    assert_eq!(names.len(), FIELDS.len());
    for field in FIELDS {
        let name = field.name;
        let principal = Field::of(field.principal).unwrap();
        assert_eq!(principal.principal, principal.name, "{name}");
        assert_eq!(field.help.is_empty(), field.default.is_empty(), "{name}");
        assert!(
            !(field.is(Use::Hidden) && field.is(Use::Infrastructure)),
            "{name}"
        );
        assert!(!field.is(Use::OfWhole) || field.is(Use::Common), "{name}");
    }
}

/// Stored jobs have keys and fingerprints that follow from these rows.
#[test]
fn stored_keys_of_jobs_stay_as_they_are() {
    let said = FIELDS.iter().map(|field| {
        let is_parameter = !field.is(Use::Hidden) && !field.is(Use::Infrastructure);
        (field.name, field.key, is_parameter, field.is(Use::Compared))
    });
    // A key without a row counts so, too.
    let as_unknown = (Some(KeyPart::Parameters), true, false);
    let said = said.filter(|(_, key, shown, compared)| (*key, *shown, *compared) != as_unknown);
    let said: BTreeSet<_> = said.collect();
    let digest = blake3::hash(format!("{said:?}").as_bytes()).to_hex();
    assert_eq!(
        &digest[..16],
        "edf5f2d62f143b41",
        "stored jobs that name such a field get other keys: then change FORM, too"
    );
}

/// The field that a submit refuses.
fn refused(name: &str, value: &Value) -> Option<String> {
    let mut spec = Spec::from_iter([("suite".to_owned(), json!("x"))]);
    if name == "cluster_wait" {
        spec.insert("cluster".to_owned(), json!("cs-s1-c1"));
    }
    spec.insert(name.to_owned(), value.clone());
    let outcomes = dry_run(
        [spec],
        &SiteDefaults::default(),
        &SubmitLimits::default(),
        0,
    );
    let outcome = outcomes.into_iter().next().unwrap();
    outcome.err().map(|error| error.field)
}

#[test]
fn a_field_takes_the_values_of_its_kind_alone() {
    let checked = FIELDS.iter().filter(|field| !field.is(Use::Schedule));
    for Field { name, kind, .. } in checked {
        let (good, bad) = match kind {
            Kind::Switch => (vec![json!(true), json!("no")], vec![json!("maybe")]),
            Kind::Whole(least, most) => (
                vec![json!(least), json!(most.to_string())],
                vec![json!(least - 1), json!(most + 1), json!("many")],
            ),
            Kind::Memory => (
                vec![json!(8), json!("512M")],
                vec![json!("lots"), json!([8])],
            ),
            Kind::Duration => (
                vec![json!(90), json!("10m")],
                vec![json!("soon"), json!([1])],
            ),
            Kind::Moment => (vec![json!("+2h")], vec![json!("soon"), json!(5)]),
            _ => continue,
        };
        for value in good {
            assert_eq!(refused(name, &value), None, "{name}: {value}");
        }
        for value in bad {
            assert_eq!(
                refused(name, &value).as_deref(),
                Some(*name),
                "{name}: {value}"
            );
        }
    }
}
