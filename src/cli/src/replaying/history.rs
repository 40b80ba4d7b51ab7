//! Replays what a lab ran: as it was, with the policy of now, and with changes of it.

use std::path::PathBuf;

use fairlead_replay::{
    Figures, Past, Summary,
    history::{as_it_was, would_have_been},
    plots, summarize,
};
use serde::Serialize;

use super::{
    past::{anywhere, equal_hosts, hosts_of, of_file, of_lab, past_jobs},
    plot::write_plot,
    policy::{QueueChange, changed, of_queues},
};
use crate::{
    amounts::{length_ms, memory_mb},
    clock,
    context::Context,
    exit::Failure,
    table::{Grid, Paper},
};

/// Number of accounts and queues in a table. --json has all.
const SHOWN: usize = 5;

/// Which jobs, on which hosts, with which changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows 'as it was' have the waits that the lab recorded. Rows 'policy of now' replay the same
jobs on the hosts of now, with the queues of now. Rows 'changed' do so with the changes of
--queue. The share of an account is its part of the use of hosts while jobs of it waited.")]
pub(crate) struct HistoryArgs {
    /// Jobs that were saved with `fairlead jobs --json` [default: the jobs of the lab]
    #[arg(conflicts_with_all = ["since", "until"])]
    file: Option<PathBuf>,
    /// Jobs that were submitted within this time: 90m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = length_ms)]
    since: u64,
    /// Jobs that were submitted before this time ago [default: now]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    until: Option<u64>,
    /// Change a queue: NAME:weight=N, and with commas priority=N or running=N; may be repeated
    #[arg(long = "queue", value_name = "NAME:KEY=N")]
    queues: Vec<QueueChange>,
    /// Replay on so many equal hosts, each of which may have each job [default: the hosts of the lab]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    hosts: Option<u32>,
    /// CPUs of each of them [default: those of the largest job]
    #[arg(long, value_name = "N", requires = "hosts", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cpus: Option<u32>,
    /// Memory of each of them, such as 64g [default: that of the largest job]
    #[arg(long, value_name = "SIZE", requires = "hosts", value_parser = memory_mb)]
    memory: Option<u32>,
    /// Draw waits and shares into this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// A list of results by name.
type List = fn(&Summary) -> &Vec<Figures>;

/// Results of one policy.
#[derive(Debug, Serialize)]
struct Replayed {
    policy: &'static str,
    #[serde(flatten)]
    summary: Summary,
}

pub(crate) async fn run(args: &HistoryArgs, context: &Context) -> anyhow::Result<()> {
    let (policies, others) = policies(args, context).await?;
    if others > 0 {
        let remark = format!("{others} jobs that no host had are left out");
        context.output.remark(&remark);
    }
    if let Some(path) = &args.plot {
        let runs = policies.iter().map(|(name, past)| plots::Run {
            name: (*name).to_owned(),
            ran: &past.ran,
        });
        let runs: Vec<plots::Run<'_>> = runs.collect();
        let title = "What would have happened";
        write_plot(&plots::waits(title, &runs, "hosts"), path)?;
    }
    let replayed = policies.iter().map(|(policy, past)| Replayed {
        policy,
        summary: summarize(past),
    });
    let replayed: Vec<Replayed> = replayed.collect();
    for one in replayed.iter().filter(|one| one.summary.left_out > 0) {
        let (left_out, policy) = (one.summary.left_out, one.policy);
        let remark = format!("{policy}: {left_out} jobs never began, for no host fits them");
        context.output.remark(&remark);
    }
    let paper = context.output.paper();
    context.print(&replayed, |all| table(all, paper))
}

/// Returns the jobs as each policy dispatched them, and the number of rows without a job that a host had.
async fn policies(
    args: &HistoryArgs,
    context: &Context,
) -> Result<(Vec<(&'static str, Past)>, usize), Failure> {
    let asks_lab = args.file.is_none() || args.hosts.is_none();
    let client = asks_lab.then(|| context.client()).transpose()?;
    let rows = match (&args.file, &client) {
        (None, Some(client)) => {
            let now_ms = clock::now_ms();
            let since_ms = now_ms.saturating_sub(args.since);
            let until_ms = now_ms.saturating_sub(args.until.unwrap_or(0));
            of_lab(client, since_ms, until_ms).await?
        }
        (Some(file), _) => of_file(file)?,
        (None, None) => Vec::new(),
    };
    let (listed, queues) = match &client {
        Some(client) => (client.hosts(&[]).await?, client.queues().await?),
        None => (Vec::new(), Vec::new()),
    };
    let (mut jobs, others) = past_jobs(&rows, &listed);
    if jobs.is_empty() {
        let problem = format!("no host had one of the {} jobs", rows.len());
        let hint = "choose a longer time with --since";
        return Err(Failure::usage(problem, hint));
    }
    let hosts = match args.hosts {
        None => hosts_of(&listed),
        Some(count) => {
            let cpus = jobs.iter().map(|job| job.cpus).max();
            let memory_mb = jobs.iter().map(|job| job.memory_mb).max();
            let cpus = args.cpus.or(cpus).unwrap_or(1);
            let memory_mb = args.memory.or(memory_mb).unwrap_or(1).max(1);
            let hosts = equal_hosts(count, cpus, memory_mb);
            anywhere(&mut jobs, &hosts);
            hosts
        }
    };
    let now = of_queues(&queues);
    let mut policies = vec![
        ("as it was", as_it_was(&jobs, &hosts, &now)),
        ("policy of now", would_have_been(&jobs, &hosts, &now, &now)),
    ];
    if !args.queues.is_empty() {
        let other = changed(&now, &args.queues, &jobs)?;
        let past = would_have_been(&jobs, &hosts, &other, &now);
        policies.push(("changed", past));
    }
    Ok((policies, others))
}

/// Returns the policies side by side: all jobs, each class, and the largest accounts and queues.
fn table(all: &[Replayed], paper: Paper) -> String {
    let mut grid = Grid::new(&[
        "of", "policy", ">jobs", ">share", ">hours", ">mean", ">p50", ">p95", ">longest",
    ]);
    let mut rows = |of: &str, figures: &dyn Fn(&Summary) -> Option<Figures>| {
        for one in all {
            let Some(figures) = figures(&one.summary) else {
                continue;
            };
            grid.row([
                of.to_owned(),
                one.policy.to_owned(),
                figures.jobs.to_string(),
                share(&figures),
                format!("{:.2}", figures.host_hours),
                wait(figures.mean_s),
                wait(figures.p50_s),
                wait(figures.p95_s),
                wait(figures.max_s),
            ]);
        }
    };
    rows("all", &|summary| Some(summary.all.clone()));
    let lists: [(&str, List); 3] = [
        ("class", |summary| &summary.classes),
        ("account", |summary| &summary.accounts),
        ("queue", |summary| &summary.queues),
    ];
    for (kind, list) in lists {
        let names = all.first().map_or(&[][..], |one| list(&one.summary));
        if kind == "queue"
            && all
                .first()
                .is_some_and(|one| queues_say_no_more(&one.summary))
        {
            continue;
        }
        for name in names.iter().take(SHOWN).map(|figures| &figures.name) {
            rows(&format!("{kind} {name}"), &|summary| {
                let mut figures = list(summary).iter();
                figures.find(|figures| figures.name == *name).cloned()
            });
        }
    }
    grid.render(paper)
}

/// Returns true if each job is in the own queue of its account.
fn queues_say_no_more(summary: &Summary) -> bool {
    summary.queues == summary.accounts
}

fn share(figures: &Figures) -> String {
    figures
        .share
        .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a wait of milliseconds that were whole numbers"
)]
fn wait(seconds: f64) -> String {
    clock::length((seconds * 1_000.0).round() as u64)
}
