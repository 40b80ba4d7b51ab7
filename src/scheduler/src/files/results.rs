//! Results and logs: files by (job, attempt) below the data folder.
//!
//! Only this module names paths below `result` and `logs`. An upload stays inside the job's own folder, appears
//! complete or not at all, and never replaces a file.

use std::path::{Component, Path, PathBuf};

use bytes::{Buf, Bytes};
use fairlead_api::ErrorCode;
use fairlead_job::JobId;
use fairlead_store::JobState;
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use crate::{
    base::{
        errors::Refusal,
        file_modes::{PRIVATE_FILE, private_folders},
    },
    core::Core,
    files::parts::{Part, is_part},
    lifecycle::{after_report::Speaker, result_paths::attempt_root},
};

/// Longest name of a file or folder, bytes: what file systems take.
const NAME_MAX: usize = 255;
/// What comes later than this after a job's end is not taken, ms: a testbox may have been cut off for hours.
const LATE_MS: u64 = 24 * 3_600_000;
/// Longest relative path of a result file, bytes.
const PATH_MAX: usize = 1024;
/// Largest append to a log, bytes.
pub(crate) const LOG_APPEND_MAX: usize = 1 << 20;

/// A path from a client, checked: relative, no `..`, no odd components.
fn checked(path: &str) -> Result<PathBuf, Refusal> {
    let bad = |why: &str| {
        let shown: String = path.chars().take(80).collect();
        Refusal::new(
            ErrorCode::BadName,
            format!("path '{}': {why}", shown.escape_default()),
            "a relative path below the job's result_root",
        )
    };
    if path.len() > PATH_MAX {
        return Err(bad("longer than 1024 bytes"));
    }
    if path.contains('\0') || path.contains('\\') {
        return Err(bad("it holds a NUL or a backslash"));
    }
    if path.split('/').any(|name| name.len() > NAME_MAX) {
        return Err(bad("a name in it is longer than 255 bytes"));
    }
    let path = Path::new(path.trim_start_matches('/'));
    if path
        .components()
        .all(|component| matches!(component, Component::Normal(_)))
        && path.components().next().is_some()
    {
        Ok(path.to_owned())
    } else {
        Err(bad("it leaves the folder or is empty"))
    }
}

fn io_refusal(error: &std::io::Error) -> Refusal {
    match error.kind() {
        std::io::ErrorKind::NotFound => Refusal::new(
            ErrorCode::NotFound,
            "no such file",
            "list the folder above it",
        ),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            tracing::error!(%error, "the disk of the data folder is full");
            Refusal::new(
                ErrorCode::Unavailable,
                "the disk of the replica is full",
                "try again later; tell the operator",
            )
        }
        std::io::ErrorKind::NotADirectory | std::io::ErrorKind::IsADirectory => Refusal::new(
            ErrorCode::BadName,
            "a folder is where a file should be, or the other way round",
            "choose another name",
        ),
        std::io::ErrorKind::InvalidFilename => Refusal::new(
            ErrorCode::BadName,
            "the name is too long, or has characters that the replica's disk does not take",
            "choose another name",
        ),
        _ => {
            tracing::error!(%error, "a result file could not be read or written");
            Refusal::new(
                ErrorCode::Internal,
                "the replica cannot read or write that file",
                "the replica's log has the reason",
            )
        }
    }
}

/// File operations that may wait for a disk, beside the runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    done.map_err(|error| io_refusal(&error))
}

/// What a download found.
pub(crate) enum Found {
    /// A file and its size.
    File(tokio::fs::File, u64),
    /// Names in a folder, sorted; folders end with `/`.
    Folder(Vec<String>),
}

/// Opens a file or lists a folder; links are not followed.
async fn open(target: &Path) -> Result<Found, Refusal> {
    let meta = tokio::fs::symlink_metadata(target)
        .await
        .map_err(|error| io_refusal(&error))?;
    if meta.is_dir() {
        let mut names = Vec::new();
        let mut entries = tokio::fs::read_dir(target)
            .await
            .map_err(|error| io_refusal(&error))?;
        while let Some(entry) = entries
            .next_entry()
            .await
            .map_err(|error| io_refusal(&error))?
        {
            let mut name = entry.file_name().to_string_lossy().into_owned();
            if is_part(&name) {
                continue;
            }
            if entry.file_type().await.is_ok_and(|kind| kind.is_dir()) {
                name.push('/');
            }
            names.push(name);
        }
        names.sort_unstable();
        return Ok(Found::Folder(names));
    }
    if !meta.is_file() {
        return Err(Refusal::new(
            ErrorCode::NotFound,
            "no such file",
            "list the folder above it",
        ));
    }
    let file = tokio::fs::File::open(target)
        .await
        .map_err(|error| io_refusal(&error))?;
    Ok(Found::File(file, meta.len()))
}

impl Core {
    fn result_folder(&self) -> PathBuf {
        self.config.data_dir.join("result")
    }

    fn log_path(&self, id: JobId, attempt: u16) -> PathBuf {
        self.config
            .data_dir
            .join("logs")
            .join(id.month())
            .join(format!("{id}.{attempt}.log"))
    }

    /// Where a job's results lie on this machine.
    fn job_folder(&self, root: &str) -> Result<PathBuf, Refusal> {
        Ok(self
            .result_folder()
            .join(checked(root.strip_prefix("/result/").unwrap_or(root))?))
    }

    /// Whether `path` (below `/result/`) belongs to the attempt that `speaker` speaks for.
    pub(crate) fn upload_target(
        &self,
        state: &JobState,
        speaker: Speaker,
        path: &str,
    ) -> Result<PathBuf, Refusal> {
        let root = match speaker {
            Speaker::Present => state.result_root.clone(),
            Speaker::Earlier(attempt) => attempt_root(&state.result_root, state.attempt, attempt),
        };
        let folder = self.job_folder(&root)?;
        let target = self.result_folder().join(checked(path)?);
        if target.starts_with(&folder) && target != folder {
            return Ok(target);
        }
        Err(Refusal::new(
            ErrorCode::Forbidden,
            format!("the path is outside {root}"),
            "upload below the result_root of the grant",
        ))
    }

    /// Refuses what comes too late: the job has ended, and its results are in, or will not come any more.
    pub(crate) fn check_open(&self, state: &JobState, speaker: Speaker) -> Result<(), Refusal> {
        use fairlead_job::DataReadiness::{Complete, Uploaded};
        let are_in = matches!(state.data_readiness, Uploaded | Complete);
        let is_late = self.clock.wall_ms() > state.end_ms.saturating_add(LATE_MS);
        // What an earlier attempt left is kept beside the present one's results.
        let sealed = is_late || (are_in && speaker == Speaker::Present);
        if !state.stage.is_terminal() || !sealed {
            return Ok(());
        }
        let id = state.job_id;
        Err(Refusal::new(
            ErrorCode::Closed,
            format!(
                "the results of job {id} are sealed: it has ended, and they are {}",
                state.data_readiness
            ),
            "nothing more is taken",
        ))
    }

    /// Stores an uploaded file, whole or not at all, if the job's results are still open by then. Returns its size.
    pub(crate) async fn store_upload<S, B, E>(
        &self,
        (id, speaker): (JobId, Speaker),
        target: &Path,
        mut body: S,
    ) -> Result<u64, Refusal>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: Buf,
        E: Into<Refusal>,
    {
        if tokio::fs::try_exists(target)
            .await
            .map_err(|error| io_refusal(&error))?
        {
            return Err(Refusal::new(
                ErrorCode::Conflict,
                "the file exists",
                "a result file is written once",
            ));
        }
        let folder = target.parent().unwrap_or(target);
        self.make_result_folders(folder).await?;
        let part = self.new_part(folder).await;
        let part = part.map_err(|error| io_refusal(&error))?;
        let size = self.write_part(&part, &mut body).await?;
        self.check_open(&self.job(id).await?.state, speaker)?;
        // A hard link fails when the name is taken meanwhile, a rename would replace it.
        let linked = tokio::fs::hard_link(&part.path, target).await;
        linked.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Refusal::new(
                ErrorCode::Conflict,
                "the file exists",
                "a result file is written once",
            ),
            _ => io_refusal(&error),
        })?;
        Ok(size)
    }

    async fn write_part<S, B, E>(&self, part: &Part, body: &mut S) -> Result<u64, Refusal>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: Buf,
        E: Into<Refusal>,
    {
        let mut options = tokio::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(PRIVATE_FILE);
        let mut file = options
            .open(&part.path)
            .await
            .map_err(|error| io_refusal(&error))?;
        let (mut size, limit) = (0u64, self.config.limits.upload_bytes_max);
        while let Some(chunk) = body.next().await {
            let mut chunk = chunk.map_err(Into::into)?;
            let bytes: Bytes = chunk.copy_to_bytes(chunk.remaining());
            size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            if size > limit {
                let message = format!("the file has more than {limit} bytes");
                return Err(Refusal::new(
                    ErrorCode::TooLarge,
                    message,
                    "split or compress it",
                ));
            }
            file.write_all(&bytes)
                .await
                .map_err(|error| io_refusal(&error))?;
        }
        let (results, part) = (self.config.results, part.path.clone());
        blocking(move || results.give_file(&part)).await?;
        file.sync_all().await.map_err(|error| io_refusal(&error))?;
        Ok(size)
    }

    async fn make_result_folders(&self, folder: &Path) -> Result<(), Refusal> {
        let results = self.config.results;
        let (data, folder) = (self.config.data_dir.clone(), folder.to_owned());
        blocking(move || results.make_folders(&data, &folder)).await
    }

    /// Opens a result file, or lists a folder.
    pub(crate) async fn open_result(&self, path: &str) -> Result<Found, Refusal> {
        open(&self.result_folder().join(checked(path)?)).await
    }

    /// Opens a kernel or initrd that the operator put below `srv/boot`.
    pub(crate) async fn open_boot_file(&self, path: &str) -> Result<Found, Refusal> {
        let path = format!("srv/boot/{path}");
        open(&self.config.data_dir.join(checked(&path)?)).await
    }

    /// Appends to a log at `offset`; what is there already is skipped. Returns the log's size.
    pub(crate) async fn append_log(
        &self,
        id: JobId,
        attempt: u16,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u64, Refusal> {
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
            .await
            .map_err(|error| io_refusal(&error))?;
        let size = file
            .metadata()
            .await
            .map_err(|error| io_refusal(&error))?
            .len();
        if offset > size {
            let message = format!("offset {offset} leaves a gap: the log has {size} bytes");
            return Err(Refusal::new(
                ErrorCode::Conflict,
                message,
                "append at its size",
            ));
        }
        let known = usize::try_from(size - offset).unwrap_or(usize::MAX);
        let fresh = bytes.get(known..).unwrap_or_default();
        let new_size = size.saturating_add(u64::try_from(fresh.len()).unwrap_or(u64::MAX));
        if new_size > self.config.limits.log_bytes_max {
            let message = format!(
                "the log would have {new_size} bytes; the limit is {}",
                self.config.limits.log_bytes_max
            );
            return Err(Refusal::new(
                ErrorCode::TooLarge,
                message,
                "write large output into a result file",
            ));
        }
        if !fresh.is_empty() {
            file.seek(std::io::SeekFrom::Start(size))
                .await
                .map_err(|error| io_refusal(&error))?;
            file.write_all(fresh)
                .await
                .map_err(|error| io_refusal(&error))?;
            file.flush().await.map_err(|error| io_refusal(&error))?;
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
        limit: usize,
    ) -> Result<Bytes, Refusal> {
        let mut file = match tokio::fs::File::open(self.log_path(id, attempt)).await {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Bytes::new()),
            Err(error) => return Err(io_refusal(&error)),
        };
        file.seek(std::io::SeekFrom::Start(offset))
            .await
            .map_err(|error| io_refusal(&error))?;
        let mut piece = Vec::new();
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        file.take(limit)
            .read_to_end(&mut piece)
            .await
            .map_err(|error| io_refusal(&error))?;
        Ok(piece.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::result_paths::result_root;
    use fairlead_job::Spec;

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

    #[test]
    fn each_attempt_has_its_own_folder() {
        assert_eq!(attempt_root("/r/7", 1, 2), "/r/7.2");
        assert_eq!(attempt_root("/r/7.2", 2, 3), "/r/7.3");
        assert_eq!(attempt_root("/r/7.3", 3, 1), "/r/7");
    }

    #[test]
    fn paths_cannot_leave() {
        for bad in [
            "",
            "/",
            "..",
            "a/../b",
            "a/./../..",
            "x\0",
            "a\\b",
            &format!("a/{}", "x".repeat(256)),
            &"x".repeat(2000),
        ] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
        assert_eq!(checked("/a/b.txt").unwrap(), Path::new("a/b.txt"));
    }
}
