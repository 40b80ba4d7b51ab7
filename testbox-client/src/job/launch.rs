//! The command of a job: its script, or its program sections through the runner.

use std::{ffi::OsString, fs, io};

use fairlead_api::Grant;
use serde_json::Value;

use super::folder::JobFolder;

/// Maximum length of the first line of a script that names its interpreter, as in the kernel, bytes.
const SHEBANG_BYTES_MAX: usize = 255;

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

/// Reason why the job cannot be run as written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrunnable {
    #[error("{0}")]
    Job(String),
    #[error("cannot write the script: {0}")]
    Disk(#[from] io::Error),
}

/// Decides how `grant` is run, and writes its script. The job sees its folder as `seen`.
///
/// The script's interpreter is called with the script as its argument, never the script itself. So it works on a
/// `noexec` disk, and a file that was just written cannot be "busy".
pub(crate) fn prepare(
    grant: &Grant,
    folder: &JobFolder,
    seen: &JobFolder,
    runner: Option<&str>,
) -> Result<Invocation, Unrunnable> {
    match (grant.job.get("script"), runner) {
        (Some(Value::String(script)), _) => {
            fs::write(folder.script(), script)?;
            Ok(interpreter(script, seen))
        }
        (Some(other), _) if !other.is_null() => Err(Unrunnable::Job(format!(
            "script is {}, not text (hint: write it as a block, 'script: |')",
            kind(other)
        ))),
        (_, Some(runner)) => Ok(Invocation {
            program: "/bin/sh".into(),
            args: vec![
                "-c".into(),
                format!("{runner} \"$1\"").into(),
                "runner".into(),
                seen.job_yaml().into(),
            ],
        }),
        (_, None) => Err(Unrunnable::Job(
            "the job has no script, and this testbox has no runner for program sections (hint: \
             start its agent with --runner CMD)"
                .to_owned(),
        )),
    }
}

fn interpreter(script: &str, folder: &JobFolder) -> Invocation {
    let first = script.lines().next().unwrap_or_default();
    let named = first
        .strip_prefix("#!")
        .filter(|_| first.len() <= SHEBANG_BYTES_MAX)
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let mut args = Vec::new();
    let program = match named {
        None => "/bin/sh",
        Some(line) => {
            // As in the kernel, the rest of the line is one argument.
            let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            if !rest.trim().is_empty() {
                args.push(rest.trim().into());
            }
            program
        }
    };
    args.push(folder.script().into());
    Invocation {
        program: program.into(),
        args,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::grant;
    use serde_json::json;

    fn check(job: Value, runner: Option<&str>, expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let grant = grant("7", job);
        let folder = JobFolder::new(dir.path(), "7", 1).unwrap();
        folder.create(&grant).unwrap();
        let invocation = prepare(&grant, &folder, &folder, runner).unwrap();
        let here = folder.path().to_str().unwrap();
        let words: Vec<_> = std::iter::once(&invocation.program)
            .chain(&invocation.args)
            .map(|word| word.to_str().unwrap().replace(here, "."))
            .collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn a_script_runs_under_its_interpreter() {
        check(json!({"script": "echo"}), None, &["/bin/sh", "./script"]);
        check(json!({"script": ""}), Some("r"), &["/bin/sh", "./script"]);
        check(json!({"script": "#!\n"}), None, &["/bin/sh", "./script"]);
        check(
            json!({"script": "#! /usr/bin/env  python3 -u\nprint()"}),
            None,
            &["/usr/bin/env", "python3 -u", "./script"],
        );
        check(
            json!({"script": "#!/bin/bash\r\n"}),
            None,
            &["/bin/bash", "./script"],
        );
    }

    #[test]
    fn program_sections_run_through_the_runner() {
        check(
            json!({"script": null, "hackbench": {}}),
            Some("lkp run"),
            &["/bin/sh", "-c", "lkp run \"$1\"", "runner", "./job.yaml"],
        );
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let folder = JobFolder::new(dir.path(), "7", 1).unwrap();
        for (job, word) in [
            (json!({"hackbench": {}}), "--runner"),
            (json!({"script": ["a"]}), "a list"),
        ] {
            let error = prepare(&grant("7", job), &folder, &folder, None).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
