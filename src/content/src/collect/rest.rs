//! The remains of collections, puts and crashes go, too.

use std::{
    fs, io,
    path::Path as FsPath,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::TryStreamExt;
use object_store::path::Path;

use super::run::{Collected, Run};
use crate::{
    ContentError,
    names::{DAMAGED, condemned},
};

/// Time for which damaged objects are kept for inspection.
const DAMAGED_KEPT: Duration = Duration::from_hours(30 * 24);

/// Maximum time in which a file is written completely.
const WRITES_WITHIN: Duration = Duration::from_hours(1);

impl Run<'_> {
    /// Removes the remains of earlier collectors and ended puts, at the beginning.
    pub(super) async fn tidy(&mut self) -> Result<(), ContentError> {
        if self.options.dry_run {
            return Ok(());
        }
        // This collector has the lock and no batch yet: whoever wrote these is over.
        let lists = self.store.list(&condemned());
        let lists: Vec<Path> = lists.map_ok(|meta| meta.location).try_collect().await?;
        for name in lists {
            self.store.delete(&name).await?;
        }
        let mut found = self.store.list(&Path::from(DAMAGED));
        let mut old = Vec::new();
        while let Some(meta) = found.try_next().await? {
            if self.is_older(&meta, DAMAGED_KEPT) {
                old.push(meta.location);
            }
        }
        for name in old {
            self.store.delete(&name).await?;
        }
        self.half_written_files().await
    }

    /// Ends the collection.
    pub(super) async fn end(self) -> Result<Collected, ContentError> {
        let Some(term) = self.term else {
            return Ok(self.told);
        };
        let passed = self.store.clock.elapsed().saturating_sub(self.begun);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.options.now_ms.saturating_add(passed_ms);
        for name in self.pinned.expired(now_ms) {
            self.store.delete(name).await?;
        }
        term.end(self.store).await?;
        Ok(self.told)
    }

    /// Removes half-written files. A process that ends while it writes into a folder leaves the file under another
    /// name.
    async fn half_written_files(&self) -> Result<(), ContentError> {
        let Some(folder) = self.store.folder.clone() else {
            return Ok(());
        };
        let age = self.options.grace.max(WRITES_WITHIN).as_millis();
        let age = u64::try_from(age).unwrap_or(u64::MAX);
        // A writer must not lose the file now, whatever time the caller gives.
        let before = self.store.clock.wall_ms().min(self.now_ms());
        let before = Duration::from_millis(before.saturating_sub(age));
        let Some(before) = UNIX_EPOCH.checked_add(before) else {
            return Ok(());
        };
        let removed = tokio::task::spawn_blocking(move || remove_half_written(&folder, before));
        let problem = match removed.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(ContentError::Damaged {
            what: "the folder of the content".to_owned(),
            problem,
        })
    }
}

/// Returns true for the name of a half-written file. The library writes `NAME#NUMBER`, and renames the complete file.
fn is_half_written(name: &str) -> bool {
    name.rsplit_once('#')
        .is_some_and(|(_, number)| number.parse::<u64>().is_ok())
}

fn remove_half_written(folder: &FsPath, before: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let gone = match entry.file_type()? {
            kind if kind.is_dir() => remove_half_written(&entry.path(), before),
            kind if kind.is_file() && is_half_written(&entry.file_name().to_string_lossy()) => {
                let is_old = entry.metadata().and_then(|meta| meta.modified());
                is_old.and_then(|at| {
                    if at < before {
                        fs::remove_file(entry.path())
                    } else {
                        Ok(())
                    }
                })
            }
            _ => Ok(()),
        };
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
