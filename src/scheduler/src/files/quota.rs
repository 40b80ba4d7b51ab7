//! How much a job may upload, and counts what lies there of it already.

use std::{collections::BTreeMap, fs, path::Path};

use bytes::Bytes;
use fairlead_job::JobId;
use fairlead_store::{JobState, StoreError};
use futures_util::{Stream, StreamExt};

use crate::{
    FilesIn,
    files::{FileFlow, parts::is_part, read::blocking},
};
use fairlead_base::errors::{FileError, Refusal};
use fairlead_known::{uploads::Amount, usage::Used};
use fairlead_lifecycle::after_report::Speaker;

/// Bytes of the unit of the limits.
const MB: u64 = 1 << 20;

impl FileFlow {
    /// Stores a file of the attempt that `speaker` speaks for, if the job may have it. Returns its size.
    pub(crate) async fn upload(
        &self,
        (state, speaker): (&JobState, Speaker),
        path: &str,
        body: impl Stream<Item = Result<Bytes, Refusal>> + Unpin,
    ) -> Result<u64, Refusal> {
        let id = state.job_id;
        self.check_open(state, speaker)?;
        let target = self.upload_target(state, speaker, path)?;
        self.learn_uploads(state).await?;
        let limits = &self.ctx.config.limits;
        let most = Amount {
            files: limits.files_of_job_max,
            bytes: limits.bytes_of_job_max,
        };
        let room = self.room_of(&state.account)?;
        let mut taken = Amount { files: 1, bytes: 0 };
        if !self.jobs.uploads.add(id, taken, most) {
            return Err(FileError::TooManyFiles(most.files).into());
        }
        let counted = body.map(|piece| -> Result<Bytes, Refusal> {
            let piece = piece?;
            let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if !self.jobs.uploads.add(id, Amount { files: 0, bytes }, most) {
                return Err(FileError::TooManyBytes(most.bytes).into());
            }
            taken.bytes += bytes;
            if taken.bytes > room {
                return Err(self.over_quota(&state.account).into());
            }
            Ok(piece)
        });
        let stored = self.store_upload((id, speaker), &target, counted).await;
        let size = stored.inspect_err(|_| self.jobs.uploads.give_back(id, taken))?;
        self.people.usage.with(|used| {
            if let Some(uploaded) = used.uploaded.get_mut(&state.account) {
                *uploaded = uploaded.saturating_add(size);
            }
        });
        Ok(size)
    }

    /// How many bytes an account may still upload. Refused: none.
    fn room_of(&self, account: &str) -> Result<u64, FileError> {
        let Some(most_mb) = self.people.accounts.limits_of(account).results_mb.hard else {
            return Ok(u64::MAX);
        };
        let room = most_mb
            .saturating_mul(MB)
            .saturating_sub(self.uploaded_by(account));
        if room == 0 {
            return Err(self.over_quota(account));
        }
        Ok(room)
    }

    /// What the kept jobs of an account uploaded, bytes, as last summed up; 0: it has no limit of that.
    pub(crate) fn uploaded_by(&self, account: &str) -> u64 {
        let uploaded = |used: &mut Used| used.uploaded.get(account).copied();
        self.people.usage.with(uploaded).unwrap_or(0)
    }

    fn over_quota(&self, account: &str) -> FileError {
        let limits = self.people.accounts.limits_of(account);
        let present_mb = self.uploaded_by(account).div_ceil(MB);
        let most_mb = limits.results_mb.hard.unwrap_or(0);
        FileError::OverQuota(account.to_owned(), present_mb, most_mb)
    }

    /// Sums up what those have uploaded that have a limit of it: jobs that ended, and those that run.
    pub(crate) async fn sum_up_uploads(&self) -> Result<(), StoreError> {
        let limited = self.people.accounts.limits().into_iter();
        let limited = limited.filter(|(_, limits)| limits.results_mb.hard.is_some());
        let usage = fairlead_store::Usage {
            uploads_of: limited.map(|(name, _)| name).collect(),
            ..fairlead_store::Usage::default()
        };
        let sums = self.ctx.store.usage(&usage).await?;
        let mut uploaded: BTreeMap<String, u64> = usage.uploads_of.into_iter().zip(sums).collect();
        for id in self.jobs.live.ids() {
            let Some(live) = self.jobs.live.get(id) else {
                continue;
            };
            let bytes = self.jobs.uploads.of(id).map_or(0, |amount| amount.bytes);
            if let Some(sum) = uploaded.get_mut(&live.stored.state.account) {
                *sum = sum.saturating_add(bytes);
            }
        }
        self.people.usage.with(|used| used.uploaded = uploaded);
        Ok(())
    }

    /// Makes sure that the end of a job says what it uploaded, also through others.
    pub(crate) async fn know_uploads(&self, id: JobId) -> Result<(), FileError> {
        let Some(live) = self.jobs.live.get(id) else {
            return Ok(());
        };
        let state = &live.stored.state;
        let limits = self.people.accounts.limits_of(&state.account);
        if limits.results_mb.hard.is_some() {
            self.learn_uploads(state).await?;
        }
        Ok(())
    }

    /// Counts what lies there of a job, once: it was uploaded before this replica started, or through another one.
    async fn learn_uploads(&self, state: &JobState) -> Result<(), FileError> {
        let id = state.job_id;
        if self.jobs.uploads.of(id).is_some() || self.ctx.config.files_in == FilesIn::Content {
            return Ok(());
        }
        let folder = self.job_folder(&state.result_root)?;
        let has = blocking(move || Ok(amount_in(&folder))).await?;
        self.jobs.uploads.learn(id, has);
        Ok(())
    }
}

/// The files below a folder; what cannot be read counts nothing. Blocks.
fn amount_in(folder: &Path) -> Amount {
    let mut amount = Amount::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_dir() {
                folders.push(entry.path());
            } else if !is_part(&entry.file_name().to_string_lossy()) {
                amount.files += 1;
                amount.bytes = amount.bytes.saturating_add(about.len());
            }
        }
    }
    amount
}

#[cfg(test)]
mod tests {
    use fairlead_job::Stage;
    use fairlead_store::NewJob;
    use futures_util::stream;

    use super::*;
    use crate::{
        Clock, Config,
        flows::Flows,
        testing::{embedded, flows_over, held},
    };
    use fairlead_known::account_doc::AccountDoc;

    /// A replica where each job may have so many bytes, and a job that runs.
    async fn lab(data: &tempfile::TempDir, most: u64) -> (std::sync::Arc<Flows>, JobState) {
        let mut config = Config::embedded(data.path().to_owned());
        config.limits.bytes_of_job_max = most;
        let flows = flows_over(embedded(data), config, Clock::system());
        let state = JobState {
            stage: Stage::Running,
            result_root: "/result/x/2026-11-21/dc/2611210236110700000".to_owned(),
            job_id: JobId::new(2_611_210_236_110_700_000),
            ..held()
        };
        submit(&flows, state.clone()).await;
        (flows, state)
    }

    async fn submit(flows: &Flows, state: JobState) {
        let body = std::sync::Arc::default();
        let job = NewJob { state, body };
        flows.ctx.store.submit(vec![job]).await.remove(0).unwrap();
    }

    async fn upload(
        flows: &Flows,
        state: &JobState,
        name: &str,
        bytes: &str,
    ) -> Result<u64, Refusal> {
        let path = format!(
            "{}/{name}",
            state.result_root.trim_start_matches("/result/")
        );
        let pieces = bytes.as_bytes().chunks(3).map(Bytes::copy_from_slice);
        let pieces: Vec<_> = pieces.map(Ok).collect();
        let body = stream::iter(pieces);
        flows
            .files
            .upload((state, Speaker::Present), &path, body)
            .await
    }

    #[tokio::test]
    async fn a_job_has_so_many_bytes_and_smaller_files_still_fit() {
        let data = tempfile::tempdir().unwrap();
        let (flows, state) = lab(&data, 10).await;
        assert_eq!(upload(&flows, &state, "a", "123456").await, Ok(6));
        let refused = upload(&flows, &state, "b", "12345").await.unwrap_err();
        assert_eq!(refused, FileError::TooManyBytes(10).into());
        assert_eq!(upload(&flows, &state, "c", "1234").await, Ok(4));
        assert!(upload(&flows, &state, "d", "1").await.is_err());
        let folder = flows.files.job_folder(&state.result_root).unwrap();
        let has = Amount {
            files: 2,
            bytes: 10,
        };
        assert_eq!(amount_in(&folder), has, "nothing of the others is left");
        // Another replica, or this one after a restart, counts what is there.
        let again = flows_over(
            std::sync::Arc::clone(&flows.ctx.store),
            flows.ctx.config.clone(),
            Clock::system(),
        );
        assert!(upload(&again, &state, "e", "1").await.is_err());
    }

    #[tokio::test]
    async fn an_account_at_its_limit_uploads_nothing_more() {
        let data = tempfile::tempdir().unwrap();
        let (flows, state) = lab(&data, 1_000).await;
        let mut doc = AccountDoc::default();
        doc.limits.results_mb.hard = Some(1);
        let version = fairlead_store::Version::default();
        flows.people.accounts.wrote(&state.account, version, doc);
        let ended = JobState {
            stage: Stage::Finish,
            job_id: JobId::new(2_611_210_236_110_700_001),
            result_bytes: MB - 3,
            ..state.clone()
        };
        submit(&flows, ended).await;
        flows.files.sum_up_uploads().await.unwrap();
        assert_eq!(upload(&flows, &state, "a", "12").await, Ok(2));
        let refused = upload(&flows, &state, "b", "12").await.unwrap_err();
        let over = FileError::OverQuota(state.account.clone(), 1, 1);
        assert_eq!(refused, over.into());
        assert_eq!(upload(&flows, &state, "c", "1").await, Ok(1));
        assert!(upload(&flows, &state, "d", "").await.is_err(), "no room");
        assert_eq!(flows.files.uploaded_by(&state.account), MB);
        assert_eq!(flows.files.uploaded_by("bob"), 0);
    }
}
