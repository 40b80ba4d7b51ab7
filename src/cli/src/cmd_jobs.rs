//! `fairlead jobs`: a list by selectors, or counts by a field.

use fairlead_api::{
    COUNTED_BY, JobGroup, JobList, JobSummary,
    client::{Client, JobQuery},
};
use fairlead_job::{Health, Stage};

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    printable::Hue,
    results::blamed,
    selecting::{Found, MATCHES_MAX, Selector, held_stages, value_of},
    table::{Grid, Paper, or_dash},
};

/// Field whose groups are submits. The newest group comes first.
const SUBMIT_ID: &str = "submit_id";

/// Which jobs, and how they are shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Jobs that run come first, then the newest. --account NAME lists only the jobs of that account, as --of
NAME does. A KEY=VALUE finds jobs by a parameter, as in: fairlead jobs --suite unixbench nr_threads=4")]
pub(crate) struct JobsArgs {
    #[command(flatten)]
    selector: Selector,
    /// Only the shards of this job
    #[arg(long, value_name = "ID")]
    shards_of: Option<String>,
    /// Shards, too, each as a job of its own, as with --stage, --health and --host
    #[arg(long)]
    shards: bool,
    /// Oldest first
    #[arg(long)]
    oldest: bool,
    /// Largest number of jobs
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Continue a list: the `next` of its last page
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// Count the jobs by a field or parameter, such as stage, suite or mode. All jobs count by stage, health, suite,
    /// account, queue, host, `tbox_group` or `submit_id`; by others, or with --where, at most 10,000
    #[arg(long, value_name = "KEY")]
    group_by: Option<String>,
    /// Print nothing but ids, one a line
    #[arg(long, conflicts_with = "group_by")]
    parsable: bool,
}

impl JobsArgs {
    async fn query(&self, context: &Context, client: &Client) -> Result<JobQuery, Failure> {
        let mut query = self.selector.query(context, client).await?;
        if query.account.is_empty() {
            query.account.extend(context.flags.account.clone());
        }
        query.with_kv |= self.group_by.is_some();
        Ok(JobQuery {
            parts: self.shards.then(|| "all".to_owned()),
            shards_of: self.shards_of.clone(),
            order: Some(if self.oldest { "oldest" } else { "newest" }.to_owned()),
            after: self.after.clone(),
            ..query
        })
    }

    /// Counts the jobs by a field, on the scheduler if it can.
    async fn count_by(
        &self,
        key: &str,
        query: JobQuery,
        client: &Client,
        context: &Context,
    ) -> Result<Vec<JobGroup>, Failure> {
        if COUNTED_BY.contains(&key) && !self.selector.has_conditions() {
            let query = JobQuery {
                with_kv: false,
                group_by: Some(key.to_owned()),
                ..query
            };
            return Ok(client.jobs(&query).await?.groups);
        }
        let found = self.selector.collect(client, query, MATCHES_MAX).await?;
        remark_on(&found, context);
        Ok(groups(&found.jobs, key))
    }

    /// Returns true if running jobs come first.
    fn is_mixed(&self, query: &JobQuery) -> bool {
        query.stage.is_empty()
            && query.health.is_empty()
            && !self.oldest
            && self.after.is_none()
            && self.shards_of.is_none()
    }

    async fn find(&self, query: JobQuery, client: &Client) -> Result<Found, Failure> {
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut found = self.selector.collect(client, query.clone(), most).await?;
        if !self.is_mixed(&query) {
            return Ok(found);
        }
        let running = JobQuery {
            stage: held_stages(),
            parts: Some(
                query
                    .parts
                    .clone()
                    .unwrap_or_else(|| "no_shards".to_owned()),
            ),
            ..query
        };
        let running = self.selector.collect(client, running, most).await?;
        let is_held = |job: &JobSummary| running.jobs.iter().any(|one| one.job_id == job.job_id);
        found.jobs.retain(|job| !is_held(job));
        let shown = found.jobs.len() + running.jobs.len();
        found.jobs.splice(0..0, running.jobs);
        if shown > most {
            found.jobs.truncate(most);
        }
        Ok(found)
    }
}

pub(crate) async fn run(args: &JobsArgs, context: &Context) -> anyhow::Result<u8> {
    let ids = args.selector.ids();
    if !ids.is_empty() {
        return Err(Failure::usage(
            format!("{} is no parameter KEY=VALUE", ids.join(", ")),
            "one job: fairlead job ID",
        )
        .into());
    }
    let client = context.client()?;
    let query = args.query(context, &client).await?;
    if let Some(key) = &args.group_by {
        let groups = args.count_by(key, query, &client, context).await?;
        let paper = context.output.paper();
        context.print(&groups, |groups| table_of_groups(groups, key, paper))?;
        return Ok(exit::OK);
    }
    let found = args.find(query, &client).await?;
    remark_on(&found, context);
    if args.parsable {
        for job in &found.jobs {
            context.output.line(&job.job_id);
        }
        return Ok(exit::OK);
    }
    let (total, next) = (found.total, found.next.clone());
    let list = JobList {
        jobs: found.jobs,
        groups: Vec::new(),
        total,
        unsearched: (found.unsearched > 0).then_some(found.unsearched),
        next: found.next,
    };
    let (paper, now_ms) = (context.output.paper(), clock::now_ms());
    context.print(&list, |list| table(&list.jobs, now_ms, paper))?;
    if !context.json && next.is_some() {
        let shown = list.jobs.len();
        context
            .output
            .remark(&format!("{shown} of {total} jobs; --limit N shows more"));
    }
    Ok(exit::OK)
}

/// Prints a remark about unknown jobs.
pub(crate) fn remark_on(found: &Found, context: &Context) {
    if found.unsearched > 0 {
        context.output.remark(&format!(
            "{} older jobs are not searched by parameters: an older version stored them",
            found.unsearched
        ));
    }
}

/// Returns the run time of a job, or the time in its present stage.
fn took(job: &JobSummary, now_ms: u64) -> String {
    let begin = job.running_ms.or(job.dispatch_ms).unwrap_or(job.submit_ms);
    let end = job.end_ms.unwrap_or(now_ms);
    clock::length(end.saturating_sub(begin))
}

/// Returns the stage. A job with shards also shows the number of ended shards.
fn stage_of(job: &JobSummary) -> String {
    match &job.shards {
        None => job.job_stage.to_string(),
        Some(shards) => format!("{} {}/{}", job.job_stage, shards.over, shards.count),
    }
}

/// Returns the queue, with the job's label in it.
fn queue_of(job: &JobSummary) -> String {
    if job.queue_label.is_empty() {
        job.queue.clone()
    } else {
        format!("{}/{}", job.queue, job.queue_label)
    }
}

fn hue_of_health(health: &str) -> Option<Hue> {
    match health {
        "success" => Some(Hue::Good),
        "unknown" | "cancel" | "" | "-" => None,
        _ => Some(Hue::Bad),
    }
}

fn hue_of_stage(stage: &str) -> Option<Hue> {
    let word = stage.split(' ').next().unwrap_or_default();
    let stage = word.parse::<Stage>().ok()?;
    stage.is_held().then_some(Hue::Busy)
}

pub(crate) fn table(jobs: &[JobSummary], now_ms: u64, paper: Paper) -> String {
    let headings = [
        "job",
        "stage",
        "health",
        "suite",
        "parameters",
        "host",
        ">took",
        ">age",
        "account",
        "queue",
        "testbox",
    ];
    let grid = Grid::new(&headings).keep(&[
        "stage",
        "health",
        "parameters",
        "took",
        "suite",
        "host",
        "age",
        "account",
        "queue",
        "testbox",
    ]);
    let mut grid = grid
        .colour("health", hue_of_health)
        .colour("stage", hue_of_stage);
    for job in jobs {
        grid.row([
            job.job_id.clone(),
            stage_of(job),
            blamed(&job.job_health),
            or_dash(&job.suite),
            or_dash(&job.params),
            host_of(job),
            took(job, now_ms),
            clock::length(now_ms.saturating_sub(job.submit_ms)),
            or_dash(&job.my_account),
            or_dash(&queue_of(job)),
            or_dash(&job.testbox),
        ]);
    }
    grid.render(paper)
}

/// Returns the host, or a note that the result is reused.
fn host_of(job: &JobSummary) -> String {
    if job.reused_from.is_empty() {
        or_dash(&job.host)
    } else {
        "reused".to_owned()
    }
}

/// Returns the jobs grouped by a value.
fn groups(jobs: &[JobSummary], key: &str) -> Vec<JobGroup> {
    let groups = jobs.iter().map(|job| {
        let (stage, health) = (&job.job_stage, job.job_health.known());
        let ended = |is_so: bool| u64::from(job.is_over() && is_so);
        let is_good = health == Some(Health::Success);
        let is_stopped = health.is_some_and(|health| Health::STOPPED.contains(&health));
        JobGroup {
            value: value_of(job, key).unwrap_or_default(),
            jobs: 1,
            waiting: u64::from(*stage == Stage::Submit),
            running: u64::from(stage.known().is_some_and(Stage::is_held)),
            succeeded: ended(is_good),
            stopped: ended(is_stopped),
            failed: ended(!is_good && !is_stopped),
            since_ms: job.submit_ms,
            suite: job.suite.clone(),
        }
    });
    JobGroup::gather(groups, key == SUBMIT_ID)
}

fn table_of_groups(groups: &[JobGroup], key: &str, paper: Paper) -> String {
    let is_of_submits = key == SUBMIT_ID;
    let mut head = vec![
        "value",
        ">jobs",
        ">waiting",
        ">running",
        ">succeeded",
        ">failed",
        ">stopped",
    ];
    if is_of_submits {
        head.extend(["submitted", "suite"]);
    }
    let mut grid = Grid::new(&head);
    for group in groups {
        let mut row = vec![
            format!("{key}={}", group.value),
            group.jobs.to_string(),
            group.waiting.to_string(),
            group.running.to_string(),
            group.succeeded.to_string(),
            group.failed.to_string(),
            group.stopped.to_string(),
        ];
        if is_of_submits {
            let suite = match group.suite.as_str() {
                "" => "several",
                one => one,
            };
            row.extend([clock::shown(group.since_ms), suite.to_owned()]);
        }
        grid.row(row);
    }
    grid.render(paper)
}
