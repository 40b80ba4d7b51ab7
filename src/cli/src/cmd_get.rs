//! `fairlead get ID [DIR]`: writes the files of an id, or the outputs of a job, into a new folder.

use std::path::PathBuf;

use fairlead_api::client::Client;
use fairlead_content::{
    Digest,
    transfer::{GetOptions, GetProgress, Got, PARALLEL, get},
};
use fairlead_job::units::counted;
use serde_json::{Value, json};

use crate::{
    cmd_put::parallel,
    context::Context,
    exit::{self, Failure},
    sizes::size,
    table::harmless,
    transfers::{Bar, remote, until_stopped},
};

/// Number of digits of an id in a folder name.
const SHORT: usize = 12;

/// Options of `get`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without DIR the files go to a new folder here: one named by the job, or by the first 12 digits of the id. The
folder must be empty, or not be there. Each file is checked before it has its name: a damaged one never appears.
After an error nothing is left of what was written.")]
pub(crate) struct GetArgs {
    /// An id that `fairlead put` printed, or the id of a job with outputs
    #[arg(value_name = "ID")]
    id: String,
    /// Folder for the files
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Chunks of about 512 KiB that are read at a time
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = parallel)]
    parallel: usize,
}

pub(crate) async fn run(args: &GetArgs, context: &Context) -> anyhow::Result<u8> {
    let (id, folder) = named(&args.id, &context.client()?).await?;
    let into = args.dir.clone().unwrap_or_else(|| PathBuf::from(folder));
    let remote = remote(context).await?;
    let options = GetOptions {
        parallel: args.parallel,
    };
    let bar = Bar::new(context);
    let told = |now: GetProgress| {
        let files = || {
            format!(
                "{}, {}",
                counted(now.files, "file", "files"),
                size(now.bytes)
            )
        };
        bar.show(now.fetched_bytes, now.to_fetch_bytes, files);
    };
    let got = until_stopped(&remote, async |remote| {
        get(remote, id, into.clone(), &options, &told).await
    });
    let got = got.await;
    bar.end();
    let got = got?;
    let value = json!({
        "id": id.to_string(), "dir": into, "files": got.files, "bytes": got.bytes,
        "fetched_bytes": got.fetched_bytes,
    });
    if !context.json {
        context.output.remark(&sum(&got));
    }
    context.print(&value, |_| harmless(&into.display().to_string()))?;
    Ok(exit::OK)
}

/// Returns the id of the content, and a name for its folder.
async fn named(id: &str, client: &Client) -> Result<(Digest, String), Failure> {
    if let Ok(digest) = id.parse::<Digest>() {
        let short = id.chars().take(SHORT).collect();
        return Ok((digest, short));
    }
    let is_job = !id.is_empty() && id.len() < 64 && id.bytes().all(|byte| byte.is_ascii_digit());
    if !is_job {
        return Err(Failure::usage(
            format!(
                "'{}' is neither the id of content nor of a job",
                harmless(id)
            ),
            "the id of content has 64 digits: 'fairlead content ls' lists yours",
        ));
    }
    let job = client.job(id).await?;
    // A job file names paths in `outputs`. The scheduler replaces them by the id when the outputs are stored.
    let outputs = job.get("outputs").and_then(Value::as_str);
    match outputs.and_then(|outputs| outputs.parse().ok()) {
        Some(digest) => Ok((digest, id.to_owned())),
        None => Err(Failure::new(
            exit::REFUSED,
            format!("job {id} has no outputs"),
            "a job with 'outputs: [PATHS]' has them when it has ended: fairlead wait ID",
        )),
    }
}

fn sum(got: &Got) -> String {
    format!(
        "{}, {}: {} came from the lab",
        counted(got.files, "file", "files"),
        size(got.bytes),
        size(got.fetched_bytes),
    )
}
