//! Sends a job's output to the scheduler while it runs: from the file, by offset, in batches. The file is the buffer,
//! so memory is bounded even if the scheduler is far behind. A restarted agent continues at the scheduler's offset.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use fairlead_api::{Client, LogAppend};
use rustix::fs::OFlags;
use tokio::{
    fs::OpenOptions,
    io::{AsyncReadExt, AsyncSeekExt, SeekFrom},
    sync::watch,
};

use super::{
    journal::Journal,
    retry::{Patience, stores_nothing, until_answered, until_stored},
};
use crate::timer::pause;

/// Maximum batch, bytes. The server accepts at most 1 MiB.
const BATCH_BYTES_MAX: u64 = 256 * 1024;
/// Time for which output is collected before a batch is sent, unless it is full.
const BATCH_DELAY: Duration = Duration::from_millis(200);
/// Size of a batch if the scheduler sets the collection time, bytes.
const SLOW_BATCH_BYTES: u64 = 64 * 1024;

/// Flags for opening the output. A job may replace it with anything, so links are not followed and pipes do not block.
const OPEN_FLAGS: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// Sends the output of one job.
#[derive(Debug)]
pub(crate) struct LogShipper {
    client: Client,
    job_id: String,
    attempt: u16,
    job_token: String,
    output: PathBuf,
    /// Number of bytes that the scheduler has.
    sent: u64,
    /// True if the scheduler wants no more output.
    refused: bool,
    /// Description of the part that the lab could not store, with the reason.
    lost: Option<String>,
    /// Collection time, and the batch size that ends it.
    delay: Duration,
    enough: u64,
}

impl LogShipper {
    pub(crate) fn new(client: Client, journal: &Journal, output: PathBuf) -> Self {
        Self {
            client,
            job_id: journal.job_id.clone(),
            attempt: journal.attempt,
            job_token: journal.job_token.clone(),
            output,
            sent: 0,
            refused: false,
            lost: None,
            delay: BATCH_DELAY,
            enough: BATCH_BYTES_MAX,
        }
    }

    /// Returns the shipper with the collection time that the scheduler sets, ms.
    pub(crate) fn with_delay(self, delay_ms: Option<u32>) -> Self {
        let Some(delay_ms) = delay_ms else {
            return self;
        };
        Self {
            delay: Duration::from_millis(u64::from(delay_ms)),
            enough: SLOW_BATCH_BYTES,
            ..self
        }
    }

    /// Sends new output; `size` tells the length of the file. Returns when no more will come. It may be dropped at any
    /// moment.
    pub(crate) async fn follow(&mut self, mut size: watch::Receiver<u64>) {
        loop {
            let sent = self.sent;
            if size.wait_for(|size| *size > sent).await.is_err() || self.refused {
                return;
            }
            let whole_batch = size.wait_for(|size| *size >= sent + self.enough);
            // In both cases there is something to send.
            let _ = tokio::time::timeout(self.delay, whole_batch).await;
            if !self.batch(None).await {
                return;
            }
        }
    }

    /// Sends all unsent output, as long as the lab can store it. Returns a description of the missing part if that is
    /// the lab's fault.
    pub(crate) async fn rest(&mut self, patience: &mut Patience) -> Option<String> {
        while self.batch(Some(patience)).await {}
        self.lost.take()
    }

    /// Sends one batch. Returns true if there was one and the scheduler wants more. Without `patience`, it retries
    /// forever if the lab cannot store it.
    async fn batch(&mut self, patience: Option<&mut Patience>) -> bool {
        if self.refused {
            return false;
        }
        let bytes = match self.read().await {
            Ok(bytes) if bytes.is_empty() => return false,
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(job_id = self.job_id, %error, "the output file of a job cannot be read");
                return false;
            }
        };
        let append = || {
            let (attempt, token) = (self.attempt, &self.job_token);
            let bytes = bytes.clone();
            self.client
                .append_log(&self.job_id, attempt, token, self.sent, bytes)
        };
        let appended = match patience {
            Some(patience) => until_stored(&self.job_id, "output", patience, append).await,
            None => until_answered(&self.job_id, "output", append).await,
        };
        match appended {
            Ok(LogAppend::Stored { size }) => self.sent = size.max(self.sent + bytes.len() as u64),
            Ok(LogAppend::Gap { size }) => {
                tracing::warn!(
                    job_id = self.job_id,
                    size,
                    "the scheduler lost output; sending it again"
                );
                self.sent = size;
                pause(BATCH_DELAY).await;
            }
            Err(error) => {
                tracing::warn!(job_id = self.job_id, %error, "the scheduler accepts no more output");
                self.refused = true;
                self.lost = stores_nothing(&error).then(|| format!("its output: {error}"));
            }
        }
        !self.refused
    }

    async fn read(&self) -> std::io::Result<Bytes> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(OPEN_FLAGS)
            .open(&self.output)
            .await?;
        file.seek(SeekFrom::Start(self.sent)).await?;
        let mut bytes = Vec::new();
        file.take(BATCH_BYTES_MAX).read_to_end(&mut bytes).await?;
        Ok(bytes.into())
    }
}
