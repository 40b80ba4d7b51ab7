//! `fairlead backup` and `fairlead restore`: copies of the embedded store.

use std::path::{Path, PathBuf};

use fairlead_scheduler::{backup_store, restore_store};
use serde_json::json;

use crate::{
    context::Context,
    exit::{self, Failure},
};

/// The files to copy.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// The new file
    file: PathBuf,
    /// Folder of the store; a scheduler may use it at the same time
    #[arg(long, value_name = "DIR", default_value = "fairlead-data")]
    data: PathBuf,
}

/// The files to restore.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A backup, or `fairlead.db` beside its `fairlead.db-wal`
    file: PathBuf,
    /// Data folder of the new store; it must have none yet
    #[arg(long, value_name = "DIR", default_value = "fairlead-data")]
    data: PathBuf,
    /// Accept a copy that lacks its newest jobs and states
    #[arg(long)]
    as_it_is: bool,
}

pub(crate) fn backup(args: &BackupArgs, context: &Context) -> anyhow::Result<u8> {
    backup_store(&args.data, &args.file).map_err(|error| Failure::local(error.to_string(), ""))?;
    done(&args.file, context)
}

pub(crate) fn restore(args: &RestoreArgs, context: &Context) -> anyhow::Result<u8> {
    restore_store(&args.file, &args.data, args.as_it_is)
        .map_err(|error| Failure::local(error.to_string(), ""))?;
    done(&args.data, context)
}

fn done(path: &Path, context: &Context) -> anyhow::Result<u8> {
    let path = path.display().to_string();
    context.print(&json!({ "path": path }), |_| format!("done: {path}"))?;
    Ok(exit::OK)
}
