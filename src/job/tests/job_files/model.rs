//! Compares the matrix with a trivial model: nested loops without counting.

use fairlead_job::{ExpandOptions, NoFiles, Spec, expand_text};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Every way to choose from a value, the first list turning slowest.
fn choices(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(choices).collect(),
        Value::Object(map) => {
            let mut all = vec![Map::new()];
            for (key, value) in map {
                let inner = choices(value);
                all = all
                    .iter()
                    .flat_map(|job| {
                        inner.iter().map(|value| {
                            let mut job = job.clone();
                            job.insert(key.clone(), value.clone());
                            job
                        })
                    })
                    .collect();
            }
            all.into_iter().map(Value::Object).collect()
        }
        other => vec![other.clone()],
    }
}

/// The jobs of a file whose documents these are.
fn model(documents: &[Spec]) -> Vec<Spec> {
    let mut jobs: Vec<Spec> = Vec::new();
    for (n, document) in documents.iter().enumerate() {
        let mut whole = documents.first().cloned().unwrap_or_default();
        if n > 0 {
            whole.extend(document.clone());
        }
        for job in choices(&Value::Object(whole)) {
            let job = job.as_object().expect("a map").clone();
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
    jobs
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4i64).prop_map(Value::from),
        prop::sample::select(&["", "x", "yes", "8", "it's", "a: b", "# c", "\"", "é\n"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            map_of(inner).prop_map(Value::Object),
        ]
    })
}

fn map_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Spec> {
    prop::collection::vec(("[a-f]", inner), 0..4).prop_map(|entries| entries.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_gives_the_jobs_of_the_model(documents in prop::collection::vec(map_of(tree()), 1..4)) {
        let expected = model(&documents);
        // JSON is YAML.
        let texts: Vec<String> = documents.iter().map(|d| Value::Object(d.clone()).to_string()).collect();
        let text = format!("--- {}\n", texts.join("\n--- "));
        let jobs = expand_text("job.yaml", text.as_bytes(), &ExpandOptions::default(), &NoFiles);
        match jobs {
            Ok(jobs) => prop_assert_eq!(jobs, expected, "{}", text),
            Err(error) => prop_assert!(false, "{}\n{}", error, text),
        }
    }
}
