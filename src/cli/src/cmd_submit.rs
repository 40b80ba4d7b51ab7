//! `fairlead submit`: expands job files and sends the jobs, or only shows or writes them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fairlead_api::{Outlook, RecentWaits, client::Client};
use fairlead_job::{SiteDefaults, SubmitLimits, dry_run, units::counted};
use serde_json::json;

use crate::{
    attached::{self, Attached, Left},
    clock,
    cmd_explain::cost_lines,
    context::Context,
    exit::{self, Failure},
    expansion::{FileJobs, JobsArgs, mind_keys},
    signals::Signals,
    submission::{self, Entry, How, Report, Teller},
    table::harmless,
    yaml_text,
};

/// The job files to submit, and the options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
KEY=VALUE or -i FILE before a job file sets a default; after it, overrides a key. Between two
files it overrides the first and is a default for the second. -s overrides in all files. Later
arguments win.

Exit code 3 if any job was refused; with -m, also 1 if a job failed.")]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    jobs: JobsArgs,
    /// Follow the jobs to their ends, then print a table
    #[arg(short, long)]
    monitor: bool,
    /// Refuse jobs that no known host can run, and files with keys that are probably misspelt
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    shown: Shown,
    /// Submit nothing. Check and print the expanded jobs, without a scheduler; with `=lab` ask the scheduler
    /// which jobs it would accept, and what its submit rules would change
    #[arg(
        long,
        value_name = "WHERE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "here",
        conflicts_with_all = ["monitor", "output"]
    )]
    dry_run: Option<DryRun>,
    /// Write each expanded job to a file in this folder, and submit nothing
    #[arg(short, long, value_name = "DIR", conflicts_with = "monitor")]
    output: Option<PathBuf>,
}

/// Judges of jobs that are not submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    /// This command
    Here,
    /// The scheduler, with its submit rules, queues and limits
    Lab,
}

/// How accepted jobs are printed.
#[derive(Debug, clap::Args)]
struct Shown {
    /// Print nothing but the ids of the new jobs, one a line
    #[arg(long, conflicts_with_all = ["monitor", "dry_run", "output"])]
    parsable: bool,
}

pub(crate) async fn run(args: &SubmitArgs, context: &Context) -> anyhow::Result<u8> {
    let mut settings = context.settings()?;
    let files = args.jobs.expand(&settings.include_dirs.value)?;
    mind_keys(&files, args.strict, context)?;
    let submit_id = uuid::Uuid::new_v4().to_string();
    if args.dry_run == Some(DryRun::Here) {
        show(&files, context)?;
        let places = places(&files);
        let entries = submission::entries(files, &settings, &submit_id);
        return Ok(judge(&places, &entries, context));
    }
    if let Some(folder) = &args.output {
        write(&files, folder, context)?;
        return Ok(exit::OK);
    }
    let client = Client::new(settings.client_config()).map_err(Failure::from)?;
    settings.account.value = context.own_account(&settings, &client).await?;
    let places = places(&files);
    let entries = submission::entries(files, &settings, &submit_id);
    if args.dry_run == Some(DryRun::Lab) {
        return try_in_lab(args.strict, &places, &entries, &client, context).await;
    }
    if !context.json && !args.shown.parsable {
        context.output.line(&format!("submit_id={submit_id}"));
    }
    // Ctrl-C is handled only while jobs are followed; without -m it ends the process.
    let mut signals = args.monitor.then(Signals::catch).transpose()?;
    let reports = send(args, &entries, &client, signals.as_mut(), context).await?;
    let refused = reports.iter().any(|report| !report.accepted());
    let mut code = if refused { exit::REFUSED } else { exit::OK };
    let mut endings = None;
    if let Some(signals) = &mut signals {
        let attached = Attached {
            jobs: submission::tracked(&entries, &reports),
            submit_ids: submission::submit_ids(&entries, &reports),
            name: format!("--submit-id {submit_id}"),
            limit: None,
        };
        let (ended, left) = attached.follow(&client, signals, context).await?;
        if left != Left::Over || code == exit::OK {
            code = attached::code(&ended, left);
        }
        endings = Some(ended);
    }
    if context.json {
        let reports: Vec<_> = reports.iter().map(Report::value).collect();
        context
            .output
            .json(&json!({"submit_id": submit_id, "jobs": reports, "results": endings}))?;
    }
    Ok(code)
}

/// Asks the scheduler for the result of a submit of the jobs.
async fn try_in_lab(
    strict: bool,
    places: &[String],
    entries: &[Entry],
    client: &Client,
    context: &Context,
) -> anyhow::Result<u8> {
    let how = How {
        strict,
        dry_run: true,
    };
    let reports = submission::send(entries, client, how, |_| {}).await?;
    if context.json {
        let items: Vec<_> = reports.iter().map(Report::value).collect();
        context.output.json(&json!({ "jobs": items }))?;
    }
    for report in reports.iter().filter(|_| !context.json) {
        let place = places.get(report.entry).map_or("", String::as_str);
        context.output.line(&format!("{place} {}", outlook(report)));
    }
    let refused = reports.iter().any(|report| !report.accepted());
    Ok(if refused { exit::REFUSED } else { exit::OK })
}

/// Returns the outlook of a job in one line.
fn outlook(report: &Report) -> String {
    let item = &report.item;
    let mut words = if report.accepted() {
        "would be accepted".to_owned()
    } else {
        let message = harmless(&item.message);
        format!("would be refused: {message} ({})", item.code)
    };
    if let Some(rule) = submission::rule_words(item) {
        words = format!("{words}; {rule}");
    }
    if !item.hint.is_empty() {
        words = format!("{words}\n  hint: {}", harmless(&item.hint));
    }
    let lines = item.outlook.iter().flat_map(|outlook| expected(outlook));
    lines.fold(words, |words, line| format!("{words}\n{line}"))
}

/// Returns the outlook of a job in several lines.
fn expected(outlook: &Outlook) -> Vec<String> {
    let Outlook { queue, class, .. } = outlook;
    let waits = |of: String, waits: &RecentWaits| {
        let (Some(half), Some(most)) = (waits.p50_s, waits.p95_s) else {
            return format!("  - in the last hour no job {of} began");
        };
        let jobs = counted(waits.jobs, "job", "jobs");
        format!(
            "  - in the last hour half of {jobs} {of} waited less than {half} s, 95 % less than {most} s"
        )
    };
    let mut lines = vec![
        format!("  - {}", harmless(&outlook.summary)),
        format!(
            "  - {} of {} known hosts could run it, {} now",
            outlook.hosts_able, outlook.hosts_known, outlook.hosts_ready
        ),
        format!("  - {}", harmless(&outlook.before.words)),
        waits(format!("in queue '{queue}'"), &outlook.queue_waits),
        waits(format!("of priority {class}"), &outlook.class_waits),
    ];
    lines.extend(cost_lines(&outlook.costs));
    lines
}

/// Sends the jobs, and reports each one.
async fn send(
    args: &SubmitArgs,
    entries: &[Entry],
    client: &Client,
    signals: Option<&mut Signals>,
    context: &Context,
) -> Result<Vec<Report>, Failure> {
    let mut teller = Teller::new(context, args.shown.parsable);
    let how = How {
        strict: args.strict,
        dry_run: false,
    };
    let sending = submission::send(entries, client, how, |report| teller.tell(report));
    let sent = match signals {
        None => sending.await,
        Some(signals) => tokio::select! {
            sent = sending => sent,
            () = signals.next() => Err(Failure::new(
                exit::INTERRUPTED,
                "stopped while submitting",
                "some jobs may be stored; `fairlead jobs --submit-id` shows them",
            )),
        },
    };
    teller.flush();
    sent
}

/// Returns each job's place in its file, for messages.
fn places(files: &[FileJobs]) -> Vec<String> {
    let of_file = |file: &FileJobs| {
        let (name, all) = (file.file.clone(), file.jobs.len());
        (1..=all).map(move |n| format!("{name}: job {n} of {all}"))
    };
    files.iter().flat_map(of_file).collect()
}

/// Prints problems that any scheduler would refuse, on stderr. The jobs are shown anyway. The exit code tells if a
/// value was wrong; a job without a suite may be meant to be completed.
fn judge(places: &[String], entries: &[Entry], context: &Context) -> u8 {
    let (site, limits) = (SiteDefaults::default(), SubmitLimits::default());
    let now_ms = clock::now_ms();
    let outcomes = submission::chunks(entries).flat_map(|chunk| {
        let specs = chunk.iter().map(|entry| entry.spec.clone());
        dry_run(specs, &site, &limits, now_ms)
    });
    let mut code = exit::OK;
    for (place, outcome) in places.iter().zip(outcomes) {
        let Err(error) = outcome else { continue };
        context.output.remark(&format!(
            "{place} would be refused: {error} ({})\n  hint: {}",
            error.fault.code(),
            error.hint
        ));
        if error.field != "suite" {
            code = exit::USAGE;
        }
    }
    code
}

fn show(files: &[FileJobs], context: &Context) -> anyhow::Result<()> {
    if context.json {
        let jobs: Vec<_> = files.iter().flat_map(|file| &file.jobs).collect();
        context.output.json(&jobs)?;
        return Ok(());
    }
    for file in files {
        for (n, job) in file.jobs.iter().enumerate() {
            let head = format!("# {}: job {} of {}", file.file, n + 1, file.jobs.len());
            context
                .output
                .line(&format!("{head}\n{}", yaml_text::of(job)));
        }
    }
    Ok(())
}

fn write(files: &[FileJobs], folder: &Path, context: &Context) -> Result<(), Failure> {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::local(
            format!("cannot write {}: {error}", path.display()),
            "choose another folder with -o DIR",
        )
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let digits = files
        .iter()
        .map(|file| file.jobs.len())
        .max()
        .unwrap_or(1)
        .to_string()
        .len();
    let mut written = Vec::new();
    for file in files {
        let stem = Path::new(&file.file)
            .file_stem()
            .map_or("job".into(), |s| s.to_string_lossy());
        let stem = if stem == "-" { "stdin".into() } else { stem };
        for (n, job) in file.jobs.iter().enumerate() {
            let mut name = format!("{stem}-{:0digits$}.yaml", n + 1);
            // Two files in different folders may have the same name.
            for again in 2.. {
                if !written.contains(&name) {
                    break;
                }
                name = format!("{stem}-{:0digits$}-{again}.yaml", n + 1);
            }
            let path = folder.join(&name);
            fs::write(&path, yaml_text::of(job)).map_err(|error| failed(&path, &error))?;
            if !context.json {
                context
                    .output
                    .line(&format!("{} => {}", file.file, path.display()));
            }
            written.push(name);
        }
    }
    if context.json {
        let paths: Vec<PathBuf> = written.iter().map(|name| folder.join(name)).collect();
        context
            .output
            .json(&paths)
            .map_err(|error| Failure::local(error.to_string(), ""))?;
    }
    Ok(())
}
