//! `fairlead timers`: jobs that run repeatedly.

use std::path::{Path, PathBuf};

use fairlead_api::{TimerView, client::Client};
use fairlead_job::Spec;
use serde_json::Value;

use crate::{
    context::Context,
    exit::{self, Failure},
    expansion::{JobsArgs, mind_keys},
    submission::{self, Entry},
    table::{Grid, Paper, harmless, or_dash},
    words::Words,
};

/// The actions on timers.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TimersArgs {
    #[command(subcommand)]
    what: Option<TimerAction>,
}

#[derive(Debug, clap::Subcommand)]
enum TimerAction {
    /// Create a timer from a job file with one job
    Submit(SubmitArgs),
    /// List timers with their next and last runs
    List(ListArgs),
    /// Show one timer: its schedule, its last run, and skipped runs with reasons
    Show(NameArgs),
    /// Change the schedule of a timer; with --file, also its job
    Update(UpdateArgs),
    /// Start no runs until it is resumed
    Pause(NamesArgs),
    /// Continue with the next due time
    Resume(NamesArgs),
    /// Delete timers; their runs go on
    Delete(NamesArgs),
}

#[derive(Debug, clap::Args)]
struct SubmitArgs {
    #[command(flatten)]
    jobs: JobsArgs,
    /// Name of the timer [default: `timer` in the file, else the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    when: WhenArgs,
}

/// When it runs. These options override the file.
#[derive(Debug, clap::Args)]
struct WhenArgs {
    /// Interval of the runs, from now on: 30m, 6h, 1d
    #[arg(long, value_name = "PERIOD", conflicts_with_all = ["cron", "timezone"])]
    every: Option<String>,
    /// Schedule by the clock: "0 2 * * *" is each night at two
    #[arg(long, value_name = "LINE")]
    cron: Option<String>,
    /// Time zone of --cron, for example Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Action while an earlier run goes on: `skip` the new one, `queue` it, or `replace` the earlier one
    #[arg(long, value_name = "HOW")]
    overlap: Option<String>,
    /// Action for runs that no scheduler started in time: `once` for all of them, or `skip`
    #[arg(long, value_name = "HOW")]
    missed: Option<String>,
}

#[derive(Debug, clap::Args)]
struct OfArgs {
    /// Timers of this account instead of your own
    #[arg(long, value_name = "ACCOUNT")]
    of: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    of: OfArgs,
    /// Timers of all accounts
    #[arg(long, conflicts_with = "of")]
    all: bool,
}

#[derive(Debug, clap::Args)]
struct NameArgs {
    /// The timer
    name: String,
    #[command(flatten)]
    of: OfArgs,
}

#[derive(Debug, clap::Args)]
struct NamesArgs {
    /// The timers
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    of: OfArgs,
}

#[derive(Debug, clap::Args)]
struct UpdateArgs {
    /// The timer
    name: String,
    /// Replace its job with the job of this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    when: WhenArgs,
    #[command(flatten)]
    of: OfArgs,
}

impl WhenArgs {
    /// Overrides the values of the file with those of the options.
    fn set(&self, spec: &mut Spec) {
        if self.every.is_some() {
            spec.shift_remove("cron");
            spec.shift_remove("timezone");
        }
        if self.cron.is_some() {
            spec.shift_remove("every");
        }
        let said = [
            ("every", &self.every),
            ("cron", &self.cron),
            ("timezone", &self.timezone),
            ("overlap", &self.overlap),
            ("missed", &self.missed),
        ];
        for (name, value) in said {
            if let Some(value) = value {
                spec.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
    }
}

pub(crate) async fn run(args: &TimersArgs, context: &Context) -> anyhow::Result<u8> {
    let list = TimerAction::List(ListArgs {
        of: OfArgs { of: None },
        all: false,
    });
    match args.what.as_ref().unwrap_or(&list) {
        TimerAction::Submit(args) => submit(args, context).await,
        TimerAction::List(args) => show_all(args, context).await,
        TimerAction::Show(NameArgs { name, of }) => {
            let client = context.client()?;
            let of = context.account_of(of.of.as_ref(), &client).await?;
            let timer = client.timer(name, of.as_deref()).await;
            context.print(&timer.map_err(Failure::from)?, one)?;
            Ok(exit::OK)
        }
        TimerAction::Update(args) => update(args, context).await,
        TimerAction::Pause(args) => {
            let client = context.client()?;
            let of = context.account_of(args.of.of.as_ref(), &client).await?;
            for name in &args.names {
                let timer = client.pause_timer(name, of.as_deref()).await;
                context.print(&timer.map_err(Failure::from)?, said)?;
            }
            Ok(exit::OK)
        }
        TimerAction::Resume(args) => {
            let client = context.client()?;
            let of = context.account_of(args.of.of.as_ref(), &client).await?;
            for name in &args.names {
                let timer = client.resume_timer(name, of.as_deref()).await;
                context.print(&timer.map_err(Failure::from)?, said)?;
            }
            Ok(exit::OK)
        }
        TimerAction::Delete(args) => {
            let client = context.client()?;
            let of = context.account_of(args.of.of.as_ref(), &client).await?;
            for name in &args.names {
                let deleted = client.delete_timer(name, of.as_deref()).await;
                deleted.map_err(Failure::from)?;
                let text = |name: &String| format!("timer {}: deleted", harmless(name));
                context.print(name, text)?;
            }
            Ok(exit::OK)
        }
    }
}

/// Returns the only job of a file, completed as for a submit.
async fn only_job(jobs: &JobsArgs, context: &Context) -> Result<Entry, Failure> {
    let mut settings = context.settings()?;
    let files = jobs.expand(&settings.include_dirs.value)?;
    mind_keys(&files, false, context)?;
    let submit_id = uuid::Uuid::new_v4().to_string();
    let client = Client::new(settings.client_config())?;
    settings.account.value = context.own_account(&settings, &client).await?;
    let entries = submission::entries(files, &settings, &submit_id);
    let count = entries.len();
    match <[Entry; 1]>::try_from(entries) {
        Ok([entry]) => Ok(entry),
        Err(_) => Err(Failure::usage(
            format!("the file has {count} jobs; a timer runs one"),
            "create a timer for each: fairlead timers submit FILE KEY=VALUE --name NAME",
        )),
    }
}

async fn submit(args: &SubmitArgs, context: &Context) -> anyhow::Result<u8> {
    let Entry { file, mut spec, .. } = only_job(&args.jobs, context).await?;
    args.when.set(&mut spec);
    let stem = Path::new(&file).file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    if let Some(name) = &args.name {
        spec.insert("timer".to_owned(), Value::from(name.as_str()));
    } else if let Some(name) = stem.filter(|_| spec.get("timer").is_none_or(Value::is_null)) {
        spec.insert("timer".to_owned(), Value::from(name));
    }
    let timer = context.client()?.submit_timer(&Value::Object(spec)).await;
    let timer = timer.map_err(Failure::from)?;
    warn(&timer, context);
    context.print(&timer, said)?;
    Ok(exit::OK)
}

async fn update(args: &UpdateArgs, context: &Context) -> anyhow::Result<u8> {
    let mut spec = match &args.file {
        None => Spec::new(),
        Some(file) => {
            let jobs = JobsArgs {
                words: Words::file(file),
                include_dirs: Vec::new(),
                repeat: 1,
            };
            only_job(&jobs, context).await?.spec
        }
    };
    args.when.set(&mut spec);
    if spec.is_empty() {
        return Err(Failure::usage(
            format!("timer '{}': no change was given", args.name),
            "use --every, --cron, --timezone, --overlap, --missed or --file",
        )
        .into());
    }
    let client = context.client()?;
    let of = context.account_of(args.of.of.as_ref(), &client).await?;
    let change = Value::Object(spec);
    let timer = client.update_timer(&args.name, of.as_deref(), &change);
    let timer = timer.await.map_err(Failure::from)?;
    warn(&timer, context);
    context.print(&timer, said)?;
    Ok(exit::OK)
}

fn warn(timer: &TimerView, context: &Context) {
    if !timer.warning.is_empty() {
        let text = format!("timer {}: {}", timer.timer, timer.warning);
        context.output.remark(&harmless(&text));
    }
}

async fn show_all(args: &ListArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let of = if args.all {
        Some(String::new())
    } else {
        context.account_of(args.of.of.as_ref(), &client).await?
    };
    let (mut timers, mut after) = (Vec::new(), None);
    loop {
        let page = client.timers(of.as_deref(), after.as_deref()).await;
        let page = page.map_err(Failure::from)?;
        timers.extend(page.timers);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let paper = context.output.paper();
    context.print(&timers, |timers| all(timers, paper))?;
    Ok(exit::OK)
}

/// Returns the schedule as it was written.
fn when(timer: &TimerView) -> String {
    match (&timer.every, &timer.cron, &timer.timezone) {
        (Some(every), ..) => format!("every {every}"),
        (None, Some(line), Some(zone)) => format!("{line} ({zone})"),
        (None, Some(line), None) => line.clone(),
        (None, None, _) => String::new(),
    }
}

fn next(timer: &TimerView) -> String {
    match (&timer.next_run, timer.paused) {
        (_, true) => "paused".to_owned(),
        (Some(next), false) => next.clone(),
        (None, false) => "never".to_owned(),
    }
}

/// Returns one line about a timer that was created or changed.
fn said(timer: &TimerView) -> String {
    let next = if timer.paused {
        next(timer)
    } else {
        format!("next run {}", next(timer))
    };
    harmless(&format!("timer {}: {}, {next}", timer.timer, when(timer)))
}

fn all(timers: &[TimerView], paper: Paper) -> String {
    let headings = [
        "timer", "account", "suite", "when", "next run", "last run", ">runs", ">skipped",
        ">missed", ">refused",
    ];
    let mut grid = Grid::new(&headings);
    for timer in timers {
        let last = timer.last_run.as_ref();
        grid.row([
            timer.timer.clone(),
            timer.my_account.clone(),
            or_dash(&timer.suite),
            or_dash(&when(timer)),
            next(timer),
            last.map_or_else(|| "-".to_owned(), |last| last.job_id.clone()),
            timer.runs.to_string(),
            timer.skipped_runs.to_string(),
            timer.missed_runs.to_string(),
            timer.refused_runs.to_string(),
        ]);
    }
    grid.render(paper)
}

fn one(timer: &TimerView) -> String {
    let last = timer.last_run.as_ref();
    let last = last.map(|last| format!("job {}, due {}", last.job_id, last.due_time));
    let lines = [
        ("timer", timer.timer.clone()),
        ("account", timer.my_account.clone()),
        ("suite", timer.suite.clone()),
        ("when", when(timer)),
        ("overlap", timer.overlap.clone()),
        ("missed", timer.missed.clone()),
        ("next run", next(timer)),
        ("last run", last.unwrap_or_default()),
        ("runs", timer.runs.to_string()),
        ("left out", timer.skipped_runs.to_string()),
        ("missed", timer.missed_runs.to_string()),
        ("refused", timer.refused_runs.to_string()),
        ("why", timer.why.clone()),
    ];
    let lines = lines.map(|(name, value)| harmless(&format!("{name:<10}{}", or_dash(&value))));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use fairlead_api::TimerRun;

    use super::*;

    fn timer() -> TimerView {
        TimerView {
            timer: "nightly".into(),
            my_account: "ann".into(),
            suite: "sleep".into(),
            cron: Some("0 2 * * *".into()),
            timezone: Some("UTC".into()),
            next_run: Some("2026-11-23T02:00:00+0000".into()),
            last_run: Some(TimerRun {
                due_time: "2026-11-22T02:00:00+0000".into(),
                due_ms: 0,
                job_id: "7".into(),
            }),
            runs: 3,
            why: "left\nout".into(),
            ..TimerView::default()
        }
    }

    #[test]
    fn a_timer_is_a_row() {
        assert_eq!(
            all(&[timer()], Paper::PIPE),
            "timer    account  suite  when             next run                  last run  runs  skipped  missed  refused\n\
             nightly  ann      sleep  0 2 * * * (UTC)  2026-11-23T02:00:00+0000  7            3        0       0        0"
        );
    }

    #[test]
    fn one_timer_says_why_nothing_came_of_its_time() {
        let text = one(&timer());
        assert!(text.ends_with("why       left out"), "{text}");
        assert!(text.contains("last run  job 7, due 2026"), "{text}");
        let paused = TimerView {
            paused: true,
            next_run: None,
            ..timer()
        };
        assert_eq!(said(&paused), "timer nightly: 0 2 * * * (UTC), paused");
    }

    #[test]
    fn options_go_before_the_file() {
        let mut spec: Spec = serde_json::from_value(serde_json::json!({
            "cron": "@daily", "timezone": "UTC", "overlap": "skip",
        }))
        .unwrap();
        let args = WhenArgs {
            every: Some("6h".into()),
            cron: None,
            timezone: None,
            overlap: Some("queue".into()),
            missed: None,
        };
        args.set(&mut spec);
        assert_eq!(
            Value::Object(spec),
            serde_json::json!({"overlap": "queue", "every": "6h"})
        );
    }
}
