//! Events for the embedder of an agent. They never delay the agent: if the channel is full, an event is dropped.

use std::path::PathBuf;

use fairlead_job::{Health, Stage};
use tokio::sync::mpsc;

/// Something that happened on the testbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A scheduler answers: the first time, and again after [`AgentEvent::Lost`].
    Connected {
        /// Its base URL.
        url: String,
    },
    /// No scheduler answers. The agent carries on and goes on trying.
    Lost {
        /// Why.
        cause: String,
    },
    /// A job was taken.
    Granted {
        /// The job.
        job_id: String,
        /// Which try.
        attempt: u16,
        /// Its suite, empty when it has none.
        suite: String,
        /// Memory that it takes of the host, MB; hw: 0.
        memory_mb: u32,
    },
    /// A job has its inputs.
    Inputs {
        /// The job.
        job_id: String,
        /// Which try.
        attempt: u16,
        /// How many files, links and empty folders.
        files: u64,
        /// Bytes of all its files.
        bytes: u64,
        /// Bytes that were fetched for it; all others were here.
        fetched_bytes: u64,
    },
    /// A file of the cache of inputs was damaged. No job gets it: it is fetched anew.
    CacheDamaged {
        /// The job that wanted it.
        job_id: String,
        /// Which try.
        attempt: u16,
        /// Where it is below the job's `inputs` folder.
        file: String,
    },
    /// A job has come to this stage.
    Stage {
        /// The job.
        job_id: String,
        /// Which try.
        attempt: u16,
        /// How far.
        stage: Stage,
    },
    /// Nothing of the job runs any more; its results are not delivered yet.
    Ended {
        /// The job.
        job_id: String,
        /// Which try.
        attempt: u16,
        /// How it ended.
        health: Health,
        /// Exit code of its script; 128 + n after signal n; `None` when it never ran.
        exit_code: Option<i32>,
        /// Why, one sentence; empty after a success.
        reason: String,
        /// How long its script ran, ms.
        run_ms: u64,
        /// Its local result folder.
        results: PathBuf,
    },
    /// The scheduler has confirmed the end and has the results.
    Delivered {
        /// The job.
        job_id: String,
        /// Which try.
        attempt: u16,
    },
    /// The job was no longer this testbox's, or its end was refused. Its folder is removed, unless all are kept.
    Dropped {
        /// The job.
        job_id: String,
        /// Which try.
        attempt: u16,
        /// Why.
        reason: String,
    },
}

/// The sending end, which may be nobody's.
#[derive(Debug, Clone)]
pub(crate) struct Events(pub(crate) Option<mpsc::Sender<AgentEvent>>);

impl Events {
    /// Tells, unless nobody listens or the listener is behind.
    pub(crate) fn send(&self, event: AgentEvent) {
        if let Some(listener) = &self.0 {
            // A full channel is the listener's own choice of a bound.
            let _ = listener.try_send(event);
        }
    }
}
