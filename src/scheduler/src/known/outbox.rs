//! Hints that wait to be sent to other replicas.

use std::{collections::VecDeque, sync::Arc};

use fairlead_store::{JobState, StoredJob, Version};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Notify;

use crate::known::replicas::Peer;

/// Most states that wait to be told; what is over it is found in the store.
pub(crate) const WAITING_MAX: usize = 4_000;

/// Most states in one message.
pub(crate) const BATCH_MAX: usize = 500;

/// Of one submit so many jobs are told: the others see the rest when they count.
pub(crate) const SUBMITTED_MAX: usize = 64;

/// The layout of messages.
const FORMAT: u16 = 2;

/// One message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    format: u16,
    pub(crate) from: Peer,
    /// Jobs as they are stored: `primary_term`, `seq_no`, `state`.
    #[serde(default)]
    pub(crate) jobs: Vec<HintedJob>,
    /// Queues whose policy was changed.
    #[serde(default)]
    pub(crate) queues: Vec<String>,
    /// Hosts that ask here now, and with which turn.
    #[serde(default)]
    pub(crate) hosts: Vec<HintedHost>,
}

impl Message {
    pub(crate) fn of(next: Waiting, from: Peer) -> Self {
        let jobs = next.jobs.iter().filter_map(|job| HintedJob::of(job));
        Self {
            format: FORMAT,
            from,
            jobs: jobs.collect(),
            queues: next.queues,
            hosts: next.hosts.into(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HintedJob {
    pub(crate) primary_term: u64,
    pub(crate) seq_no: u64,
    pub(crate) state: Box<RawValue>,
}

impl HintedJob {
    pub(crate) fn of(job: &StoredJob) -> Option<Self> {
        Some(Self {
            primary_term: job.version.primary_term,
            seq_no: job.version.seq_no,
            state: to_raw_value(&job.state).ok()?,
        })
    }
}

/// A host that asks another replica now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HintedHost {
    pub(crate) host: String,
    pub(crate) primary_term: u64,
    pub(crate) seq_no: u64,
}

impl HintedHost {
    pub(crate) fn of(host: &str, turn: Version) -> Self {
        Self {
            host: host.to_owned(),
            primary_term: turn.primary_term,
            seq_no: turn.seq_no,
        }
    }

    /// The version of its session document: every later turn, one of a repeated request too, has a greater one.
    pub(crate) fn turn(&self) -> Version {
        Version {
            primary_term: self.primary_term,
            seq_no: self.seq_no,
        }
    }
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    pub(crate) ready: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) jobs: VecDeque<Arc<StoredJob>>,
    pub(crate) queues: Vec<String>,
    pub(crate) hosts: VecDeque<HintedHost>,
}

impl Outbox {
    /// A job was written.
    pub(crate) fn job(&self, job: Arc<StoredJob>) {
        self.with(|waiting| {
            if waiting.jobs.len() < WAITING_MAX {
                waiting.jobs.push_back(job);
            }
        });
    }

    /// A queue's policy was written.
    pub(crate) fn queue(&self, name: &str) {
        self.with(|waiting| {
            if waiting.queues.len() < WAITING_MAX {
                waiting.queues.push(name.to_owned());
            }
        });
    }

    /// A host asks here.
    pub(crate) fn host(&self, host: HintedHost) {
        self.with(|waiting| {
            if waiting.hosts.len() < WAITING_MAX {
                waiting.hosts.push_back(host);
            }
        });
    }

    fn with(&self, work: impl FnOnce(&mut Waiting)) {
        work(&mut self.waiting.lock());
        self.ready.notify_one();
    }

    /// What goes into the next message, if there is anything to tell.
    pub(crate) fn take(&self) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        let jobs = waiting.jobs.len().min(BATCH_MAX);
        let hosts = waiting.hosts.len().min(BATCH_MAX);
        let next = Waiting {
            jobs: waiting.jobs.drain(..jobs).collect(),
            queues: std::mem::take(&mut waiting.queues),
            hosts: waiting.hosts.drain(..hosts).collect(),
        };
        let empty = next.jobs.is_empty() && next.queues.is_empty() && next.hosts.is_empty();
        (!empty).then_some(next)
    }
}

/// A state that another replica told, as the store has it.
pub(crate) fn stored(state: JobState, primary_term: u64, seq_no: u64) -> StoredJob {
    StoredJob {
        state,
        version: Version {
            primary_term,
            seq_no,
        },
    }
}
