//! `fairlead backup` and `fairlead restore`: copies of the embedded store.

use std::path::PathBuf;

use fairlead_job::units::counted;
use fairlead_scheduler::{RestoreOptions, backup_store, restore_lab};
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
    /// Data folder of the new store
    #[arg(long, value_name = "DIR", default_value = "fairlead-data")]
    data: PathBuf,
    /// Accept a copy that lacks its newest jobs and states
    #[arg(long)]
    as_it_is: bool,
    /// Replace the store of this folder; it stays beside the new one under another name
    #[arg(long)]
    replace: bool,
}

pub(crate) fn backup(args: &BackupArgs, context: &Context) -> anyhow::Result<u8> {
    backup_store(&args.data, &args.file).map_err(|error| Failure::local(error.to_string(), ""))?;
    let path = args.file.display().to_string();
    context.print(&json!({ "path": path }), |_| format!("done: {path}"))?;
    Ok(exit::OK)
}

pub(crate) async fn restore(args: &RestoreArgs, context: &Context) -> anyhow::Result<u8> {
    let options = RestoreOptions {
        as_it_is: args.as_it_is,
        replace: args.replace,
    };
    let restored = restore_lab(&args.file, &args.data, options).await;
    let restored = restored.map_err(|error| Failure::local(error.to_string(), ""))?;
    let path = args.data.display().to_string();
    let replaced = restored.replaced.map(|path| path.display().to_string());
    let value = json!({ "path": path, "replaced": replaced, "set_aside": restored.set_aside });
    context.print(&value, |_| {
        let mut lines = vec![format!("done: {path}")];
        if let Some(replaced) = &replaced {
            lines.push(format!("the former store is {replaced}"));
        }
        if restored.set_aside > 0 {
            let many = counted(restored.set_aside, "folder or log", "folders and logs");
            lines.push(format!(
                "{many} of attempts that have not begun got the ending .before-restore"
            ));
        }
        lines.join("\n")
    })?;
    Ok(exit::OK)
}
