//! Tests that each part of a key changes it, and nothing else does.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::FIELDS;

fn spec(value: &Value) -> Spec {
    value.as_object().expect("a map").clone()
}

fn input(letter: &str, folder: &str) -> Input {
    Input {
        of: InputOf::Id(letter.repeat(64)),
        folder: folder.to_owned(),
    }
}

/// A job that has something in each part.
fn whole() -> Spec {
    spec(&json!({
        "suite": "hackbench", "script": "make test", "nr_threads": 8, "hackbench": {"mode": "process", "ipc": null},
        "os": "debian", "docker_image": "debian:12", "shard": 3, "shard_total": 200, "shard_of": "2611",
        "testbox": "dc-8g", "arch": "x86_64", "tags": ["kvm"], "outputs": ["."],
        "my_account": "ann", "queue": "night", "priority": 3, "timeout": "1h", "reuse": "14d",
    }))
}

fn key(spec: &Spec) -> ReuseKey {
    ReuseKey::of(spec, &[input("a", "kernel")], "salt").unwrap()
}

#[test]
fn each_part_changed_in_turn_changes_the_key_and_no_other_part() {
    let before = key(&whole());
    let changes = [
        ("script", json!("make check"), KeyPart::Script),
        ("nr_threads", json!(9), KeyPart::Parameters),
        ("new_key", json!(true), KeyPart::Parameters),
        (
            "hackbench",
            json!({"mode": "threads", "ipc": null}),
            KeyPart::Parameters,
        ),
        ("suite", json!("other"), KeyPart::Parameters),
        ("outputs", json!(["a"]), KeyPart::Parameters),
        ("docker_image", json!("debian:13"), KeyPart::Image),
        ("os", json!("ubuntu"), KeyPart::Image),
        ("shard", json!(4), KeyPart::Shards),
        ("shard_tests", json!(["a"]), KeyPart::Shards),
        ("tags", json!(["kvm", "ssd"]), KeyPart::Requirements),
        ("arch", json!("aarch64"), KeyPart::Requirements),
    ];
    for (field, value, part) in changes {
        let mut changed = whole();
        changed.insert(field.to_owned(), value);
        let after = key(&changed);
        assert_ne!(before.key, after.key, "{field}");
        assert_eq!(before.differing(&after), [part], "{field}");
        assert_eq!(differing_fields(&whole(), &changed, part), [field]);
    }
    let salted = ReuseKey::of(&whole(), &[input("a", "kernel")], "other").unwrap();
    assert_eq!(before.differing(&salted), [KeyPart::Salt]);
    for inputs in [
        vec![],
        vec![input("b", "kernel")],
        vec![input("a", "k")],
        vec![input("a", "kernel"), input("b", "")],
    ] {
        let other = ReuseKey::of(&whole(), &inputs, "salt").unwrap();
        assert_eq!(before.differing(&other), [KeyPart::Inputs], "{inputs:?}");
        assert_ne!(before.key, other.key);
    }
}

#[test]
fn who_when_and_in_which_order_changes_nothing() {
    let before = key(&whole());
    for Field { name, .. } in FIELDS.iter().filter(|field| field.key.is_none()) {
        let mut changed = whole();
        changed.insert((*name).to_owned(), json!("anything"));
        assert_eq!(before, key(&changed), "{name}");
    }
}

#[test]
fn the_order_of_inputs_does_not_count_and_open_ones_have_no_key() {
    let (a, b) = (input("a", "x"), input("b", "y"));
    let one = ReuseKey::of(&whole(), &[a.clone(), b.clone()], "");
    assert_eq!(one, ReuseKey::of(&whole(), &[b, a.clone()], ""));
    let open = Input {
        of: InputOf::From("build".to_owned()),
        folder: "z".to_owned(),
    };
    assert_eq!(ReuseKey::of(&whole(), &[a, open], ""), None);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_spec() -> impl Strategy<Value = Spec> {
    prop::collection::btree_map("[a-z_]{1,6}", any_value(), 0..6)
        .prop_map(|map| map.into_iter().collect())
}

/// The same, with the fields of each map in the opposite order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().rev();
            Value::Object(
                fields
                    .map(|(key, value)| (key.clone(), reversed(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

/// Returns the parts of a job that count, in one form.
fn counting(spec: &Spec) -> Vec<(String, String)> {
    fn sorted(value: &Value) -> String {
        match value {
            Value::Object(map) => {
                let mut fields: Vec<String> = map
                    .iter()
                    .map(|(k, v)| format!("{k:?}:{}", sorted(v)))
                    .collect();
                fields.sort_unstable();
                format!("{{{}}}", fields.join(","))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(sorted).collect();
                format!("[{}]", items.join(","))
            }
            other => other.to_string(),
        }
    }
    let fields = spec
        .iter()
        .filter(|(k, _)| part_of(k).is_some_and(|p| p != KeyPart::Inputs));
    let mut fields: Vec<_> = fields.map(|(k, v)| (k.clone(), sorted(v))).collect();
    fields.sort_unstable();
    fields
}

proptest! {
    #[test]
    fn the_order_of_fields_does_not_count(spec in any_spec()) {
        let Value::Object(other) = reversed(&Value::Object(spec.clone())) else { unreachable!() };
        prop_assert_eq!(ReuseKey::of(&spec, &[], "s"), ReuseKey::of(&other, &[], "s"));
    }

    #[test]
    fn keys_are_equal_exactly_when_what_counts_is(a in any_spec(), b in any_spec()) {
        let of = |spec: &Spec| ReuseKey::of(spec, &[], "s").unwrap().key;
        prop_assert_eq!(of(&a) == of(&b), counting(&a) == counting(&b));
    }

    #[test]
    fn any_change_of_a_field_changes_its_part_alone(
        spec in any_spec(), field in "[a-z_]{1,6}", value in any_value()
    ) {
        let mut changed = spec.clone();
        changed.insert(field.clone(), value);
        let (before, after) = (ReuseKey::of(&spec, &[], "").unwrap(), ReuseKey::of(&changed, &[], "").unwrap());
        let part = part_of(&field).filter(|part| *part != KeyPart::Inputs);
        let expected: Vec<KeyPart> = part.into_iter().filter(|_| counting(&spec) != counting(&changed)).collect();
        prop_assert_eq!(before.differing(&after), expected);
    }
}
