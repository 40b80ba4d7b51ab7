//! Walks over the files of jobs below a data folder in a thread of its own, while what it found is looked at.

use std::{io, path::Path};

use tokio::{sync::mpsc, task::JoinHandle};

use crate::files::places::{JobFiles, each_log, each_result};

/// Files that are looked at together.
const BATCH: usize = 1_000;

/// A walk that goes on.
pub(crate) struct Walk {
    found: mpsc::Receiver<JobFiles>,
    walked: JoinHandle<io::Result<()>>,
}

impl Walk {
    /// Begins to find the files that are wanted.
    pub(crate) fn begin(
        data: &Path,
        is_wanted: impl Fn(&JobFiles) -> bool + Send + 'static,
    ) -> Self {
        let (sender, found) = mpsc::channel(BATCH);
        let data = data.to_owned();
        let walked = tokio::task::spawn_blocking(move || {
            let send = |files: JobFiles| {
                if is_wanted(&files) {
                    // Nobody takes them any more: whoever looked at them has failed.
                    sender.blocking_send(files).map_err(io::Error::other)?;
                }
                Ok(())
            };
            each_result(&data, send)?;
            each_log(&data, send)
        });
        Self { found, walked }
    }

    /// The next files, at most [`BATCH`]; `None`: these were all.
    pub(crate) async fn next(&mut self) -> Option<Vec<JobFiles>> {
        let mut batch = Vec::new();
        let many = self.found.recv_many(&mut batch, BATCH).await;
        (many > 0).then_some(batch)
    }

    /// Whether all folders could be read.
    pub(crate) async fn end(self) -> io::Result<()> {
        let walked = self.walked.await;
        walked.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}
