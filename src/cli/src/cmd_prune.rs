//! `fairlead prune`: removes results and logs of old jobs.

use std::path::PathBuf;

use fairlead_job::units::counted;
use fairlead_scheduler::{PruneOptions, Pruned, StartError, prune};
use serde_json::json;

use crate::{
    context::Context,
    exit::{self, Failure},
    selecting::agrees,
    sizes::size,
    store_args::StoreArgs,
};

/// Which files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A job is old by the day of its submit. Results and logs of jobs that have not ended stay, whatever their
age. So do the jobs themselves: serve --keep-months deletes those. A scheduler may run meanwhile.")]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Data folder with the results and logs; repeat it for several [default: the folder of --data]
    #[arg(long, value_name = "DIR")]
    files: Vec<PathBuf>,
    /// Keep files of jobs that were submitted in the last N days
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    keep_days: u32,
    /// Count what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short = 'y', long, conflicts_with = "dry_run")]
    yes: bool,
}

pub(crate) async fn run(args: &PruneArgs, context: &Context) -> anyhow::Result<u8> {
    let config = args.store.config(&context.env)?;
    let files = if args.files.is_empty() {
        vec![config.data_dir.clone()]
    } else {
        args.files.clone()
    };
    let mut options = PruneOptions {
        files,
        keep_days: args.keep_days,
        dry_run: !args.yes,
    };
    let local = |error: StartError| Failure::local(error.to_string(), "");
    let mut pruned = prune(&config, &options).await.map_err(local)?;
    if !args.dry_run && !args.yes && pruned.jobs > 0 {
        agrees(
            &format!("remove the files of {}", text(&pruned)),
            "repeat the command with --yes, or with --dry-run",
            context,
        )?;
        options.dry_run = false;
        pruned = prune(&config, &options).await.map_err(local)?;
    }
    let value = json!({
        "dry_run": args.dry_run, "jobs": pruned.jobs, "folders": pruned.folders, "logs": pruned.logs,
        "bytes": pruned.bytes, "kept": pruned.kept,
    });
    context.print(&value, |_| {
        let verb = if args.dry_run { "would go" } else { "removed" };
        let mut lines = vec![format!("{verb}: {}", text(&pruned))];
        if pruned.kept > 0 {
            let kept = counted(pruned.kept, "old job has", "old jobs have");
            lines.push(format!("{kept} not ended: their files stay"));
        }
        lines.join("\n")
    })?;
    Ok(exit::OK)
}

/// Returns a summary: `2 jobs, 2 folders and 2 logs, 16 bytes`.
fn text(pruned: &Pruned) -> String {
    format!(
        "{}, {} and {}, {}",
        counted(pruned.jobs, "job", "jobs"),
        counted(pruned.folders, "folder", "folders"),
        counted(pruned.logs, "log", "logs"),
        size(pruned.bytes)
    )
}
