//! Removes results and logs of jobs that the store has dropped.
//!
//! A month that is dropped takes its results along. Each replica looks through its own data folder. Files by content are
//! the same for all of them, so any replica removes them.

use std::{collections::BTreeSet, io, path::Path};

use fairlead_content::Named;
use fairlead_job::JobId;

use crate::{
    FilesIn,
    files::{
        FileFlow,
        places::{LEVELS_MAX, of_folder, of_log},
        removal::remove_files,
        walk::Walk,
    },
};
use fairlead_base::errors::Refusal;

/// Jobs that are asked for together.
const BATCH: usize = 1_000;

impl FileFlow {
    /// Removes files of jobs born before `before` of which the store knows nothing any more. Answers of how many jobs.
    pub(crate) async fn remove_files_of_dropped(&self, before: JobId) -> Result<u64, Refusal> {
        match self.ctx.config.files_in {
            FilesIn::DataFolder => self.remove_from_folder(before).await,
            FilesIn::Content => self.remove_from_content(before).await,
        }
    }

    async fn remove_from_folder(&self, before: JobId) -> Result<u64, Refusal> {
        let data = self.ctx.config.data_dir.clone();
        let mut gone_in_all = BTreeSet::new();
        let mut walk = Walk::begin(&data, move |files| files.id < before);
        while let Some(mut batch) = walk.next().await {
            let gone = self.gone(batch.iter().map(|files| files.id)).await?;
            batch.retain(|files| gone.contains(&files.id));
            gone_in_all.extend(gone);
            let top = data.clone();
            let removing = move || remove_files(&top, &batch, false);
            let removed = tokio::task::spawn_blocking(removing).await;
            removed.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        }
        walk.end().await?;
        Ok(u64::try_from(gone_in_all.len()).unwrap_or(u64::MAX))
    }

    async fn remove_from_content(&self, before: JobId) -> Result<u64, Refusal> {
        let mut gone_in_all = BTreeSet::new();
        for text in self.ctx.content.text_names().await? {
            let name = Path::new(&text).file_name().and_then(|name| name.to_str());
            let Some((id, _)) = name.and_then(of_log).filter(|(id, _)| *id < before) else {
                continue;
            };
            if self.gone([id]).await?.contains(&id) {
                self.ctx.content.remove_text(&text).await?;
                gone_in_all.insert(id);
            }
        }
        for suite in self.folders_in("").await? {
            for date in self.folders_in(&suite).await? {
                let mut jobs = Vec::new();
                self.jobs_below(date, LEVELS_MAX, &mut jobs).await?;
                jobs.retain(|(id, _)| *id < before);
                for batch in jobs.chunks(BATCH) {
                    let gone = self.gone(batch.iter().map(|(id, _)| *id)).await?;
                    for (_, folder) in batch.iter().filter(|(id, _)| gone.contains(id)) {
                        self.ctx.content.remove_named(folder).await?;
                    }
                    gone_in_all.extend(gone);
                }
            }
        }
        Ok(u64::try_from(gone_in_all.len()).unwrap_or(u64::MAX))
    }

    /// The folders of jobs below one of a date.
    async fn jobs_below(
        &self,
        date: String,
        levels: u32,
        jobs: &mut Vec<(JobId, String)>,
    ) -> Result<(), Refusal> {
        let mut open = vec![(date, levels)];
        while let Some((folder, levels)) = open.pop() {
            for below in self.folders_in(&folder).await? {
                let name = Path::new(&below).file_name().and_then(|name| name.to_str());
                match name.and_then(of_folder) {
                    Some((id, _)) => jobs.push((id, below)),
                    None if levels > 1 => open.push((below, levels.saturating_sub(1))),
                    None => {}
                }
            }
        }
        Ok(())
    }

    async fn folders_in(&self, folder: &str) -> Result<Vec<String>, Refusal> {
        let Some(Named::Folder(names)) = self.ctx.content.named(folder).await? else {
            return Ok(Vec::new());
        };
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let folders = names
            .into_iter()
            .filter_map(|name| Some(name.strip_suffix('/')?.to_owned()));
        Ok(folders.map(|name| format!("{prefix}{name}")).collect())
    }

    /// Those of these jobs that the store does not have.
    async fn gone(&self, ids: impl IntoIterator<Item = JobId>) -> Result<BTreeSet<JobId>, Refusal> {
        let ids: BTreeSet<JobId> = ids.into_iter().collect();
        let ids: Vec<JobId> = ids.into_iter().collect();
        let found = self.ctx.store.get(&ids).await?;
        let gone = ids.into_iter().zip(found).filter(|(_, job)| job.is_none());
        Ok(gone.map(|(id, _)| id).collect())
    }
}
