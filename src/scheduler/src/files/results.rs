//! Results and logs: files by (job, attempt) below the data folder.
//!
//! `places` names paths below `result` and `logs`. An upload stays inside the job's own folder, appears
//! complete or not at all, and never replaces a file.

use std::path::{Path, PathBuf};

use bytes::{Buf, Bytes};
use fairlead_job::JobId;
use fairlead_store::JobState;
use futures_util::{Stream, StreamExt};
use tokio::{
    fs::File,
    io::{AsyncSeekExt, AsyncWriteExt},
};

use crate::{
    FilesIn,
    files::{
        FileFlow,
        parts::UploadPart,
        places::{checked, folder_in, log_in, results_in},
        read::{Found, OpenFile, Part, Wanted, blocking, open},
    },
};
use fairlead_base::{
    errors::{FileError, Refusal},
    file_modes::{PRIVATE_FILE, private_folders},
};
use fairlead_lifecycle::{after_report::Speaker, result_paths::attempt_root};

/// Largest append to a log, bytes.
pub(crate) const LOG_APPEND_MAX: usize = 1 << 20;

impl FileFlow {
    fn result_folder(&self) -> PathBuf {
        results_in(&self.ctx.config.data_dir)
    }

    pub(super) fn log_path(&self, id: JobId, attempt: u16) -> PathBuf {
        log_in(&self.ctx.config.data_dir, id, attempt)
    }

    /// Where a job's results lie on this machine.
    pub(super) fn job_folder(&self, root: &str) -> Result<PathBuf, FileError> {
        folder_in(&self.ctx.config.data_dir, root)
    }

    /// The place of `path` below all results, if it belongs to the attempt that `speaker` speaks for.
    pub(crate) fn upload_target(
        &self,
        state: &JobState,
        speaker: Speaker,
        path: &str,
    ) -> Result<PathBuf, FileError> {
        let root = match speaker {
            Speaker::Present => state.result_root.clone(),
            Speaker::Earlier(attempt) => attempt_root(&state.result_root, state.attempt, attempt),
        };
        let folder = self.job_folder(&root)?;
        let path = checked(path)?;
        let target = self.result_folder().join(&path);
        if target.starts_with(&folder) && target != folder {
            return Ok(path);
        }
        Err(FileError::Outside(root))
    }

    /// Stores an uploaded file, whole or not at all, if the job's results are still open by then. Returns its size.
    pub(crate) async fn store_upload<S, B, E>(
        &self,
        (id, speaker): (JobId, Speaker),
        path: &Path,
        mut body: S,
    ) -> Result<u64, Refusal>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: Buf,
        E: Into<Refusal>,
    {
        if self.ctx.config.files_in == FilesIn::Content {
            let name = path.to_str().ok_or(FileError::BadName)?;
            return self.store_named((id, speaker), name, body).await;
        }
        let target = &self.result_folder().join(path);
        if tokio::fs::try_exists(target).await? {
            return Err(FileError::Exists.into());
        }
        let folder = target.parent().unwrap_or(target);
        self.make_result_folders(folder).await?;
        let part = self.new_part(folder).await.map_err(FileError::from)?;
        let size = self.write_part(&part, &mut body).await?;
        self.check_open(&self.jobs.job(id).await?.state, speaker)?;
        // A hard link fails when the name is taken meanwhile, a rename would replace it.
        let linked = tokio::fs::hard_link(&part.path, target).await;
        linked.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => FileError::Exists,
            _ => error.into(),
        })?;
        Ok(size)
    }

    async fn write_part<S, B, E>(&self, part: &UploadPart, body: &mut S) -> Result<u64, Refusal>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: Buf,
        E: Into<Refusal>,
    {
        let mut options = tokio::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(PRIVATE_FILE);
        let mut file = options.open(&part.path).await?;
        let size = write_whole(&mut file, body, self.ctx.config.limits.upload_bytes_max).await?;
        let (results, part) = (self.ctx.config.results, part.path.clone());
        blocking(move || results.give_file(&part)).await?;
        file.sync_all().await?;
        Ok(size)
    }

    async fn make_result_folders(&self, folder: &Path) -> Result<(), FileError> {
        let results = self.ctx.config.results;
        let (data, folder) = (self.ctx.config.data_dir.clone(), folder.to_owned());
        blocking(move || results.make_folders(&data, &folder)).await
    }

    /// Opens a result file, or lists a folder.
    pub(crate) async fn open_result(&self, path: &str, wanted: Wanted) -> Result<Found, FileError> {
        let path = checked(path)?;
        if self.ctx.config.files_in == FilesIn::Content {
            let name = path.to_str().ok_or(FileError::BadName)?;
            return self.open_named(name, wanted).await;
        }
        open(self.result_folder().join(path), wanted).await
    }

    /// Opens a kernel or initrd that the operator put below `srv/boot`.
    pub(crate) async fn open_boot_file(
        &self,
        path: &str,
        wanted: Wanted,
    ) -> Result<Found, FileError> {
        let path = format!("srv/boot/{path}");
        open(self.ctx.config.data_dir.join(checked(&path)?), wanted).await
    }

    /// Opens a log; `None`: there is none yet.
    pub(crate) async fn open_log(
        &self,
        id: JobId,
        attempt: u16,
        wanted: Wanted,
    ) -> Result<Option<OpenFile>, FileError> {
        if self.ctx.config.files_in == FilesIn::Content {
            return self.open_text(id, attempt, wanted).await;
        }
        match open(self.log_path(id, attempt), wanted).await {
            Ok(Found::File(file)) => Ok(Some(file)),
            Ok(Found::Folder(_)) | Err(FileError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Appends to a log at `offset`; what is there already is skipped. Returns the log's size.
    pub(crate) async fn append_log(
        &self,
        id: JobId,
        attempt: u16,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, FileError> {
        if self.ctx.config.files_in == FilesIn::Content {
            return self.append_text(id, attempt, offset, bytes).await;
        }
        let path = self.log_path(id, attempt);
        if let Some(folder) = path.parent() {
            let folder = folder.to_owned();
            blocking(move || private_folders(&folder)).await?;
        }
        let mut options = tokio::fs::OpenOptions::new();
        let mut file = options
            .create(true)
            .mode(PRIVATE_FILE)
            .truncate(false)
            .write(true)
            .open(&path)
            .await?;
        let size = file.metadata().await?.len();
        if offset > size {
            return Err(FileError::Gap { offset, size });
        }
        let known = usize::try_from(size - offset).unwrap_or(usize::MAX);
        let fresh = bytes.get(known..).unwrap_or_default();
        let new_size = size.saturating_add(u64::try_from(fresh.len()).unwrap_or(u64::MAX));
        let max = self.ctx.config.limits.log_bytes_max;
        if new_size > max {
            let size = new_size;
            return Err(FileError::LogTooLarge { size, max });
        }
        if !fresh.is_empty() {
            file.seek(std::io::SeekFrom::Start(size)).await?;
            file.write_all(fresh).await?;
            file.flush().await?;
            self.jobs.changes.announce(id);
        }
        Ok(new_size)
    }

    /// Reads a piece of a log, at most `limit` bytes; empty behind its end.
    pub(crate) async fn read_log(
        &self,
        id: JobId,
        attempt: u16,
        offset: u64,
        limit: u64,
    ) -> Result<Bytes, FileError> {
        let end = offset.saturating_add(limit);
        let wanted = Wanted {
            part: Part::Bytes(offset, Some(end.saturating_sub(1))),
            ..Wanted::default()
        };
        match self.open_log(id, attempt, wanted).await? {
            Some(file) => Ok(file.read_all().await?.into()),
            None => Ok(Bytes::new()),
        }
    }
}

/// Writes a body of at most `limit` bytes to a new file. Returns its size.
async fn write_whole<S, B, E>(file: &mut File, body: &mut S, limit: u64) -> Result<u64, Refusal>
where
    S: Stream<Item = Result<B, E>> + Unpin,
    B: Buf,
    E: Into<Refusal>,
{
    let mut size = 0u64;
    while let Some(chunk) = body.next().await {
        let mut chunk = chunk.map_err(Into::into)?;
        let bytes: Bytes = chunk.copy_to_bytes(chunk.remaining());
        size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if size > limit {
            return Err(FileError::TooLarge(limit).into());
        }
        file.write_all(&bytes).await?;
    }
    // The last write goes on in the background. Only this waits for its error; `sync_all` loses it.
    file.flush().await?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_job::Spec;
    use fairlead_lifecycle::result_paths::result_root;
    use futures_util::stream;

    #[test]
    fn a_result_root_is_made_of_safe_parts() {
        let spec = Spec::from_iter([
            ("os".to_owned(), "open euler".into()),
            ("os_version".to_owned(), "22.03".into()),
        ]);
        let root = result_root("../x", "dc-8g", &spec, 1_795_228_571_000, JobId::new(7));
        assert_eq!(
            root,
            "/result/.._x/2026-11-21/dc-8g/open_euler-22.03-any/0000000000000000007"
        );
    }

    #[tokio::test]
    async fn a_full_disk_is_told_as_such() {
        let (data, flows) = crate::testing::flows().await;
        let log = flows.files.log_path(JobId::new(7), 1);
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/dev/full", &log).unwrap();
        let appended = flows
            .files
            .append_log(JobId::new(7), 1, 0, "x".into())
            .await;
        assert_eq!(appended, Err(FileError::DiskFull));
        drop(data);
    }

    /// The error of the last write was lost: the file was cut off, and acknowledged.
    #[tokio::test]
    async fn a_file_that_the_disk_cuts_off_is_refused() {
        let mut options = tokio::fs::OpenOptions::new();
        let mut full = options.write(true).open("/dev/full").await.unwrap();
        let mut body = stream::iter([Ok::<_, Refusal>(Bytes::from("x"))]);
        let written = write_whole(&mut full, &mut body, 9).await;
        assert!(
            matches!(written, Err(Refusal::File(FileError::DiskFull))),
            "{written:?}"
        );
    }

    #[test]
    fn each_attempt_has_its_own_folder() {
        assert_eq!(attempt_root("/r/7", 1, 2), "/r/7.2");
        assert_eq!(attempt_root("/r/7.2", 2, 3), "/r/7.3");
        assert_eq!(attempt_root("/r/7.3", 3, 1), "/r/7");
    }
}
