//! Finds misspelt fields: such a key counts as a parameter of the job's program, and the job runs with defaults.
//!
//! Job files are free-form, so only near misses are reported. A key that may be intended is not: a section of a
//! program, a key beside the field itself, or a word of real jobs.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{Spec, Use, fields, is_field, near::Word};

/// Shorter fields have too many words near them.
const LETTERS_MIN: usize = 5;

/// Words of real jobs that are near a field, and meant.
const WORDS: [&str; 17] = [
    "cgroup",
    "feeds",
    "inotify",
    "label",
    "misses",
    "need",
    "need_cpu",
    "need_cpuid",
    "need_node",
    "queues",
    "scripts",
    "secret",
    "seeds",
    "suit",
    "time",
    "timers",
    "times",
];

/// Fields that a key may be a slip of: with a value, and with a map.
static NEAR: LazyLock<[Vec<Word<'static>>; 2]> = LazyLock::new(|| {
    [Use::Misspelt, Use::MisspeltMap].map(|used| {
        let long = fields(used).filter(|field| field.len() >= LETTERS_MIN);
        let mut names: Vec<&str> = long.collect();
        names.sort_unstable();
        names.into_iter().map(Word::new).collect()
    })
});

/// A key, and the field that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misspelt {
    /// The key as it was written.
    pub key: String,
    /// The field.
    pub meant: &'static str,
    /// The file that it stands in, or the setting; empty when it came in no file.
    pub file: String,
    /// The line, from 1; 0 without a file.
    pub line: u32,
}

impl std::fmt::Display for Misspelt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:{}: ", self.file, self.line)?;
        }
        let Self { key, meant, .. } = self;
        write!(f, "{key} is no field of a job; did you mean {meant}?")
    }
}

/// Kind of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Nothing,
    Map,
    Value,
}

/// The field that `key` is a slip of. `is_set`: whether the job has a field beside it.
pub(crate) fn meant(
    key: &str,
    holds: Holds,
    is_set: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    let [with_value, with_map] = &*NEAR;
    let fields = match holds {
        Holds::Nothing => return None,
        Holds::Map => with_map,
        Holds::Value => with_value,
    };
    let is_known = |used| is_field(key, used);
    if is_known(Use::Misspelt) || is_known(Use::MisspeltMap) || WORDS.contains(&key) {
        return None;
    }
    let key = Word::new(key);
    let mut near = fields.iter().filter(|field| key.is_slip_of(field));
    let meant = near.find(|field| !is_set(field.text))?;
    Some(meant.text)
}

/// Keys of a job that are near misses of fields.
pub fn misspelt(spec: &Spec) -> Vec<Misspelt> {
    let found = spec.iter().filter_map(|(key, value)| {
        let holds = match value {
            Value::Null => Holds::Nothing,
            Value::Object(_) => Holds::Map,
            _ => Holds::Value,
        };
        let meant = meant(key, holds, |field| spec.contains_key(field))?;
        Some(Misspelt {
            key: key.clone(),
            meant,
            file: String::new(),
            line: 0,
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(job: &Value) -> Vec<(String, &'static str)> {
        let spec = job.as_object().expect("a map");
        misspelt(spec)
            .into_iter()
            .map(|found| (found.key, found.meant))
            .collect()
    }

    #[test]
    fn near_misses_are_told_with_the_field() {
        for (key, meant) in [
            ("need_memroy", "need_memory"),
            ("runtme", "runtime"),
            ("testbx", "testbox"),
            ("priorty", "priority"),
            ("time_out", "timeout"),
            ("target_machine", "target_machines"),
            ("need-memory", "need_memory"),
            ("Timeout", "timeout"),
            ("retyr", "retry"),
        ] {
            assert_eq!(
                told(&json!({"suite": "s", key: 1})),
                [(key.to_owned(), meant)]
            );
        }
        let map = json!({"stage_timeout": {"boot": "5m"}});
        assert_eq!(told(&map), [("stage_timeout".to_owned(), "stage_timeouts")]);
    }

    /// Keys of lkp and compass-ci that are near fields, and of programs of people's own.
    #[test]
    fn keys_that_may_well_be_meant_are_not_told() {
        let jobs = [
            json!({"suite": "s", "nr_run": 1, "nr_threads": 8, "subqueue": "x", "submitter": 1}),
            // A program's section, or a program without parameters.
            json!({"scripts": {"mode": 1}, "suites": null, "timeouts": {"a": 1}, "runtimee": null}),
            // Beside the field itself it is another thing.
            json!({"runtime": 60, "runtime2": 90, "timeout": 1, "timeouts": 2}),
            json!({"seeds": 3, "time": 5, "times": 2, "need": 1, "label": "x", "secret": "y"}),
            json!({"need_cpu": -32, "need_cpuid": 106, "need_cpu_model": "a,b"}),
            json!({"tag": 1, "march": "x", "jobs": 1, "memmory_of_program_x": 1, "test": 2}),
            json!({"os_lv": 1, "os_mount": "nfs", "testcase": "x", "ssh_pub_key": "k", "services": {}}),
        ];
        for job in jobs {
            assert_eq!(told(&job), [], "{job}");
        }
    }
}
