//! Restores a backup of the embedded store, and makes way for the attempts that are to come.

use std::path::{Path, PathBuf};

use fairlead_store::{EmbeddedStore, RestoreOptions, restore};
use futures_util::future::BoxFuture;

use super::set_aside::set_aside;
use crate::StartError;

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Where the store lies that was in the folder.
    pub replaced: Option<PathBuf>,
    /// How many folders of results and logs got another name.
    pub set_aside: u64,
}

/// Puts a backup in place of the store in a data folder. Files of attempts that have not begun by then are set aside:
/// those attempts are yet to come, and a file is written once.
pub fn restore_lab<'a>(
    copy: &'a Path,
    data: &'a Path,
    options: RestoreOptions,
) -> BoxFuture<'a, Result<Restored, StartError>> {
    Box::pin(async move {
        let replaced = restore(copy, data, options)?;
        let store = EmbeddedStore::open(data)?;
        let set_aside = set_aside(&store, data).await?;
        Ok(Restored {
            replaced,
            set_aside,
        })
    })
}
