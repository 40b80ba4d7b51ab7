//! `fairlead tests ID`: the test cases of a job, from its `results.json`.

use fairlead_api::{TestHistory, client::Client};
use fairlead_cases::{Case, CaseCounts, Outcome, TestResults};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    small_file,
    table::{Grid, Paper, cut, harmless, or_dash},
};

/// Maximum size of a file that is read, bytes. 20,000 cases fit in.
const FILE_BYTES_MAX: usize = 64 << 20;
/// Number of characters of a message in the table.
const MESSAGE_CHARS_MAX: usize = 100;

/// Of which job.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A testbox makes them from JUnit XML, TAP, KTAP and metrics.json among the results of the job.
The exit code is 1 if a case failed or has an error.")]
pub(crate) struct TestsArgs {
    /// Id of the job; with --history the name of a test, or nothing for all tests
    #[arg(required_unless_present = "history")]
    id: Option<String>,
    /// Show how the tests of this suite ended, and how long they take, by group of hosts
    #[arg(long, value_name = "SUITE", conflicts_with = "failed")]
    history: Option<String>,
    /// Only cases that failed or have an error
    #[arg(long)]
    failed: bool,
}

pub(crate) async fn run(args: &TestsArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    if let Some(suite) = &args.history {
        let history = client.test_history(suite, args.id.as_deref()).await;
        let history = history.map_err(Failure::from)?;
        let (paper, now_ms) = (context.output.paper(), clock::now_ms());
        context.print(&history, |history| past(history, now_ms, paper))?;
        return Ok(exit::OK);
    }
    let id = args.id.as_deref().unwrap_or_default();
    let mut results = read(id, &client).await?;
    if args.failed {
        results.cases.retain(is_bad);
    }
    let paper = context.output.paper();
    context.print(&results, |results| text(results, paper))?;
    let counts = results.counts;
    let all_good = counts.failed == 0 && counts.error == 0;
    Ok(if all_good { exit::OK } else { exit::JOB_FAILED })
}

/// Reads the results of a job. For a job with shards, reads those of all shards, with the shard's number on each case
/// and metric.
async fn read(id: &str, client: &Client) -> Result<TestResults, Failure> {
    let answer = client.answer(id).await?;
    let mut all = None;
    if answer.parts.is_empty() {
        all = read_one(id, &answer.result_root, client).await?;
    }
    for part in &answer.parts {
        if !part.result_root.is_empty()
            && let Some(results) = read_one(&part.job_id, &part.result_root, client).await?
        {
            add(all.get_or_insert_default(), results, part.shard);
        }
    }
    all.ok_or_else(|| {
        let message = format!("job {id} has no test results");
        let hint = "they come with its end, if it wrote JUnit XML, TAP, KTAP or metrics.json";
        Failure::new(exit::REFUSED, message, hint)
    })
}

fn add(all: &mut TestResults, of_shard: TestResults, shard: u16) {
    let counts = of_shard.counts;
    all.counts.passed += counts.passed;
    all.counts.failed += counts.failed;
    all.counts.skipped += counts.skipped;
    all.counts.error += counts.error;
    let named = |name: &str| format!("{shard}: {name}");
    all.cases
        .extend(of_shard.cases.into_iter().map(|case| Case {
            name: named(&case.name),
            ..case
        }));
    let metrics = of_shard.metrics.into_iter();
    all.metrics
        .extend(metrics.map(|(name, value)| (named(&name), value)));
    let problems = of_shard.problems.iter();
    all.problems.extend(problems.map(|problem| named(problem)));
}

/// Reads the results of one job. `None`: the job has none.
async fn read_one(id: &str, root: &str, client: &Client) -> Result<Option<TestResults>, Failure> {
    let path = format!("{root}/results.json");
    let too_large = || {
        let message = format!("results.json of job {id} is larger than {FILE_BYTES_MAX} bytes");
        Failure::new(exit::REFUSED, message, "let the job write a smaller one")
    };
    let Some(bytes) = small_file::read(&path, FILE_BYTES_MAX, client, too_large).await? else {
        return Ok(None);
    };
    let results = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("results.json of job {id} cannot be read: {error}");
        let hint = "the job wrote this file itself; remove it, and the testbox makes one";
        Failure::new(exit::REFUSED, message, hint)
    })?;
    Ok(Some(results))
}

/// Returns a table of the history of tests.
fn past(history: &[TestHistory], now_ms: u64, paper: Paper) -> String {
    let mut grid = Grid::new(&["test", "group", ">passed", ">failed", ">seconds", ">last"]);
    for test in history {
        let seconds = test.seconds.map(|seconds| format!("{seconds:.3}"));
        grid.row([
            test.test.clone(),
            or_dash(&test.group),
            test.passed.to_string(),
            test.failed.to_string(),
            or_dash(&seconds.unwrap_or_default()),
            clock::length(now_ms.saturating_sub(test.last_ms)),
        ]);
    }
    grid.render(paper)
}

fn is_bad(case: &Case) -> bool {
    matches!(case.outcome, Outcome::Failed | Outcome::Error)
}

fn text(results: &TestResults, paper: Paper) -> String {
    let mut parts = Vec::new();
    if !results.cases.is_empty() {
        let mut grid = Grid::new(&["outcome", ">seconds", "case", "message"]);
        for case in &results.cases {
            let seconds = case.seconds.map(|seconds| format!("{seconds:.3}"));
            let first = case.message.lines().next().unwrap_or_default();
            grid.row([
                word(case.outcome).to_owned(),
                seconds.unwrap_or_default(),
                case.name.clone(),
                or_dash(&cut(first, MESSAGE_CHARS_MAX)),
            ]);
        }
        parts.push(grid.render(paper));
    }
    if !results.metrics.is_empty() {
        let mut grid = Grid::new(&["metric", ">value"]);
        for (name, value) in &results.metrics {
            grid.row([name.clone(), value.to_string()]);
        }
        parts.push(grid.render(paper));
    }
    let problems = results
        .problems
        .iter()
        .map(|problem| format!("not read: {}", harmless(problem)));
    parts.extend(problems);
    let CaseCounts {
        passed,
        failed,
        skipped,
        error,
    } = results.counts;
    parts.push(format!(
        "{passed} passed, {failed} failed, {error} with an error, {skipped} skipped"
    ));
    parts.join("\n")
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Skipped => "skipped",
        Outcome::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_rows_and_counts_are_a_line() {
        let results = TestResults {
            counts: CaseCounts {
                failed: 1,
                ..CaseCounts::default()
            },
            cases: vec![Case {
                name: "io/writes".to_owned(),
                outcome: Outcome::Failed,
                seconds: Some(0.25),
                message: "wrong\nmore".to_owned(),
            }],
            metrics: [("rate".to_owned(), 2.5)].into(),
            problems: vec!["a.xml: is no JUnit XML".to_owned()],
            ..TestResults::default()
        };
        assert_eq!(
            text(&results, Paper::PIPE),
            "outcome  seconds  case       message\n\
             failed     0.250  io/writes  wrong\n\
             metric  value\n\
             rate      2.5\n\
             not read: a.xml: is no JUnit XML\n\
             0 passed, 1 failed, 0 with an error, 0 skipped"
        );
    }
}
