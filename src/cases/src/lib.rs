//! Test results: reads the forms that test programs write, and makes one bounded form of them.
//!
//! It reads JUnit XML (as pytest, surefire and gtest write it), TAP 14, KTAP of the kernel, and plain metrics. Nothing
//! here reads a disk or knows a job: bytes come in, cases come out. Each number of cases is counted from the cases.

mod junit;
mod metrics;
mod tap;

use std::{
    collections::BTreeMap,
    fmt,
    io::{BufReader, Read},
};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};

/// Maximum number of kept cases. The others are only counted by outcome.
pub const CASES_MAX: usize = 20_000;
/// Maximum number of cases in one file, and of elements in an XML file. A file with more is ignored completely.
pub const FILE_CASES_MAX: usize = 200_000;
/// Maximum length of the name of a case or a metric, bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// Maximum length of the message of a case, bytes.
pub const MESSAGE_BYTES_MAX: usize = 1_000;
/// Maximum number of kept metrics.
pub const METRICS_MAX: usize = 1_000;
/// Maximum size of a file that is read, bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of reported problems.
const PROBLEMS_MAX: usize = 20;
/// Number of bytes per read of a file.
const READ_BYTES: usize = 64 << 10;
/// Version of the format.
const FORMAT: u16 = 1;

/// Outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The test succeeded.
    Passed,
    /// The test failed.
    Failed,
    /// The test did not run, or its failure is expected.
    Skipped,
    /// The test has no valid result, or broke.
    Error,
}

/// One test case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Full name, at most 512 bytes. Levels are separated by `/`.
    pub name: String,
    /// Outcome of the case.
    pub outcome: Outcome,
    /// Duration, seconds. Absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Start of its message, at most 1,000 bytes. Empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Number of cases by outcome, including those that are not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseCounts {
    /// See [`Outcome::Passed`].
    pub passed: u64,
    /// See [`Outcome::Failed`].
    pub failed: u64,
    /// See [`Outcome::Skipped`].
    pub skipped: u64,
    /// See [`Outcome::Error`].
    pub error: u64,
}

/// Results of one job: the content of `results.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestResults {
    /// Version of this format.
    pub format: u16,
    /// Counts over all cases.
    pub counts: CaseCounts,
    /// Cases that failed or broke first, then the others, each in the order of the files. At most 20,000.
    pub cases: Vec<Case>,
    /// Metrics of the job, by name. At most 1,000.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Problems of unreadable files, with the file. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Summary of the results of one job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Number of cases by outcome.
    pub counts: CaseCounts,
    /// Names of the first cases that failed or broke.
    pub first_failures: Vec<String>,
    /// Cases that ran: all except skipped ones. At most 20,000.
    pub runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Brief {
    counts: CaseCounts,
    #[serde(default)]
    cases: Runs,
}

/// Cases that ran, read one by one. Cases that are not kept take no memory.
#[derive(Default)]
struct Runs(Vec<Run>);

impl<'de> Deserialize<'de> for Runs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RunsVisitor)
    }
}

struct RunsVisitor;

impl<'de> Visitor<'de> for RunsVisitor {
    type Value = Runs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of cases")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cases: A) -> Result<Runs, A::Error> {
        let mut runs = Vec::new();
        while let Some(case) = cases.next_element::<BriefCase>()? {
            if case.outcome == Outcome::Skipped || runs.len() >= CASES_MAX {
                continue;
            }
            runs.push(Run {
                name: cut(&case.name, NAME_BYTES_MAX),
                is_bad: matches!(case.outcome, Outcome::Failed | Outcome::Error),
                seconds: case.seconds,
            });
        }
        Ok(Runs(runs))
    }
}

#[derive(Deserialize)]
struct BriefCase {
    name: String,
    outcome: Outcome,
    #[serde(default)]
    seconds: Option<f64>,
}

/// End of one case, and its duration.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Full name.
    pub name: String,
    /// True if it failed or broke.
    pub is_bad: bool,
    /// Duration, seconds. `None`: unknown.
    pub seconds: Option<f64>,
}

impl Summary {
    /// Reads the summary of a `results.json`, piece by piece, with at most `failures_max` names.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not such JSON.
    pub fn of_json(file: impl Read, failures_max: usize) -> Result<Self, serde_json::Error> {
        let file = BufReader::with_capacity(READ_BYTES, file);
        let Brief { counts, cases } = serde_json::from_reader(file)?;
        let Runs(runs) = cases;
        let bad = runs.iter().filter(|run| run.is_bad);
        let first_failures = bad.take(failures_max).map(|run| run.name.clone());
        Ok(Self {
            counts,
            first_failures: first_failures.collect(),
            runs,
        })
    }
}

/// Collects the results of several files.
#[derive(Debug, Default)]
pub struct Collector {
    results: TestResults,
    good: Vec<Case>,
}

/// Format of a file with test results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JUnit XML.
    JUnit,
    /// TAP or KTAP.
    Tap,
    /// A JSON object of numbers.
    Metrics,
}

impl Form {
    /// Returns the format of a file by its path below the result folder. `None`: it has no test results.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (_, ending) = name.rsplit_once('.')?;
        match ending {
            "xml" => Some(Self::JUnit),
            "tap" | "ktap" => Some(Self::Tap),
            "json" if name == "metrics.json" => Some(Self::Metrics),
            _ => None,
        }
    }
}

impl Collector {
    /// Adds the content of a file. XML of other kinds is ignored; any other unreadable content is a problem.
    pub fn read(&mut self, form: Form, file: &str, bytes: &[u8]) {
        let read = match form {
            Form::JUnit => junit::cases(bytes).map(|cases| self.take(cases)),
            Form::Tap => tap::cases(&String::from_utf8_lossy(bytes)).map(|cases| self.take(cases)),
            Form::Metrics => metrics::read(bytes).map(|read| {
                self.results.metrics.extend(read);
                while self.results.metrics.len() > METRICS_MAX {
                    self.results.metrics.pop_last();
                }
            }),
        };
        if let Err(problem) = read {
            self.problem(file, &problem);
        }
    }

    /// Adds the cases that a job printed into this file as TAP or KTAP. Output without them has none.
    pub fn read_output(&mut self, file: &str, bytes: &[u8]) {
        if tap::is_announced(&String::from_utf8_lossy(bytes)) {
            self.read(Form::Tap, file, bytes);
        }
    }

    /// Notes a file that could not be read.
    pub fn problem(&mut self, file: &str, problem: &str) {
        if self.results.problems.len() < PROBLEMS_MAX {
            let text = format!("{file}: {problem}");
            self.results.problems.push(cut(&text, MESSAGE_BYTES_MAX));
        }
    }

    /// Returns true if nothing was found, so that no result must be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let results = &self.results;
        !self.has_cases() && results.metrics.is_empty() && results.problems.is_empty()
    }

    /// Returns true if there was a case.
    #[must_use]
    pub fn has_cases(&self) -> bool {
        self.results.counts != CaseCounts::default()
    }

    /// Returns the results, within all bounds.
    #[must_use]
    pub fn finish(self) -> TestResults {
        let mut results = self.results;
        results.format = FORMAT;
        results.cases.extend(self.good);
        results.cases.truncate(CASES_MAX);
        results
    }

    fn take(&mut self, cases: Vec<Case>) {
        let counts = &mut self.results.counts;
        for case in cases {
            let (count, kept) = match case.outcome {
                Outcome::Passed => (&mut counts.passed, &mut self.good),
                Outcome::Skipped => (&mut counts.skipped, &mut self.good),
                Outcome::Failed => (&mut counts.failed, &mut self.results.cases),
                Outcome::Error => (&mut counts.error, &mut self.results.cases),
            };
            *count += 1;
            if kept.len() < CASES_MAX {
                kept.push(Case {
                    name: cut(&case.name, NAME_BYTES_MAX),
                    message: cut(case.message.trim(), MESSAGE_BYTES_MAX),
                    seconds: case.seconds.filter(|seconds| seconds.is_finite()),
                    ..case
                });
            }
        }
    }
}

/// Returns at most `bytes_max` bytes of a text: whole characters, without control characters except newlines and tabs.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_are_told_by_their_names() {
        for (path, form) in [
            ("report/TEST-a.xml", Some(Form::JUnit)),
            ("a.tap", Some(Form::Tap)),
            ("kunit.ktap", Some(Form::Tap)),
            ("x/metrics.json", Some(Form::Metrics)),
            ("other.json", None),
            ("xml", None),
            ("output", None),
        ] {
            assert_eq!(Form::of(path), form, "{path}");
        }
    }

    #[test]
    fn failures_are_kept_before_all_else() {
        let mut collector = Collector::default();
        let mut text = String::from("TAP version 14\n");
        for n in 1..=CASES_MAX {
            writeln!(text, "ok {n} - good {n}").unwrap();
        }
        text.push_str("not ok 20001 - bad\n");
        collector.read(Form::Tap, "a.tap", text.as_bytes());
        collector.read(
            Form::Metrics,
            "metrics.json",
            br#"{"a": 1, "b": {"c": 2.5}}"#,
        );
        collector.read(Form::Metrics, "x/metrics.json", b"[]");
        let results = collector.finish();
        assert_eq!((results.counts.passed, results.counts.failed), (20_000, 1));
        assert_eq!(
            (results.cases.len(), results.cases[0].name.as_str()),
            (CASES_MAX, "bad")
        );
        assert_eq!(results.metrics.get("b.c"), Some(&2.5));
        assert!(
            results.problems[0].starts_with("x/metrics.json: "),
            "{:?}",
            results.problems
        );
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<TestResults>(&text).unwrap(), results);
    }

    #[test]
    fn a_small_file_never_becomes_large_in_memory() {
        let name = "n".repeat(100_000);
        let many = |one: &str| one.repeat(FILE_CASES_MAX + 1);
        let mut collector = Collector::default();
        for (form, text) in [
            (
                Form::Tap,
                format!("# Subtest: {name}\n    ok - {name}\nok - {name}\n"),
            ),
            (
                Form::JUnit,
                format!("<testsuite name='{name}'><testcase name='{name}'/></testsuite>"),
            ),
            (Form::Metrics, format!(r#"{{"{name}": {{"{name}": 1}}}}"#)),
            (Form::Tap, format!("TAP version 14\n{}", many("ok\n"))),
            (
                Form::JUnit,
                format!("<testsuite>{}</testsuite>", many("<testcase/>")),
            ),
        ] {
            collector.read(form, "f", text.as_bytes());
        }
        collector.read_output("output", many("TAP version 14\nok\n").as_bytes());
        let results = collector.finish();
        assert_eq!((results.cases.len(), results.metrics.len()), (2, 1));
        let told: Vec<_> = results.problems.iter().map(String::as_str).collect();
        let too_many = "has more than 200000";
        assert!(
            told.iter().all(|problem| problem.contains(too_many)),
            "{told:?}"
        );
        assert_eq!(told.len(), 3, "{told:?}");
    }

    #[test]
    fn a_long_text_is_cut_at_a_whole_character() {
        assert_eq!(cut("añb", 2), "a");
        assert_eq!(cut("a\u{1b}[0mb\n", 9), "a[0mb\n");
    }

    proptest! {
        /// Checks that any input of a job gives a result within the bounds, with each case counted once.
        #[test]
        fn any_bytes_give_a_bounded_result(bytes in proptest::collection::vec(any::<u8>(), 0..2_000), xml in any::<bool>()) {
            let mut collector = Collector::default();
            collector.read(if xml { Form::JUnit } else { Form::Tap }, "f", &bytes);
            collector.read_output("output", &bytes);
            collector.read(Form::Metrics, "m", &bytes);
            let results = collector.finish();
            let CaseCounts { passed, failed, skipped, error } = results.counts;
            prop_assert_eq!(usize::try_from(passed + failed + skipped + error).unwrap(), results.cases.len());
            prop_assert!(results.cases.iter().all(|case| case.name.len() <= NAME_BYTES_MAX));
        }

        /// Checks that TAP of this grammar keeps each leaf, once.
        #[test]
        fn each_leaf_of_tap_is_a_case(tree in proptest::collection::vec((any::<bool>(), 0..4_usize), 0..20)) {
            let mut text = String::from("TAP version 14\n");
            let (mut leaves, mut bad) = (0, 0);
            for (number, (is_good, children)) in tree.iter().enumerate() {
                let word = if *is_good { "ok" } else { "not ok" };
                for child in 0..*children {
                    writeln!(text, "    {word} {} - child {child}", child + 1).unwrap();
                }
                writeln!(text, "{word} {} - test {number}", number + 1).unwrap();
                let own = (*children).max(1);
                leaves += own;
                bad += if *is_good { 0 } else { own };
            }
            let mut collector = Collector::default();
            collector.read(Form::Tap, "f", text.as_bytes());
            let counts = collector.finish().counts;
            prop_assert_eq!(usize::try_from(counts.passed + counts.failed).unwrap(), leaves);
            prop_assert_eq!(usize::try_from(counts.failed).unwrap(), bad);
        }
    }
}
