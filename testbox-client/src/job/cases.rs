//! Makes `results.json` of the test results among the files of a job.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use fairlead_cases::{Collector, FILE_BYTES_MAX, Form};

use super::results::{OUTPUT, Results};

/// Name of the file with the test results, below the result folder.
pub(crate) const CASES: &str = "results.json";
/// Maximum number of files of test results that are read.
const FILES_MAX: usize = 1_000;
/// Maximum total size of these files that is read, bytes.
const BYTES_MAX: u64 = 256 << 20;

/// Reads the test results among `results`, and writes them to `to` as one file. Returns the file with its name below
/// the result folder. `None`: there are none, or the job wrote such a file itself. Blocks.
pub(crate) fn convert(results: &Results, to: &Path) -> io::Result<Option<(PathBuf, String)>> {
    if results.files.iter().any(|(_, name)| name == CASES) {
        return Ok(None);
    }
    let mut collector = Collector::default();
    let of_form = |(path, name): &'_ (PathBuf, String)| {
        Form::of(name).map(|form| (form, path.clone(), name.clone()))
    };
    let files: Vec<_> = results.files.iter().filter_map(of_form).collect();
    let mut left = BYTES_MAX;
    for (number, (form, path, name)) in files.iter().enumerate() {
        if number >= FILES_MAX {
            let problem = format!("and further files: at most {FILES_MAX} are read");
            collector.problem(name, &problem);
            break;
        }
        match head(path, FILE_BYTES_MAX.min(left)) {
            Ok((bytes, true)) => {
                left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                collector.read(*form, name, &bytes);
            }
            Ok((_, false)) => {
                let problem = format!("is larger than {} bytes", FILE_BYTES_MAX.min(left));
                collector.problem(name, &problem);
            }
            Err(error) => collector.problem(name, &error.to_string()),
        }
    }
    if !collector.has_cases() {
        let output = results.files.iter().find(|(_, name)| name == OUTPUT);
        if let Some((path, name)) = output {
            collector.read_output(name, &head(path, FILE_BYTES_MAX)?.0);
        }
    }
    if collector.is_empty() {
        return Ok(None);
    }
    fs::write(to, serde_json::to_vec(&collector.finish())?)?;
    Ok(Some((to.to_owned(), CASES.to_owned())))
}

/// Returns the beginning of a file, and true if that is all of it.
fn head(path: &Path, bytes_max: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(bytes_max);
    file.read_to_end(&mut bytes)?;
    let is_all = file.into_inner().read(&mut [0])? == 0;
    Ok((bytes, is_all))
}

#[cfg(test)]
mod tests {
    use fairlead_cases::TestResults;

    use super::*;

    fn converted(files: &[(&str, &[u8])]) -> Option<TestResults> {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::default();
        for (number, (name, bytes)) in files.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::write(&path, bytes).unwrap();
            results.files.push((path, (*name).to_owned()));
        }
        let to = folder.path().join("made");
        let (path, name) = convert(&results, &to).unwrap()?;
        assert_eq!(name, "results.json");
        serde_json::from_slice(&fs::read(path).unwrap()).ok()
    }

    #[test]
    fn all_files_of_test_results_are_one() {
        let results = converted(&[
            ("a.tap", b"TAP version 14\nok 1 - a\nnot ok 2 - b\n"),
            ("x/metrics.json", br#"{"rate": 5}"#),
            ("output", b"TAP version 14\nok 1 - of the output\n"),
            ("x/y.xml", b"<project/>"),
        ]);
        let results = results.unwrap();
        assert_eq!((results.counts.passed, results.counts.failed), (1, 1));
        assert_eq!(results.metrics.get("rate"), Some(&5.0));
    }

    #[test]
    fn a_job_that_only_prints_has_results_too() {
        let results = converted(&[("output", b"hello\nKTAP version 1\n1..1\nok 1 a\n")]);
        assert_eq!(results.unwrap().counts.passed, 1);
        assert_eq!(converted(&[("output", b"ok 1 is what I say\n")]), None);
        assert_eq!(converted(&[("log.xml", b"<project/>")]), None);
        let own = converted(&[("results.json", b"{}"), ("a.tap", b"ok 1\n")]);
        assert_eq!(own, None, "the job's own file stays");
    }

    #[test]
    fn what_is_too_large_or_broken_is_told() {
        let large = vec![b'x'; usize::try_from(FILE_BYTES_MAX).unwrap() + 1];
        let results = converted(&[("a.tap", &large), ("b.xml", b"<testsuite name='")]).unwrap();
        assert!(results.problems[0].contains("a.tap: is larger than"));
        assert!(results.problems[1].contains("b.xml: is no JUnit XML"));
    }
}
