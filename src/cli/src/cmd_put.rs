//! `fairlead put DIR|FILE`: sends what the lab does not have, and prints the id.

use std::path::PathBuf;

use fairlead_content::transfer::{PARALLEL, PARALLEL_MAX, Put, PutOptions, PutProgress, put};
use fairlead_job::units::counted;
use serde_json::json;

use crate::{
    context::Context,
    exit,
    sizes::size,
    transfers::{Bar, remote, until_stopped},
};

/// Options of `put`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The same files have the same id, and only what the lab does not have is sent. So a put that was interrupted
goes on when it is repeated. Links are put as links. Files with other kinds of names than UTF-8, sockets,
pipes and devices are refused. A file that is written to meanwhile is refused, too.")]
pub(crate) struct PutArgs {
    /// The folder or file
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// A name for your lists; it need not be unique
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// Chunks of about 512 KiB that are sent at a time
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = parallel)]
    parallel: usize,
}

/// Parses a number from 1 to [`PARALLEL_MAX`].
pub(crate) fn parallel(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=PARALLEL_MAX).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {PARALLEL_MAX}"))
}

pub(crate) async fn run(args: &PutArgs, context: &Context) -> anyhow::Result<u8> {
    let remote = remote(context).await?;
    let options = PutOptions {
        name: args.name.clone(),
        parallel: args.parallel,
        ..PutOptions::default()
    };
    let bar = Bar::new(context);
    let told = |now: PutProgress| bar.show(now.read_bytes, now.bytes, || sending(&now));
    let done = until_stopped(&remote, async |remote| {
        put(remote, args.path.clone(), &options, &told).await
    });
    let done = done.await;
    bar.end();
    let done = done?;
    let value = json!({
        "id": done.id.to_string(), "name": args.name, "files": done.files, "bytes": done.bytes,
        "chunks": done.chunks, "sent_chunks": done.sent_chunks, "sent_bytes": done.sent_bytes,
    });
    if !context.json {
        context.output.remark(&sum(&done));
    }
    context.print(&value, |_| done.id.to_string())?;
    Ok(exit::OK)
}

/// Returns the progress: `3 MB of 12 MB sent`.
fn sending(now: &PutProgress) -> String {
    format!(
        "{} of {} sent",
        size(now.sent_bytes),
        size(now.missing_bytes)
    )
}

/// Returns a summary: `12 files, 64 MB: sent 3 of 140 chunks, 1024 KB`.
fn sum(done: &Put) -> String {
    format!(
        "{}, {}: sent {} of {}, {}",
        counted(done.files, "file", "files"),
        size(done.bytes),
        done.sent_chunks,
        counted(done.chunks, "chunk", "chunks"),
        size(done.sent_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_at_a_time_are_bounded() {
        assert_eq!(parallel("8"), Ok(8));
        for text in ["0", "65", "", "-1", "x"] {
            assert!(parallel(text).is_err(), "{text}");
        }
    }
}
