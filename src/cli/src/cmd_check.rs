//! `fairlead check`: whether a store, and the files of its jobs, fit together.

use std::path::PathBuf;

use fairlead_job::units::counted;
use fairlead_scheduler::{CheckOptions, Checked, Finding, StoreChoice, check_lab, set_files_aside};
use serde_json::json;

use crate::{
    context::Context,
    exit::{self, Failure},
    store_args::StoreArgs,
    table::harmless,
};

/// The store, and the files, to check.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
check reads a store: the embedded one, a backup of it, or Elasticsearch. A scheduler may run meanwhile.
doctor asks schedulers, and looks at this machine. So use doctor for a lab that does not answer or
dispatch, and check after a restore, a crash of the disk, or a fault of the store.

Exit code 0 if nothing is wrong, 6 if something is. Kinds that may be meant, such as results of pruned
days, do not count.")]
pub(crate) struct CheckArgs {
    /// A file of the embedded store, such as a backup
    #[arg(conflicts_with_all = ["data", "elasticsearch"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// Also compare results and logs in this data folder; repeat it for the folders of all replicas
    #[arg(long, value_name = "DIR")]
    files: Vec<PathBuf>,
    /// Show at most so many of each kind, 0 to 1000
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(0..=1000))]
    examples: u16,
    /// Give files of attempts that have not begun the ending .before-restore; all schedulers must be stopped
    #[arg(long, requires = "files", conflicts_with = "file")]
    set_aside: bool,
}

pub(crate) async fn run(args: &CheckArgs, context: &Context) -> anyhow::Result<u8> {
    let config = args.store.config(&context.env)?;
    let local = |error: fairlead_scheduler::StartError| Failure::local(error.to_string(), "");
    let set_aside = if args.set_aside {
        Some(set_files_aside(&config, &args.files).await.map_err(local)?)
    } else {
        None
    };
    let options = CheckOptions {
        file: args.file.clone(),
        files: args.files.clone(),
        examples_max: usize::from(args.examples),
    };
    let store = match (&args.file, &config.store) {
        (Some(file), _) => file.display().to_string(),
        (None, StoreChoice::Embedded) => config.data_dir.display().to_string(),
        (None, StoreChoice::Elasticsearch(elastic)) => {
            format!("{} of Elasticsearch", elastic.index_prefix)
        }
    };
    let checked = check_lab(&config, &options).await.map_err(local)?;
    let wrong = checked
        .findings
        .iter()
        .filter(|one| one.is_wrong && one.count > 0);
    let wrong = u64::try_from(wrong.count()).unwrap_or(u64::MAX);
    let value = json!({
        "store": store, "jobs": checked.jobs, "kinds": checked.findings, "wrong": wrong, "set_aside": set_aside,
    });
    context.print(&value, |_| text(&store, &checked, wrong, set_aside))?;
    Ok(if wrong == 0 { exit::OK } else { exit::TO_MEND })
}

fn text(store: &str, checked: &Checked, wrong: u64, set_aside: Option<u64>) -> String {
    let mut lines = Vec::new();
    if let Some(moved) = set_aside {
        let many = counted(moved, "folder or log", "folders and logs");
        lines.push(format!("{many} got the ending .before-restore"));
    }
    for finding in &checked.findings {
        lines.push(line(finding));
        if finding.count > 0 {
            lines.push(format!("{:<8} -> {}", "", finding.todo));
        }
    }
    lines.push(format!(
        "{store}: {} read, {} wrong",
        counted(checked.jobs, "job", "jobs"),
        counted(wrong, "kind is", "kinds are")
    ));
    harmless_lines(&lines)
}

fn line(finding: &Finding) -> String {
    let word = match (finding.count, finding.is_wrong) {
        (0, _) => "ok",
        (_, true) => "WRONG",
        (_, false) => "note",
    };
    let mut line = format!(
        "{word:<8} {}: {} {}",
        finding.kind, finding.count, finding.meaning
    );
    if !finding.examples.is_empty() {
        line.push_str(": ");
        line.push_str(&finding.examples.join(", "));
    }
    line
}

fn harmless_lines(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| harmless(line)).collect();
    lines.join("\n")
}
