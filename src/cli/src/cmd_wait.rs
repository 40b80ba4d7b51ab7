//! `fairlead wait`: follows jobs that were submitted before to their ends, and shows their results.

use std::time::Duration;

use fairlead_api::{
    JobAnswer, JobSummary,
    client::{Client, JobQuery},
};

use serde_json::Value;

use crate::{
    amounts::length_ms,
    answers,
    attached::{self, Attached, Left},
    context::Context,
    exit::Failure,
    follow::Tracked,
    selecting::{Found, Selector},
    signals::Signals,
};

/// Which jobs, and for how long.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An id may also be that of a submit. The exit code is 0 if all jobs succeeded, 1 if one did not, 7 if
the time was up before, and 130 after Ctrl-C. The jobs go on in both cases.")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    selector: Selector,
    /// Also wait for this group of your account; close it first, or it ends with its own time
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Give up after this time; the jobs go on [default: never]
    #[arg(long, value_name = "TIME", value_parser = length_ms)]
    timeout: Option<u64>,
}

pub(crate) async fn run(args: &WaitArgs, context: &Context) -> anyhow::Result<u8> {
    if args.group.is_empty() {
        args.selector.check()?;
    }
    let client = context.client()?;
    let (jobs, name) = meant(args, &client, context).await?;
    let is_one = jobs.len() == 1;
    let mut submit_ids: Vec<String> = jobs.iter().map(|job| job.submit_id.clone()).collect();
    submit_ids.sort();
    submit_ids.dedup();
    submit_ids.retain(|id| !id.is_empty());
    let ids: Vec<String> = jobs.iter().map(|job| job.job_id.clone()).collect();
    let attached = Attached {
        jobs: jobs.into_iter().map(Meant::tracked).collect(),
        submit_ids,
        name,
        limit: args.timeout.map(Duration::from_millis),
    };
    let mut signals = Signals::catch()?;
    let (endings, left) = attached.follow(&client, &mut signals, context).await?;
    if context.json {
        let mut all = Vec::with_capacity(ids.len());
        for id in &ids {
            all.push(client.answer(id).await.map_err(Failure::from)?);
        }
        context.output.json(&all)?;
    } else if is_one && left == Left::Over {
        let paper = context.output.paper();
        let answer: JobAnswer = client.answer(&ids[0]).await.map_err(Failure::from)?;
        context.output.line(&answers::text(&answer, paper));
    }
    Ok(attached::code(&endings, left))
}

/// Returns the selected jobs, and their name on a command line.
async fn meant(
    args: &WaitArgs,
    client: &Client,
    context: &Context,
) -> Result<(Vec<Meant>, String), Failure> {
    if !args.selector.is_plain() {
        let found = args.selector.find(context, client, |query| query).await?;
        some(&found, "these filters")?;
        let name = match args.selector.submit_id.as_slice() {
            [] => found
                .jobs
                .iter()
                .map(|job| job.job_id.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            submits => format!("--submit-id {}", submits.join(",")),
        };
        return Ok((found.jobs.into_iter().map(Meant::from).collect(), name));
    }
    let mut jobs = Vec::new();
    for id in args.selector.ids() {
        if id.bytes().all(|byte| byte.is_ascii_digit()) {
            jobs.push(Meant::one(&id, client).await?);
        } else {
            let found = of_submit(&id, args, client).await?;
            some(&found, &format!("submit '{id}'"))?;
            jobs.extend(found.jobs.into_iter().map(Meant::from));
        }
    }
    let of = if args.group.is_empty() {
        None
    } else {
        context.account_of(None, client).await?
    };
    for group in &args.group {
        let answer = client.group(group, of.as_deref()).await?;
        jobs.push(Meant::one(&answer.job_id, client).await?);
    }
    let ids: Vec<&str> = jobs.iter().map(|job| job.job_id.as_str()).collect();
    let name = ids.join(" ");
    Ok((jobs, name))
}

fn some(found: &Found, what: &str) -> Result<(), Failure> {
    if found.jobs.is_empty() {
        return Err(Failure::usage(
            format!("{what} name no job"),
            "see what there is: fairlead jobs",
        ));
    }
    Ok(())
}

async fn of_submit(id: &str, args: &WaitArgs, client: &Client) -> Result<Found, Failure> {
    let query = JobQuery {
        submit_id: vec![id.to_owned()],
        order: Some("oldest".to_owned()),
        ..JobQuery::default()
    };
    args.selector.collect(client, query, usize::MAX).await
}

/// A selected job, with the data needed to find it in lists.
struct Meant {
    job_id: String,
    submit_id: String,
    suite: String,
    params: String,
    result_root: String,
    is_shard: bool,
}

impl From<JobSummary> for Meant {
    fn from(job: JobSummary) -> Self {
        Self {
            is_shard: !job.shard_of.is_empty(),
            job_id: job.job_id,
            submit_id: job.submit_id,
            suite: job.suite,
            params: job.params,
            result_root: job.result_root,
        }
    }
}

impl Meant {
    async fn one(id: &str, client: &Client) -> Result<Self, Failure> {
        let job = client.job(id).await?;
        let text = |name: &str| {
            let text = job.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Ok(Self {
            job_id: text("job_id"),
            submit_id: text("submit_id"),
            suite: text("suite"),
            params: text("params"),
            result_root: text("result_root"),
            is_shard: job.contains_key("shard_of"),
        })
    }

    fn tracked(self) -> Tracked {
        let params = self.params.split(' ');
        let params = params.filter_map(|pair| pair.split_once('='));
        let params = params.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let params = params.collect();
        let mut tracked = Tracked::new(&self.job_id, &self.suite, params, &self.result_root);
        tracked.is_shard = self.is_shard;
        tracked.is_loose = self.submit_id.is_empty();
        tracked
    }
}
