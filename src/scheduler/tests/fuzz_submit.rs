//! The body of a submit, fuzzed: whatever arrives is read or refused with code, message and hint.
//!
//! 100,000 cases; `FAIRLEAD_FUZZ_CASES` asks for more. Half of them are arbitrary bytes, half are real
//! bodies with pieces cut, doubled, swapped or replaced.

use fairlead_scheduler::{Limits, read_submit};
use proptest::{prelude::*, test_runner::TestRunner};

const SEEDS: [&str; 6] = [
    r#"{"suite": "sleep", "script": "sleep 1", "my_account": "user1", "testbox": "vm-2p8g", "need_memory": "8g"}"#,
    r#"[{"suite": "a", "pp": {"x": {"y": 1}}}, {"suite": "b", "tags": ["t"], "runtime": "10m"}, null]"#,
    "suite: sleep\nnr: [1, 2, 3]\nscript: |\n  sleep {{ nr }}\n",
    "suite: a\n---\nx.y: 3\n---\na|b: [1|2, 3|4]\n",
    "a: {{ case x when 1 then 2 end }}\n<<: other.yaml\n",
    "secrets: {token: x}\nwait_on: {\"1\": {job_stage: finish}}\n? [a, b]\n: *anchor\n",
];

fn cases() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "the one setting of this test")]
    let asked = std::env::var("FAIRLEAD_FUZZ_CASES");
    asked
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100_000)
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edit = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0..5u8,
        any::<u8>(),
    );
    (
        prop::sample::select(SEEDS.to_vec()),
        prop::collection::vec(edit, 1..6),
    )
        .prop_map(|(seed, edits)| {
            let mut bytes = seed.as_bytes().to_vec();
            for (a, b, kind, byte) in edits {
                if bytes.is_empty() {
                    break;
                }
                let (a, b) = (a.index(bytes.len()), b.index(bytes.len()));
                let (from, to) = (a.min(b), a.max(b));
                match kind {
                    0 => bytes[a] = byte,
                    1 => drop(bytes.drain(from..to)),
                    2 => {
                        let piece = bytes[from..to].to_vec();
                        bytes.splice(a..a, piece);
                    }
                    3 => bytes.insert(a, byte),
                    _ => bytes.swap(a, b),
                }
            }
            bytes
        })
}

#[test]
fn any_body_is_read_or_refused_by_name() {
    let limits = Limits {
        submit_jobs_max: 200,
        ..Limits::default()
    };
    let config = ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bodies = prop_oneof![prop::collection::vec(any::<u8>(), 0..200), mutated()];
    let kinds = prop::sample::select(vec![
        None,
        Some("application/json"),
        Some("application/yaml"),
    ]);
    let outcome = TestRunner::new(config).run(&(bodies, kinds), |(body, kind)| {
        match read_submit(kind, &body, &limits) {
            Ok(items) => {
                prop_assert!(!items.is_empty() && items.len() <= limits.submit_jobs_max);
                for refused in items.into_iter().filter_map(Result::err) {
                    prop_assert!(!refused.message.is_empty() && !refused.hint.is_empty());
                }
            }
            Err(refused) => {
                prop_assert!((400..500).contains(&refused.code.status()));
                prop_assert!(!refused.message.is_empty() && !refused.hint.is_empty());
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
