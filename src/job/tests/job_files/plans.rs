//! Tests from spec to plan: the valid values of each field, and their effects.

use fairlead_job::{FieldError, JobFields, SiteDefaults, Spec, TboxType};
use proptest::prelude::*;
use serde_json::{Value, json};

fn defaults() -> SiteDefaults {
    SiteDefaults {
        arch: "x86_64".to_owned(),
        ..SiteDefaults::default()
    }
}

fn plan(spec: &Value) -> Result<JobFields, FieldError> {
    let mut spec: Spec = spec.as_object().expect("a map").clone();
    spec.entry("suite").or_insert(json!("s"));
    JobFields::parse(&spec, &defaults())
}

fn good(spec: &Value) -> JobFields {
    plan(spec).unwrap_or_else(|e| panic!("{spec}: {e}"))
}

#[test]
fn a_job_that_says_nothing_gets_the_site_s_defaults() {
    let plan = good(&json!({}));
    assert_eq!(
        (
            plan.testbox.as_str(),
            plan.tbox_group.as_str(),
            plan.tbox_type
        ),
        ("dc", "dc", TboxType::Dc)
    );
    assert_eq!(
        (plan.arch.as_str(), plan.memory_mb, plan.timeout_s),
        ("x86_64", 1024, 3600)
    );
    assert_eq!(plan.host_keys, ["dc.x86_64"]);
    assert_eq!(
        (plan.priority, plan.retry.infra_max, plan.retry.own_max),
        (0, 1, 0)
    );
    assert!(plan.account.is_empty() && plan.queue.is_empty() && !plan.stop_when_cut_off);
}

#[test]
fn a_job_needs_a_suite_or_a_script() {
    let of = |spec: Value| JobFields::parse(spec.as_object().expect("a map"), &defaults());
    assert_eq!(
        of(json!({"script": "true"})).expect("script").suite,
        "script"
    );
    for spec in [
        json!({}),
        json!({"sleep": null}),
        json!({"suite": null}),
        json!({"suite": " ", "script": ""}),
    ] {
        assert_eq!(of(spec).expect_err("neither").field, "suite");
    }
    assert_eq!(
        of(json!({"script": ["a"]})).expect_err("a list").field,
        "script"
    );
    assert_eq!(
        of(json!({"script": "a\0b"})).expect_err("NUL").field,
        "script"
    );
}

#[test]
fn every_form_of_testbox_has_its_host_keys() {
    use TboxType::{Dc, Hw, Vm};
    let group = "taishan200-2280-2s48p-256g";
    let machine = format!("{group}--a61");
    let hw_machine = format!("hw@{machine}");
    for (testbox, kind, arch, keys) in [
        ("hw", Hw, "x86_64", "hw.x86_64"),
        ("vm", Vm, "x86_64", "vm.x86_64"),
        ("dc", Dc, "x86_64", "dc.x86_64"),
        ("vm-2p8g", Vm, "x86_64", "vm.x86_64"),
        ("dc-8g", Dc, "x86_64", "dc.x86_64"),
        ("vm-2p8g--chief", Vm, "x86_64", "vm.x86_64@chief"),
        (group, Hw, "", "hw@taishan200-2280-2s48p-256g"),
        (machine.as_str(), Hw, "", hw_machine.as_str()),
        ("a66", Hw, "", "hw@a66"),
        ("vmware-7", Hw, "", "hw@vmware-7"),
    ] {
        let plan = good(&json!({"testbox": testbox}));
        assert_eq!(
            (plan.tbox_type, plan.arch.as_str()),
            (kind, arch),
            "{testbox}"
        );
        assert_eq!(plan.host_keys, [keys], "{testbox}");
    }
    let plan = good(&json!({"testbox": machine}));
    assert_eq!(plan.tbox_group, group);
    assert_eq!(good(&json!({"testbox": "vm-2p8g.u"})).tbox_group, "vm-2p8g");
    assert_eq!(good(&json!({"tbox_group": "vm-2p8g"})).testbox, "vm-2p8g");
    assert_eq!(good(&json!({"tbox_type": "hw"})).host_keys, ["hw.x86_64"]);
    assert_eq!(
        good(&json!({"testbox": "hw", "arch": "aarch64"})).host_keys,
        ["hw.aarch64"]
    );
    assert_eq!(
        good(&json!({"testbox": "a66", "arch": "aarch64"})).arch,
        "aarch64"
    );
}

#[test]
fn target_machines_restrict_and_never_add() {
    let keys = |testbox: &str, machines: &[&str]| {
        plan(&json!({"testbox": testbox, "target_machines": machines})).map(|plan| plan.host_keys)
    };
    assert_eq!(
        keys("hw", &["b", "a", "b"]),
        Ok(vec!["hw@a".to_owned(), "hw@b".to_owned()])
    );
    assert_eq!(
        keys("g", &["g--2", "g--1"]),
        Ok(vec!["hw@g--1".to_owned(), "hw@g--2".to_owned()])
    );
    assert_eq!(keys("a66", &["a66"]), Ok(vec!["hw@a66".to_owned()]));
    assert_eq!(
        keys("g--1", &["g--1", "g--2"]),
        Ok(vec!["hw@g--1".to_owned()])
    );
    assert_eq!(
        keys("vm", &["h2", "h1"]),
        Ok(vec!["vm.x86_64@h1".to_owned(), "vm.x86_64@h2".to_owned()])
    );
    assert_eq!(keys("dc-8g", &["h"]), Ok(vec!["dc.x86_64@h".to_owned()]));
    assert_eq!(
        keys("vm--h1", &["h1", "h2"]),
        Ok(vec!["vm.x86_64@h1".to_owned()])
    );
    for (testbox, machines) in [
        ("g", &["other--1"][..]),
        ("g", &["g--1", "x"]),
        ("g--1", &["g--2"]),
        ("vm--h", &["i"]),
    ] {
        assert_eq!(
            keys(testbox, machines).expect_err(testbox).field,
            "target_machines"
        );
    }
}

#[test]
fn memory_is_the_larger_of_need_and_name() {
    for (spec, megabytes) in [
        (json!({"testbox": "vm-2p8g"}), 8192),
        (json!({"testbox": "vm-hi1620-2p4g"}), 4096),
        (json!({"testbox": "vm-2p1g-pxe"}), 1024),
        (json!({"testbox": "dc-8g"}), 8192),
        (json!({"testbox": "dc-8g", "need_memory": "16g"}), 16384),
        (json!({"testbox": "dc-8g", "need_memory": "2g"}), 8192),
        (json!({"testbox": "vm-snb", "memory": "512M"}), 512),
        (json!({"memory_minimum": "8"}), 8192),
        (
            json!({"memory_minimum": 1, "need_memory": 2, "memory": 3}),
            2048,
        ),
        (json!({"memory_minimum": 1, "need_memory": null}), 1024),
        (json!({"testbox": "hw"}), 0),
        (json!({"testbox": "a66-8g"}), 0),
        (
            json!({"testbox": "hw", "need_memory": "258G", "hw.memory": "1g"}),
            258 * 1024,
        ),
    ] {
        let read = good(&spec);
        // A guest has what was asked for, and QEMU takes more.
        let (guest_mb, more_mb) = match read.tbox_type {
            TboxType::Vm => (megabytes, 80),
            TboxType::Hw | TboxType::Dc => (0, 0),
        };
        assert_eq!(read.memory_mb, megabytes + more_mb, "{spec}");
        assert_eq!(read.guest_memory_mb, guest_mb, "{spec}");
    }
    assert_eq!(
        plan(&json!({"testbox": "vm-2p99999999999g"}))
            .expect_err("too much")
            .field,
        "testbox"
    );
}

#[test]
fn cpus_are_the_larger_of_need_and_name() {
    for (spec, cpus) in [
        (json!({}), 1),
        (json!({"testbox": "vm-2p8g"}), 2),
        (json!({"testbox": "vm-hi1620-16p4g"}), 16),
        (json!({"testbox": "dc-8g"}), 1),
        (json!({"testbox": "vm-2p8g", "nr_cpu": 1}), 2),
        (json!({"testbox": "vm-2p8g", "need_cpus": "4"}), 4),
        (json!({"need_cpus": 3, "nr_cpu": 9}), 3),
        (json!({"need_cpus": null, "nr_cpu": 9}), 9),
        (json!({"need_cpu": 2}), 2),
        (json!({"need_cpu": 2, "nr_cpu": 9}), 9),
        (json!({"need_cpu": -32}), 1),
        (json!({"testbox": "hw-2p8g"}), 1),
        (json!({"testbox": "hw", "nr_cpu": 160}), 160),
    ] {
        assert_eq!(good(&spec).cpus, cpus, "{spec}");
    }
    for (spec, field) in [
        (json!({"need_cpus": 0}), "need_cpus"),
        (json!({"need_cpus": 1.5}), "need_cpus"),
        (json!({"nr_cpu": 65_537}), "nr_cpu"),
        (json!({"testbox": "vm-0p8g"}), "testbox"),
    ] {
        assert_eq!(plan(&spec).expect_err("no number of CPUs").field, field);
    }
}

#[test]
fn the_time_limit_follows_from_timeout_then_runtime() {
    for (spec, seconds) in [
        (json!({"runtime": 1}), 302),
        (json!({"runtime": "1h"}), 3600 + 450 + 60),
        (json!({"runtime": null}), 3600),
        (json!({"runtime": ""}), 3600),
        (json!({"runtime": "1h", "timeout": "10m"}), 600),
        (json!({"timeout_seconds": "77"}), 77),
        (
            json!({"timeout": null, "timeout_seconds": 5, "runtime": 9}),
            5,
        ),
        (json!({"runtime": "100d"}), 8_640_000 + 1_080_000 + 2939),
    ] {
        assert_eq!(good(&spec).timeout_s, seconds, "{spec}");
    }
}

#[test]
fn lists_are_read_in_every_form() {
    let plan = good(&json!({
        "tags": "ssd,fast ssd", "sched": {"devices": ["nic1", "nic0"]}, "cache_dirs": ["2-b/c", "1-a", "2-b/c"]
    }));
    assert_eq!(plan.tags, ["fast", "ssd"]);
    assert_eq!(plan.devices, ["nic0", "nic1"]);
    assert_eq!(plan.cache_dirs, ["2-b/c", "1-a"]);
    assert_eq!(good(&json!({"sched.devices": "x"})).devices, ["x"]);
    assert_eq!(good(&json!({"tags": []})).tags, Vec::<String>::new());
}

#[test]
fn retries_are_counted_by_cause() {
    for (retry, lost, fail) in [
        (json!(null), 1, 0),
        (json!(3), 3, 3),
        (json!("0"), 0, 0),
        (json!({"max": 2}), 2, 2),
        (json!({"max": 2, "on": ["infra"]}), 2, 0),
        (json!({"max": 2, "on": "fail,timeout"}), 1, 2),
        (json!({"max": 4, "on": ["infra", "oom"]}), 4, 4),
        (json!({"max": 0, "on": ["infra"]}), 0, 0),
    ] {
        let plan = good(&json!({"retry": retry}));
        assert_eq!(
            (plan.retry.infra_max, plan.retry.own_max),
            (lost, fail),
            "{retry}"
        );
    }
}

#[test]
fn what_is_wrong_is_refused_by_its_field() {
    let long = "n".repeat(129);
    let many: Vec<String> = (0..65).map(|n| format!("t{n}")).collect();
    for (field, value) in [
        ("suite", json!({"a": 1})),
        ("suite", json!(["a"])),
        ("suite", json!("a/b")),
        ("suite", json!(long)),
        ("my_account", json!("a/b")),
        ("my_account", json!("..")),
        ("my_account", json!(true)),
        ("queue", json!("a\0b")),
        ("queue", json!("a/b")),
        ("priority", json!(101)),
        ("priority", json!(-101)),
        ("priority", json!(1.5)),
        ("priority", json!("high")),
        ("priority", json!([1])),
        ("testbox", json!("a b")),
        ("testbox", json!("a@b")),
        ("testbox", json!("a/b")),
        ("testbox", json!("--a")),
        ("testbox", json!("vm--")),
        ("testbox", json!("..")),
        ("testbox", json!({})),
        ("tbox_type", json!("tpu")),
        ("tbox_type", json!(1)),
        ("arch", json!("x86 64")),
        ("arch", json!("x86.64")),
        ("target_machines", json!({"a": 1})),
        ("target_machines", json!(["a/b"])),
        ("target_machines", json!([["a"]])),
        ("target_machines", json!([""])),
        ("tags", json!(many)),
        ("tags", json!([null])),
        ("sched", json!("x")),
        ("sched.devices", json!({"a": 1})),
        ("cache_dirs", json!(["c\u{7}"])),
        ("need_memory", json!("lots")),
        ("need_memory", json!(-1)),
        ("need_memory", json!("0g")),
        ("memory_minimum", json!("512Q")),
        ("memory", json!([1])),
        ("runtime", json!("soon")),
        ("timeout", json!(0)),
        ("timeout", json!("-5m")),
        ("timeout_seconds", json!(true)),
        ("retry", json!(-1)),
        ("retry", json!({"times": 3})),
        ("retry.max", json!({"max": 101})),
        ("retry.on", json!({"on": ["sunday"]})),
        ("stop_when_cut_off", json!("maybe")),
        ("retry_elsewhere", json!("maybe")),
        ("max_run", json!(0)),
        ("max_run", json!("often")),
        ("submit_id", json!("a/../b")),
    ] {
        let key = field.strip_prefix("retry.").map_or(field, |_| "retry");
        let error = plan(&json!({ key: value.clone() })).expect_err(&format!("{field}: {value}"));
        assert_eq!(error.field, field, "{value}: {error}");
        assert!(
            !error.problem.is_empty() && !error.hint.is_empty(),
            "{error:?}"
        );
    }
    let error = plan(&json!({"testbox": "a66", "tbox_type": "vm"})).expect_err("both");
    assert_eq!(error.field, "tbox_type");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9.@/,-]{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[0-9]{1,25}[a-zA-Z]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,6}", inner), 0..4)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_gives_a_sound_plan_or_an_error(
        fields in prop::collection::vec((prop::sample::select(&[
            "suite", "script", "testbox", "tbox_group", "tbox_type", "arch", "target_machines", "need_memory",
            "memory_minimum", "memory", "runtime", "timeout", "tags", "sched", "cache_dirs", "retry", "priority",
            "queue", "my_account", "stop_when_cut_off",
        ][..]), any_value()), 0..8)
    ) {
        let spec: Spec = fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        match JobFields::parse(&spec, &defaults()) {
            Ok(plan) => {
                prop_assert!(!plan.host_keys.is_empty() && plan.timeout_s >= 1 && !plan.suite.is_empty());
                prop_assert!(plan.host_keys.is_sorted() && plan.tags.is_sorted());
                for key in &plan.host_keys {
                    prop_assert!(!key.contains(|c: char| c.is_control() || c.is_whitespace() || c == '/'));
                    prop_assert!(key.starts_with(plan.tbox_type.as_str()));
                }
                if plan.tbox_type != TboxType::Hw {
                    prop_assert!(!plan.arch.is_empty());
                }
            }
            Err(error) => prop_assert!(!error.field.is_empty() && !error.problem.is_empty()),
        }
    }
}
