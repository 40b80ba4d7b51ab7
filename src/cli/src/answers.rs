//! The answer of a job as text: its end, its test cases, and its shards.

use fairlead_api::{JobAnswer, ShardAnswer};
use fairlead_job::units::counted;

use crate::table::{Grid, Paper, harmless, or_dash};

/// Maximum number of shards in the table, failed ones first.
const SHARDS_MAX: usize = 40;

pub(crate) fn text(answer: &JobAnswer, paper: Paper) -> String {
    let mut lines = vec![headline(answer)];
    if !answer.reason.is_empty() {
        lines.push(format!("reason: {}", harmless(&answer.reason)));
    }
    if let Some(cases) = &answer.cases {
        lines.push(format!(
            "tests: {} passed, {} failed, {} skipped",
            cases.passed, cases.failed, cases.skipped
        ));
        let failures = cases.first_failures.iter();
        lines.extend(failures.map(|failure| format!("  failed: {}", harmless(failure))));
    }
    if let Some(shards) = &answer.shards {
        let many = counted(u64::from(shards.count), "shard", "shards");
        let reused = match shards.reused {
            0 => String::new(),
            reused => format!(", {reused} reused"),
        };
        lines.push(format!(
            "{many}: {} run, {} ended, {} failed{reused}",
            shards.running, shards.over, shards.failed
        ));
    }
    if !answer.parts.is_empty() {
        lines.push(table(&answer.parts, paper));
    }
    lines.join("\n")
}

fn headline(answer: &JobAnswer) -> String {
    let group = match (answer.group.as_str(), answer.open) {
        ("", _) => String::new(),
        (group, true) => format!(", group {}, open", harmless(group)),
        (group, false) => format!(", group {}", harmless(group)),
    };
    let end = if answer.over {
        harmless(answer.job_health.as_str())
    } else {
        harmless(answer.job_stage.as_str())
    };
    format!("job {}: {end}{group}", answer.job_id)
}

fn table(parts: &[ShardAnswer], paper: Paper) -> String {
    let has_failed =
        |part: &&ShardAnswer| !matches!(part.job_health.as_str(), "success" | "" | "unknown");
    let failed = parts.iter().filter(has_failed);
    let others = parts.iter().filter(|part| !has_failed(part));
    let mut shown: Vec<&ShardAnswer> = failed.chain(others).take(SHARDS_MAX).collect();
    shown.sort_by_key(|part| part.shard);
    let mut grid = Grid::new(&[
        ">shard", "job", "stage", "health", "host", ">failed", "reason",
    ]);
    for part in &shown {
        let failed = part.cases.as_ref().map(|cases| cases.failed.to_string());
        grid.row([
            part.shard.to_string(),
            part.job_id.clone(),
            or_dash(part.job_stage.as_str()),
            or_dash(part.job_health.as_str()),
            if part.reused_from.is_empty() {
                or_dash(&part.host)
            } else {
                "reused".to_owned()
            },
            or_dash(&failed.unwrap_or_default()),
            or_dash(&harmless(&part.reason)),
        ]);
    }
    let text = grid.render(paper);
    match parts.len().saturating_sub(shown.len()) {
        0 => text,
        more => format!("{text}\n{more} more: fairlead --json wait ID"),
    }
}
