//! The key of a job for reuse: equal keys mean that two jobs would run the same thing. It has parts, so that people learn
//! which one differs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Input, InputOf, Spec, params::SUBMIT_RULE};

/// The form of the key: a change of how it is made changes all keys.
const FORM: &str = "fairlead reuse 1";

/// A part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPart {
    /// The inputs by content, with their folders.
    Inputs,
    /// The script.
    Script,
    /// All that the program can see, and that no other part has.
    Parameters,
    /// The system that it runs in.
    Image,
    /// Which part of a whole it is.
    Shards,
    /// What it requires of a host.
    Requirements,
    /// The salt of the site.
    Salt,
}

impl KeyPart {
    /// All, in the order in which people are told.
    pub const ALL: [Self; 7] = [
        Self::Inputs,
        Self::Script,
        Self::Parameters,
        Self::Image,
        Self::Shards,
        Self::Requirements,
        Self::Salt,
    ];

    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Script => "script",
            Self::Parameters => "parameters",
            Self::Image => "image",
            Self::Shards => "shards",
            Self::Requirements => "requirements",
            Self::Salt => "salt",
        }
    }

    /// The part that a field of a job belongs to; `None`: no result depends on it.
    fn of(field: &str) -> Option<Self> {
        match field {
            "inputs" => Some(Self::Inputs),
            "script" => Some(Self::Script),
            _ if LEFT_OUT.contains(&field) => None,
            _ if IMAGE.contains(&field) => Some(Self::Image),
            _ if SHARDS.contains(&field) => Some(Self::Shards),
            _ if REQUIREMENTS.contains(&field) => Some(Self::Requirements),
            _ => Some(Self::Parameters),
        }
    }
}

/// Fields that say who, when, in which order and for whom. What is not named here counts.
const LEFT_OUT: [&str; 55] = [
    "cache_dirs",
    "callback",
    "cluster_id",
    "cluster_jobs",
    "concurrency",
    "cron",
    "deadline",
    "every",
    "group",
    "group_id",
    "id",
    "idempotency_key",
    "if",
    "job_id",
    "job_token",
    "labels",
    "max_run",
    "missed",
    "my_account",
    "my_email",
    "my_name",
    "my_ssh_pubkey",
    "my_token",
    "name",
    "needs",
    "on_shutdown",
    "overlap",
    "prefer",
    "priority",
    "project",
    "queue",
    "queue_timeout",
    "rerun_of",
    "result_root",
    "retry",
    "retry_elsewhere",
    "reuse",
    "sequence",
    "sequence_host",
    "shard_of",
    "silence_timeout",
    "ssh_pub_key",
    "stage_timeouts",
    "start_at",
    "stop_when_cut_off",
    "submit_id",
    SUBMIT_RULE,
    "timeout",
    "timeout_seconds",
    "timer",
    "timer_due",
    "timezone",
    "wait_on",
    "wait_options",
    "waited",
];

/// Fields of the system that a job runs in.
const IMAGE: [&str; 19] = [
    "boot_params",
    "docker_image",
    "initrds_uri",
    "install_os_packages",
    "ipxe_kernel_params",
    "kernel",
    "kernel_cmdline",
    "kernel_custom_params",
    "kernel_rpms_url",
    "kernel_uri",
    "kernel_version",
    "modules_uri",
    "os",
    "os_arch",
    "os_mount",
    "os_version",
    "osv",
    "rootfs",
    "vm_image",
];

/// Fields of a shard's place.
const SHARDS: [&str; 5] = [
    "shard",
    "shard_index",
    "shard_tests",
    "shard_total",
    "shards",
];

/// Fields that a host must meet.
const REQUIREMENTS: [&str; 25] = [
    "any_of",
    "arch",
    "else",
    "hw",
    "lab",
    "memory",
    "memory_minimum",
    "need_cpus",
    "need_disks",
    "need_memory",
    "need_nics",
    "need_nodes",
    "network",
    "node_roles",
    "not_tags",
    "nr_cpu",
    "nr_node",
    "sched",
    "sched.devices",
    "tags",
    "target_machines",
    "tbox_group",
    "tbox_type",
    "testbox",
    "tbox",
];

/// The key of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReuseKey {
    /// The whole: 64 hexadecimal digits.
    pub key: String,
    /// The hash of each part, in the order of [`KeyPart::ALL`]: 32 hexadecimal digits.
    pub parts: [String; KeyPart::ALL.len()],
}

impl ReuseKey {
    /// The key of what a testbox would get as its job. `inputs`: those of the job, each with its id. `salt`: the site's.
    /// `None`: an input is of a job that has not ended.
    pub fn of(spec: &Spec, inputs: &[Input], salt: &str) -> Option<Self> {
        let ids: Option<BTreeSet<(&str, &str)>> = inputs.iter().map(named).collect();
        let ids = ids?;
        let parts = KeyPart::ALL.map(|part| {
            let mut hasher = blake3::Hasher::new();
            match part {
                KeyPart::Salt => text(&mut hasher, salt),
                KeyPart::Inputs => {
                    for (folder, id) in &ids {
                        text(&mut hasher, folder);
                        text(&mut hasher, id);
                    }
                }
                other => {
                    let mut said: Vec<_> = fields_of(spec, other).collect();
                    said.sort_unstable_by_key(|(field, _)| *field);
                    for (field, value) in said {
                        text(&mut hasher, field);
                        canonical(&mut hasher, value);
                    }
                }
            }
            let mut hash = hasher.finalize().to_hex().to_string();
            hash.truncate(32);
            hash
        });
        let mut hasher = blake3::Hasher::new();
        text(&mut hasher, FORM);
        for (part, hash) in KeyPart::ALL.iter().zip(&parts) {
            text(&mut hasher, part.as_str());
            text(&mut hasher, hash);
        }
        let key = hasher.finalize().to_hex().to_string();
        Some(Self { key, parts })
    }

    /// The parts in which it differs from another one.
    pub fn differing(&self, other: &Self) -> Vec<KeyPart> {
        let pairs = self.parts.iter().zip(&other.parts);
        let parts = KeyPart::ALL.into_iter().zip(pairs);
        let differ = parts.filter(|(_, (own, others))| own != others);
        differ.map(|(part, _)| part).collect()
    }
}

/// The fields of a part in which two jobs differ, sorted. Inputs are named by their folders, `inputs` for the whole.
pub fn differing_fields(a: &Spec, b: &Spec, part: KeyPart) -> Vec<String> {
    let fields: BTreeSet<&str> = [a, b]
        .into_iter()
        .flat_map(|spec| fields_of(spec, part).map(|(field, _)| field))
        .collect();
    let differs = |field: &&str| a.get(*field) != b.get(*field);
    let differing = fields.into_iter().filter(differs);
    differing.map(str::to_owned).collect()
}

/// The folder and the id of an input.
fn named(input: &Input) -> Option<(&str, &str)> {
    match &input.of {
        InputOf::Id(id) => Some((&input.folder, id)),
        InputOf::From(_) => None,
    }
}

/// The fields of a job that belong to a part. Null says nothing, but for a program without parameters.
fn fields_of(spec: &Spec, part: KeyPart) -> impl Iterator<Item = (&str, &Value)> {
    let fields = spec.iter().map(|(field, value)| (field.as_str(), value));
    fields.filter(move |(field, _)| KeyPart::of(field) == Some(part))
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// A value in one form: maps sorted by their keys, and each value with what it is, so that no two have the same bytes.
fn canonical(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Null => {
            hasher.update(b"0");
        }
        Value::Bool(is_so) => {
            hasher.update(if *is_so { b"t" } else { b"f" });
        }
        Value::Number(number) => {
            hasher.update(b"n");
            text(hasher, &number.to_string());
        }
        Value::String(said) => {
            hasher.update(b"s");
            text(hasher, said);
        }
        Value::Array(items) => {
            hasher.update(b"a");
            hasher.update(&(items.len() as u64).to_le_bytes());
            for item in items {
                canonical(hasher, item);
            }
        }
        Value::Object(map) => {
            hasher.update(b"o");
            hasher.update(&(map.len() as u64).to_le_bytes());
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in fields {
                text(hasher, key);
                canonical(hasher, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

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
        for field in LEFT_OUT {
            let mut changed = whole();
            changed.insert(field.to_owned(), json!("anything"));
            assert_eq!(before, key(&changed), "{field}");
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

    #[test]
    fn no_field_is_in_two_lists() {
        let all = [&LEFT_OUT[..], &IMAGE[..], &SHARDS[..], &REQUIREMENTS[..]].concat();
        let names: BTreeSet<&&str> = all.iter().collect();
        assert_eq!(names.len(), all.len());
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

    /// What of a job counts, in one form.
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
            .filter(|(k, _)| KeyPart::of(k).is_some_and(|p| p != KeyPart::Inputs));
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
            let part = KeyPart::of(&field).filter(|part| *part != KeyPart::Inputs);
            let expected: Vec<KeyPart> = part.into_iter().filter(|_| counting(&spec) != counting(&changed)).collect();
            prop_assert_eq!(before.differing(&after), expected);
        }
    }
}
