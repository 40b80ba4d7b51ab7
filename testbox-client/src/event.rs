//! Events for the embedder of an agent. They never delay the agent: if the channel is full, an event is dropped.

use std::path::PathBuf;

use fairlead_job::{Health, Stage};
use tokio::sync::mpsc;

/// Event on the testbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A scheduler answers for the first time, or again after [`AgentEvent::Lost`].
    Connected {
        /// Base URL of the scheduler.
        url: String,
    },
    /// No scheduler answers. The agent continues, and retries.
    Lost {
        /// Cause of the loss.
        cause: String,
    },
    /// A job was taken.
    Granted {
        /// Id of the job.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
        /// Suite of the job. Empty: none.
        suite: String,
        /// Memory that it takes of the host, MB. 0 for hw.
        memory_mb: u32,
    },
    /// A job has its inputs.
    Inputs {
        /// Id of the job.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
        /// Number of files, links and empty folders.
        files: u64,
        /// Size of all its files, bytes.
        bytes: u64,
        /// Bytes that were fetched for it. The others were cached.
        fetched_bytes: u64,
    },
    /// A file in the cache of inputs was damaged. No job gets it, because it is fetched again.
    CacheDamaged {
        /// Id of the job that wanted the file.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
        /// Path of the file below the job's `inputs` folder.
        file: String,
    },
    /// A job reached this stage.
    Stage {
        /// Id of the job.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
        /// Stage that the job reached.
        stage: Stage,
    },
    /// All processes of the job have ended. Its results are not delivered yet.
    Ended {
        /// Id of the job.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
        /// Health with which it ended.
        health: Health,
        /// Exit code of its script, 128 + n after signal n. `None`: it never ran.
        exit_code: Option<i32>,
        /// Reason, as a sentence. Empty: success.
        reason: String,
        /// Run time of its script, ms.
        run_ms: u64,
        /// Folder of its results on this machine.
        results: PathBuf,
    },
    /// The scheduler confirmed the end and has the results.
    Delivered {
        /// Id of the job.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
    },
    /// The job was no longer this testbox's, or its end was refused. Its folder is removed, unless all folders are
    /// kept.
    Dropped {
        /// Id of the job.
        job_id: String,
        /// Number of the attempt.
        attempt: u16,
        /// Reason, for people.
        reason: String,
    },
}

/// Sender of events. `None`: nobody listens.
#[derive(Debug, Clone)]
pub(crate) struct Events(pub(crate) Option<mpsc::Sender<AgentEvent>>);

impl Events {
    /// Sends an event, unless nobody listens or the queue is full.
    pub(crate) fn send(&self, event: AgentEvent) {
        if let Some(listener) = &self.0 {
            // The listener chose the bound of the channel, so a full one drops events.
            let _ = listener.try_send(event);
        }
    }
}
