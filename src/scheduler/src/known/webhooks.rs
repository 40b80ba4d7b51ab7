//! Webhooks that are to be sent: their stored documents, and which of them to look at.

use std::{collections::BTreeMap, sync::Arc};

use fairlead_dispatch::Millis;
use fairlead_job::JobId;
use fairlead_store::{DocKind, JobState};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore};

use crate::storage::small_doc::SmallDoc;

/// What is told of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// It has ended.
    Ended,
    /// The first of its shards failed for good.
    Failing,
}

impl Event {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Failing => "failing",
        }
    }
}

/// How far a webhook is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// Its event has not come.
    #[default]
    Waiting,
    /// It is tried, perhaps again.
    Trying,
    /// The receiver took it.
    Sent,
    /// It was tried as often as it is.
    Dead,
}

/// A webhook, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Webhook {
    /// When somebody looks at it again, UTC epoch ms; 0: never.
    pub(crate) at_ms: u64,
    pub(crate) job_id: JobId,
    pub(crate) account: String,
    pub(crate) event: Event,
    #[serde(default)]
    pub(crate) standing: Standing,
    /// When it was written, or last changed its standing.
    #[serde(default)]
    pub(crate) since_ms: u64,
    /// How often it was tried.
    #[serde(default)]
    pub(crate) tries: u32,
    /// A replica tries it until then, UTC epoch ms.
    #[serde(default)]
    pub(crate) tried_until_ms: u64,
    /// What became of the last try; empty: it was taken.
    #[serde(default)]
    pub(crate) problem: String,
}

impl SmallDoc for Webhook {
    const KIND: DocKind = DocKind::Webhook;
}

/// Which webhook: the job and the event.
pub(crate) type Key = (JobId, Event);

/// The document's id, which is also what the receiver knows it by.
pub(crate) fn id_of((job, event): Key) -> String {
    format!("{job}.{}", event.as_str())
}

/// The same from an id; `None`: it is none.
pub(crate) fn key_of(id: &str) -> Option<Key> {
    let (job, event) = id.split_once('.')?;
    let event = [Event::Ended, Event::Failing]
        .into_iter()
        .find(|known| known.as_str() == event)?;
    Some((job.parse().ok()?, event))
}

/// How soon somebody looks at a job whose end nobody told, ms.
pub(crate) const CHECK_MS: u64 = 60_000;
/// Webhooks that are seen to side by side.
const ABREAST: usize = 32;

impl Webhook {
    /// One whose event is yet to come, or has just come.
    pub(crate) fn new(state: &JobState, event: Event, now_ms: u64) -> Self {
        let wait_ms = match event {
            Event::Ended => CHECK_MS,
            Event::Failing => 0,
        };
        Self {
            at_ms: now_ms.saturating_add(wait_ms).max(1),
            job_id: state.job_id,
            account: state.account.clone(),
            event,
            standing: Standing::Waiting,
            since_ms: now_ms,
            tries: 0,
            tried_until_ms: 0,
            problem: String::new(),
        }
    }
}

/// Webhooks to look at soon, by this replica's own clock.
#[derive(Debug)]
pub(crate) struct Webhooks {
    due: Mutex<BTreeMap<Key, Millis>>,
    pub(crate) is_due: Notify,
    /// Webhooks that are seen to side by side.
    pub(crate) room: Arc<Semaphore>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            due: Mutex::default(),
            is_due: Notify::new(),
            room: Arc::new(Semaphore::new(ABREAST)),
        }
    }
}

impl Webhooks {
    /// Looks at it at this time, or sooner.
    pub(crate) fn look_at(&self, key: Key, at: Millis) {
        let mut due = self.due.lock();
        let known = due.entry(key).or_insert(at);
        *known = (*known).min(at);
        drop(due);
        self.is_due.notify_one();
    }

    /// Those to look at by now.
    pub(crate) fn take_due(&self, now: Millis) -> Vec<Key> {
        let mut due = self.due.lock();
        let keys = due.iter().filter(|(_, at)| **at <= now);
        let keys: Vec<Key> = keys.map(|(key, _)| *key).collect();
        for key in &keys {
            due.remove(key);
        }
        keys
    }
}
