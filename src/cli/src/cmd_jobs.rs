//! `fairlead jobs`: a list by filters.

use fairlead_api::{
    JobList, JobSummary,
    client::{Client, JobQuery},
};

use crate::{
    amounts, clock,
    context::Context,
    exit::{self, Failure},
    results::blamed,
    table::{Grid, cut, or_dash},
};

/// Jobs of one request.
const PAGE_JOBS: u32 = 500;
/// Characters of a job's parameters in the table.
const PARAMS_CHARS_MAX: usize = 60;

/// Which jobs. Filters may hold several words with commas.
#[derive(Debug, clap::Args)]
#[command(after_help = "--account NAME lists only the jobs of that account.")]
pub(crate) struct JobsArgs {
    /// Only jobs of this stage: submit, dispatch, boot, setup, running, finish, cancel …
    #[arg(long, value_delimiter = ',')]
    stage: Vec<String>,
    /// Only jobs of this health: unknown, success, fail, cancel, oom …
    #[arg(long, value_delimiter = ',')]
    health: Vec<String>,
    /// Only jobs of this queue, or with this label
    #[arg(long, value_delimiter = ',')]
    queue: Vec<String>,
    /// Only jobs that this host has or had
    #[arg(long, value_delimiter = ',')]
    host: Vec<String>,
    /// Only jobs of this suite
    #[arg(long, value_delimiter = ',')]
    suite: Vec<String>,
    /// Only jobs of this submit
    #[arg(long, value_delimiter = ',')]
    submit_id: Vec<String>,
    /// Only jobs of this group
    #[arg(long, value_delimiter = ',')]
    group_id: Vec<String>,
    /// Only jobs for this group of testboxes
    #[arg(long, value_delimiter = ',')]
    tbox_group: Vec<String>,
    /// Only jobs with this kernel crash; '*' at its end: all that begin so
    #[arg(long, value_name = "TITLE")]
    signature: Option<String>,
    /// Only the shards of this job
    #[arg(long, value_name = "ID")]
    shards_of: Option<String>,
    /// Shards, too, each as a job of its own, as with --stage, --health and --host
    #[arg(long)]
    shards: bool,
    /// Only jobs submitted within this time: 90s, 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = amounts::length_ms)]
    since: Option<u64>,
    /// Only your own jobs
    #[arg(long)]
    mine: bool,
    /// Oldest first
    #[arg(long)]
    oldest: bool,
    /// Largest number of jobs
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Continue a list: the `next` of its last page
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
}

impl JobsArgs {
    async fn query(&self, context: &Context, client: &Client) -> Result<JobQuery, Failure> {
        let mut account: Vec<String> = context.flags.account.iter().cloned().collect();
        if self.mine && account.is_empty() {
            account.extend(context.own_account(&context.settings()?, client).await?);
        }
        Ok(JobQuery {
            stage: self.stage.clone(),
            health: self.health.clone(),
            account,
            queue: self.queue.clone(),
            host: self.host.clone(),
            suite: self.suite.clone(),
            submit_id: self.submit_id.clone(),
            group_id: self.group_id.clone(),
            tbox_group: self.tbox_group.clone(),
            signature: self.signature.clone(),
            parts: self.shards.then(|| "all".to_owned()),
            shards_of: self.shards_of.clone(),
            since_ms: self.since.map(|ms| clock::now_ms().saturating_sub(ms)),
            until_ms: None,
            order: Some(if self.oldest { "oldest" } else { "newest" }.to_owned()),
            after: self.after.clone(),
            limit: None,
        })
    }
}

pub(crate) async fn run(args: &JobsArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let mut query = args.query(context, &client).await?;
    let mut list = JobList {
        jobs: Vec::new(),
        total: 0,
        next: None,
    };
    loop {
        let wanted = args
            .limit
            .saturating_sub(u32::try_from(list.jobs.len()).unwrap_or(u32::MAX));
        query.limit = Some(wanted.min(PAGE_JOBS));
        let page = client.jobs(&query).await.map_err(Failure::from)?;
        let got = u32::try_from(page.jobs.len()).unwrap_or(u32::MAX);
        list.total = page.total;
        list.next.clone_from(&page.next);
        list.jobs.extend(page.jobs);
        if page.next.is_none() || got == 0 || got >= wanted {
            break;
        }
        query.after = page.next;
    }
    let (terminal, now_ms) = (context.output.is_terminal(), clock::now_ms());
    context.print(&list, |list| table(&list.jobs, now_ms, terminal))?;
    if !context.json && list.next.is_some() {
        let (shown, total) = (list.jobs.len(), list.total);
        context
            .output
            .remark(&format!("{shown} of {total} jobs; --limit N shows more"));
    }
    Ok(exit::OK)
}

/// How long a job ran, or has been where it is.
fn took(job: &JobSummary, now_ms: u64) -> String {
    let begin = job.running_ms.or(job.dispatch_ms).unwrap_or(job.submit_ms);
    let end = job.end_ms.unwrap_or(now_ms);
    clock::length(end.saturating_sub(begin))
}

/// Its stage; of a job with shards also how many of them have ended.
fn stage_of(job: &JobSummary) -> String {
    match &job.shards {
        None => job.job_stage.clone(),
        Some(shards) => format!("{} {}/{}", job.job_stage, shards.over, shards.count),
    }
}

/// Its queue, and the label that it has there.
fn queue_of(job: &JobSummary) -> String {
    if job.queue_label.is_empty() {
        job.queue.clone()
    } else {
        format!("{}/{}", job.queue, job.queue_label)
    }
}

fn table(jobs: &[JobSummary], now_ms: u64, terminal: bool) -> String {
    let headings = [
        "job",
        "stage",
        "health",
        "account",
        "queue",
        "suite",
        "parameters",
        "testbox",
        "host",
        ">took",
    ];
    let mut grid = Grid::new(&headings);
    for job in jobs {
        grid.row([
            job.job_id.clone(),
            stage_of(job),
            blamed(&job.job_health),
            or_dash(&job.my_account),
            or_dash(&queue_of(job)),
            or_dash(&job.suite),
            or_dash(&cut(&job.params, PARAMS_CHARS_MAX)),
            or_dash(&job.testbox),
            or_dash(&job.host),
            took(job, now_ms),
        ]);
    }
    grid.render(terminal)
}
