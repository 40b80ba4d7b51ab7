//! `fairlead usage`: who used the lab, by account, queue, host, suite or class of queues.

use std::collections::BTreeMap;

use fairlead_api::{UsageReport, UsageRow, client::Client};

use crate::{
    amounts::length_ms,
    clock,
    context::Context,
    exit::{self, Failure},
    table::{Grid, Paper},
};

/// Number of milliseconds in an hour.
const HOUR_MS: f64 = 3_600_000.0;

/// Which time, and by what.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Hours are those that hosts had the jobs which ended in that time. Times of more than two hours ago
begin with a whole hour. Waits are as exact as powers of two.")]
pub(crate) struct UsageArgs {
    /// Begin, this long ago: 90m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = length_ms)]
    since: u64,
    /// End, this long ago [default: now]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    until: Option<u64>,
    /// Names of which kind are counted; class: priorities of queues
    #[arg(long, value_name = "KIND", default_value = "account", value_parser = ["account", "queue", "host", "suite", "class"])]
    by: String,
}

pub(crate) async fn run(args: &UsageArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let now_ms = clock::now_ms();
    let since_ms = now_ms.saturating_sub(args.since);
    let until_ms = now_ms.saturating_sub(args.until.unwrap_or(0));
    let report = client.usage(&args.by, since_ms, until_ms).await;
    let report = report.map_err(Failure::from)?;
    let wanted = wanted(&args.by, &report, &client).await;
    let paper = context.output.paper();
    context.print(&report, |report| table(report, &wanted, paper))?;
    Ok(exit::OK)
}

/// Returns each queue's target share by its weight among the queues that ran, percent.
async fn wanted(by: &str, report: &UsageReport, client: &Client) -> BTreeMap<String, f64> {
    if by != "queue" {
        return BTreeMap::new();
    }
    // Without this list, the table lacks a column.
    let queues = client.queues().await.unwrap_or_default();
    let ran = |name: &str| report.rows.iter().any(|row| row.name == name);
    let queues: Vec<_> = queues
        .into_iter()
        .filter(|queue| ran(&queue.name))
        .collect();
    let of_class = |priority: u8| -> f64 {
        let same = queues.iter().filter(|queue| queue.priority == priority);
        same.map(|queue| f64::from(queue.weight)).sum()
    };
    let share = |weight: u32, priority: u8| 100.0 * f64::from(weight) / of_class(priority);
    let shares = queues
        .iter()
        .map(|queue| (queue.name.clone(), share(queue.weight, queue.priority)));
    shares.collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a lab's years are far below 2^52"
)]
fn hours(row: &UsageRow) -> String {
    format!("{:.2}", row.busy_ms as f64 / HOUR_MS)
}

fn table(report: &UsageReport, wanted: &BTreeMap<String, f64>, paper: Paper) -> String {
    let mut grid = Grid::new(&[
        "name",
        ">hours",
        ">share",
        ">by weight",
        ">jobs",
        ">ended",
        ">failed",
        ">wait p50",
        ">wait p95",
    ])
    .keep(&["hours", "share", "jobs", "failed"]);
    let dash = || "-".to_owned();
    let seconds = |wait: Option<u64>| wait.map_or_else(dash, |s| format!("<{s}s"));
    for row in &report.rows {
        let share = f64::from(row.share_permille) / 10.0;
        let weight = wanted.get(&row.name);
        grid.row([
            row.name.clone(),
            hours(row),
            format!("{share:.1} %"),
            weight.map_or_else(dash, |share| format!("{share:.1} %")),
            row.dispatched.to_string(),
            row.ended.to_string(),
            row.failed.to_string(),
            seconds(row.wait_p50_s),
            seconds(row.wait_p95_s),
        ]);
    }
    grid.render(paper)
}
