//! The last output line of each shown job, for the progress lines. Best effort: the next read repeats a failed one.

use std::collections::BTreeMap;

use fairlead_api::client::{Client, ClientError};

use crate::{printable::LogFilter, progress::Progress, results::Ending};

/// Maximum number of bytes of one job's log in one read.
const LOOK_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of bytes of an unfinished line that are kept.
const LINE_BYTES_MAX: usize = 4096;

/// Number of output lines of a failed job that are shown.
const LAST_LINES: usize = 20;
/// Number of bytes at the end of the output that are read for them.
const LAST_BYTES: u64 = 16 * 1024;
/// Maximum number of failed jobs whose output is read.
const READ_MAX: usize = 20;

/// Adds the last lines of their output to failed jobs. Unreadable output is left out.
pub(crate) async fn last_lines(endings: &mut [Ending], client: &Client) {
    let failed = endings.iter_mut().filter(|ending| ending.has_failed());
    for ending in failed.take(READ_MAX) {
        if let Ok(lines) = end_of(&ending.job_id, LAST_LINES, client).await {
            ending.tail = lines;
        }
    }
}

/// Returns the last lines of a job's output, without control characters.
pub(crate) async fn end_of(
    id: &str,
    lines: usize,
    client: &Client,
) -> Result<Vec<String>, ClientError> {
    let bytes = LAST_BYTES.max(u64::try_from(lines).unwrap_or(0).saturating_mul(512));
    let (end, is_part) = client.log_end(id, None, bytes).await?;
    let mut filter = LogFilter::default();
    let text = format!("{}{}", filter.next(&end), filter.end());
    let mut all: Vec<&str> = text.lines().collect();
    // The first line of a part may lack its start.
    if is_part && all.len() > 1 {
        all.remove(0);
    }
    let first = all.len().saturating_sub(lines);
    Ok(all
        .split_off(first)
        .into_iter()
        .map(str::to_owned)
        .collect())
}

/// Position in each log.
#[derive(Debug, Default)]
pub(crate) struct Tails(BTreeMap<String, Tail>);

#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    /// Bytes after the last newline.
    open: Vec<u8>,
    line: String,
}

impl Tails {
    /// Reads the new output of the jobs that have a line on the terminal.
    pub(crate) async fn look(&mut self, client: &Client, progress: &mut Progress<'_>) {
        let shown = progress.shown();
        self.0.retain(|id, _| shown.contains(id));
        for id in shown {
            let tail = self.0.entry(id.clone()).or_default();
            // If there is no log yet, or the scheduler is unreachable, the next update retries.
            let _ = tail.read(&id, client).await;
            if !tail.line.is_empty() {
                progress.said(&id, &tail.line);
            }
        }
    }
}

impl Tail {
    async fn read(&mut self, id: &str, client: &Client) -> Result<(), ClientError> {
        let mut stream = client.log(id, None, self.offset, false).await?;
        let stop = self.offset + LOOK_BYTES_MAX;
        while let Some(bytes) = stream.chunk().await? {
            self.offset += bytes.len() as u64;
            self.take(&bytes);
            if self.offset >= stop {
                break;
            }
        }
        Ok(())
    }

    /// Takes in the next bytes, and keeps the last line that is not blank.
    fn take(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
        while let Some(end) = self
            .open
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
        {
            let line: Vec<u8> = self.open.drain(..=end).collect();
            self.keep(&line);
        }
        if self.open.len() > LINE_BYTES_MAX {
            self.open.drain(..self.open.len() - LINE_BYTES_MAX);
        }
    }

    fn keep(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if !text.is_empty() {
            text.clone_into(&mut self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_that_is_not_blank_stays() {
        let mut tail = Tail::default();
        for (bytes, line) in [
            (&b"fir"[..], ""),
            (b"st\nsecond\n\n", "second"),
            (b" 10%\r 20%\r", "20%"),
            (b"half", "20%"),
            (b"\xff\n", "half\u{fffd}"),
        ] {
            tail.take(bytes);
            assert_eq!(tail.line, line);
        }
        tail.take(&vec![b'x'; 100_000]);
        assert!(tail.open.len() <= LINE_BYTES_MAX);
    }
}
