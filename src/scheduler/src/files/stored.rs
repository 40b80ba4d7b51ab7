//! Results and logs by content: results are named files, logs are texts that grow by pieces.

use bytes::{Buf, Bytes};
use fairlead_content::{Appended, ContentError, Named, Pin};
use fairlead_job::JobId;
use futures_util::{Stream, StreamExt, TryStreamExt};

use crate::files::{
    FileFlow,
    places::log_name,
    read::{Found, OpenFile, Wanted, open_pieces},
};
use fairlead_base::errors::{ContentFault, FileError, Refusal};
use fairlead_lifecycle::after_report::Speaker;

/// How long an upload keeps its chunks from collection, ms: a day.
const PIN_MS: u64 = 24 * 3_600_000;

impl FileFlow {
    /// Stores an uploaded file under its name, whole or not at all. Returns its size.
    pub(super) async fn store_named<S, B, E>(
        &self,
        (id, speaker): (JobId, Speaker),
        name: &str,
        body: S,
    ) -> Result<u64, Refusal>
    where
        S: Stream<Item = Result<B, E>> + Unpin,
        B: Buf,
        E: Into<Refusal>,
    {
        let pin = Pin {
            put: format!("upload-{}", uuid::Uuid::new_v4().simple()),
            until_ms: self.ctx.clock.wall_ms().saturating_add(PIN_MS),
            ..Pin::default()
        };
        let (mut size, limit) = (0_u64, self.ctx.config.limits.upload_bytes_max);
        let pieces = body.map(move |piece| {
            let piece = piece.map_err(Into::into)?;
            size = size.saturating_add(u64::try_from(piece.remaining()).unwrap_or(u64::MAX));
            if size > limit {
                return Err(Refusal::from(FileError::TooLarge(limit)));
            }
            Ok(piece)
        });
        let may_end = async || Ok(self.check_open(&self.jobs.job(id).await?.state, speaker)?);
        let file = self
            .ctx
            .content
            .put_named(name, pin, pieces, may_end)
            .await?;
        Ok(file.size)
    }

    /// Opens a result, or lists a folder.
    pub(super) async fn open_named(&self, name: &str, wanted: Wanted) -> Result<Found, FileError> {
        let found = self.ctx.content.named(name).await.map_err(broken)?;
        let file = match found.ok_or(FileError::Missing)? {
            Named::Folder(names) => return Ok(Found::Folder(names)),
            Named::File(file) => file,
        };
        let about = (file.size, format!("\"{}\"", file.digest));
        let pieces = |part| {
            self.ctx
                .content
                .read_named(&file, part)
                .map_err(broken)
                .boxed()
        };
        Ok(Found::File(open_pieces(about, &wanted, pieces).await?))
    }

    /// Opens a log; `None`: there is none yet.
    pub(super) async fn open_text(
        &self,
        id: JobId,
        attempt: u16,
        wanted: Wanted,
    ) -> Result<Option<OpenFile>, FileError> {
        let text = self.ctx.content.text(&log_name(id, attempt)).await;
        let text = text.map_err(broken)?;
        let size = text.size();
        if size == 0 {
            return Ok(None);
        }
        let pieces = |part| {
            self.ctx
                .content
                .read_text(&text, part)
                .map_err(broken)
                .boxed()
        };
        // A log only grows: its size tells its state.
        let tag = format!("\"{size:x}\"");
        Ok(Some(open_pieces((size, tag), &wanted, pieces).await?))
    }

    /// Appends to a log at `offset`; what is there already is skipped. Returns the log's size.
    pub(super) async fn append_text(
        &self,
        id: JobId,
        attempt: u16,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, FileError> {
        let (max, log) = (self.ctx.config.limits.log_bytes_max, (id, attempt));
        let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if end > max {
            return Err(FileError::LogTooLarge { size: end, max });
        }
        let known = self.log_sizes.of(log);
        let name = log_name(id, attempt);
        let appended = self
            .ctx
            .content
            .append_text(&name, known, offset, &bytes)
            .await;
        match appended.map_err(broken)? {
            Appended::Gap(size) => Err(FileError::Gap { offset, size }),
            Appended::Stored(size) => {
                self.log_sizes.set(log, size);
                self.jobs.changes.announce(id);
                Ok(size)
            }
        }
    }
}

/// The content store's error, as of a file. The log has its cause.
pub(super) fn broken(error: ContentError) -> FileError {
    match ContentFault::from(error) {
        ContentFault::Unreachable => FileError::Unreachable,
        ContentFault::Full => FileError::DiskFull,
        fault => {
            tracing::error!(%fault, "a result or a log is damaged");
            FileError::Damaged
        }
    }
}
