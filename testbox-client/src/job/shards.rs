//! A shard of a job: tells its program which part is its own, in the words of Bazel and of Google Test.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
};

use fairlead_api::Grant;
use fairlead_job::TboxType;
use serde_json::Value;

use super::folder::JobFolder;

/// File with the tests that a shard runs, one on each line.
const TESTS_FILE: &str = "shard-tests";
/// File that a program touches to show that it supports shards.
const STATUS_FILE: &str = "shard-status";
/// Warning in the output of a program that does not.
const IGNORED: &str = "\nfairlead: this program did not touch the file $TEST_SHARD_STATUS_FILE. \
Perhaps it ran all tests, and so did each other shard.\n";

/// Returns true if a grant's job is one of several shards.
pub(super) fn is_shard(grant: &Grant) -> bool {
    grant.job.contains_key("shard_of") && number(grant, "shard_total").is_some()
}

fn number(grant: &Grant, field: &str) -> Option<u64> {
    grant.job.get(field)?.as_u64()
}

/// Returns the tests of a shard whose job listed them, one on each line.
fn listed(grant: &Grant) -> Option<String> {
    let tests = grant.job.get("shard_tests")?.as_array()?;
    let lines = tests.iter().filter_map(Value::as_str);
    let mut text = lines.collect::<Vec<_>>().join("\n");
    text.push('\n');
    Some(text)
}

/// Writes the tests of a shard whose job listed them. Blocks.
pub(super) fn write_tests(grant: &Grant, folder: &JobFolder) -> io::Result<()> {
    match listed(grant) {
        Some(tests) => fs::write(folder.tmp().join(TESTS_FILE), tests),
        None => Ok(()),
    }
}

/// Returns the variables that select a shard's tests.
pub(super) fn environment(grant: &Grant, folder: &JobFolder) -> Vec<(String, String)> {
    if listed(grant).is_some() {
        let tests = folder.tmp().join(TESTS_FILE);
        let tests = tests.to_string_lossy().into_owned();
        return vec![("FAIRLEAD_TESTS".to_owned(), tests)];
    }
    let place = number(grant, "shard_index").zip(number(grant, "shard_total"));
    let Some((index, total)) = place.filter(|_| is_shard(grant)) else {
        return Vec::new();
    };
    let status = folder.tmp().join(STATUS_FILE);
    let (index, total) = (index.to_string(), total.to_string());
    [
        ("TEST_SHARD_INDEX", index.clone()),
        ("TEST_TOTAL_SHARDS", total.clone()),
        ("GTEST_SHARD_INDEX", index),
        ("GTEST_TOTAL_SHARDS", total),
        (
            "TEST_SHARD_STATUS_FILE",
            status.to_string_lossy().into_owned(),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Warns in the output of a shard that ran without showing that it supports shards. Virtual machines hide this file, so
/// they get no warning. Blocks.
pub(super) fn warn_of_ignored(grant: &Grant, folder: &JobFolder) -> io::Result<()> {
    let is_hidden = grant.tbox_type == TboxType::Vm.as_str();
    if !is_shard(grant)
        || listed(grant).is_some()
        || is_hidden
        || folder.tmp().join(STATUS_FILE).try_exists()?
    {
        return Ok(());
    }
    let mut output = OpenOptions::new().append(true).open(folder.output())?;
    output.write_all(IGNORED.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::testing::grant;

    #[test]
    fn a_shard_knows_its_part_and_another_job_nothing() {
        let shard = json!({"shard_of": "7", "shard": 5, "shard_index": 1, "shard_total": 3});
        let folder = JobFolder::new(Path::new("/w"), "9", 1).unwrap();
        let all = environment(&grant("9", shard), &folder);
        let of = |name: &str| {
            let found = all.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        for (name, value) in [
            ("TEST_SHARD_INDEX", "1"),
            ("TEST_TOTAL_SHARDS", "3"),
            ("GTEST_SHARD_INDEX", "1"),
            ("GTEST_TOTAL_SHARDS", "3"),
            ("TEST_SHARD_STATUS_FILE", "/w/9-1/tmp/shard-status"),
        ] {
            assert_eq!(of(name), Some(value), "{name}");
        }
        assert_eq!(environment(&grant("9", json!({})), &folder), []);
        let listed =
            json!({"shard_of": "7", "shard_index": 1, "shard_total": 3, "shard_tests": ["a", "b"]});
        let named = environment(&grant("9", listed), &folder);
        let expected = (
            "FAIRLEAD_TESTS".to_owned(),
            "/w/9-1/tmp/shard-tests".to_owned(),
        );
        assert_eq!(named, [expected]);
    }

    #[test]
    fn a_program_that_ignores_its_part_is_warned_of_once() {
        let shard = json!({"shard_of": "7", "shard": 1, "shard_index": 0, "shard_total": 3});
        let (shard, whole) = (grant("9", shard), grant("9", json!({})));
        let folder = tempfile::tempdir().unwrap();
        let folder = JobFolder::new(folder.path(), "9", 1).unwrap();
        fs::create_dir_all(folder.tmp()).unwrap();
        fs::create_dir_all(folder.result()).unwrap();
        let said = |grant: &Grant| {
            fs::write(folder.output(), "ok\n").unwrap();
            warn_of_ignored(grant, &folder).unwrap();
            fs::read_to_string(folder.output()).unwrap()
        };
        assert!(said(&shard).contains("did not touch"), "{}", said(&shard));
        assert_eq!(said(&whole), "ok\n");
        fs::write(folder.tmp().join(STATUS_FILE), "").unwrap();
        assert_eq!(said(&shard), "ok\n");
    }
}
