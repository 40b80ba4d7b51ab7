//! `fairlead results ID…`: lists the result files of jobs, or downloads them.

use std::path::{Component, Path, PathBuf};

use fairlead_api::client::Client;
use serde::Serialize;
use tokio::io::AsyncWriteExt;

use crate::{
    context::Context,
    exit::{self, Failure},
    selecting::Selector,
    small_file,
    table::harmless,
};

/// Maximum size of a folder listing, bytes.
const LISTING_BYTES_MAX: usize = 8 << 20;
/// Maximum number of files in one call.
const FILES_MAX: usize = 100_000;

/// Of which jobs, and where to.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without -o the files are listed. With -o DIR the files of each job go to DIR/ID, those of a shard to
DIR/ID/NUMBER, where ID is the id of its job.")]
pub(crate) struct ResultsArgs {
    #[command(flatten)]
    selector: Selector,
    /// Download into this folder
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// One result file. The field names are part of the CLI's interface for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ResultFile {
    job_id: String,
    /// Path at the scheduler.
    path: String,
    /// Path on this machine. Absent: it was not downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

/// A folder of results.
struct Root {
    job_id: String,
    /// Path at the scheduler.
    path: String,
    /// Path below the target folder.
    place: PathBuf,
}

pub(crate) async fn run(args: &ResultsArgs, context: &Context) -> anyhow::Result<u8> {
    let client = context.client()?;
    let ids = args.selector.named(context, &client).await?;
    let mut files = Vec::new();
    for id in &ids {
        for root in roots(id, &client).await? {
            collect(&root, args.dir.as_deref(), &client, &mut files).await?;
        }
    }
    context.print(&files, |files| {
        let shown = files.iter().map(|file| match &file.file {
            Some(file) => harmless(&file.display().to_string()),
            None => harmless(&file.path),
        });
        shown.collect::<Vec<_>>().join("\n")
    })?;
    if files.is_empty() {
        let message = "these jobs have no result files";
        let hint = "they come with the end of a job: fairlead wait ID";
        return Err(Failure::new(exit::REFUSED, message.to_owned(), hint).into());
    }
    Ok(exit::OK)
}

/// Returns the result folders of a job, or those of its shards.
async fn roots(id: &str, client: &Client) -> Result<Vec<Root>, Failure> {
    let answer = client.answer(id).await?;
    if answer.parts.is_empty() {
        return Ok(vec![Root {
            place: PathBuf::from(&answer.job_id),
            job_id: answer.job_id,
            path: answer.result_root,
        }]);
    }
    let shards = answer.parts.into_iter();
    let there = shards.filter(|shard| !shard.result_root.is_empty());
    let roots = there.map(|shard| Root {
        place: Path::new(&answer.job_id).join(shard.shard.to_string()),
        job_id: shard.job_id,
        path: shard.result_root,
    });
    Ok(roots.collect())
}

/// Lists the files below a folder, and downloads them if a target is set.
async fn collect(
    root: &Root,
    dir: Option<&Path>,
    client: &Client,
    files: &mut Vec<ResultFile>,
) -> Result<(), Failure> {
    let mut folders = vec![(root.path.clone(), root.place.clone())];
    while let Some((path, place)) = folders.pop() {
        for name in list(&path, client).await? {
            let Some(plain) = plain_name(&name) else {
                let message = format!("the scheduler named a file '{}'", harmless(&name));
                let hint = "only plain names are taken; ask its operator";
                return Err(Failure::new(exit::REFUSED, message, hint));
            };
            let (below, at) = (format!("{path}/{plain}"), place.join(plain));
            if name.ends_with('/') {
                folders.push((below, at));
                continue;
            }
            if files.len() == FILES_MAX {
                let message = format!("more than {FILES_MAX} files");
                return Err(Failure::new(exit::REFUSED, message, "name fewer jobs"));
            }
            let file = match dir {
                Some(dir) => Some(download(&below, dir.join(&at), client).await?),
                None => None,
            };
            files.push(ResultFile {
                job_id: root.job_id.clone(),
                path: below,
                file,
            });
        }
    }
    Ok(())
}

/// Returns a name if it is that of one file or folder without a path.
fn plain_name(name: &str) -> Option<&str> {
    let plain = name.strip_suffix('/').unwrap_or(name);
    let mut parts = Path::new(plain).components();
    let is_plain = matches!(parts.next(), Some(Component::Normal(part)) if part == plain);
    (is_plain && parts.next().is_none()).then_some(plain)
}

/// Returns the names in a folder. Empty: the folder does not exist.
async fn list(path: &str, client: &Client) -> Result<Vec<String>, Failure> {
    let too_large = || {
        let message = format!("the listing of {path} is larger than {LISTING_BYTES_MAX} bytes");
        Failure::new(exit::REFUSED, message, "download its files singly")
    };
    let Some(bytes) = small_file::read(path, LISTING_BYTES_MAX, client, too_large).await? else {
        return Ok(Vec::new());
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the listing of {path} cannot be read: {error}");
        Failure::new(exit::UNREACHABLE, message, "is there a proxy between?")
    })
}

async fn download(path: &str, target: PathBuf, client: &Client) -> Result<PathBuf, Failure> {
    let local = |error: std::io::Error| {
        let message = format!("{} cannot be written: {error}", target.display());
        Failure::new(exit::LOCAL, message, "check the folder and the free space")
    };
    if let Some(folder) = target.parent() {
        tokio::fs::create_dir_all(folder).await.map_err(local)?;
    }
    let mut stream = client.download(path).await?;
    let mut file = tokio::fs::File::create(&target).await.map_err(local)?;
    while let Some(chunk) = stream.chunk().await? {
        file.write_all(&chunk).await.map_err(local)?;
    }
    file.flush().await.map_err(local)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_written() {
        for (name, plain) in [("a.log", "a.log"), ("dir/", "dir"), (".x", ".x")] {
            assert_eq!(plain_name(name), Some(plain));
        }
        for name in ["", "..", "../x", "/etc", "a/b", ".", "/", "a//"] {
            assert_eq!(plain_name(name), None, "{name}");
        }
    }
}
