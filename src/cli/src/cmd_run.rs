//! `fairlead run`: runs job files on this machine, with a scheduler and a testbox in this process.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fairlead_api::client::Client;
use fairlead_job::{OnShutdown, SiteDefaults, units::counted};
use serde_json::json;

use crate::{
    clock,
    context::Context,
    exit::{self, Failure},
    expansion::{JobsArgs, mind_keys},
    follow::{Follower, Tracked},
    local::{Fit, LocalLab, Machine},
    progress::Progress,
    results::{self, Ending, Ways},
    signals::Signals,
    submission::{self, Entry, How, Teller},
    tail::{Tails, last_lines},
    words::quoted,
};

/// Time for jobs to end after Ctrl-C, before they are killed.
const OBEY: Duration = Duration::from_secs(10);
/// Interval between requests to stop.
const STOP_EVERY: Duration = Duration::from_millis(100);
/// Time limit of the last update, when nothing runs any more.
const SETTLE: Duration = Duration::from_secs(3);
/// Maximum number of ids in one request.
const IDS_MAX: usize = 1000;

/// The job file to run, and the options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every job runs here, with any testbox: testbox becomes dc, and arch, groups, target_machines,
tags and devices are ignored. --as-is keeps them, and a job that this machine cannot run is an
error.

Ctrl-C stops running jobs, cancels the others, and prints the table. A running job with
'on_shutdown: continue' goes on to its end. A job with 'on_shutdown: block' runs even if it waits.
A second Ctrl-C kills all jobs at once.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    jobs: JobsArgs,
    /// Number of jobs at once, within the memory of the machine [default: one per processor]
    #[arg(short = 'j', long = "jobs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs_max: Option<u32>,
    /// Folder for store, logs and results [default: a new one in fairlead-run]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Command for jobs with program sections and no script; its argument is the path of job.yaml
    #[arg(long, value_name = "COMMAND")]
    runner: Option<String>,
    /// Keep the testbox that the jobs name
    #[arg(long)]
    as_is: bool,
}

pub(crate) async fn run(args: &RunArgs, context: &Context) -> anyhow::Result<u8> {
    let settings = context.settings()?;
    let files = args.jobs.expand(&settings.include_dirs.value)?;
    mind_keys(&files, false, context)?;
    let submit_id = uuid::Uuid::new_v4().to_string();
    let mut entries = submission::entries(files, &settings, &submit_id);
    let machine = Machine::of_process();
    let built_in = SiteDefaults::default();
    let jobs_max = args.jobs_max.unwrap_or(machine.processors);
    // With this default, jobs without a memory requirement can use all slots.
    let memory_mb = (machine.memory_mb / jobs_max.max(1)).clamp(1, built_in.memory_mb);
    let site = SiteDefaults {
        memory_mb,
        vm_overhead_mb: 0, // jobs are processes
        ..built_in
    };
    let fit = Fit {
        machine: &machine,
        site: &site,
        as_is: args.as_is,
        runner: args.runner.is_some(),
    };
    fit.fit(&mut entries)?;

    let data_dir = data_dir(args.data.as_deref())?;
    // From here on, a signal stops the run in order.
    let signals = Signals::catch()?;
    let lab = LocalLab::start(&data_dir, &machine, &site, jobs_max, args.runner.as_deref()).await?;
    context.output.remark(&format!(
        "{}, results in {}",
        counted(entries.len(), "job", "jobs"),
        data_dir.display()
    ));
    let began = clock::monotonic();
    let mut run = Run {
        lab,
        signals,
        context,
        killed: false,
    };
    let ran = run.drive(&entries).await;
    let mut endings = match &ran {
        Ok(ran) => run.endings(&ran.follower),
        Err(_) => Vec::new(),
    };
    if !run.killed {
        last_lines(&mut endings, &run.lab.client).await;
        run.lab.stop().await;
    }
    let ran = ran?;
    tell(
        &endings,
        (&data_dir, &submit_id),
        ran.refused,
        began,
        context,
    )?;
    Ok(ran.code(&endings))
}

/// Prints the results of the jobs.
fn tell(
    endings: &[Ending],
    (data_dir, submit_id): (&Path, &str),
    refused: usize,
    began: Instant,
    context: &Context,
) -> anyhow::Result<()> {
    let took = clock::monotonic().duration_since(began);
    let output = &context.output;
    if context.json {
        let good = endings.iter().filter(|ending| ending.success).count();
        output.json(&json!({
            "data_dir": data_dir, "submit_id": submit_id, "jobs": endings,
            "succeeded": good, "failed": endings.len() - good, "refused": refused,
        }))?;
    } else {
        let ways = Ways {
            took,
            results: data_dir.join("result").display().to_string(),
            again: String::new(),
        };
        let text = results::text(endings, &ways, again);
        output.line(&text);
    }
    Ok(())
}

/// Returns the command that runs one job again.
fn again(ending: &Ending) -> String {
    let mut words = vec!["fairlead run".to_owned(), quoted(&ending.file)];
    for (key, value) in &ending.params {
        let value = value.as_str().unwrap_or_default();
        words.push(quoted(&format!("{key}={value}")));
    }
    words.join(" ")
}

/// Result of the run.
struct Ran {
    follower: Follower,
    refused: usize,
    interrupted: bool,
}

impl Ran {
    fn code(&self, endings: &[Ending]) -> u8 {
        match (self.interrupted, self.refused) {
            (true, _) => exit::INTERRUPTED,
            (false, 0) => results::code(endings),
            (false, _) => exit::REFUSED,
        }
    }
}

/// A run in progress.
struct Run<'a> {
    lab: LocalLab,
    signals: Signals,
    context: &'a Context,
    /// True if everything was killed at once, so that nothing answers any more.
    killed: bool,
}

impl Run<'_> {
    /// Submits all jobs and follows them to their ends, or to Ctrl-C.
    async fn drive(&mut self, entries: &[Entry]) -> Result<Ran, Failure> {
        let mut teller = Teller::refusals_only(self.context);
        let sent = submission::send(entries, &self.lab.client, How::default(), |report| {
            teller.tell(report);
        })
        .await;
        teller.flush();
        let reports = sent?;
        let refused = reports.iter().filter(|report| !report.accepted()).count();
        let tracked = submission::tracked(entries, &reports);
        let mut follower = Follower::new(tracked, submission::submit_ids(entries, &reports));
        let interrupted = self.follow(&mut follower).await?;
        if interrupted {
            self.wind_down(&mut follower).await;
        }
        Ok(Ran {
            follower,
            refused,
            interrupted,
        })
    }

    /// Follows the jobs. Returns true if Ctrl-C came before the end.
    async fn follow(&mut self, follower: &mut Follower) -> Result<bool, Failure> {
        let mut progress = Progress::new(self.context, follower.jobs().len());
        let mut tails = Tails::default();
        let client = self.lab.client.clone();
        let interrupted = loop {
            if follower.done() {
                break Ok(false);
            }
            let step = async {
                follower.look(&client).await?;
                progress.show(follower.jobs());
                tails.look(&client, &mut progress).await;
                follower.check_missing()?;
                if !follower.done() {
                    clock::pause(follower.pause()).await;
                }
                Ok::<(), Failure>(())
            };
            tokio::select! {
                stepped = step => if let Err(failure) = stepped { break Err(failure) },
                failure = self.lab.broken() => break Err(failure),
                () = self.signals.next() => break Ok(true),
            }
        };
        progress.end();
        interrupted
    }

    /// Stops running jobs, and cancels waiting ones. A second signal kills instead.
    async fn wind_down(&mut self, follower: &mut Follower) {
        self.context
            .output
            .remark("stopping; press Ctrl-C again to kill at once");
        tokio::select! {
            () = stop_in_order(&mut self.lab, follower) => return,
            () = self.signals.next() => {}
        }
        self.lab.kill_agent().await;
        self.killed = true;
    }

    fn endings(&self, follower: &Follower) -> Vec<Ending> {
        let folder = |root: &str| self.lab.folder(root);
        follower
            .jobs()
            .iter()
            .map(|job| Ending::of(job, folder))
            .collect()
    }
}

/// Stops all jobs, so that afterwards none runs or waits.
async fn stop_in_order(lab: &mut LocalLab, follower: &mut Follower) {
    let client = lab.client.clone();
    // Jobs that do not obey in time are killed with the agent.
    let _ = tokio::time::timeout(OBEY, stop_until_over(&client, follower, is_to_stop)).await;
    stop_until_over(&client, follower, |job| !is_to_stop(job)).await;
    lab.stop_agent().await;
    // Jobs that the agent gave back wait again.
    stop_jobs(&client, follower, |_| true).await;
    // Jobs without news by then are shown in their last known state.
    let _ = tokio::time::timeout(SETTLE, follower.look(&client)).await;
}

/// Returns true if a job ends with its run, in its present state.
fn is_to_stop(job: &Tracked) -> bool {
    match job.on_shutdown {
        OnShutdown::Skip => true,
        OnShutdown::Continue => !job.is_held(),
        OnShutdown::Block => false,
    }
}

/// Stops the selected jobs, until none of them is left.
async fn stop_until_over(
    client: &Client,
    follower: &mut Follower,
    these: impl Fn(&Tracked) -> bool,
) {
    let is_left = |job: &Tracked| !job.is_over() && these(job);
    // A job that was waiting may be held a moment later, so this is repeated.
    while follower.jobs().iter().any(is_left) {
        stop_jobs(client, follower, is_to_stop).await;
        clock::pause(STOP_EVERY).await;
        if follower.look(client).await.is_err() {
            return;
        }
    }
}

/// Cancels waiting jobs, and terminates held ones. Refusals concern jobs that have just moved on.
async fn stop_jobs(client: &Client, follower: &Follower, which: impl Fn(&Tracked) -> bool) {
    let alive = || {
        let jobs = follower.jobs().iter();
        jobs.filter(|job| !job.is_over() && which(job))
    };
    let ids: Vec<String> = alive().map(|job| job.job_id.clone()).collect();
    for ids in ids.chunks(IDS_MAX) {
        let _ = client.cancel_many(ids).await;
    }
    for job in alive().filter(|job| job.is_held()) {
        let _ = client.terminate(&job.job_id, None).await;
    }
}

/// Returns the absolute path of the folder for all data, and creates it if missing.
fn data_dir(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = asked.map_or_else(
        || {
            let name = format!(
                "{}-{}",
                clock::folder_stamp(clock::now_ms()),
                std::process::id()
            );
            Path::new("fairlead-run").join(name)
        },
        Path::to_owned,
    );
    fs::create_dir_all(&folder)
        .and_then(|()| fs::canonicalize(&folder))
        .map_err(|error| {
            Failure::local(
                format!("cannot create the folder {}: {error}", folder.display()),
                "choose another folder with --data",
            )
        })
}
