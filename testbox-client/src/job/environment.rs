//! The environment of a job's processes: small, known, and the same on every host.

use fairlead_api::{Grant, Peer};
use serde_json::Value;

use super::{folder::JobFolder, peers, shards};

/// Maximum length of a variable's value. The kernel's own limit for `NAME=value` is 128 KiB.
const VALUE_BYTES_MAX: usize = 120 * 1024;

/// Returns the environment of a job's processes. The agent's names override the job's parameters, so that no job file
/// can move `PATH` or `RESULT_ROOT` by accident.
pub(crate) fn of(
    grant: &Grant,
    folder: &JobFolder,
    host: &str,
    path: Option<&str>,
    nodes: &[Peer],
) -> Vec<(String, String)> {
    let text = |name: &str| {
        grant
            .job
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let here = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let own = [
        ("HOME", here(folder.path())),
        ("LANG", "C.UTF-8".to_owned()),
        ("TMPDIR", here(&folder.tmp())),
        ("JOB_ID", grant.job_id.clone()),
        ("ATTEMPT", grant.attempt.to_string()),
        ("RESULT_ROOT", here(&folder.result())),
        ("SUITE", text("suite")),
        ("TESTBOX", text("testbox")),
        ("HOST", host.to_owned()),
    ];
    let mut all: Vec<_> = fairlead_job::environment(&grant.job)
        .into_iter()
        .filter(|(name, value)| can_be_set(name, value) && name != "shard_tests")
        .collect();
    all.extend(peers::environment(grant, nodes));
    all.extend(shards::environment(grant, folder));
    // A guest has its own search path.
    all.extend(path.map(|path| ("PATH".to_owned(), path.to_owned())));
    all.extend(own.map(|(name, value)| (name.to_owned(), value)));
    if !grant.inputs.is_empty() {
        all.push(("FAIRLEAD_INPUTS".to_owned(), here(&folder.inputs())));
    }
    if !grant.outputs.is_empty() {
        all.push(("FAIRLEAD_OUTPUTS".to_owned(), here(&folder.outputs())));
    }
    all
}

/// Returns the suite of a grant's job. Empty: none.
pub(crate) fn suite_of(grant: &Grant) -> String {
    let suite = grant.job.get("suite").and_then(Value::as_str);
    suite.unwrap_or_default().to_owned()
}

fn can_be_set(name: &str, value: &str) -> bool {
    !name.is_empty()
        && !name.contains(['=', '\0'])
        && !value.contains('\0')
        && value.len() <= VALUE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::grant;

    #[test]
    fn parameters_are_there_and_cannot_move_what_is_the_agent_s() {
        let grant = grant(
            "7",
            serde_json::json!({"suite": "s", "testbox": "dc", "PATH": "/evil", "hackbench": {"nr_threads": 8}}),
        );
        let folder = JobFolder::new(std::path::Path::new("/w"), "7", 1).unwrap();
        let all = of(&grant, &folder, "h", Some("/bin"), &[]);
        let last = |name: &str| {
            let found = all.iter().rev().find(|(n, _)| n == name);
            found.map(|(_, value)| value.as_str())
        };
        for (name, value) in [
            ("PATH", "/bin"),
            ("JOB_ID", "7"),
            ("ATTEMPT", "1"),
            ("SUITE", "s"),
            ("TESTBOX", "dc"),
            ("HOST", "h"),
            ("RESULT_ROOT", "/w/7-1/result"),
            ("nr_threads", "8"),
        ] {
            assert_eq!(last(name), Some(value), "{name}");
        }
        assert!(!can_be_set("a=b", "") && !can_be_set("", "") && !can_be_set("a", "\0"));
    }
}
