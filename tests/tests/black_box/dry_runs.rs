//! A dry run, which knows no lab, and a submit refuse the same jobs with the same code.

use fairlead_tests::{Person, Store};

/// Job files that no scheduler accepts, and the code of the refusal.
const BAD: [(&str, &str, &str); 14] = [
    ("a need without a name", "needs: [nobody]", "bad_field"),
    (
        "a circle of needs",
        "name: a\nneeds: [b]\nnr: 1\n---\nname: b\nneeds: [a]\nnr: 2",
        "bad_field",
    ),
    ("a cron line", "cron: \"99 99 * * *\"", "bad_field"),
    ("no shards", "shards: 0", "bad_field"),
    (
        "shards of an unknown kind",
        "shards: {count: 2, cuont: 3}",
        "bad_field",
    ),
    (
        "a list that is no script",
        "shards: {count: 2, list: 7}",
        "bad_field",
    ),
    (
        "shards that cannot run",
        "shards: {count: 1, by: {need_memory: [1G, lots]}}",
        "bad_field",
    ),
    ("a group without a name", "group: {shard: a}", "bad_field"),
    (
        "a group for too long",
        "group: {id: g, within: 3d}",
        "bad_field",
    ),
    ("an account that is no name", "my_account: a b", "bad_name"),
    ("a priority", "priority: 1000", "bad_field"),
    ("no retries", "retry: {on: rain}", "bad_field"),
    ("a long job", "LONG", "too_large"),
    ("many shards", "MANY", "too_large"),
];

fn text_of(fields: &str) -> String {
    let head = "suite: bad\ntestbox: dc\nscript: 'true'\n";
    match fields {
        "LONG" => format!("{head}note: {}\n", "x".repeat(300 << 10)),
        "MANY" => format!("{head}shards: 1000\nnr: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n"),
        fields => {
            let files = fields.split("---\n").map(|part| format!("{head}{part}\n"));
            files.collect::<Vec<_>>().join("---\n")
        }
    }
}

/// Refusals do not depend on the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_and_a_submit_refuse_with_the_same_code() {
    let lab = Person::new(Store::Embedded).await;
    for (what, fields, code) in BAD {
        std::fs::write(lab.folder.path().join("bad.yaml"), text_of(fields)).expect("a job file");
        let code = format!("({code})");
        let dry = lab.run(&["submit", "--dry-run", "bad.yaml"]);
        dry.expect_code(2);
        assert!(dry.err.contains(&code), "{what}: {}", dry.err);
        let real = lab.run(&["submit", "bad.yaml"]);
        real.expect_code(3);
        assert!(real.err.contains(&code), "{what}: {}", real.err);
    }
    // Both name all misspelt fields.
    let misspelt = "need_memroy: 1G\npriorty: 5\n";
    std::fs::write(lab.folder.path().join("bad.yaml"), text_of(misspelt)).expect("a job file");
    for words in [
        &["submit", "--dry-run", "bad.yaml"][..],
        &["submit", "bad.yaml"],
    ] {
        let ran = lab.run(words);
        ran.expect_code(0);
        for field in ["need_memroy", "priorty"] {
            assert!(ran.err.contains(field), "{words:?}: {}", ran.err);
        }
        lab.run(&[words, &["--strict"]].concat()).expect_code(2);
    }
}
