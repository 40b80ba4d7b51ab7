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

/// Most cases that are kept; of the others only their number and outcomes are.
pub const CASES_MAX: usize = 20_000;
/// Most cases of one file, and most elements of an XML file: of a file with more, none is taken.
pub const FILE_CASES_MAX: usize = 200_000;
/// Longest name of a case or a metric, bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// Longest message of a case, bytes.
pub const MESSAGE_BYTES_MAX: usize = 1_000;
/// Most metrics that are kept.
pub const METRICS_MAX: usize = 1_000;
/// Largest file that is read, bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Most problems that are told.
const PROBLEMS_MAX: usize = 20;
/// So much of a file is read at a time, bytes.
const READ_BYTES: usize = 64 << 10;
/// The version of the form.
const FORMAT: u16 = 1;

/// What came of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did what it should.
    Passed,
    /// It found a fault.
    Failed,
    /// It did not run, or its fault is expected.
    Skipped,
    /// It could not be judged: it broke, or has no result.
    Error,
}

/// One test case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its whole name, at most 512 bytes; levels are divided by `/`.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took, seconds; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The beginning of its message, at most 1,000 bytes; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How many cases had each outcome, also of those that are not kept.
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

/// All of one job: what `results.json` holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestResults {
    /// The version of this form.
    pub format: u16,
    /// Counted from all cases.
    pub counts: CaseCounts,
    /// Cases that failed or broke first, then the others, each in the order of the files. At most 20,000.
    pub cases: Vec<Case>,
    /// Numbers that the job measured, by name. At most 1,000.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// What could not be read, with the file. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// What a summary says of one job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// How many cases had each outcome.
    pub counts: CaseCounts,
    /// The names of the first cases that failed or broke.
    pub first_failures: Vec<String>,
    /// The cases that ran: all but those that were skipped. At most 20,000.
    pub runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Brief {
    counts: CaseCounts,
    #[serde(default)]
    cases: Runs,
}

/// The cases that ran, taken one by one: of those that are not kept, nothing stays in memory.
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

/// How one case ended, and how long it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its whole name.
    pub name: String,
    /// Whether it failed or broke.
    pub is_bad: bool,
    /// How long it took, seconds; `None`: not known.
    pub seconds: Option<f64>,
}

impl Summary {
    /// Reads the summary of a `results.json`, piece by piece, with at most `failures_max` names.
    ///
    /// # Errors
    /// The file cannot be read, or is no such JSON.
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

/// What a file of this name may hold.
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
    /// The form of a file by its path below the result folder; `None`: it holds no test results.
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
    /// Takes what a file holds. XML of other kinds is passed over; all else that cannot be read is a problem.
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

    /// Takes the cases that a job printed into this file as TAP or KTAP; output without them holds none.
    pub fn read_output(&mut self, file: &str, bytes: &[u8]) {
        if tap::is_announced(&String::from_utf8_lossy(bytes)) {
            self.read(Form::Tap, file, bytes);
        }
    }

    /// Notes what could not be read.
    pub fn problem(&mut self, file: &str, problem: &str) {
        if self.results.problems.len() < PROBLEMS_MAX {
            let text = format!("{file}: {problem}");
            self.results.problems.push(cut(&text, MESSAGE_BYTES_MAX));
        }
    }

    /// Whether nothing was found, so that no result is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let results = &self.results;
        !self.has_cases() && results.metrics.is_empty() && results.problems.is_empty()
    }

    /// Whether there was a case.
    #[must_use]
    pub fn has_cases(&self) -> bool {
        self.results.counts != CaseCounts::default()
    }

    /// The results, within all bounds.
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

/// At most so many bytes of a text, whole characters, without control characters but line ends and tabs.
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
        /// Whatever a job writes, the result is within its bounds, and each case is counted once.
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

        /// TAP of this grammar keeps each leaf, once.
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
